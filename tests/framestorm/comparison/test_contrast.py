import numpy as np
import pytest

from framestorm.comparison.contrast import OPEN, Contrast, Side, claimed
from framestorm.comparison.evidence import Resampled
from framestorm.comparison.repetitions import over_repetitions
from framestorm.comparison.words import interval_text, sentence


def test_open_to_both_sides_is_not_compared() -> None:
    nothing = np.full(100, np.nan)
    (made,) = claimed([Contrast("p95_ms", Side(5000.0), Side(70.0), {"ratio": Resampled(nothing, nothing)}, "")])
    row = made.as_json()
    assert (row["claim"], row["why"], row["p_value"]) == ("not compared", OPEN, None)
    assert sentence(row, "A", "B") == f"Round trip, p95: not compared, {OPEN}."


def test_shown_on_the_scale_of_the_claim() -> None:
    """Of rates that may be 0 there is an interval of the difference only."""
    old, new = [0.0, 10.0, 20.0], [20.0, 30.0, 40.0]
    made = Contrast("served_per_s", Side(10.0), Side(30.0), over_repetitions(old, new), "")
    row = made.as_json()
    assert (row["scale"], row["ratio"]["value"]) == ("difference", 3.0)
    assert interval_text(row).replace("\u00a0", " ") == "+20.0/s (\N{MINUS SIGN}2.67/s \N{EN DASH} +42.7/s)"
    assert row["difference"]["high"] == pytest.approx(42.67, abs=0.01)
