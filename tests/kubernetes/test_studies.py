"""The kit's studies of a cluster, as far as can be told before anything is made there."""

from framestorm import paths
from framestorm.platform.kubernetes.cluster import Cluster
from framestorm.platform.kubernetes.needs import NAMESPACE
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
    plain = run_sh(*asked, "--only", "platform=kubernetes", out="", status=1).stdout
    (missing,) = [line for line in plain.splitlines() if line.startswith("MISSING")]
    assert missing.startswith("MISSING metrics-server: there is no deployment metrics-server in namespace kube-system")
    assert serving.find("namespace", NAMESPACE) is None
