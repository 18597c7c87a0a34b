"""The commands of the pages, and the studies of README, that need this machine alone, with its local OpenFaaS.

They are run in their order as a reader would, only with less load.
"""

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.platform.openfaas import docker
from tests.docs.test_pages import shown
from tests.runs import COMPLETE, RunFiles, RunSh

SHORT = ("-Jhold_s=2", "-Jramp_s=0")


@pytest.fixture(scope="module")
def noop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A local OpenFaaS with the function that the examples of functions.md call."""
    run_sh = RunSh(tmp_path_factory.mktemp("openfaas"))
    run_sh("./run.sh target openfaas", out="")
    run_sh("./run.sh target deploy --filter noop", out="")
    yield
    run_sh("./run.sh target down", out="")


OCR_STACK = """\
provider: {name: openfaas}
functions:
  ocr: {lang: dockerfile, handler: ./ocr, image: you/ocr:1}
"""


def test_openfaas(run_sh: RunSh, tmp_path: Path) -> None:
    (tmp_path / "ocr").mkdir()
    (tmp_path / "ocr.yml").write_text(OCR_STACK)
    (tmp_path / "ocr" / "Dockerfile").write_text(f"FROM {docker.PREFIX}/noop:{docker.TAG}\n")
    for number, command in enumerate(shown("openfaas.md")):
        if command.startswith("docker"):
            subprocess.run(shlex.split(command), cwd=tmp_path, check=True, capture_output=True)
            continue
        is_run = command.startswith("./run.sh -")
        short = () if not is_run or "tasks.jmx" in command else SHORT
        words = command.replace("ocr.yml", str(tmp_path / "ocr.yml"))
        output = run_sh(words, *short, out=f"run{number}" if is_run else "").stdout
        if command == "./run.sh target status":
            assert "noop: 3 of 3 replicas ready" in output


@pytest.mark.long
def test_how_many_replicas_a_load_needs(run_sh: RunSh) -> None:
    """A replica takes one request at a time, and two users send 0.2 s ones: more often than not, both are under way."""
    (command,) = (each for each in shown("finding-a-rate.md") if "--over target." in each)
    done = run_sh(command, "--probe-s", "5", "--drain-s", "0.5", out="replicas")
    record = done.json("find.json")
    assert (record["answer"]["word"], record["answer"]["last_fail"]) == ("found", 1)
    assert record["answer"]["least"] == 2
    runs = {probe["load"]: done.json(f"{probe['run']}/run.json") for probe in record["probes"]}
    assert {value: run["target"]["settings"]["replicas"] for value, run in runs.items()} == {1: "1", 2: "2"}
    assert "It needs 2 replicas; with 1 replica it misses" in done.stdout


def test_any_function(run_sh: RunSh, noop: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "a key")
    (tmp_path / "scan.json").write_text('{"a": 1}')
    (tmp_path / "users.csv").write_text("id,name\n1,Ada\n2,Bo\n")
    for number, command in enumerate(shown("functions.md")):
        out = "" if command.startswith("./run.sh new") else f"run{number}"
        run_sh(
            command.replace("=@", f"=@{tmp_path}/").replace("new ocr", f"new {tmp_path}/ocr"),
            *(SHORT if out else ()),
            out=out,
        )


@pytest.mark.long
def test_a_study_resumed_and_compared(run_sh: RunSh) -> None:
    before = set(paths.DASHBOARDS.glob("threads-by-sleep-2*"))
    least = ("--only", "users=1", "--only", "sleep_s=0", "--repetitions", "1", "-Jframes=5")
    running = run_sh.start("study", "threads-by-sleep", *least, "--port", str(run_sh.port), out="")
    running.until(lambda: set(paths.DASHBOARDS.glob("threads-by-sleep-2*")) - before)
    (folder,) = set(paths.DASHBOARDS.glob("threads-by-sleep-2*")) - before
    study = RunFiles(folder)
    try:
        running.until(lambda: study.lines("runs.jsonl"))
        running.interrupt()
        running.ended(4)
        run_sh("./run.sh study threads-by-sleep --resume", out="", status=COMPLETE)
        assert study.json("study.json")["state"] == "complete"
        levels = "./run.sh compare threads-by-sleep-20260101T120000Z --factor way=fork,kept-alive"
        run_sh(levels.replace("threads-by-sleep-20260101T120000Z", str(folder)), out="levels")
        runs = {row["way"]: folder / row["run"] for row in study.rows("results.csv")}
        repetitions = "./run.sh compare A1,A2,A3 B1,B2,B3 --threshold 'mean 5 %'"
        for name in ("A1", "A2", "A3", "B1", "B2", "B3"):
            copy = shutil.copytree(runs["fork" if name < "B" else "kept-alive"], run_sh.folder / name)
            repetitions = repetitions.replace(name, str(copy))
        run_sh(repetitions, out="repetitions")
        two_runs = "./run.sh compare face-blur-20260101T120000Z face-blur-20260102T120000Z"
        two_runs = two_runs.replace("face-blur-20260101T120000Z", str(runs["fork"]))
        run_sh(two_runs.replace("face-blur-20260102T120000Z", str(runs["kept-alive"])), out="two")
    finally:
        shutil.rmtree(folder)


def test_studies(run_sh: RunSh) -> None:
    least = ("--only", "way=kept-alive", "--only", "users=1", "--only", "sleep_s=0", "--repetitions", "1")
    run_sh("./run.sh study threads-by-sleep --quick", *least, out="quick", status=COMPLETE)
    listed = run_sh("./run.sh study --list", out="").stdout
    # OpenFaaS has the port that the embedded target of the study chat would have.
    looked_over = run_sh("./run.sh study --all --quick", "--dry-run", "--port", str(run_sh.port), out="").stdout
    for name in ("threads-by-sleep", "scaling", "rate", "watchdog", "balancers", "chat"):
        assert f"{name}: " in listed
        assert f"\n{name}: dry run" in looked_over
    run_sh("./run.sh study scaling --dry-run", out="")
    only = ("--only", "runtime=go", "--only", "way=fork", "--only", "users=1", "--repetitions", "1")
    run_sh("./run.sh study watchdog --quick", *only, status=COMPLETE)
