"""What is written in Go, and the files for other tools: checked by the tools themselves."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from framestorm import paths, setup
from framestorm.openfaas import images, metrics, parts, services
from framestorm.openfaas.layout import FUNCTIONS, HOME, SOURCE, STACK

MODULES = [SOURCE / "provider", FUNCTIONS]
KIND = FUNCTIONS / "kind"
GRAFANA = FUNCTIONS.parent / "dashboards" / "grafana-openfaas.json"


@pytest.fixture(scope="module")
def go() -> Path:
    setup.ensure(parts.GO_PIECES)
    return parts.GO.resolve()


def call(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **parts.go_environment()}
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_go_module(go, module):
    assert call(go.parent / "gofmt", "-l", ".", cwd=module).stdout == ""
    vetted = call(go, "vet", "./...", cwd=module)
    assert vetted.returncode == 0, vetted.stderr
    tested = call(go, "test", "./...", cwd=module)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_the_kind_cluster_is_one_that_kind_reads(go, tmp_path):
    """Without Docker kind gets as far as having read the file."""
    setup.ensure([parts.KIND])
    typo = tmp_path / "typo.yaml"
    typo.write_text((KIND / "cluster.yaml").read_text().replace("nodes:", "nodez:"))
    for file, words in ((KIND / "cluster.yaml", '"docker": executable file not found'), (typo, "unable to decode")):
        command = [parts.binary("kind"), "create", "cluster", "--config", file]
        done = subprocess.run(command, env={"PATH": "/nonexistent"}, capture_output=True, text=True, check=False)
        assert words in done.stderr, done.stderr


def test_the_kind_script_says_what_is_missing(tmp_path):
    for name in ("bash", "dirname", "env"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    done = subprocess.run([KIND / "up.sh"], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "docker is needed and was not found" in done.stderr


def test_every_function_of_the_stack_has_its_image():
    named = set(re.findall(r"image: \$\{OPENFAAS_PREFIX:-framestorm\}/([a-z-]+):", STACK.read_text()))
    assert named == set(images.catalogue(images.here()))


def test_the_dashboard_shows_metrics_that_are_recorded():
    panels = json.loads(GRAFANA.read_text())["panels"]
    drawn = set(re.findall(r"(?:framestorm|gateway)_[a-z_]+", json.dumps([p["targets"] for p in panels])))
    recorded = set(re.findall(r"(?:framestorm|gateway)_[a-z_]+", " ".join(m.query for m in metrics.METRICS)))
    assert drawn == recorded


def test_scripts_are_clean():
    tools = paths.TEST_PYTHON.parent
    scripts = sorted(KIND.glob("*.sh"))
    assert scripts
    for command in ([tools / "shellcheck", "-x"], [tools / "shfmt", "-i", "4", "-d"]):
        done = subprocess.run([*command, *scripts], cwd=FUNCTIONS.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_a_program_that_is_not_there_is_named():
    HOME.mkdir(parents=True, exist_ok=True)
    with pytest.raises(services.FramestormError, match="there is no /does/not/exist"):
        services.start(services.Program("missing", ["/does/not/exist"], lambda: True))
