"""Claims on where throughput stops following the load."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.framestorm.study.conftest import BOTH, judge


def served(limit: float, wobble: float = 0.0) -> Callable[[Mapping[str, Any], int], list[float]]:
    """Runs of one frame after the other whose served rate follows users up to a limit."""
    return lambda factors, repetition: [1000 / min(factors["users"], limit) * (1 + wobble * repetition)] * 4


@pytest.mark.parametrize(("limit", "expect", "verdict"), [
    (2, "< 8", "confirmed"), (2, "> 4", "rejected"), (99, "< 8", "rejected"), (99, "> 8", "confirmed"),
    (2, "> 2", "confirmed"), (2, ">= 3", "inconclusive"), (99, "> 100", "inconclusive"),
])  # fmt: skip
def test_a_knee(study: Any, limit: float, expect: str, verdict: str) -> None:
    made = study(served(limit, 0.001), {"users": [1, 2, 4, 8]})
    answer = judge(made, {"metric": "served_per_s", "knee": {"over": "users"}, "expect": expect})
    assert answer.verdict == verdict
    assert answer.value == (4 if limit == 2 else None)
    assert answer.sentence.startswith("Served rate, knee over users: it ")


def test_a_knee_of_each_line_has_to_meet_it(study: Any) -> None:
    def both(factors: Mapping[str, Any], repetition: int) -> list[float]:
        return served(2 if factors["way"] == "fork" else 99)(factors, repetition)

    made = study(both, BOTH | {"users": [1, 2, 4]})
    answer = judge(made, {"metric": "served_per_s", "knee": {"over": "users"}, "expect": "<= 4"})
    assert answer.verdict == "rejected"
    assert "way=fork: it keeps up to 2, and falls short from 4 on" in answer.sentence
    assert "way=kept-alive: it keeps up to 4, the largest users tried" in answer.sentence
