"""The kit's studies of a cluster, as far as can be told before anything is made there."""

import pytest

from framestorm import paths
from framestorm.platform import registry
from framestorm.platform.base import Site
from framestorm.platform.kubernetes.cluster import NAMESPACE, Cluster
from tests.kubernetes import objects
from tests.kubernetes.conftest import CONTEXT
from tests.runs import RunSh

PLATFORMS = str(paths.STUDIES / "rate" / "platforms.yml")


def test_the_platforms_of_a_cluster_are_looked_over_and_nothing_is_made(serving: Cluster, run_sh: RunSh) -> None:
    objects.set_node(serving, "here", is_ready=True)
    asked = ("study", PLATFORMS, "--quick", "--dry-run", "--context", CONTEXT)
    whole = run_sh(*asked, out="", status=1).stdout
    assert "rate: 8 points x 2 repetitions = 16 runs" in whole
    platforms = {line.strip().partition(",")[0] for line in whole.splitlines() if "function noop" in line}
    assert platforms == {"kubernetes", "knative", "kserve"} and "mode raw" in whole
    assert "MISSING Knative Serving: there is no deployment activator in namespace knative-serving" in whole
    assert "MISSING KServe: " in whole
    plain = run_sh(*asked, "--only", "platform=kubernetes", out="").stdout
    assert "MISSING" not in plain and "ok      max scale" in plain
    assert serving.find("namespace", NAMESPACE) is None


def test_functions_behind_a_gateway_may_be_those_of_a_cluster(serving: Cluster, run_sh: RunSh) -> None:
    asked = ("study", "threads-by-sleep", "--quick", "--dry-run", "--context", CONTEXT)
    assert "MISSING context" in run_sh(*asked, out="", status=1).stdout
    # Nothing answers there.
    behind = run_sh(*asked, "--gateway", "http://127.0.0.1:9/", out="", status=1).stdout
    assert "the gateway or the function is running" in behind and "MISSING context" not in behind


@pytest.mark.parametrize(
    ("target", "missing"),
    [
        ({"kind": "kubernetes"}, set()),
        ({"kind": "kubernetes", "autoscaler": "hpa"}, {"metrics-server"}),
        ({"kind": "kubernetes", "autoscaler": "hpa", "max_scale": 1}, set()),
        ({"kind": "knative"}, {"Knative Serving"}),
        ({"kind": "knative", "autoscaler": "hpa", "min_scale": 1}, {"Knative Serving", "metrics-server"}),
        ({"kind": "kserve"}, {"KServe", "Knative Serving"}),
        ({"kind": "kserve", "mode": "raw"}, {"KServe", "metrics-server"}),
        ({"kind": "kserve", "mode": "raw", "max_scale": 1}, {"KServe"}),
    ],
)
def test_a_study_needs_what_its_points_use(serving: Cluster, target: dict[str, object], missing: set[str]) -> None:
    settings = registry.read({"function": "noop", **target})
    platform = registry.PLATFORMS[settings.kind](Site(context=CONTEXT))
    objects.set_node(serving, "here", is_ready=True)
    allocatable = {"allocatable": {"cpu": "4"}}
    objects.set_status(serving, "node", "here", "", allocatable)
    checks = platform.checks({"a": settings}, {})
    assert {check.what for check in checks if not check.is_there} == missing
