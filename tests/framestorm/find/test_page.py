"""The page and the verdict of a search over a setting of the platform."""

from pathlib import Path

import pytest

from framestorm.find import page
from framestorm.model import files
from framestorm.model.search import Highest, LoadRange, Outcome, Probe, SearchRecord, Smallest
from framestorm.stats.estimate import Estimate

REPLICAS = LoadRange("target.replicas", 1, 8, is_whole=True)


@pytest.mark.parametrize(
    ("answer", "text", "status"),
    [
        (Smallest("found", 3, 2, "p95 < 1 s"), "It needs 3 replicas; with 2 replicas it misses 'p95 < 1 s'.", 0),
        (Smallest("found", 1, None), "It needs no more than 1 replica, where the range begins.", 0),
        (
            Smallest("above_range", None, 8, "p95 < 1 s"),
            "Above the range: with 8 replicas it still misses 'p95 < 1 s'. ",
            3,
        ),
        (Smallest("not_known", None, 1, why="vm was saturated"), "No answer: vm was saturated. ", 3),
        (None, "The search is not over. If nothing runs it any more, continue it with --resume.", 4),
    ],
)
def test_an_answer_in_words(tmp_path: Path, answer: Smallest | None, text: str, status: int) -> None:
    probes = [
        Probe(2, "probe-01", [Outcome("p95 < 1 s", is_met=False, measured="2 s", value=2000.0)], answered_per_s=8)
    ]
    record = SearchRecord(
        REPLICAS, ["p95 < 1 s"], "jmx/request-rate.jmx", (), 0.0, probes=probes, answer=answer,
        target=("function=sleep",),
    )  # fmt: skip
    files.write(tmp_path / "find.json", record)
    assert files.read(tmp_path / "find.json", SearchRecord) == record
    assert page.sentence(record).startswith(text)
    assert page.exit_status(record) == status
    page.write(tmp_path, record)
    shown = (tmp_path / "index.html").read_text()
    assert "How much does it need?" in shown and "function=sleep" in shown and "2 replicas" in shown
    assert ("<failure" in (tmp_path / "junit.xml").read_text()) == (status != 0)


@pytest.mark.parametrize(
    ("binding", "is_cliff", "words"),
    [
        ("p95 < 1 s", True, " A cliff: the figure more than doubles there."),
        ("p95 < 1 s", False, " A slope: the figure less than doubles there."),
        ("success >= 99 %", False, " A slope: at most twice as many samples miss it there as it allows."),
        ("answered rate > 9/s", False, " A slope: the figure falls by less than half there."),
        ("success >= 99 %", True, " A cliff: more than twice as many samples miss it there as it allows."),
        ("answered rate > 9/s", True, " A cliff: the figure falls to less than half there."),
        ("it keeps up with the rate", False, ""),
    ],
)
def test_how_the_figure_changes_is_said_as_it_does(binding: str, is_cliff: bool, words: str) -> None:
    answer = Highest("found", 8, None, None, 9, binding, is_cliff)
    record = SearchRecord(LoadRange("users", 1, 64, is_whole=True), [binding], "p.jmx", (), 0.0, answer=answer)
    assert page.sentence(record) == f"It carries 8 users; with 9 users it misses '{binding}'.{words}"


@pytest.mark.parametrize(
    ("name", "low", "text"),
    [
        ("rate_per_s", 1, "Below the range: at 1/s it misses 'p95 < 1 s' already. Begin the range at a lower load."),
        ("users", 2, "Below the range: with 2 users it misses 'p95 < 1 s' already. Begin the range at a lower load."),
        ("users", 1, "Below the range: with 1 user it misses 'p95 < 1 s' already. No load is lower: see why"),
    ],
)
def test_what_to_do_about_a_range_that_begins_above_the_capacity(name: str, low: float, text: str) -> None:
    answer = Highest("below_range", None, None, low, low, "p95 < 1 s")
    over = LoadRange(name, low, 64, is_whole=name == "users")
    assert page.sentence(SearchRecord(over, ["p95 < 1 s"], "p.jmx", (), 0.0, answer=answer)).startswith(text)


@pytest.mark.parametrize(("highest", "reached"), [(8, "from about 8 users (7.5 to 8.5) on"), (4, "already with 4")])
def test_a_capacity_that_the_fewest_users_reach_is_said_so(highest: float, reached: str) -> None:
    answer = Highest("found", highest, None, None, None, interval=(7.5, 8.5), capacity=Estimate(10, 9.8, 10.2))
    record = SearchRecord(LoadRange("users", 4, 64, is_whole=True), [], "p.jmx", (), 0.0, answer=answer)
    assert reached in page.sentence(record)


def test_a_search_for_a_capacity_that_was_stopped_has_its_highest_rate() -> None:
    probes = [Probe(users, "", [], answered_per_s=rate) for users, rate in ((1, 5.0), (2, 9.0), (4, 8.0))]
    over = LoadRange("users", 1, 64, is_whole=True)
    record = SearchRecord(over, [], "p.jmx", (), 0.0, state="stopped", probes=probes)
    text = "The search was stopped. The highest rate so far is 9.00/s, with 2 users. Continue it with --resume."
    assert page.sentence(record) == text


@pytest.mark.parametrize(
    ("rates", "capacity", "x", "y"),
    [
        ([(1, 5.0), (1, 7.0), (2, 9.0), (4, 12.0), (8, 12.0)], 12, [1, 2, 8], [6, 12, 12]),
        ([(4, 10.2), (8, 10.0), (16, 9.9)], 10, [4, 16], [10, 10]),  # the fewest users reach it
        ([(1, 2.0), (2, 4.0)], 8, [1, 2], [2, 4]),  # the range ends before it is reached
    ],
)
def test_the_bound_of_a_rate_goes_from_the_lowest_load_to_the_highest(
    rates: list[tuple[float, float]], capacity: float, x: list[float], y: list[float]
) -> None:
    probes = [Probe(users, "", [], answered_per_s=rate) for users, rate in rates]
    answer = Highest("found", 4, None, None, None, capacity=Estimate(capacity))
    record = SearchRecord(LoadRange("users", 1, 64, is_whole=True), [], "p.jmx", (), 0.0, probes=probes, answer=answer)
    (chart,) = page._charts(record)
    assert [(each["x"], each["y"]) for each in chart.traces if each["name"] == "bound"] == [(x, y)]


@pytest.mark.parametrize(
    ("objective", "value", "axis", "drawn", "limit"),
    [
        ("p95 < 1 s", 2000.0, "p95 response time (s)", 2.0, 1.0),
        ("ttft_ms p95 < 500 ms", 200.0, "p95 time to first token (ms)", 200.0, 500.0),
        ("login itl_p99_ms p95 < 50", 20.0, "p95 inter-token latency, p99 (ms)", 20.0, 50.0),
        ("success >= 99 %", 0.98, "measured", 0.98, None),
        ("vllm:num_requests_waiting max < 8", 9.0, "measured", 9.0, None),
    ],
)
def test_an_objective_on_a_time_is_drawn_with_its_limit(
    objective: str, value: float, axis: str, drawn: float, limit: float | None
) -> None:
    probes = [Probe(load, "probe-01", [Outcome(objective, is_met=False, measured="", value=value)]) for load in (2, 4)]
    (chart,) = page._charts(SearchRecord(REPLICAS, [objective], "jmx/chat-rate.jmx", (), 0.0, probes=probes))
    assert chart.yaxis["title"]["text"] == axis
    assert chart.traces[0]["y"] == [drawn, drawn]
    assert [each["y"] for each in chart.traces if each["name"] == "objective"] == [[limit, limit]] * (limit is not None)
