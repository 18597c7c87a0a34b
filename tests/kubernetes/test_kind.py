"""The cluster that the kit makes from sources: what runs in it, and that nothing of it is left on the machine."""

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from framestorm.machine import answers, wait_until
from framestorm.platform import registry
from framestorm.platform.base import Site
from framestorm.platform.kubernetes import engine, layout, manifests, needs, openfaas, store
from framestorm.platform.kubernetes.cluster import NAMESPACE, Cluster, ClusterError
from framestorm.platform.openfaas import docker
from framestorm.platform.openfaas.layout import BIN, FAAS_CLI
from framestorm.platform.registry import Platforms
from framestorm.probe import CGROUPS
from lab.container import IMAGE
from tests.docs.test_pages import blocks, shown
from tests.runs import COMPLETE, Running, RunSh

WITHIN_S = 120
INGRESS = f"http://{layout.ADDRESS}:{layout.INGRESS_PORT}"
GATEWAY = layout.GATEWAY_URL
# For so long OpenFaaS's gateway takes a function for one that has replicas.
GATEWAY_REMEMBERS_S = 0.25
NOOP = "dev.local/noop:1"
HPA_RATE_PER_S = 300
OCR = f"{layout.REGISTRY}/ocr:1"
STUDY = """\
title: Activator
question: What does the activator add?
plan: jmx/requests.jmx
{target}
properties: {{ramp_s: 0, hold_s: 2, users: 1}}
repetitions: 1
run_s: 2
budget_min: 5
metrics: [mean_ms, success]
hypotheses:
  - name: slower
    text: With the activator alone it is faster than through the ingress.
    claims: [{{metric: mean_ms, compare: {{target.route: [activator, ingress]}}, expect: "< 1"}}]
charts:
  - {{title: Mean, metric: mean_ms, x: target.concurrency_limit, lines: target.route}}
"""
ONE_POINT = ("--only", "target.concurrency_limit=0", "--only", "target.route=activator")
# Which systemd and a kubelet change on a machine that is theirs.
SYSCTLS = (
    *("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys"),
    *("fs/file-max", "fs/nr_open", "fs/protected_regular", "fs/protected_symlinks", "fs/protected_fifos"),
    *("net/ipv4/ip_forward", "net/netfilter/nf_conntrack_max", "fs/inotify/max_user_watches"),
)


