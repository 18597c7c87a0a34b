"""What is written in Go, and the files for other tools: checked by the tools themselves."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from framestorm.platform.openfaas import images, metrics, parts, services
from framestorm.platform.openfaas.layout import FUNCTIONS, HOME, SOURCE, STACK

MODULES = [SOURCE / "provider", SOURCE / "parts" / "faas-cli", FUNCTIONS]
GRAFANA = FUNCTIONS.parent / "dashboards" / "grafana-openfaas.json"


@pytest.fixture(scope="module")
def go() -> Path:
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


def test_every_function_of_the_stack_has_its_image():
    named = set(re.findall(r"image: \$\{OPENFAAS_PREFIX:-framestorm\}/([a-z-]+):", STACK.read_text()))
    assert named == set(images.catalogue(images.HERE))


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


def test_a_program_that_is_not_there_is_named(tmp_path):
    HOME.mkdir(parents=True, exist_ok=True)
    program = services.Program("missing", ["/does/not/exist"], lambda: True)
    with pytest.raises(services.FramestormError, match="there is no /does/not/exist"):
        services.start(program, services.State("none"), tmp_path / "state.json")
