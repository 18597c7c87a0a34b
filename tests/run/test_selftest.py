"""The kit against its own recording server: what is reported is what was sent, and a report that is not is found."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from framestorm import selftest
from framestorm.model.files import read
from framestorm.model.summary import Summary
from framestorm.report import build
from framestorm.selftest import BODY, RATE_PER_S, Recorded, Recorder, compare
from tests.framestorm.results.conftest import START_MS, FakeRun, write_jtl
from tests.runs import RunSh


def test_what_is_reported_is_what_a_server_saw(run_sh: RunSh) -> None:
    lines = run_sh("selftest", out="", status=(0, 1)).stdout.splitlines()
    states = [line.split()[0] for line in lines if line.startswith("  ")]
    compared = [line.split(":")[0].split(maxsplit=1)[1] for line in lines if line.startswith("  ")]
    assert compared == [
        "requests", "bodies", "schedule", "response time", "self-check",
        "requests", "bodies", "users", "response time", "self-check",
    ]  # fmt: skip
    by_time = {"schedule", "users", "response time"}
    assert all(state == "ok" for state, what in zip(states, compared, strict=True) if what not in by_time), lines
    # A machine that runs other tests may have no core left.
    assert set(states) <= {"ok", "unsure"}, lines


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


def test_it_takes_no_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        selftest.main(["--help"])
    assert ended.value.code == 0 and "recording server" in capsys.readouterr().out
