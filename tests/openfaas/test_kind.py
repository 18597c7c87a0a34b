"""The original study's cluster, as far as it can be checked where no container registry is reached."""

import os
import re
import subprocess

import pytest
import yaml

from framestorm import paths
from framestorm.platform.openfaas import parts
from framestorm.platform.openfaas.layout import FUNCTIONS, NAMESPACE, UPSTREAM_TIMEOUT_S

KIND = FUNCTIONS / "kind"
SCRIPTS = sorted(KIND.glob("*.sh"))
VERSIONS = dict(re.findall(r'^readonly (\w+)="?([^"\n]+)"?$', (KIND / "versions.sh").read_text(), re.MULTILINE))
TOOLS = ("docker", "kind", "kubectl", "helm")


def load(name: str) -> dict:
    return yaml.safe_load((KIND / name).read_text())


def seconds(text: str) -> int:
    assert text.endswith("s")
    return int(text[:-1])


def test_the_cluster_is_one_that_kind_reads(tmp_path):
    """Without Docker kind gets as far as having read the file."""
    typo = tmp_path / "typo.yaml"
    typo.write_text((KIND / "cluster.yaml").read_text().replace("nodes:", "nodez:"))
    for file, words in ((KIND / "cluster.yaml", '"docker": executable file not found'), (typo, "unable to decode")):
        command = [parts.binary("kind"), "create", "cluster", "--config", file]
        done = subprocess.run(command, env={"PATH": "/nonexistent"}, capture_output=True, text=True, check=False)
        assert words in done.stderr, done.stderr


def test_manifests_and_values_agree_with_one_another():
    cluster, values = load("cluster.yaml"), load("values.yaml")
    prometheus, hosting = load("prometheus-nodeport.yaml"), load("registry-configmap.yaml")
    for manifest in (prometheus, hosting):
        assert manifest["apiVersion"] == "v1" and {"name", "namespace"} == set(manifest["metadata"])
    ports = {port["nodePort"] for port in prometheus["spec"]["ports"]} | {values["gateway"]["nodePort"]}
    assert all(30000 <= port <= 32767 for port in ports)
    mapped = [port for node in cluster["nodes"] for port in node["extraPortMappings"]]
    assert {port["containerPort"] for port in mapped} == {port["hostPort"] for port in mapped} == ports
    assert {port["listenAddress"] for port in mapped} == {"127.0.0.1"}
    assert VERSIONS["GATEWAY_URL"] == f"http://127.0.0.1:{values['gateway']['nodePort']}"
    assert cluster["name"] == VERSIONS["CLUSTER"] and values["functionNamespace"] == NAMESPACE
    host = yaml.safe_load(hosting["data"]["localRegistryHosting.v1"])["host"]
    assert host == f"localhost:{VERSIONS['REGISTRY_PORT']}"


def test_time_outs_grow_outwards():
    values = load("values.yaml")
    gateway = {name: seconds(value) for name, value in values["gateway"].items() if name.endswith("Timeout")}
    assert gateway["upstreamTimeout"] == UPSTREAM_TIMEOUT_S < min(gateway["readTimeout"], gateway["writeTimeout"])
    assert min(seconds(value) for value in values["faasnetes"].values()) > UPSTREAM_TIMEOUT_S
    assert seconds(values["queueWorker"]["ackWait"]) > gateway["writeTimeout"]


def test_versions_are_pinned():
    for name in ("NODE_IMAGE", "REGISTRY_IMAGE"):
        assert re.fullmatch(r"[a-z/]+:v?\d+\.\d+\.\d+", VERSIONS[name])
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSIONS["CHART_VERSION"])
    # The node image is one of the very kind that is built here.
    assert "sigs.k8s.io/kind v0.24.0" in (KIND / "go.mod").read_text()
    assert VERSIONS["NODE_IMAGE"] == "kindest/node:v1.31.0"


@pytest.fixture
def up(tmp_path):
    """Runs up.sh with tools that only write down how they were called; `fails` is a call of which one fails."""

    def run(fails: str = "-", tools: tuple[str, ...] = TOOLS) -> tuple[subprocess.CompletedProcess[str], str]:
        log = tmp_path / "calls"
        log.touch()
        for name in ("bash", "dirname", "env", "grep", "mktemp", "rm", "cat"):
            (tmp_path / name).symlink_to(f"/usr/bin/{name}")
        for tool in tools:
            script = f'#!/bin/bash\nprintf "%s\\n" "{tool} $*" >>{log}\n[[ "{tool} $*" != {fails} ]]\n'
            (tmp_path / tool).write_text(script)
            (tmp_path / tool).chmod(0o755)
        environment = {"PATH": str(tmp_path), "TMPDIR": str(tmp_path)}
        done = subprocess.run([KIND / "up.sh"], env=environment, capture_output=True, text=True, check=False)
        return done, log.read_text()

    return run


def test_up_says_what_tool_is_missing(up):
    done, _ = up(tools=("docker", "kind", "helm"))
    assert done.returncode == 1
    assert "kubectl is needed and was not found" in done.stderr


def test_up_says_that_it_needs_a_registry(up):
    done, calls = up(fails="docker*registry:2.8.3")
    assert done.returncode == 1
    assert "registry:2.8.3 cannot be pulled; without a way to a container registry use: ./run.sh target" in done.stderr
    assert "kind" not in calls, "nothing was begun"


def test_up_makes_what_the_versions_name(up):
    done, calls = up()
    assert done.returncode == 0, done.stderr
    assert VERSIONS["GATEWAY_URL"] in done.stdout
    create = f"kind create cluster --name framestorm --image {VERSIONS['NODE_IMAGE']} --config {KIND}/cluster.yaml"
    helm = f"helm upgrade openfaas openfaas --repo {VERSIONS['CHART_REPOSITORY']} --version {VERSIONS['CHART_VERSION']}"
    assert calls.index(f"--publish 127.0.0.1:5001:5000 {VERSIONS['REGISTRY_IMAGE']}") < calls.index(create)
    assert calls.index(create) < calls.index(helm)
    assert f"--values {KIND}/values.yaml" in calls and f"--filename {KIND}/prometheus-nodeport.yaml" in calls


def test_scripts_are_clean():
    tools = paths.TEST_PYTHON.parent
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    for command in (["shellcheck", "-x"], ["shfmt", "-i", "4", "-d"]):
        words = [tools / command[0], *command[1:], *SCRIPTS]
        done = subprocess.run(words, cwd=paths.ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
