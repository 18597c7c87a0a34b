"""What ./run.sh study takes up, goes on with and refuses; nothing is run."""

import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.points import run_figures
from framestorm.points.folder import COMPLETE, FAILED, RunLine, StudyFolder
from framestorm.setup import pieces as setup
from framestorm.study import command, engine, readiness
from framestorm.study.command import Ended
from tests.framestorm.study.conftest import PLAIN

RUN = command._run  # `ran` takes its place
STUDY = PLAIN | {"plan": "jmx/video-per-user.jmx", "repetitions": 2}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Write a study.yml; the path of its folder."""

    def write(where: str = "asked", **changes: object) -> str:
        study = tmp_path / where
        study.mkdir(parents=True, exist_ok=True)
        (study / "study.yml").write_text(yaml.safe_dump({**STUDY, **changes}))
        return str(study)

    return write


@pytest.fixture(autouse=True)
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[StudyFolder]:
    """The folders that would have been run."""
    ran: list[StudyFolder] = []
    monkeypatch.setattr(paths, "DASHBOARDS", tmp_path / "dashboards")
    monkeypatch.setattr(readiness, "checks", lambda *_: [])
    monkeypatch.setattr(setup, "ensure", lambda _: None)
    monkeypatch.setattr(command, "_run", lambda where, *_: ran.append(where) or Ended(0, ""))
    return ran


def ask(*words: str) -> int:
    return command.main(words)


def test_a_study_is_gone_on_with_by_its_name_file_or_folder(
    ran: list[Any], write: Callable[..., str], tmp_path: Path
) -> None:
    study, begun = write(), tmp_path / "begun"
    ask(study, "-o", str(begun))
    for name in ("asked", study, f"{study}/study.yml", str(begun)):
        ask(name, "--resume", "-o", str(begun))
    ask(str(begun), "--resume")
    assert [where.path for where in ran] == [begun] * 6


def test_what_o_says_is_not_gone_on_with_as_another_study(
    ran: list[Any], write: Callable[..., str], tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    ask(write(), "-o", str(begun))
    for other in ("scaling", write("other")):
        with pytest.raises(UsageError, match=rf"begun belongs to study asked, not {other}"):
            ask(other, "--resume", "-o", str(begun))


def test_a_study_of_the_same_name_elsewhere_is_another(ran: list[Any], write: Callable[..., str]) -> None:
    ask(write("a/asked"))
    with pytest.raises(UsageError, match="has no unfinished asked"):
        ask(write("b/asked"), "--resume")
    ask(write("a/asked"), "--resume")
    assert ran[-1].path == ran[0].path


def test_a_dry_run_states_the_most_runs(write: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    study = write(stop={"metric": "mean_ms", "within_percent": 5, "at_most": 8}, budget_min=5)
    ask(study, "--dry-run", "--seed", "3")
    assert "2 points x 2 repetitions = 4 runs, up to 16 where they vary, about" in capsys.readouterr().out


def test_a_dry_run_says_what_would_be_refused(write: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    study = write(budget_min=0.1)
    assert ask(study, "--dry-run") == 1
    assert "MISSING budget: takes about 26.0 s, and its budget_min allows 0.1 min" in capsys.readouterr().out
    with pytest.raises(UsageError, match=r"asked takes about .*: choose points"):
        ask(study)
    assert ask(study, "--dry-run", "--over-budget") == 0
    assert "ok      budget: takes about 26.0 s" in capsys.readouterr().out


def test_a_dry_run_of_resume_lists_what_is_left(
    ran: list[Any], write: Callable[..., str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_figures, "figures_of_run", lambda *_: run_figures.RunFigures())
    study = write(order="as-listed")
    ask(study)
    where = ran[0]
    for order, point in enumerate(where.record.points, 1):
        state = FAILED if order == 1 else COMPLETE
        where.append(RunLine(point.id, 1, f"runs/{order}", state, None, 1, 2, 3, order))
    ask(study, "--resume", "--dry-run")
    out = capsys.readouterr().out
    assert "= 4 runs, about 26.0 s, 3 left in about 19.5 s, order: as-listed" in out
    assert [line.split("  (")[0].strip() for line in out.splitlines() if "of load" in line] == [
        "1  users=1 r1", "3  users=1 r2", "4  users=2 r2",
    ]  # fmt: skip


def test_names_and_folders_that_cannot_be_are_said(write: Callable[..., str], tmp_path: Path) -> None:
    study, file = write(), tmp_path / "file"
    file.touch()
    for words in (["n" * 300], ["n" * 300, "--resume"]):
        with pytest.raises(UsageError, match="no study nnn"):
            ask(*words)
    for folder_name in (file / "below", tmp_path / ("n" * 300)):
        with pytest.raises(UsageError, match=r"cannot be made: .*; choose a new folder by -o"):
            ask(study, "-o", str(folder_name))


def test_inventory_and_port_may_be_others_on_resume(
    ran: list[Any], write: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = write()
    monkeypatch.chdir(tmp_path)
    ask(study, "-i", "hosts.ini")
    ask(study, "--resume")
    monkeypatch.chdir("/")
    ask(study, "--resume", "--port", "9001")
    ask(study, "--resume", "-i", "/etc/hosts.ini")
    assert [(where.record.inventory, where.record.port) for where in ran] == [
        (str(tmp_path / "hosts.ini"), 8080), (str(tmp_path / "hosts.ini"), 8080), (str(tmp_path / "hosts.ini"), 9001),
        ("/etc/hosts.ini", 9001),
    ]  # fmt: skip


def test_a_study_that_goes_on_keeps_its_budget(write: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    budgets: list[float | None] = []

    def begin(_: StudyFolder, budget_min: float | None, *__: object) -> SimpleNamespace:
        budgets.append(budget_min)
        return SimpleNamespace(run=lambda: None, stop_signals=SimpleNamespace(count=0))

    monkeypatch.setattr(command, "_run", RUN)
    monkeypatch.setattr(command, "build", lambda _: Ended(0, ""))
    monkeypatch.setattr(engine, "Engine", begin)
    study = write(budget_min=5)
    for words in ((), ("--resume",), ("--resume", "--over-budget")):
        ask(study, *words)
    assert budgets == [5, 5, None]


@pytest.mark.parametrize(
    ("properties", "is_relative"),
    [
        ({"body": "@body.json"}, True),
        ({"form": "a=1\\nb=@scan.png"}, True),
        ({"body": "@/srv/body.json"}, False),
        ({"body": "a@b"}, False),
    ],
)
def test_a_study_goes_on_only_where_the_files_of_its_properties_are(
    properties: dict[str, str],
    is_relative: bool,
    write: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = write(plan="jmx/requests.jmx", target={"url": "http://127.0.0.1:9/"}, properties=properties)
    monkeypatch.chdir(tmp_path)
    ask(study)
    monkeypatch.chdir("/")
    words = re.escape(f" is relative to {tmp_path}, where this began: go on there")
    with pytest.raises(UsageError, match=words) if is_relative else nullcontext():
        ask(study, "--resume")
    monkeypatch.chdir(tmp_path)
    assert ask(study, "--resume") == 0


def test_the_study_yml_that_was_changed_is_the_one_to_blame(ran: list[Any], write: Callable[..., str]) -> None:
    study = write()
    ask(study, "--repetitions", "4", "-Jframes=2")
    ask(study, "--resume")
    own, copy = Path(study) / "study.yml", ran[0].path / "study.yml"
    own.write_text(own.read_text().replace("run_s: 1", "run_s: 2"))
    with pytest.raises(UsageError, match=rf"^{own} has changed since .* was started, in run_s"):
        ask(study, "--resume")
    copy.write_text(copy.read_text().replace("repetitions: 2", "repetitions: 3\nwarm_up_s: 1"))
    with pytest.raises(UsageError, match=rf"^{copy}: the existing runs were made before changes in warm_up_s\."):
        ask(study, "--resume")
