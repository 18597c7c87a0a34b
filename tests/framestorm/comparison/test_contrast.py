import numpy as np
import pytest

from framestorm.comparison.contrast import OPEN, Contrast, Side, claimed
from framestorm.comparison.evidence import Resampled
from framestorm.comparison.repetitions import over_repetitions
from framestorm.comparison.words import claim_text, interval_text, sentence, table


def test_open_to_both_sides_is_not_compared() -> None:
    nothing = np.full(100, np.nan)
    (made,) = claimed([Contrast("p95_ms", Side(5000.0), Side(70.0), {"ratio": Resampled(nothing, nothing)}, "")])
    row = made.as_json()
    assert (row["claim"], row["why"], row["p_value"]) == ("not compared", OPEN, None)
    assert sentence(row, "A", "B") == f"Round trip, p95: not compared, {OPEN}."


def test_constants_do_not_count() -> None:
    """What was asked of both, and cannot differ, makes no claim of anything else less sure."""
    constant = Contrast("asked_per_s", Side(50.0), Side(50.0), over_repetitions([50.0, 50.0], [50.0, 50.0]), "")
    slower = over_repetitions([99.0, 100.0, 101.0], [103.0, 104.0, 105.0])
    made = claimed([*[constant] * 20, Contrast("mean_ms", Side(100.0), Side(104.0), slower, "")])
    assert [each.claim for each in made] == ["no difference shown"] * 20 + ["slower"]


def test_not_among_so_many() -> None:
    """The interval alone would bear a claim, and 39 others do not."""
    rows = [([99.0, 100.0, 101.0], new) for new in ([103.0, 104.0, 105.0], *[[99.0, 100.0, 101.5]] * 39)]
    made = claimed(
        [Contrast("mean_ms", Side(100.0), Side(new[1]), over_repetitions(old, new), "") for old, new in rows]
    )
    said = [claim_text(each.as_json()) for each in made]
    assert said == ["no difference shown among so many"] + ["no difference shown"] * 39
    assert table([made[0].as_json()], "A", "B").endswith("no difference shown among so many")


def test_shown_on_the_scale_of_the_claim() -> None:
    """Of rates that may be 0 there is an interval of the difference only."""
    old, new = [0.0, 10.0, 20.0], [20.0, 30.0, 40.0]
    made = Contrast("served_per_s", Side(10.0), Side(30.0), over_repetitions(old, new), "")
    row = made.as_json()
    assert (row["scale"], row["ratio"]["value"]) == ("difference", 3.0)
    assert interval_text(row).replace("\u00a0", " ") == "+20.0/s (\N{MINUS SIGN}2.67/s \N{EN DASH} +42.7/s)"
    assert row["difference"]["high"] == pytest.approx(42.67, abs=0.01)
