"""What the engine runs, in which order, and when it stops; the runs themselves are made up."""

import os
import shutil
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.model import files
from framestorm.model.run import Record
from framestorm.model.sink import parse_sink
from framestorm.model.study import Study
from framestorm.model.summary import Verdict
from framestorm.points import folder, run_figures
from framestorm.points.folder import StudyFolder, StudyRecord
from framestorm.points.run_figures import RunFigures
from framestorm.run.options import RunOptions, What
from framestorm.study import engine, readiness
from framestorm.study.design import matrix
from framestorm.study.engine import Engine
from tests.framestorm.study.conftest import PLAIN

TARGET = {"kind": "url", "url": "http://127.0.0.1:9/function/x"}
CONTENT = PLAIN | {"target": TARGET, "factors": {"users": [1, 2, 3]}, "repetitions": 2}


@pytest.fixture
def begin(tmp_path: Path) -> Callable[..., StudyRecord]:
    """The record of a study whose points have not been run."""

    def begin(port: int = 8080, **changes: object) -> StudyRecord:
        study = Study.model_validate({**CONTENT, **changes, "name": "made-up"})
        (tmp_path / "study.yml").write_text("")
        return StudyRecord.begin(tmp_path / "study.yml", study, matrix.points(study), seed=1, port=port)

    return begin


class Made:
    """A study and the runs that were made of it: users, as the plan got them."""

    def __init__(self, where: StudyFolder) -> None:
        self.where = where
        self.users: list[str] = []

    def run(self, budget_min: float | None = None) -> None:
        Engine(StudyFolder(self.where.path), budget_min).run()

    @property
    def states(self) -> list[str]:
        return [line.state for line in self.where.lines().values()]


@pytest.fixture
def make(begin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Made]:
    """A study whose runs give the figures of `mean_ms(users, how often it ran before)`, or raise what that raises."""

    def make(mean_ms: Callable[[str, int], float], **changes: object) -> Made:
        made = Made(StudyFolder.create(tmp_path / "made", begin(**changes)))

        def run(_self: Engine, options: RunOptions) -> None:
            users = options.what.given["users"]
            made.users.append(users)
            figure = mean_ms(users, made.users.count(users) - 1)
            options.output.run_dir.mkdir()
            (options.output.run_dir / "figure").write_text(str(figure))

        def figures_of_run(run_dir: Path, *_: object) -> RunFigures:
            return RunFigures({"mean_ms": float((run_dir / "figure").read_text()), "n": 1}, {}, ())

        monkeypatch.setattr(Engine, "_run", run)
        monkeypatch.setattr(run_figures, "figures_of_run", figures_of_run)
        return made

    return make


def test_every_point_as_often_as_asked_in_the_recorded_order(make):
    made = make(lambda users, before: 1.0)
    made.run()
    expected = matrix.schedule(made.where.record.points, 2, 1, "randomised")
    assert made.users == [point.properties["users"] for point, _ in expected]
    assert StudyFolder(made.where.path).record.state == "complete"
    made.run()
    assert len(made.users) == 6


def test_repetitions_are_no_copies_of_one_draw(make, monkeypatch):
    changes = {"plan": "jmx/request-rate.jmx", "properties": {"arrivals": "poisson"}, "factors": {"rate_per_s": [5, 9]}}
    made = make(lambda users, before: 1.0, **changes)
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(
        Engine, "_run", lambda _, run: asked.append((run.what.given["rate_per_s"], run.what.given["seed"]))
    )
    monkeypatch.setattr(Engine, "_figures", lambda *_: ({"mean_ms": 1.0}, None))
    made.run()
    assert sorted(asked) == [("5", "1"), ("5", "2"), ("9", "1"), ("9", "2")]


