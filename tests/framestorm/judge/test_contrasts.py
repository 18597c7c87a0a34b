import math
import re

import numpy as np
import pytest

from framestorm.compare.page import table
from framestorm.compare.thresholds import parse_threshold
from framestorm.judge.contrasts import (
    OPEN,
    Threshold,
    judge_differences,
    judge_thresholds,
    share_without_time,
)
from framestorm.judge.differences import Question, of_single_runs, resamples_of_times
from framestorm.judge.needed import TOO_COARSE
from framestorm.judge.wording import change_and_interval, contrast_claim, contrast_sentence, interval, level
from framestorm.model.comparison import Contrast, JudgedThreshold, SideFigure
from framestorm.results.samples import OrderedTimes
from framestorm.stats.bootstrap import Resamples
from framestorm.stats.evidence import over_repetitions

STEADY = [99.0, 100.0, 101.0]


def question(name: str, old: list[float], new: list[float]) -> Question:
    """One metric of repetitions; its figures are the middle ones."""
    return Question(name, SideFigure(old[1]), SideFigure(new[1]), over_repetitions(old, new), "")


def claimed(family: list[Question]) -> list[Contrast]:
    return list(judge_differences(family).values())


def parse(text: str) -> Threshold:
    (one,) = parse_threshold(text)
    return one


def judged(limit: Threshold, *questions: Question) -> list[JudgedThreshold]:
    return judge_thresholds([limit], judge_differences(questions))


def test_open_to_both_sides_is_not_compared() -> None:
    nothing = np.full(100, np.nan)
    evidence = {"ratio": Resamples(0.0, nothing, nothing)}
    (made,) = claimed([Question("p95_ms", SideFigure(5000.0), SideFigure(70.0), evidence, "")])
    assert (made.claim, made.why, made.p_value) == ("not compared", OPEN, None)
    assert contrast_sentence(made, "A", "B") == f"P95 response time: not compared, {OPEN}."


def test_constants_do_not_count() -> None:
    """What was set in both, and cannot differ, makes no claim of anything else less sure."""
    constants = [question("asked_per_s", [50.0, 50.0], [50.0, 50.0]) for _ in range(20)]
    made = claimed([*constants, question("mean_ms", STEADY, [103.0, 104.0, 105.0])])
    assert [each.claim for each in made] == ["no significant difference"] * 20 + ["slower"]


def test_not_significant_after_correction() -> None:
    """The interval alone would bear a claim, and 39 others do not."""
    slower = question("mean_ms", STEADY, [103.0, 104.0, 105.0])
    made = claimed([slower, *(question("mean_ms", STEADY, [99.0, 100.0, 101.5]) for _ in range(39))])
    assert [contrast_claim(each) for each in made] == ["not significant after correction"] + [
        "no significant difference"
    ] * 39
    assert table(made[:1], "A", "B").endswith("not significant after correction")


def test_shown_on_the_scale_of_the_claim() -> None:
    """Of rates that may be 0 there is an interval of the difference only."""
    (made,) = claimed([question("served_per_s", [0.0, 10.0, 20.0], [20.0, 30.0, 40.0])])
    assert made.ratio and made.difference
    assert (made.scale, made.ratio.value) == ("difference", 3.0)
    assert change_and_interval(made).replace("\u00a0", " ") == "+20.0/s [\N{MINUS SIGN}2.67/s, +42.7/s]"
    assert made.difference.high == pytest.approx(42.67, abs=0.01)


def test_a_regression_alone_may_be_none_among_many() -> None:
    """A regression by its interval, of which there is one in so many by chance."""
    limit = parse("mean 10 %")
    slower = question("mean_ms", STEADY, [116.0, 118.0, 120.0])
    assert [each.state for each in judged(limit, slower)] == ["regression"]
    among = judged(limit, slower, *(question("mean_ms", STEADY, STEADY) for _ in range(39)))
    assert among[0].state == "inconclusive" and among[0].why
    assert {(each.state, each.why) for each in among[1:]} == {("within", None)}


@pytest.mark.parametrize(
    ("name", "limit", "new", "state"),
    [
        ("served_per_s", "rate 10 %", [79.0, 80.0, 81.0], "regression"),
        ("served_per_s", "rate 30 %", [79.0, 80.0, 81.0], "within"),
        ("served_per_s", "rate 20 %", [79.0, 80.0, 81.0], "inconclusive"),
        ("mean_ms", "mean 10 %", [79.0, 80.0, 81.0], "within"),
        ("mean_ms", "mean 10 %", [109.0, 110.0, 111.0], "inconclusive"),
    ],
)
def test_a_threshold_goes_by_the_worse_direction(name: str, limit: str, new: list[float], state: str) -> None:
    (one,) = judged(parse(limit), question(name, STEADY, new))
    assert one.state == state


