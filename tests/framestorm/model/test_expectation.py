"""What a claim expects, and what an interval says of it."""

import math

import pytest

from framestorm.model import expectation


@pytest.mark.parametrize(
    ("text", "low", "high", "verdict"),
    [
        ("> 2", 2.1, 3.0, "confirmed"),
        ("> 2", 1.0, 2.0, "rejected"),
        ("> 2", 1.9, 2.1, "inconclusive"),
        (">= 2", 2.0, 2.0, "confirmed"),
        ("< 1", 0.5, 1.0, "inconclusive"),
        ("< 1", 1.0, 1.2, "rejected"),
        ("<= 1", 0.5, 1.0, "confirmed"),
        ("< -0.5", -2.0, -1.0, "confirmed"),
        ("= 1 within 10 %", 0.95, 1.05, "confirmed"),
        ("= 1 within 10 %", 0.95, 1.2, "inconclusive"),
        ("= 1 within 10 %", 1.2, 1.3, "rejected"),
        ("= -2 within 10 %", -2.1, -1.9, "confirmed"),
        ("> 2", None, None, "inconclusive"),
        ("> 2", 3.0, math.inf, "confirmed"),
        ("< 2", math.inf, math.inf, "rejected"),
        ("< 2", 1.0, math.inf, "inconclusive"),
    ],
)
def test_expectations(text: str, low: float | None, high: float | None, verdict: str) -> None:
    assert expectation.parse(text).verdict(low, high) == verdict


@pytest.mark.parametrize("text", ["2", "about 2", "= 2", "> two", "!= 3", "> 1.2.3", "= 1 within 1.2.3 %", "< ."])
def test_an_expectation_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="expect"):
        expectation.parse(text)