def test_seeds_that_vary_have_no_draw_in_common(make, monkeypatch):
    changes = {"plan": "jmx/request-rate.jmx", "properties": {"arrivals": "poisson"}, "factors": {"seed": [5, 6]}}
    made = make(lambda users, before: 1.0, **changes, repetitions=3)
    asked: list[str] = []
    monkeypatch.setattr(Engine, "_run", lambda _, run: asked.append(run.what.given["seed"]))
    monkeypatch.setattr(Engine, "_figures", lambda *_: ({"mean_ms": 1.0}, None))
    made.run()
    assert len(set(asked)) == 6 and set(asked[:2]) == {"5", "6"}


def test_a_point_is_repeated_until_its_interval_is_narrow(make):
    # Of 2 users the mean varies for ever, of 3 it does so at first.
    def mean_ms(users: str, before: int) -> float:
        return {"1": 10, "2": 10 + 5 * (before % 2), "3": 10 + (before == 0) * 0.5}[users]

    made = make(mean_ms, stop={"metric": "mean_ms", "within_percent": 10, "at_most": 8})
    made.run()
    assert {users: made.users.count(users) for users in "123"} == {"1": 5, "2": 8, "3": 6}
    assert sorted(number for _, number in made.where.lines()) == sorted([*range(1, 6), *range(1, 9), *range(1, 7)])
    assert [line.order for line in made.where.lines().values()] == list(range(1, 20))
    made.run()
    assert len(made.users) == 19


def test_a_stop_rule_does_not_repeat_a_point_whose_runs_fail(make):
    def mean_ms(users: str, before: int) -> float:
        if users == "2":
            raise FramestormError("it broke")
        return 10

    made = make(mean_ms, stop={"metric": "mean_ms", "within_percent": 10, "at_most": 8})
    made.run()
    assert {users: made.users.count(users) for users in "123"} == {"1": 5, "2": 2, "3": 5}


def test_no_repetition_is_added_once_the_budget_is_used_up(make, capsys):
    made = make(lambda users, before: 10 + before, stop={"metric": "mean_ms", "within_percent": 1, "at_most": 6})
    made.run(budget_min=0)
    assert len(made.users) == 3 * 2 and StudyFolder(made.where.path).record.state == "complete"
    assert "the budget is used up: no more repetitions where figures vary" in capsys.readouterr().err
    made.run(budget_min=1000)
    assert len(made.users) == 3 * 6


def test_failed_runs_are_kept_with_their_reason_and_tried_once_more_on_resume(make):
    def mean_ms(users: str, before: int) -> float:
        if users == "2" and before < 2:
            raise FramestormError("it broke")
        return 1.0

    made = make(mean_ms)
    made.run()
    assert sorted(made.states) == ["complete"] * 4 + ["failed"] * 2
    assert {line.reason for line in made.where.lines().values()} == {None, "it broke"}
    assert StudyFolder(made.where.path).record.state == "partial"
    made.run()
    assert made.states == ["complete"] * 6
    assert StudyFolder(made.where.path).record.state == "complete"
    assert [line.reason for line in made.where.repeated()] == ["it broke"] * 2


def test_runs_whose_files_are_lost_are_said_and_made_again(make, capsys):
    made = make(lambda users, before: 1.0)
    made.run()
    first, second, *_ = (line.run for line in made.where.lines().values())
    (made.where.path / first / "figure").write_text("cut")
    shutil.rmtree(made.where.path / second)
    capsys.readouterr()
    made.run()
    said = capsys.readouterr().err
    for run in (first, second):
        assert f"{run}: the run's files cannot be read" in said
    assert len(made.users) == 8 and made.states == ["complete"] * 6
    assert [line.run for line in made.where.lines().values()][:2] == [f"{first}-retry-2", second]
    made.run()
    assert len(made.users) == 8


def test_what_is_complete_is_read_once(make, monkeypatch):
    made = make(lambda users, before: 1.0 + before, stop={"metric": "mean_ms", "within_percent": 1, "at_most": 8})
    made.run()
    read, of_run = [], run_figures.figures_of_run
    monkeypatch.setattr(run_figures, "figures_of_run", lambda *words: read.append(words) or of_run(*words))
    made.run()
    assert len(read) == 3 * 8


