import math

import numpy as np
import pytest
from scipy import stats

from framestorm.stats.bootstrap import Resamples
from framestorm.stats.evidence import ByFormula, holm, log_ratio_ends, over_repetitions, rounding_ms

OLD = [10.1, 11.4, 9.6, 12.0, 10.7]
NEW = [12.9, 12.1, 13.4, 11.8, 14.0]


def test_welch_as_scipy_has_it() -> None:
    evidence = over_repetitions(OLD, NEW[:4])["difference"]
    wanted = stats.ttest_ind(NEW[:4], OLD, equal_var=False)
    assert evidence.two_sided(0.0) == pytest.approx(wanted.pvalue, rel=1e-9)
    ends = wanted.confidence_interval()
    assert evidence.interval() == pytest.approx((ends.low, ends.high), rel=1e-12)


def test_pairs_as_scipy_has_them() -> None:
    evidence = over_repetitions(OLD, NEW, paired=True)["ratio"]
    wanted = stats.ttest_rel(np.log(NEW), np.log(OLD))
    assert evidence.two_sided(1.0) == pytest.approx(wanted.pvalue, rel=1e-9)
    ends = wanted.confidence_interval()
    assert evidence.interval() == pytest.approx((math.exp(ends.low), math.exp(ends.high)), rel=1e-12)


def test_one_sided_against_a_margin() -> None:
    evidence = over_repetitions(OLD, NEW)["difference"]
    wanted = stats.ttest_ind(NEW, np.array(OLD) + 1.0, equal_var=False, alternative="greater")
    assert evidence.above(1.0) == pytest.approx(wanted.pvalue, rel=1e-9)
    assert evidence.below(1.0) == 1.0


def test_two_single_runs_say_nothing() -> None:
    assert over_repetitions([1.0], [2.0]) == {}


def test_no_ratio_of_what_may_be_zero() -> None:
    assert over_repetitions([0.0, 1.0], [1.0, 2.0]).keys() == {"difference"}


@pytest.mark.parametrize(
    ("is_bound", "open_ends"),
    [((True, False), (True, False)), ((False, True), (False, True)), ((True, True), (True, True))],
)
def test_a_lower_bound_leaves_an_end_open(is_bound: tuple[bool, bool], open_ends: tuple[bool, bool]) -> None:
    low, high = over_repetitions(OLD, NEW, is_bound)["ratio"].interval()
    assert (low is None, high is None) == open_ends


def test_only_what_a_bound_leaves_can_be_claimed() -> None:
    """The new side is at least so long: longer may be claimed, shorter never."""
    longer = over_repetitions(OLD, NEW, (False, True))["ratio"]
    shorter = over_repetitions(NEW, OLD, (False, True))["ratio"]
    assert longer.two_sided(1.0) < 0.05
    assert shorter.two_sided(1.0) == 1.0


def test_resampled() -> None:
    drawn = np.arange(1, 1000, dtype=float)
    evidence = Resamples(0.0, drawn, drawn)
    assert evidence.interval(0.9) == (50.0, 950.0)
    assert evidence.above(0.5) == 1 / 1000
    assert evidence.above(10.0) == 11 / 1000
    assert evidence.below(990.0) == 11 / 1000


def test_resampled_of_which_some_are_not_known() -> None:
    """They speak neither for more nor for less."""
    drawn = np.concatenate([np.linspace(1, 2, 90), np.full(10, np.nan)])
    evidence = Resamples(0.0, drawn, drawn)
    assert evidence.interval() == (None, None)
    assert evidence.above(0.5) == evidence.below(2.5) == 11 / 101


def test_resampled_beyond_a_time_out() -> None:
    drawn = np.linspace(1, 2, 100)
    evidence = Resamples(0.0, drawn, np.full(100, np.inf))
    low, high = evidence.interval()
    assert (low, high) == (pytest.approx(1.0202, abs=1e-3), None)
    assert evidence.below(100.0) == 1.0


@pytest.mark.parametrize(
    ("p_values", "stands"),
    [
        ([0.01, 0.04, 0.03, 0.005], [True, False, False, True]),
        ([0.01, 0.01, 0.04], [True, True, True]),
        ([0.02, 0.02, 0.02], [False, False, False]),
        ([], []),
    ],
)
def test_holm(p_values: list[float], stands: list[bool]) -> None:
    assert holm(p_values) == stands


def test_wider_holds_both() -> None:
    one = ByFormula(lambda _: (1.0, 3.0))
    assert one.or_wider((2.0, 4.0)).interval() == (1.0, 4.0)
    assert one.or_wider(ByFormula(lambda _: (2.0, None))).interval() == (1.0, None)
    assert one.within(2.0, None).interval() == (2.0, 3.0)
    assert ByFormula(lambda _: (-1e4, 30.0)).of_logs().interval() == (0.0, None)


@pytest.mark.parametrize(("figures", "hidden"), [([3.0, 4.0], 1), ([3], 1), ([3.0, 4.2], 0), ([0.0], 1), ([3.5, 4], 1)])
def test_whole_figures_hide_a_millisecond(figures: list[float], hidden: float) -> None:
    assert rounding_ms(figures) == hidden


@pytest.mark.parametrize(
    ("new", "old", "off", "low", "high"),
    [
        ([5, 5], [2, 2], (1, 1), 4 / 3, 6),
        ([3, 8], [4, 4], (1, 1), math.sqrt(2 * 7) / 5, math.sqrt(4 * 9) / 3),
        ([3.2], [1.6], (0, 0), 2, 2),
        # What may be next to nothing leaves an end open.
        ([3, 3], [1, 2], (1, 1), 2 / math.sqrt(2 * 3), None),
        ([1], [2], (1, 1), None, 2),
    ],
)
def test_each_side_is_off_to_its_own(
    new: list[float], old: list[float], off: tuple[float, float], low: float | None, high: float | None
) -> None:
    ends = [None if end is None else math.exp(end) for end in log_ratio_ends(new, old, off)]
    assert ends == [None if end is None else pytest.approx(end) for end in (low, high)]
