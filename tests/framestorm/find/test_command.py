"""Searches that are refused before anything is started, that fail, and that go on."""

import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from framestorm.errors import FramestormError, UsageError
from framestorm.find import command
from framestorm.lock import locked
from framestorm.model.search import LoadRange, Probe
from tests.framestorm.find.conftest import BROKEN, LOST, STOPPED, SimulatedRuns, find, record_of

RATES = ("--over", "rate_per_s=1..9", "-t", "jmx/request-rate.jmx", "-Jurl=http://127.0.0.1:9/")


@pytest.mark.parametrize("least", ["0.5", "9.1"])
def test_what_lies_outside_of_the_range_can_never_be_shown(least: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"--at-least {least} is outside of --over rate_per_s=1..9"):
        command.main([*RATES, "--at-least", least, "-o", str(tmp_path / "find")])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--over", "users=0.5..3"), "--over users=0.5..3: -Jusers=0.5: users must be a whole number >= 1"),
        (("--over", "haste=1..3"), r"--over haste=1..3: -Jhaste=1: requests.jmx has no property haste"),
        (("--over", "users=1..4", "--slo", "frame p95 < 1 s"), r"--slo 'frame p95 < 1 s': requests.jmx has no label"),
        (("--over", "users=1..4", "--at-least", "2"), "--at-least 2 has to be carried within an objective: .* --slo"),
        (
            ("--over", "users=1..4", "--slo", "p95 < 1 s", "-o", "/dev/null/find"),
            "/dev/null/find cannot be made: Not a",
        ),
        (("--over", "users=1..4", "--slo", "p95 < 1 s", "-o", "/dev/null"), "/dev/null exists; choose a new folder"),
    ],
)
@pytest.mark.usefixtures("runs")
def test_what_cannot_be_sought_is_refused(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    folder = ("-o", str(tmp_path / "find"))
    with pytest.raises(UsageError, match=why):
        command.main(["-t", "jmx/requests.jmx", "-Jurl=http://127.0.0.1:9/", *folder, *words])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words", [("--slo", "p95 < 1 s"), ("--at-least", "3"), ("-Jhold_s=3",), ("--probe-s", "9", "--at-least", "3")]
)
def test_a_search_goes_on_by_the_words_that_it_began_with(words: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give no others"):
        command.main(["--resume", str(tmp_path), *words])


def test_a_search_finds_what_the_function_carries(tmp_path: Path, runs: SimulatedRuns) -> None:
    assert find(tmp_path / "find") == 0
    record = record_of(tmp_path / "find")
    assert (record["state"], record["reason"], record["answer"]["highest"]) == ("complete", "", 40)
    # One that has its answer keeps it.
    assert command.main(["--resume", str(tmp_path / "find")]) == 0
    assert record_of(tmp_path / "find")["text"] == record["text"]


def test_an_objective_that_is_given_twice_counts_once(tmp_path: Path, runs: SimulatedRuns) -> None:
    find(tmp_path / "find", "--slo", "p95  < 100 ms", "--slo", "p95 < 3 s")
    record = record_of(tmp_path / "find")
    assert record["objectives"] == ["p95 < 100 ms", "p95 < 3 s"]
    assert [each["objective"] for each in record["probes"][0]["outcomes"]] == record["objectives"]


@pytest.mark.parametrize(
    ("over", "values"),
    [
        ("threads=1..8", {"1", "4", "8", "6", "7"}),
        ("threads=1.0..8.0", {"1", "4", "8", "5.66", "6.73", "6.17", "6.44"}),
        ("threads=1000000..1000001", {"1000000", "1000001"}),
        ("thread-count=1..8", {"1", "4", "8", "6", "7"}),
        ("größe/threads=1..8", {"1", "4", "8", "6", "7"}),
    ],
)
def test_a_property_of_a_plan_from_elsewhere_gets_whole_numbers_where_the_range_has_such(
    over: str, values: set[str], tmp_path: Path, runs: SimulatedRuns
) -> None:
    plan, name = tmp_path / "elsewhere.jmx", over.partition("=")[0]
    group = f'<ThreadGroup enabled="true"><stringProp name="n">${{__P({name},1)}}</stringProp></ThreadGroup><hashTree/>'
    plan.write_text(f"<jmeterTestPlan><hashTree><TestPlan/><hashTree>{group}</hashTree></hashTree></jmeterTestPlan>")
    runs.over, runs.p95_ms = name, lambda load: 9000.0 if 6.5 < load < 9 else 10.0
    words = ("--over", over, "--slo", "p95 < 1 s", "--drain-s", "0", "-t", str(plan), "-o", str(tmp_path / "find"))
    assert command.main(words) == 0
    assert {each[name] for each in runs.given} == values
    text = record_of(tmp_path / "find")["text"]
    assert any(f"{name}={value}" in text for value in values)


def test_users_by_another_word_have_a_capacity(
    tmp_path: Path, runs: SimulatedRuns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without an objective, the rate of four threads of a plan from elsewhere."""

    def rung(run_dir: Path, over: LoadRange, load: float, length_s: float | None) -> Probe:
        return Probe(load, run_dir.name, [], answered_per_s=10 * min(load, 4))

    plan = tmp_path / "elsewhere.jmx"
    group = '<ThreadGroup enabled="true"><stringProp name="n">${__P(threads,1)}</stringProp></ThreadGroup><hashTree/>'
    plan.write_text(f"<jmeterTestPlan><hashTree><TestPlan/><hashTree>{group}</hashTree></hashTree></jmeterTestPlan>")
    monkeypatch.setattr(command, "rung_of", rung)
    runs.over, runs.p95_ms = "threads", lambda load: 10.0
    words = ("--over", "threads=1..64", "--drain-s", "0", "-t", str(plan), "-o", str(tmp_path / "find"))
    assert command.main([*words, "--probe-s", "9"]) == 0
    assert "--probe-s 9 has no effect: elsewhere.jmx has no hold_s" in capsys.readouterr().err
    record = record_of(tmp_path / "find")
    assert (record["answer"]["highest"], record["answer"]["capacity"]["value"]) == (4, pytest.approx(40))
    assert "from about threads=4" in record["text"]


def test_the_length_of_a_probe_can_be_the_load(tmp_path: Path, runs: SimulatedRuns) -> None:
    runs.over, runs.p95_ms = "hold_s", lambda load: 10.0
    words = ("--over", "hold_s=1..3", "--slo", "p95 < 1 s", "--drain-s", "0", "-o", str(tmp_path / "find"))
    assert command.main([*RATES[2:], *words]) == 0
    assert [each["hold_s"] for each in runs.given] == ["1", "3", "3"]


@pytest.mark.parametrize(
    ("failing", "reason"),
    [
        (LOST, "vm: connection lost"),
        (BROKEN, "the probe at 40/s failed: JMeter was ended by signal 9; see "),
        (None, "at 40/s, 'p95 < 100 ms' could not be judged: there is no sample of frame"),
    ],
)
def test_a_search_that_fails_says_why_and_goes_on_once_that_is_mended(
    failing: Any, reason: str, tmp_path: Path, runs: SimulatedRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, carries = tmp_path / "find", runs.p95_ms
    runs.p95_ms = lambda load: failing if load == 40 else carries(load)
    with pytest.raises(FramestormError, match=reason):
        find(folder)
    record = record_of(folder)
    assert (record["state"], [each["load"] for each in record["probes"]]) == ("failed", [10])
    assert record["reason"].startswith(reason)
    assert f"./run.sh find --resume {folder}" in capsys.readouterr().err
    page, junit = ((folder / name).read_text() for name in ("index.html", "junit.xml"))
    assert '<p class="word">Failed</p>' in page
    assert "the search is complete" in junit and 'type="failed"' in junit
    for text in map(unescape, (page, junit, record["text"])):
        assert f"The search failed: {reason}" in text
        assert "The highest that passed so far is 10/s" in text
    assert command.show(folder) == 1
    runs.p95_ms = carries
    assert command.main(["--resume", str(folder)]) == 0
    resumed = record_of(folder)
    assert (resumed["state"], resumed["reason"], resumed["answer"]["highest"]) == ("complete", "", 40)
    assert resumed["probes"][:1] == record["probes"]


def test_a_search_that_needs_longer_probes_goes_on_with_these(tmp_path: Path, runs: SimulatedRuns) -> None:
    folder, carries = tmp_path / "find", runs.p95_ms
    runs.p95_ms = lambda load: None if load == 40 else carries(load)
    with pytest.raises(FramestormError, match="give longer probes by --probe-s"):
        find(folder)
    runs.p95_ms = lambda load: STOPPED if load == 40 else carries(load)
    assert command.main(["--resume", str(folder), "--probe-s", "60", "--drain-s", "0"]) == 4
    runs.p95_ms = carries
    assert command.main(["--resume", str(folder)]) == 0
    assert [each["hold_s"] for each in runs.given][:4] == ["20", "20", "60", "60"]
    record = record_of(folder)
    assert record["answer"]["highest"] == 40
    assert record["command"][-4:] == ["--probe-s", "60", "--drain-s", "0"]
    assert record["probes"][0]["length_s"] == 20


@pytest.mark.parametrize("last_answers", [0.0, 3.0])
def test_a_function_that_does_not_recover_ends_the_search_until_it_is_started_again(
    last_answers: float, tmp_path: Path, runs: SimulatedRuns
) -> None:
    folder = tmp_path / "find"

    def is_dead() -> bool:
        return any(each["rate_per_s"] == "80" for each in runs.given)

    runs.p95_ms = lambda load: 9000.0 if is_dead() else 2.4 * load
    runs.answered = lambda load: load if not is_dead() else last_answers if load == 80 else 0.0
    why = "at 40/s, the function answered before, and now .* not recovered from the probe at 80/s"
    with pytest.raises(FramestormError, match=why):
        find(folder)
    assert {each["load"] for each in record_of(folder)["probes"]} == {10, 40, 80}, "no load that only a dead one failed"
    runs.p95_ms, runs.answered = lambda load: 2.4 * load, lambda load: load
    assert command.main(["--resume", str(folder)]) == 0
    assert record_of(folder)["answer"]["highest"] == pytest.approx(41.7, rel=0.01)


def test_a_search_without_an_answer_after_many_probes_fails(
    tmp_path: Path, runs: SimulatedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "MOST_PROBES", 3)
    folder = tmp_path / "find"
    for go in (lambda: find(folder), lambda: command.main(["--resume", str(folder)])):
        with pytest.raises(FramestormError, match="after 3 probes there is no answer"):
            go()
        record = record_of(folder)
        assert (record["state"], len(record["probes"]), len(runs.given)) == ("failed", 3, 3)
        assert "begin a new search" in record["text"] and "after 3 probes" in (folder / "junit.xml").read_text()


def test_a_search_that_is_interrupted_can_go_on(tmp_path: Path, runs: SimulatedRuns) -> None:
    folder, carries = tmp_path / "find", runs.p95_ms
    runs.p95_ms = lambda load: STOPPED if load == 40 else carries(load)
    assert find(folder) == 4
    record = record_of(folder)
    assert (record["state"], len(record["probes"])) == ("stopped", 1)
    text = "The search was stopped. The highest that passed so far is 10/s. Continue it with --resume"
    assert text in record["text"] and text in (folder / "index.html").read_text()
    runs.p95_ms = carries
    assert command.main(["--resume", str(folder)]) == 0
    assert record_of(folder)["answer"]["highest"] == 40


def test_a_search_goes_on_only_where_the_files_of_its_properties_are(
    tmp_path: Path, runs: SimulatedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, carries = tmp_path / "find", runs.p95_ms
    runs.p95_ms = lambda load: STOPPED if load == 40 else carries(load)
    monkeypatch.chdir(tmp_path)
    find(folder, "-Jbody=@body.json")
    runs.p95_ms = carries
    monkeypatch.chdir("/")
    with pytest.raises(UsageError, match=r"body=@body\.json is relative to .*, where this began: go on there"):
        command.main(["--resume", str(folder)])
    monkeypatch.chdir(tmp_path)
    assert command.main(["--resume", str(folder)]) == 0


def test_a_record_of_before_there_were_reasons_goes_on(tmp_path: Path, runs: SimulatedRuns) -> None:
    find(tmp_path / "find")
    record = record_of(tmp_path / "find")
    record |= {"state": "searching", "answer": None, "probes": record["probes"][:1]}
    del record["reason"]
    (tmp_path / "find" / "find.json").write_text(json.dumps(record))
    assert command.main(["--resume", str(tmp_path / "find")]) == 0


def test_one_process_at_a_time_searches_in_a_folder(tmp_path: Path, runs: SimulatedRuns) -> None:
    folder, carries, refusals = tmp_path / "find", runs.p95_ms, []

    def resumed_meanwhile(load: float) -> Any:
        with pytest.raises(FramestormError, match="is being run by another process; wait for it") as refused:
            command.main(["--resume", str(folder)])
        refusals.append(refused.value.exit_status)
        return carries(load)

    runs.p95_ms = resumed_meanwhile
    assert find(folder) == 0
    n = len(record_of(folder)["probes"])
    assert refusals == [1] * n and len(runs.given) == n
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    with locked(folder / command.LOCK), pytest.raises(FramestormError, match="by another process"):
        command.main(["--resume", str(folder)])
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize("content", [None, "", '{"over": {"name": "rate_per_s", "lo', "[]", '{"runs": 3}'])
def test_what_is_no_search_is_not_resumed_and_not_touched(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "find.json").write_text(content)
    (tmp_path / "notes.txt").write_text("mine")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UsageError, match=r"no search that can go on: .*find\.json.*; restore that file, or begin"):
        command.main(["--resume", str(tmp_path)])
    assert sorted(tmp_path.iterdir()) == before