@pytest.mark.parametrize(
    ("budget_min", "reason", "runs"),
    [(None, "nothing answers", 6), (1000, "nothing answers", 6), (0, "nothing answers", 3), (0, "{users} {before}", 6)],
)
def test_the_same_failures_in_a_row_end_it_when_the_budget_is_used_up(make, budget_min, reason, runs):
    def broken(users: str, before: int) -> float:
        raise FramestormError(reason.format(users=users, before=before))

    made = make(broken)
    made.run(budget_min)
    assert len(made.users) == runs
    assert set(made.states) == {"failed"}


def test_what_is_refused_of_the_first_run_ends_it_at_once(make):
    def refused(users: str, before: int) -> float:
        raise UsageError("no such host")

    made = make(refused)
    with pytest.raises(UsageError, match="no such host"):
        made.run()
    assert len(made.users) == 1 and made.where.lines() == {}


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        (
            lambda *_: RunFigures({"n": 0, "n_sent": 16}, {}, ()),
            "every sample (16) was rejected, by a warm-up of 9 s",
        ),
        (lambda run_dir, *_: (run_dir / "none").read_text(), "cannot be read"),
    ],
)
def test_a_run_without_figures_does_not_count(make, monkeypatch, figures, words):
    made = make(lambda users, before: 1.0, warm_up_s=9)
    monkeypatch.setattr(run_figures, "figures_of_run", figures)
    made.run()
    assert set(made.states) == {"failed"}
    assert words in next(iter(made.where.lines().values())).reason


@pytest.mark.parametrize(
    ("state", "word", "why"),
    [
        ("complete", "pass", None),
        ("complete", "fail", None),
        ("complete", "partial", "Partial: samples were lost."),
        ("stopped", "partial", "stopped"),
    ],
)
def test_which_runs_count(make, monkeypatch, tmp_path, state, word, why):
    """A run that is whole counts, whatever its criteria say, and even without JMeter's dashboard."""

    def no_dashboard(_: Path) -> None:
        raise FramestormError("no dashboard")

    files.write(tmp_path / "run.json", Record(state=state))
    monkeypatch.setattr(engine.conductor, "run", lambda *_: tmp_path)
    monkeypatch.setattr(engine.dashboard, "make_dashboard", no_dashboard)
    monkeypatch.setattr(engine, "build", lambda _: Verdict(word, 0, "samples were lost"))
    run = Engine._run
    made = make(lambda _users, _before: 1.0)
    assert run(Engine(StudyFolder(made.where.path), None), RunOptions(What(tmp_path / "x.jmx"))) == why


@pytest.mark.parametrize(("number", "state"), [(5, "stopped"), (6, "complete")])
def test_an_interrupt_after_the_last_load_stops_nothing(make, number, state):
    def mean_ms(_users: str, _before: int) -> float:
        if len(made.users) == number:
            os.kill(os.getpid(), signal.SIGINT)
        return 1.0

    made = make(mean_ms)
    made.run()
    assert (len(made.users), StudyFolder(made.where.path).record.state) == (number, state)