def sysctls() -> dict[str, str]:
    files = {name: Path("/proc/sys", name) for name in SYSCTLS}
    return {name: file.read_text().strip() for name, file in files.items() if file.exists()}


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def processes() -> set[str]:
    """What runs in the engine's control groups or names its folder."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_text() + (folder / "cgroup").read_text()
        except OSError:
            continue
        if layout.INSTANCE in words:
            found.add(words)
    return found


def traces() -> dict[str, Any]:
    """What a cluster would leave on this machine."""
    return {
        "sysctls": sysctls(),
        "links": "fs-kind" in output("ip", "-brief", "link"),
        "routes": [line for line in output("ip", "route").splitlines() if layout.CLUSTER_END in line],
        # Without its comments, which have the time, and the counters of its chains.
        "iptables": re.sub(r"^#.*\n|\[\d+:\d+\]", "", output("iptables-save"), flags=re.MULTILINE),
        "mounts": [line for line in Path("/proc/mounts").read_text().splitlines() if layout.INSTANCE in line],
        "docker's mounts": str(engine.DATA) in Path("/proc/mounts").read_text(),
        "cgroups": sorted(map(str, (*CGROUPS.glob(layout.INSTANCE), *CGROUPS.glob(f"*/{layout.INSTANCE}")))),
        "modules": engine.MODULES.exists(),
        "sockets": engine.RUN.exists(),
        "processes": processes(),
        "registry": store.IMAGES.exists() or answers(f"http://{layout.REGISTRY}/v2/"),
    }


@pytest.fixture(scope="module")
def run_sh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunSh]:
    if os.geteuid() != 0:
        pytest.fail("a cluster needs root: run the tests as root or by sudo")
    calls = RunSh(tmp_path_factory.mktemp("kind"))
    yield calls
    calls("./run.sh target down", out="")
    calls.close()


@pytest.fixture(scope="module")
def before(run_sh: RunSh) -> dict[str, Any]:
    """What the machine has without a cluster."""
    run_sh("./run.sh target down", out="")
    return traces()


@pytest.fixture(scope="module")
def made(run_sh: RunSh, before: dict[str, Any]) -> Cluster:
    run_sh("./run.sh target kind --from-source", out="")
    return Cluster(layout.CONTEXT, layout.KUBECONFIG)


def wait_for(made: Cluster, kind: str, name: str) -> dict[str, Any]:
    """Wait until an object is ready."""

    def ready() -> dict[str, Any] | None:
        item = made.get(kind, name, "default")
        conditions = {each["type"]: each["status"] for each in item.get("status", {}).get("conditions", ())}
        return item if conditions.get("Ready") == "True" else None

    item = wait_until(ready, WITHIN_S)
    assert item is not None, made.get(kind, name, "default").get("status")
    return item


def ask(url: str) -> requests.Response:
    """Ask a function through the ingress, by the host of its URL."""
    return requests.get(INGRESS, headers={"Host": url.removeprefix("http://")}, timeout=WITHIN_S)


def container(**more: Any) -> dict[str, Any]:
    return {"image": NOOP, "resources": {"requests": {"cpu": "10m"}}, **more}


def knative_service(name: str, scaling: dict[str, str]) -> dict[str, Any]:
    annotations = {f"autoscaling.knative.dev/{key}": value for key, value in scaling.items()}
    return {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"metadata": {"annotations": annotations}, "spec": {"containers": [container()]}}},
    }


@pytest.mark.parametrize("platform", needs.NEEDS)
def test_it_has_what_every_platform_needs(made: Cluster, platform: str) -> None:
    missing = [check for check in needs.checks(made, platform) if not check.is_there]
    assert not missing


def test_the_machine_keeps_its_settings_while_it_runs(made: Cluster, before: dict[str, Any]) -> None:
    assert sysctls() == before["sysctls"]
    assert traces()["iptables"] == before["iptables"]
    assert processes(), "the search finds what runs"


def test_a_knative_service_scales_to_zero_and_answers_from_there(made: Cluster) -> None:
    scaling = {"window": "6s", "scale-to-zero-pod-retention-period": "0s", "max-scale": "2"}
    made.apply([knative_service("zero", scaling)])
    url = wait_for(made, "services.serving.knative.dev", "zero")["status"]["url"]
    assert ask(url).text == "ok"

    def pods() -> str:
        return made.call("get", "pods", "--namespace=default", "--selector=serving.knative.dev/service=zero")

    assert wait_until(lambda: "zero" not in pods(), WITHIN_S), pods()
    assert ask(url).text == "ok", "the request waits for a pod"
    assert "zero" in pods()


# One study has the cluster at a time: this one is closed before the studies of other tests.
@pytest.fixture(scope="class")
def platforms(made: Cluster, run_sh: RunSh) -> Iterator[Platforms]:
    """Those of a study on this cluster."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(layout.KUBECONFIG))
        study = Platforms(Site(context=layout.CONTEXT), run_sh.folder / "study")
        yield study
        study.close()


class TestPlatformsOfAStudy:
    @pytest.mark.parametrize(
        "values",
        [
            {"kind": "kubernetes", "min_scale": 2},
            {"kind": "kubernetes", "route": "pod"},
            {"kind": "knative", "min_scale": 1, "max_scale": 1, "route": "queue-proxy"},
            {"kind": "kserve", "mode": "raw"},
            {"kind": "kserve", "mode": "serverless"},
        ],
        ids=lambda values: "-".join(map(str, values.values())),
    )
    def test_a_study_makes_the_same_function_on_every_platform(
        self, platforms: Platforms, values: dict[str, Any]
    ) -> None:
        platform = platforms.prepare(registry.read({"function": "noop", "memory": "64Mi", **values}))
        assert requests.post(platform.url, headers=platform.headers(), timeout=WITHIN_S).text == "ok"
        assert platform.settings_as_text()["memory_limit"] == "64Mi"

    @pytest.mark.long
    def test_an_autoscaler_adds_replicas_under_load(self, made: Cluster, platforms: Platforms, run_sh: RunSh) -> None:
        scaled = {"autoscaler": "hpa", "target": 50, "max_scale": 2, "cpu_request": "50m"}
        settings = {"kind": "kubernetes", "function": "noop", "image": NOOP, **scaled}
        platform = platforms.prepare(registry.read(settings))
        load = (f"-Jurl={platform.url}", f"-Jrate_per_s={HPA_RATE_PER_S}", "-Jramp_s=0", "-Jhold_s=300")
        running = run_sh.start("-t", "jmx/request-rate.jmx", *load, f"--context={layout.CONTEXT}", out="hpa")
        running.until(lambda: made.get("deployment", "noop", NAMESPACE)["status"].get("readyReplicas") == 2)
        # The run sees it too while it sends for some seconds more.
        until = running.lines("samples.jtl") + 5 * HPA_RATE_PER_S
        running.until(lambda: running.lines("samples.jtl") > until)
        running.interrupt()
        run = running.ended(4)
        wanted = {float(row["value"]) for row in run.rows("metrics.csv") if row["metric"] == "autoscaler_wanted"}
        assert max(wanted) == 2
        (function,) = run.json("summary.json")["functions"]
        assert function["ready"] == {"min": 1, "max": 2} and len(function["activations"]) == 1


