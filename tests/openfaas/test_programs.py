"""What is written in Go, and the files for other tools: checked by the tools themselves."""

import hashlib
import json
import os
import re
import shlex
import shutil
import string
import subprocess
from pathlib import Path

import pytest
import yaml

from framestorm.platform.kubernetes.layout import SOURCE as KUBERNETES
from framestorm.platform.openfaas import metrics, parts
from framestorm.platform.openfaas.layout import BIN, FUNCTIONS, NAMESPACE, SOURCE, STACK, UPSTREAM_TIMEOUT_S
from framestorm.setup import golang
from framestorm.testing import GO_MODULES

# The other programs of the module call others' main functions, whose dependencies are thousands of packages.
OWN_OF_KUBERNETES = ("./ingress", "./provider")
GRAFANA = FUNCTIONS.parent / "dashboards" / "grafana-openfaas.json"

# The original study's cluster, as far as it can be checked where no container registry is reached.
KIND = FUNCTIONS / "kind"
VERSIONS = dict(re.findall(r'^readonly (\w+)="?([^"\n]+)"?$', (KIND / "versions.sh").read_text(), re.MULTILINE))
TOOLS = ("docker", "kind", "kubectl", "helm")
CHART = "what helm pulls"

DOCKERFILES = sorted(FUNCTIONS.glob("images/*.Dockerfile"))
# docs/security.md names it, and why.
WITHOUT_DIGEST = {"ghcr.io/openfaas/of-watchdog:0.10.7"}


@pytest.fixture(scope="module")
def go() -> Path:
    return golang.GO.resolve()


def call(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **golang.environment()}
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", GO_MODULES, ids=lambda module: module.name)
def test_go_module(go, module):
    assert call(go.parent / "gofmt", "-l", ".", cwd=module).stdout == ""
    packages = OWN_OF_KUBERNETES if module == KUBERNETES else ("./...",)
    # By `go vet` and `go test`, all dependencies would be read twice.
    tested = call(go, "test", "-vet=all", *packages, cwd=module)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_function_of_the_stack_has_its_image():
    named = set(re.findall(r"image: \$\{OPENFAAS_PREFIX:-framestorm\}/([a-z-]+):", STACK.read_text()))
    assert named == set(parts.catalogue(parts.HERE))


def test_the_dashboard_shows_metrics_that_are_recorded():
    panels = json.loads(GRAFANA.read_text())["panels"]
    drawn = set(re.findall(r"(?:framestorm|gateway)_[a-z_]+", json.dumps([p["targets"] for p in panels])))
    recorded = set(
        re.findall(r"(?:framestorm|gateway)_[a-z_]+", " ".join(query for query, _ in metrics.METRICS.values()))
    )
    assert drawn == recorded


def test_a_long_run_is_asked_for_in_longer_steps():
    steps = [metrics._question("rate(x[10s])", 0, end_s)[1]["step"] for end_s in (0, 100, 20_000)]
    assert steps == [1, 1, 2]
    assert metrics._question("x", 5, 11.5) == ("query", {"query": "x[6500ms]", "time": 11.5})


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


def published_images() -> set[str]:
    """The images of registries that up.sh and the Dockerfiles start from."""
    images = {image for name, image in VERSIONS.items() if name.endswith("_IMAGE")}
    for dockerfile in DOCKERFILES:
        text = dockerfile.read_text()
        defaults = dict(re.findall(r"^ARG (\w+)=(\S+)$", text, re.MULTILINE))
        stages = re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE)
        sources = re.findall(r"(?:^FROM |--from=)(\S+)", text, re.MULTILINE)
        images |= {string.Template(source).substitute(defaults) for source in sources} - {"scratch", *stages}
    return images


def test_every_published_image_has_one_digest():
    images = published_images()
    assert {"golang", "python", "node", "eclipse-temurin", "registry"} <= {image.partition(":")[0] for image in images}
    with_digest = {image for image in images if re.fullmatch(r"[a-z/-]+:[\w.-]+@sha256:[0-9a-f]{64}", image)}
    assert images - with_digest == WITHOUT_DIGEST
    assert len({image.partition("@")[0] for image in images}) == len(images)


def test_the_dockerfiles_make_the_watchdog_that_is_used_here(go, tmp_path):
    builds = {
        re.search(r"^RUN (.* -o /fwatchdog .*)$", dockerfile.read_text(), re.MULTILINE)[1] for dockerfile in DOCKERFILES
    }
    assert len(builds) == 1
    words = shlex.split(builds.pop().replace("/fwatchdog", str(tmp_path / "fwatchdog")))
    built = call("env", f"PATH={go.parent}:{os.environ['PATH']}", *words, cwd=SOURCE / "parts" / "watchdog")
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "fwatchdog").read_bytes() == (BIN / "watchdog").read_bytes()


