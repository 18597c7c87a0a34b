"""Searches whose probes need no JMeter: each has the summary of a run of a function whose capacity is known."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from framestorm.conductor import StopSignals
from framestorm.errors import FramestormError
from framestorm.find import command
from framestorm.model import criteria, files
from framestorm.model.judgement import JudgedState, Judgement
from framestorm.model.overload import Rates
from framestorm.model.run import Record
from framestorm.model.summary import Facts
from framestorm.run.options import RunOptions
from tests.framestorm.conftest import summary_of

LOST = FramestormError("vm: connection lost")  # before the load
BROKEN, STOPPED = "broken", "stopped"
# What comes of a probe at a load: the 95th percentile in ms, None where it has no figure, or what ended it.
Answering = Callable[[float], float | str | FramestormError | None]


class SimulatedRuns:
    """Takes the place of the conductor; `given` has the properties of each run.

    p95_ms, over, answered: can be exchanged between two searches; over is the property that is the load, and answered
        how many of its requests are answered per second.
    """

    def __init__(self, p95_ms: Answering) -> None:
        self.p95_ms, self.over = p95_ms, "rate_per_s"
        self.answered: Callable[[float], float] = lambda load: load
        self.given: list[Mapping[str, str]] = []

    def run(self, options: RunOptions, stop_signals: StopSignals, page: object = None) -> Path:
        run_dir, load = options.output.run_dir, float(options.what.given[self.over])
        assert run_dir is not None
        self.given.append(options.what.given)
        p95_ms = self.p95_ms(load)
        if isinstance(p95_ms, FramestormError):
            raise p95_ms
        if p95_ms == STOPPED:
            stop_signals.count += 1
        run_dir.mkdir()
        is_whole = not isinstance(p95_ms, str)
        record = Record(state="complete") if is_whole else Record(state="failed", reason="JMeter was ended by signal 9")
        files.write(run_dir / "run.json", record)
        rates = Rates(asked_per_s=load, sent_per_s=load, answered_per_s=self.answered(load))
        facts = Facts(0, 0, None, rates=rates)
        judged = [_judged(text, p95_ms if isinstance(p95_ms, float) else None) for text in options.output.criteria]
        files.write(run_dir / "summary.json", summary_of(100, criteria=judged, facts=facts))
        return run_dir


def _judged(text: str, p95_ms: float | None) -> Judgement:
    criterion = criteria.parse(text, "frame")
    state: JudgedState = "unjudged" if p95_ms is None else "passed" if p95_ms < criterion.limit else "failed"
    why = "there is no sample of frame" if p95_ms is None else ""
    return Judgement(**vars(criterion), state=state, measured=f"{p95_ms} ms", value=p95_ms, bound="exact", why=why)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> SimulatedRuns:
    """A function whose times rise with the load, and are 100 ms at 40 requests per second."""
    simulated = SimulatedRuns(lambda load: 2.5 * load)
    monkeypatch.setattr(command.conductor, "run", simulated.run)
    monkeypatch.setattr(command.conductor, "check", lambda _: [])
    monkeypatch.setattr(command.setup, "ensure", lambda _: None)
    monkeypatch.setattr(command, "build", lambda _: None)
    return simulated


def find(folder: Path, *words: str) -> int:
    """Search for the rate of that function in a new folder; the exit status."""
    of_plan = ("-t", "jmx/request-rate.jmx", "-Jurl=http://127.0.0.1:9/", "--drain-s", "0")
    return command.main(["--over", "rate_per_s=10..80", "--slo", "p95 < 100 ms", *of_plan, *words, "-o", str(folder)])


def record_of(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "find.json").read_text())
    return record
