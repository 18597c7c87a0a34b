"""Plans with a schedule: what they ask for is what is sent, and what was not sent is said."""

from pathlib import Path

import pytest

from framestorm import cli
from tests.runs import RunFiles

CASES = Path(__file__).parent


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def starts_s(run: RunFiles, label: str) -> list[float]:
    """When the samples of a label started, in seconds after the first of them."""
    times = sorted(int(row["timeStamp"]) / 1000 for row in run.rows() if row["label"] == label)
    return [time_s - times[0] for time_s in times]


def test_a_schedule_counts_from_the_start_of_its_own_thread_group(tmp_path: Path) -> None:
    assert cli.main(["-t", str(CASES / "schedules-after-setup.jmx"), "-o", str(tmp_path / "run")]) == 0
    run = RunFiles(tmp_path / "run")
    # Counted from the test's start, all were overdue after the setUp Thread Group, and sent at once.
    assert len(starts_s(run, "open")) == 80
    assert starts_s(run, "open")[-1] > 2
    assert len(starts_s(run, "paced")) == 80
    assert starts_s(run, "paced")[-1] > 2
    # The plug-in takes 2.5 for no number, and would send none.
    assert len(starts_s(run, "fraction")) == 10
