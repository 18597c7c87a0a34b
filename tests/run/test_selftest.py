"""The kit against its own recording server: what is reported is what was sent, and a report that is not is found."""

import hashlib
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from framestorm import conductor, selftest
from framestorm.errors import FramestormError
from framestorm.model.files import read
from framestorm.model.summary import Doubt, SelfCheck, Summary
from framestorm.report import build
from framestorm.selftest import BODY, RATE_PER_S, Recorded, Recorder, compare
from tests.framestorm.results.conftest import START_MS, FakeRun, write_jtl
from tests.runs import RunSh

BY_TIME = {"schedule", "users", "response time", "self-check of times"}


def selftest_states(run_sh: RunSh) -> list[tuple[str, str]]:
    """Run a self-test, and return each thing that it compares with its state, in the order of its output."""
    lines = run_sh("selftest", out="", status=(0, 1)).stdout.splitlines()
    compared = [line.split(":")[0].split(maxsplit=1) for line in lines if line.startswith("  ")]
    return [(what, state) for state, what in compared]


def test_what_is_reported_is_what_a_server_saw(run_sh: RunSh) -> None:
    states = selftest_states(run_sh)
    assert [what for what, _ in states] == [
        "requests", "bodies", "schedule", "response time", "self-check", "self-check of times",
        "requests", "bodies", "users", "response time", "self-check", "self-check of times",
    ]  # fmt: skip
    assert {state for what, state in states if what not in BY_TIME} == {"ok"}, states
    # Other tests may have had all cores in the middle of the first one.
    again = selftest_states(run_sh) if "DIFFERS" in {state for _, state in states} else states
    assert {state for _, state in again} <= {"ok", "unsure"}, (states, again)


def test_an_interrupt_ends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Instead of a comparison of what was broken off, and the next load."""
    runs = []

    def stopped(options: object, stop: conductor.StopSignals) -> Path:
        runs.append(options)
        os.kill(os.getpid(), signal.SIGINT)
        return tmp_path

    monkeypatch.setattr(conductor, "run", stopped)
    monkeypatch.setattr(selftest.setup, "ensure", lambda _: None)
    with pytest.raises(FramestormError, match="stopped by SIGINT"):
        selftest.main([])
    assert len(runs) == 1


N = 100


@pytest.fixture
def summary(tmp_path: Path) -> Summary:
    run = FakeRun(tmp_path / "run")
    folder = run.write(has_users=False, label="request", properties={}, ended_ms=START_MS + 60_000)
    rows = [
        {"timeStamp": START_MS + 1000 // RATE_PER_S * n, "elapsed": 22, "label": "request", "success": "true"}
        for n in range(N)
    ]
    write_jtl(folder / "samples.jtl", rows)
    build(folder)
    return read(folder / "summary.json", Summary)


def recorder(n: int = N, late_ms: float = 0.0, body: str = BODY, took_ms: float = 21, in_flight: int = 4) -> Recorder:
    """What a server saw of these requests, of which every tenth came late."""
    digest = hashlib.sha256(body.encode()).hexdigest()
    due_ns = np.arange(n) * 10**9 // RATE_PER_S
    return Recorder(
        [Recorded(int(at_ns + late_ms * 1e6 * (number % 10 == 0)), int(took_ms * 1e6), in_flight, digest)
         for number, at_ns in enumerate(due_ns)]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "users", "differs"),
    [
        (recorder(), None, set()),
        (recorder(), 4, set()),
        (recorder(n=N - 1), None, {"requests"}),
        (recorder(n=N + 1), None, {"requests"}),
        (recorder(body="{}"), None, {"bodies"}),
        (recorder(late_ms=50), None, {"schedule"}),
        (recorder(took_ms=10), None, {"response time"}),
        (recorder(took_ms=30), None, {"response time"}),
        (recorder(in_flight=3), 4, {"users"}),
    ],
)
def test_what_differs_is_found(
    summary: Summary, tmp_path: Path, seen: Recorder, users: int | None, differs: set[str]
) -> None:
    found = {each.what for each in compare(summary, tmp_path / "run", seen, users) if not each.is_equal}
    assert found == differs


@pytest.mark.parametrize(
    ("counted", "doubts", "states"),
    [
        (N, [], {"self-check": True, "self-check of times": True}),
        (N + 1, [], {"self-check": False, "self-check of times": True}),
        (N, ["self_check"], {"self-check": True, "self-check of times": False}),
        (N, ["self_check", "saturated"], {"self-check": True, "self-check of times": None}),
    ],
)
def test_what_jmeter_counted_is_compared_with_the_rows(
    summary: Summary, tmp_path: Path, counted: int, doubts: list[Doubt], states: dict[str, bool | None]
) -> None:
    check = SelfCheck(counted, N, in_progress=1.2, of_rows=1.0, span_ms=2000)
    doubtful = replace(summary, facts=replace(summary.facts, self_check=check), doubts=doubts)
    found = {each.what: each.is_equal for each in compare(doubtful, tmp_path / "run", recorder(), None)}
    assert {what: is_equal for what, is_equal in found.items() if what.startswith("self-check")} == states


def test_it_takes_no_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        selftest.main(["--help"])
    assert ended.value.code == 0 and "recording server" in capsys.readouterr().out