def test_versions_are_pinned():
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSIONS["CHART_VERSION"])
    assert re.fullmatch(r"[0-9a-f]{64}", VERSIONS["CHART_SHA256"])
    # The node image is that of the very kind that is built here.
    version = re.search(r"sigs\.k8s\.io/kind (v\S+)", (KIND / "go.mod").read_text())[1]
    source = golang.HOME / "path/pkg/mod/sigs.k8s.io" / f"kind@{version}" / "pkg/apis/config/defaults/image.go"
    assert f'const Image = "{VERSIONS["NODE_IMAGE"]}"' in source.read_text()


@pytest.fixture
def up(tmp_path):
    """Runs up.sh, its chart's digest that of CHART, with tools that only write down how they were called.

    `fails` is a call of which one fails; `chart` is what helm pulls.
    """
    folder = tmp_path / "cluster"
    shutil.copytree(KIND, folder)
    versions = folder / "versions.sh"
    digest = hashlib.sha256(CHART.encode()).hexdigest()
    versions.write_text(versions.read_text().replace(VERSIONS["CHART_SHA256"], digest))

    def run(
        fails: str = "-", tools: tuple[str, ...] = TOOLS, chart: str = CHART
    ) -> tuple[subprocess.CompletedProcess[str], str]:
        log = tmp_path / "calls"
        log.touch()
        for name in ("bash", "dirname", "env", "grep", "mktemp", "rm", "cat", "sha256sum"):
            (tmp_path / name).symlink_to(f"/usr/bin/{name}")
        for tool in tools:
            script = f'#!/bin/bash\nprintf "%s\\n" "{tool} $*" >>{log}\n'
            if tool == "helm":
                file = f"openfaas-{VERSIONS['CHART_VERSION']}.tgz"
                script += f'[[ "$1" != pull ]] || printf "%s" "{chart}" >"${{!#}}/{file}"\n'
            (tmp_path / tool).write_text(f'{script}[[ "{tool} $*" != {fails} ]]\n')
            (tmp_path / tool).chmod(0o755)
        environment = {"PATH": str(tmp_path), "TMPDIR": str(tmp_path)}
        done = subprocess.run([folder / "up.sh"], env=environment, capture_output=True, text=True, check=False)
        return done, log.read_text()

    return run


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ({"tools": ("docker", "kind", "helm")}, "kubectl is needed and was not found"),
        (
            {"fails": "docker*registry:2.8.3*"},
            f"{VERSIONS['REGISTRY_IMAGE']} cannot be pulled; without access to a container registry use",
        ),
        ({"fails": "helm*pull*"}, f"openfaas-{VERSIONS['CHART_VERSION']}.tgz cannot be pulled from"),
        ({"chart": "of another"}, f"has SHA-256 {hashlib.sha256(b'of another').hexdigest()}, not"),
    ],
)
def test_up_says_what_it_needs_and_begins_nothing(up, trouble, words):
    done, calls = up(**trouble)
    assert done.returncode == 1
    assert words in done.stderr
    assert not re.search("^(docker run|kind|kubectl|helm upgrade)", calls, re.MULTILINE)


def test_up_makes_what_the_versions_name(up, tmp_path):
    done, calls = up()
    assert done.returncode == 0, done.stderr
    assert VERSIONS["GATEWAY_URL"] in done.stdout
    folder = tmp_path / "cluster"
    pull = f"helm pull openfaas --repo {VERSIONS['CHART_REPOSITORY']} --version {VERSIONS['CHART_VERSION']}"
    create = f"kind create cluster --name framestorm --image {VERSIONS['NODE_IMAGE']} --config {folder}/cluster.yaml"
    install = re.search(r"helm upgrade openfaas (\S+) --install", calls)
    chart = Path(install[1])
    assert f"{pull} --destination {chart.parent}\n" in calls and not chart.parent.exists()
    assert calls.index(f"--publish 127.0.0.1:5001:5000 {VERSIONS['REGISTRY_IMAGE']}") < calls.index(create)
    assert calls.index(create) < install.start()
    assert f"--values {folder}/values.yaml" in calls and f"--filename {folder}/prometheus-nodeport.yaml" in calls
