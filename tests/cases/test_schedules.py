"""Plans with a schedule: what they ask for is what is sent, and what was not sent is said."""

from pathlib import Path

import pytest

from framestorm import cli
from framestorm.hosts import shares
from framestorm.model import plan as plans
from framestorm.model.plan_files import Known
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
    # JMeter ends the last ones, due 50 ms before the schedule's end, if they start late.
    assert 78 <= len(starts_s(run, "open")) <= 80
    assert starts_s(run, "open")[-1] > 2
    assert len(starts_s(run, "paced")) == 80
    assert starts_s(run, "paced")[-1] > 2
    # The plug-in takes 2.5 for no number, and would send none.
    assert len(starts_s(run, "fraction")) == 10
    # 15 in a ramp of 3 s to 10/s, in which the plug-in would send none, and 10 in the second after it.
    assert 23 <= len(starts_s(run, "ramp")) <= 27
    assert all(each["is_kept"] for each in run.json("summary.json")["reached"])


def test_a_slave_does_its_part_of_what_is_one_for_all_users(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The plan as the second of two slaves has it, in a JMeter that does not speak the language of its timer."""
    root = plans.parse(CASES / "one-for-all-users.jmx")
    elements = plans.enabled_elements(root)
    division = shares.divide(elements, Known(elements, {}, CASES), {}, 2)
    plans.write(root, tmp_path / "part.jmx")
    words = [f"-J{name}={value}" for name, value in division.properties[1].items()]
    out = ["-o", str(tmp_path / "run"), "-Duser.language=de"]
    assert cli.main(["-t", str(tmp_path / "part.jmx"), *out, *words]) == 0
    run = RunFiles(tmp_path / "run")
    labels = [row["label"] for row in run.rows()]
    assert (labels.count("ten"), labels.count("four")) == (5, 2)
    # Of ids and calls the first slave has the odd ones.
    assert {label for label in labels if label.startswith("id-")} == {"id-2", "id-4", "id-6", "id-8"}
    assert {label for label in labels if label.startswith("call-")} == {f"call-{n}-{n}" for n in (2, 4, 6, 8)}
    # 300 a minute of both of its users together; each by itself would send as many.
    assert labels.count("paced") <= 20
    # The first slave's user starts at once, this one's 2 s later.
    starts_ms = {row["label"]: int(row["timeStamp"]) for row in reversed(run.rows())}
    assert starts_ms["start"] - starts_ms["paced"] > 1500