@pytest.mark.parametrize(
    ("name", "limit", "old", "new", "state"),
    [
        ("mean_ms", "mean 10 %", [0.0, 0.0, 0.0], [4.0, 5.0, 6.0], "regression"),
        ("mean_ms", "mean 10 %", [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], "within"),
        ("mean_ms", "mean 10 %", [4.0, 5.0, 6.0], [0.0, 0.0, 0.0], "within"),
        ("mean_ms", "mean 10 %", [20.0, 20.0, 20.0], [0.0, 22.0, 24.0], "inconclusive"),
        ("failed", "errors 10 %", [0.0, 0.0, 0.0], [0.0, 1.0, 5.0], "inconclusive"),
        ("failed", "errors 10 %", [0.0, 0.0, 0.0], [90.0, 91.0, 95.0], "regression"),
        ("served_per_s", "rate 10 %", STEADY, [0.0, 0.0, 0.0], "regression"),
        ("served_per_s", "rate 10 %", [0.0, 0.0, 0.0], STEADY, "within"),
    ],
)
def test_a_figure_of_0_is_judged_by_the_difference(
    name: str, limit: str, old: list[float], new: list[float], state: str
) -> None:
    (one,) = judged(parse(limit), question(name, old, new))
    assert (one.state, one.why) == (state, "a figure of 0 has no ratio: judged by the difference")
    assert " times" not in one.text


@pytest.mark.parametrize(
    ("n", "ok", "timed_out", "share"), [(100, 99, 0, None), (100, 98, 0, 0.02), (100, 50, 50, None), (0, 0, 0, None)]
)
def test_samples_without_a_time(n: int, ok: int, timed_out: int, share: float | None) -> None:
    assert share_without_time(n, ok, timed_out) == share


def test_words_of_intervals_and_levels() -> None:
    ends = [("1", "2"), (None, "2"), ("1", None), (None, None)]
    assert [interval(*each) for each in ends] == ["[1, 2]", "[…, 2]", "[1, …]", ""]
    assert [level(each) for each in (True, False, 0.5, 3, "a")] == ["yes", "no", "0.5", "3", "a"]


@pytest.mark.parametrize(
    ("limit", "spread", "repetitions"),
    [("mean 10 %", 6.0, 3), ("mean 10 %", 12.0, 5), ("mean 2 %", 6.0, 3)],
    ids=["within with more", "within with many more", "a regression with more"],
)
def test_so_many_repetitions_as_are_named_decide_a_check(limit: str, spread: float, repetitions: int) -> None:
    def sides(n: int) -> Question:
        """Values with that mean and standard deviation, whatever their number."""
        steps = [number - (n - 1) / 2 for number in range(n)]
        deviation = math.sqrt(sum(step * step for step in steps) / (n - 1))
        old, new = ([mean + spread * step / deviation for step in steps] for mean in (100.0, 105.0))
        figures = SideFigure(100.0, repetitions=n), SideFigure(105.0, repetitions=n)
        return Question("mean_ms", *figures, over_repetitions(old, new), "")

    (undecided,) = judged(parse(limit), sides(repetitions))
    assert undecided.state == "inconclusive" and undecided.needed
    wanted = int(re.findall(r"about (\d+) repetitions a side in place of", undecided.needed)[0])
    # About so many: a ratio's interval is one of logarithms, whose mean changes a little with their number.
    decided, before = (judged(parse(limit), sides(n))[0] for n in (wanted + 1, wanted - 2))
    assert (decided.state, before.state) == ("within" if limit == "mean 10 %" else "regression", "inconclusive")


@pytest.mark.parametrize(("ms", "coarse"), [(20.0, True), (200.0, False)])
def test_no_number_of_samples_makes_whole_milliseconds_finer(ms: float, coarse: bool) -> None:
    """Of 500 samples each; 5 % are as much as the rounding of 20 ms, and with no other error a tenth of it."""
    times = [OrderedTimes(np.array([each] * 500), np.zeros(500, dtype=bool)) for each in (ms, 1.05 * ms)]
    old, new = (resamples_of_times(each, [number], "median") for number, each in enumerate(times))
    assert old and new
    of_one = of_single_runs("median_ms", SideFigure(ms, n=500), SideFigure(1.05 * ms, n=500), (old, new))
    (one,) = judged(parse("median 10 %"), of_one)
    assert (one.state, one.needed) == (("inconclusive", TOO_COARSE) if coarse else ("within", None))


def test_a_figure_at_its_threshold_is_not_decided_by_more_data() -> None:
    (one,) = judged(parse("mean 10 %"), question("mean_ms", [99.0, 100.0, 101.0], [109.0, 110.0, 111.0]))
    assert one.needed == "the figure lies at the threshold: more than 100 times as much data would be needed"
