"""Plans with a schedule: what they ask for is what is sent, and what was not sent is said."""

from pathlib import Path

import pytest

from framestorm import cli
from framestorm.errors import UsageError
from framestorm.hosts import shares
from framestorm.model import plan as plans
from framestorm.model.plan_files import Known
from framestorm.probe import Limits
from framestorm.run import preparation, target
from framestorm.run.options import What
from framestorm.run.preparation import prepare
from tests.runs import RunFiles
from tests.stand_in import StartServer

CASES = Path(__file__).parent


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def starts_s(run: RunFiles, label: str) -> list[float]:
    """When the samples of a label started, in seconds after the first of them."""
    times = sorted(int(row["timeStamp"]) / 1000 for row in run.rows() if row["label"] == label)
    return [time_s - times[0] for time_s in times]


def test_a_schedule_is_kept_from_the_start_of_its_own_thread_group_or_said_not_to_be(
    tmp_path: Path, stand_in: StartServer
) -> None:
    # The users of the pool are not all at the same point when its timer ends them.
    url = stand_in({"delay_s": 0.5}, {"delay_s": 0.8}).url
    words = ["-t", str(CASES / "schedules.jmx"), f"-Jurl={url}", "-o", str(tmp_path / "run")]
    assert cli.main(words) == 3, "one of the loads was not answered"
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
    summary = run.json("summary.json")
    assert [each["name"] for each in summary["reached"] if not each["is_kept"]] == ["shape"]
    assert summary["facts"]["overload"]["name"] == "shape"
    assert any("'shape'" in text and "its 3 threads can send" in text for text in summary["warnings"])
    # As a timer ends its group with its schedule, the users finish what they send.
    assert summary["facts"]["cut_off"] == 0 and summary["labels"]["slow"]["failed"] == 0


def test_a_slave_does_its_part_of_what_is_one_for_all_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan as the second of two slaves has it, in a JMeter that does not speak the language of its timer."""
    monkeypatch.setenv("JVM_ARGS", "-Duser.language=de")
    root = plans.parse(CASES / "one-for-all-users.jmx")
    elements = plans.enabled_elements(root)
    division = shares.divide(elements, Known(elements, {}, CASES), {}, 2)
    plans.write(root, tmp_path / "part.jmx")
    words = [f"-J{name}={value}" for name, value in division.properties[1].items()]
    assert cli.main(["-t", str(tmp_path / "part.jmx"), "-o", str(tmp_path / "run"), *words]) == 0
    run = RunFiles(tmp_path / "run")
    labels = [row["label"] for row in run.rows()]
    assert (labels.count("ten"), labels.count("four")) == (5, 2)
    # 3.5/s of 7/s, one at a time: but at the same time as the other slave's.
    assert labels.count("seven") == 7
    assert any(note.startswith("lock (CriticalSectionController): one user at a time") for note in division.ones)
    # Of ids and calls the first slave has the odd ones.
    assert {label for label in labels if label.startswith("id-")} == {"id-2", "id-4", "id-6", "id-8"}
    assert {label for label in labels if label.startswith("call-")} == {f"call-{n}-{n}" for n in (2, 4, 6, 8)}
    # 300 a minute of both of its users together; each by itself would send as many.
    assert labels.count("paced") <= 20
    # The first slave's user starts at once, this one's 2 s later.
    starts_ms = {row["label"]: int(row["timeStamp"]) for row in reversed(run.rows())}
    assert starts_ms["start"] - starts_ms["paced"] > 1500


def test_a_machine_has_to_hold_the_largest_of_groups_that_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "limits", lambda: Limits(open_files=20_000))
    monkeypatch.setattr(target, "check_reachable", lambda *_: None)
    plan = tmp_path / "serial-many.jmx"
    plan.write_text((CASES / plan.name).read_text())
    what = What(plan, given={"n": "9000"})
    assert prepare(what, tmp_path / "run").asked.threads == 9_000
    plan.write_text(plan.read_text().replace('serialize_threadgroups">true', 'serialize_threadgroups">false'))
    with pytest.raises(UsageError, match="27,000 users need"):
        prepare(what, tmp_path / "run")