def test_an_interrupt_ends_the_wait_for_a_target(make, monkeypatch):
    waited = []

    def prepare(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        waited.append("for a function to be ready")

    monkeypatch.setattr(engine.Platforms, "prepare", prepare)
    made = make(lambda users, before: 1.0)
    made.run()
    assert (waited, made.users, StudyFolder(made.where.path).record.state) == ([], [], "stopped")


def test_each_run_is_told_by_its_point(make, monkeypatch):
    made = make(lambda users, before: 1.0)
    told: list[tuple[object, str | None]] = []
    plain = Engine._run

    def run(self: Engine, options: RunOptions) -> str | None:
        told.append((options.output.sinks, options.output.name))
        return plain(self, options)

    monkeypatch.setattr(Engine, "_run", run)
    sinks = (parse_sink("otlp:http://127.0.0.1:9/v1/metrics"),)
    Engine(StudyFolder(made.where.path), sinks=sinks).run()
    assert {of for of, _ in told} == {sinks}
    study = made.where.path.name
    runs = {Path(line.run).name for line in made.where.lines().values()}
    assert {name for _, name in told} == {f"{study} {run}" for run in runs} and len(runs) == 6


def test_what_is_left_is_estimated_ever_better(make, capsys):
    made = make(lambda users, before: 1.0, run_s=100)
    made.run()
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("[")]
    assert len(said) == 6 and all("left" in line for line in said[:-1]) and "left" not in said[-1]
    assert (made.where.path / folder.LOG).read_text().count("the engine itself took") == 6


def test_pieces_and_checks_hang_on_the_target(begin, tmp_path):
    study = begin()
    assert not any(piece.name.startswith("openfaas") for piece in readiness.pieces(study))
    [missing] = [check for check in readiness.checks(study, tmp_path) if not check.is_there]
    assert "nothing answers at 127.0.0.1:9" in missing.words
    names = [piece.name for piece in readiness.pieces(begin(target={"function": "noop"}))]
    assert "openfaas-gateway-on-loopback" in names and len(names) == len(set(names))
    for function, python in (("chat", "chat"), ("face-blur", "function")):
        names = [piece.name for piece in readiness.pieces(begin(target={"kind": "embedded", "function": function}))]
        assert [name for name in names if name in ("chat-venv", "function-venv")] == [f"{python}-venv"]


@pytest.mark.parametrize("port", [0, 65536, None])
def test_a_port_is_one_that_can_be_had(begin, tmp_path, port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        wanted = taken.getsockname()[1] if port is None else port
        checks = {check.what: check for check in readiness.checks(begin(wanted, target={"kind": "embedded"}), tmp_path)}
    words = "choose another port by --port, or test what is there by kind: url" if port is None else "from 1 to 65535"
    assert not checks[f"port {wanted}"].is_there and checks[f"port {wanted}"].words.endswith(words)


@pytest.mark.parametrize(
    ("content", "is_there", "words"),
    [
        (b"\xef\xbb\xbfusers,mean_ms\n", True, "theirs.csv"),
        (b"users,mean_ms\n1,9 \xb5s\n", False, "theirs.csv cannot be read: "),
        (None, False, "theirs.csv is missing"),
    ],
)
def test_published_results_are_looked_at_before_the_first_run(begin, tmp_path, content, is_there, words):
    if content is not None:
        (tmp_path / "theirs.csv").write_bytes(content)
    checks = readiness.checks(begin(published="theirs.csv"), tmp_path)
    [check] = [check for check in checks if check.what == "published"]
    assert check.is_there == is_there and words in check.words


def test_the_engine_s_criterion_fits_every_plan():
    from framestorm.model import criteria
    from framestorm.model import plan as plans

    for plan in paths.JMX.glob("*.jmx"):
        unit = plans.read(plan).label
        assert criteria.parse(engine.NO_CRITERION, unit).label == unit


def test_a_full_disk_ends_a_study_that_can_go_on(make: Callable[..., Made]) -> None:
    made = make(lambda users, ran: 1.0)
    log = made.where.path / folder.LOG
    log.symlink_to("/dev/full")
    with pytest.raises(FramestormError, match="No space left on device; fix that, then continue with --resume"):
        made.run()
    assert (made.states, len(made.users)) == ([folder.COMPLETE], 1)
    assert StudyFolder(made.where.path).record.state == folder.RUNNING
    log.unlink()
    made.run()
    assert (set(made.states), len(made.users)) == ({folder.COMPLETE}, 6)
    assert StudyFolder(made.where.path).record.state == folder.COMPLETE
