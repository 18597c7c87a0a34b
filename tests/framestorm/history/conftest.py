"""Runs of a history, as their reports leave them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framestorm.model.files import write
from framestorm.model.load import Load
from framestorm.model.run import Kit, Record, Target
from framestorm.model.summary import LabelSummary, Times, Verdict
from framestorm.stats.estimate import Estimate
from tests.framestorm.conftest import summary_of

START_MS = 1_790_000_000_000.0
DAY_MS = 86_400_000.0
MakeRun = Callable[..., Path]


def times(median_ms: float) -> Times:
    """Times of 1,000 samples with that median, its interval, and a p99 that is known to be larger than it is."""
    p50 = Estimate(median_ms, median_ms - 1, median_ms + 1, 1000)
    p99 = Estimate(3 * median_ms, 2.5 * median_ms, None, 1000, bound="lower")
    return Times(1000, 0, None, None, p50, None, Estimate(2 * median_ms), p99, None)


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Return a function that leaves the run of a day in a folder below the test's."""

    def make(name: str, median_ms: float = 20.0, day: int = 0, word: str = "pass", **fields: Any) -> Path:
        run = Record(
            kit=Kit("0.1.0"), started_ms=START_MS + day * DAY_MS, state="complete",
            **{"plan": "jmx/requests.jmx", "target": Target("url", "http://127.0.0.1:8080/"),
               "loads": (Load("users", "ConcurrencyThreadGroup", "users", 4, {"x": [0, 60], "y": [4, 4]}),)} | fields,
        )  # fmt: skip
        main = LabelSummary("request", 1000, 990, 10, 0, {}, 0.99, 0.98, 0.995, 50.0, {"rtt": times(median_ms)},
                            rate_low_per_s=48.0, rate_high_per_s=52.0)  # fmt: skip
        verdict = Verdict(word, 0, "met")  # type: ignore[arg-type]
        folder = tmp_path / name
        folder.mkdir(parents=True)
        labels = {"request": main}
        summary = summary_of(
            name=folder.name, label="request", run=run, labels=labels, verdict=verdict, doubts=["saturated"]
        )
        write(folder / "run.json", run)
        write(folder / "summary.json", summary)
        (folder / "index.html").write_text("a page")
        return folder

    return make