@pytest.fixture(scope="module")
def noop(made: Cluster) -> str:
    """The function `noop` on OpenFaaS, which answers at this address."""
    words = ("deploy", f"--gateway={GATEWAY}", f"--image={NOOP}", "--name=noop", "--label=com.openfaas.scale.zero=true")
    output(str(FAAS_CLI), *words)
    url = f"{GATEWAY}/function/noop"
    assert wait_until(lambda: requests.post(url, timeout=WITHIN_S).text == "ok", WITHIN_S)
    return url


def test_openfaas_deploys_lists_and_scales_from_zero(made: Cluster, noop: str) -> None:
    assert "noop" in output(str(FAAS_CLI), "list", f"--gateway={GATEWAY}")
    made.call("scale", "deployment", "noop", "--namespace=openfaas-fn", "--replicas=0")

    def status() -> dict[str, Any]:
        return dict(requests.get(f"{GATEWAY}/system/function/noop", timeout=WITHIN_S).json())

    assert wait_until(lambda: not status().get("availableReplicas"), WITHIN_S), status()
    time.sleep(2 * GATEWAY_REMEMBERS_S)
    assert requests.post(noop, timeout=WITHIN_S).text == "ok"


@pytest.fixture
def readers(made: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What a reader of docs/kubernetes.md has, by its name there: this cluster, a Service, a function and a study."""
    monkeypatch.setenv("KUBECONFIG", str(layout.KUBECONFIG))
    made.apply([knative_service("noop", {"max-scale": "2"})])
    (tmp_path / "ocr").mkdir()
    shutil.copy(BIN / "noop", tmp_path / "ocr")
    (tmp_path / "ocr" / "Dockerfile").write_text('FROM scratch\nCOPY noop /\nENTRYPOINT ["/noop", "serve"]\n')
    stack, study = tmp_path / "cluster.yml", tmp_path / "my-study"
    stack.write_text(f"provider: {{name: openfaas}}\nfunctions: {{ocr: {{skip_build: true, image: '{OCR}'}}}}\n")
    study.mkdir()
    (target,) = (block for block in blocks("kubernetes.md", "yaml") if block.startswith("target: {kind: knative"))
    (study / "study.yml").write_text(STUDY.format(target=target.replace("registry.example.com/noop:1", NOOP)))
    host = {"noop.default.example.com": f"noop.default.{manifests.DOMAIN}"}
    return {"staging": layout.CONTEXT, "cluster.yml": str(stack), "my-study": str(study), **host}


@pytest.mark.long
def test_the_page_s_commands_for_a_cluster(run_sh: RunSh, readers: dict[str, str], tmp_path: Path) -> None:
    done = {}
    with docker.engine():
        for number, line in enumerate(shown("kubernetes.md", "console")):
            command = re.sub("|".join(readers), lambda found: readers[found[0]], line.removeprefix("sudo "))
            if command.startswith("docker"):
                subprocess.run(shlex.split(command), cwd=tmp_path, check=True, capture_output=True)
                continue
            is_run, is_study = command.startswith("./run.sh -"), command.startswith("./run.sh study")
            less = ("-Jhold_s=3", "-Jramp_s=0") if is_run else ONE_POINT if is_study else ()
            done[command] = run_sh(
                command, *less, out=f"page{number}" if is_run or is_study else "", status=COMPLETE if is_study else 0
            )
    (frames,) = (each for command, each in done.items() if "face-blur" in command and "-Jurl" in command)
    assert frames.count("label", "success")["frame", "true"] > 0
    (calibrated,) = (each for command, each in done.items() if "--calibrate" in command)
    parts = {part["name"]: part["adds"] for part in calibrated.json("summary.json")["calibration"]["parts"]}
    assert parts.keys() == {"function", "queue-proxy", "activator", "ingress"}
    assert all(adds["low"] > 0 for name, adds in parts.items() if name != "function")
    assert "requests went through the activator for" in calibrated.text("index.html")
    assert requests.post(f"{GATEWAY}/function/ocr", timeout=WITHIN_S).text == "ok"
    for function in ("face-blur", "ocr"):
        output(str(FAAS_CLI), "remove", f"--gateway={GATEWAY}", function)


def test_a_function_that_does_not_start_is_named_with_the_reason(made: Cluster, run_sh: RunSh) -> None:
    stack = run_sh.folder / "absent.yml"
    stack.write_text("provider: {name: openfaas}\nfunctions: {absent: {skip_build: true, image: dev.local/absent:1}}\n")
    said = run_sh(f"./run.sh target deploy --on kind -f {stack}", out="", status=1).stderr
    assert re.search(r"absent does not become ready: pod absent-\S+ in namespace openfaas-fn: \w*ImagePull", said)
    output(str(FAAS_CLI), "remove", f"--gateway={GATEWAY}", "absent")


@pytest.fixture(scope="module")
def kit(made: Cluster) -> str:
    """The kit's image, which is on the node."""
    with docker.engine():
        openfaas.load([IMAGE])
    return IMAGE


@pytest.mark.usefixtures("noop")
@pytest.mark.long
def test_the_page_s_commands_for_pods(run_sh: RunSh, kit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(layout.KUBECONFIG))
    *_, block = blocks("containers.md", "console")
    tag, load, run = block.splitlines()
    with docker.engine():
        docker.ENGINE.run(*shlex.split(tag.replace("docker tag framestorm ", f"tag {kit} "), comments=True))
        openfaas.load([shlex.split(load, comments=True)[-1]])
    # 60 users at once may be more than this machine answers beside other tests.
    done = run_sh(run.replace("k8s:6", "k8s:2"), "-Jhold_s=3", "-Jramp_s=0", out="page-pods", status=(0, 3))
    rows = done.rows()
    assert {row["Hostname"] for row in rows} == {"slave1", "slave2"}
    assert sum(row["success"] == "true" for row in rows) > 0.9 * len(rows)


def start_load(run_sh: RunSh, kit: str, out: str, *words: str) -> Running:
    url = "http://noop.openfaas-fn:8080/"  # in the cluster
    over = ("-R", "k8s:2", "--image", kit, "--context", layout.CONTEXT)
    return run_sh.start("-t", "jmx/requests.jmx", f"-Jurl={url}", "-Jusers=4", *words, *over, out=out)


def namespaces(made: Cluster) -> set[str]:
    items = made.get("namespaces", selector="app.kubernetes.io/component=load")["items"]
    return {item["metadata"]["name"] for item in items if item["status"]["phase"] == "Active"}


@pytest.mark.usefixtures("noop")
def test_the_load_comes_from_pods(made: Cluster, run_sh: RunSh, kit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(layout.KUBECONFIG))
    running = start_load(run_sh, kit, "pods", "-Jhold_s=5")
    # Beside other tests a request of a pod may find this machine too busy: the run is complete all the same.
    done = running.ended(0, 3)
    assert sorted(host["role"] for host in done.json("run.json")["hosts"]) == ["master", "slave", "slave"]
    assert {row["Hostname"] for row in done.rows() if row["success"] == "true"} == {"slave1", "slave2"}
    assert done.json("run.json")["state"] == "complete" and not namespaces(made)


@pytest.mark.usefixtures("noop")
@pytest.mark.long
def test_a_pod_that_is_killed_is_a_slave_that_is_lost(
    made: Cluster, run_sh: RunSh, kit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(layout.KUBECONFIG))
    running = start_load(run_sh, kit, "killed", "-Jhold_s=120")
    running.until_lines("samples.jtl")
    (namespace,) = namespaces(made)
    made.call("delete", "pod", "slave2", "--namespace", namespace, "--force", "--grace-period=0")
    done = running.ended(4)
    assert "slave2 was lost" in done.stderr and "slave1 was lost" not in done.stderr
    assert not namespaces(made)


def test_up_again_keeps_what_runs(made: Cluster, run_sh: RunSh) -> None:
    name = made.get("node", f"{layout.NAME}-control-plane")["metadata"]["uid"]
    run_sh("./run.sh target kind --from-source", out="")
    assert made.get("node", f"{layout.NAME}-control-plane")["metadata"]["uid"] == name


def test_nothing_is_left_on_the_machine(made: Cluster, run_sh: RunSh, before: dict[str, Any]) -> None:
    run_sh("./run.sh target down", out="")
    with pytest.raises(ClusterError):
        made.version()
    # Its processes were killed; the machine's first one may not have taken notice of them all.
    wait_until(lambda: traces() == before, 10)
    assert traces() == before
