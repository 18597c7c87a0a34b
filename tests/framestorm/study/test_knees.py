"""Claims on where throughput stops following the load."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from framestorm.judge.knees import scalability
from framestorm.model.overload import Rates
from framestorm.model.summary import Facts
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


@pytest.mark.parametrize(
    ("over", "asked_per_s", "knee"),
    [
        ("threads", lambda load: None, 4),  # users by another name, as in a plan from elsewhere
        ("threads", lambda load: 50, 4),  # of a rate that stays
        ("rps", lambda load: load, 1000),
    ],
)
def test_only_a_load_that_requests_were_asked_for_by_is_a_rate(
    study: Any, over: str, asked_per_s: Callable[[float], float | None], knee: float, tmp_path: Path
) -> None:
    """Users are no rate: up to 2 of them, each adds 10/s."""
    by_load = {1: 10, 2: 20, 4: 20, 8: 20} if over == "threads" else {10: 10, 100: 100, 1000: 200, 2000: 200}

    def facts(factors: Mapping[str, Any], repetition: int) -> dict[str, Any]:
        return {"facts": Facts(0, 0, None, rates=Rates(asked_per_s=asked_per_s(factors[over])))}

    def times(factors: Mapping[str, Any], repetition: int) -> list[float]:
        return [1000 / by_load[factors[over]] * (1 + 0.001 * repetition)] * 4

    plan = tmp_path / "elsewhere.jmx"
    group = f'<ThreadGroup enabled="true"><stringProp name="n">${{__P({over},1)}}</stringProp></ThreadGroup><hashTree/>'
    plan.write_text(f"<jmeterTestPlan><hashTree><TestPlan/><hashTree>{group}</hashTree></hashTree></jmeterTestPlan>")
    made = study(
        times,
        {over: list(by_load)},
        summary=facts,
        plan=str(plan),
        target={"kind": "url", "url": "http://127.0.0.1:9/"},
    )
    answer = judge(made, {"metric": "served_per_s", "knee": {"over": over}, "expect": "> 0"})
    assert answer.value == knee
    (line,) = scalability(made)
    assert line.knee is not None
    assert (line.over, line.knee.at, line.usl is None) == (over, knee, over == "rps")


def test_a_knee_of_each_line_has_to_meet_it(study: Any) -> None:
    def both(factors: Mapping[str, Any], repetition: int) -> list[float]:
        return served(2 if factors["way"] == "fork" else 99)(factors, repetition)

    made = study(both, BOTH | {"users": [1, 2, 4]})
    answer = judge(made, {"metric": "served_per_s", "knee": {"over": "users"}, "expect": "<= 4"})
    assert answer.verdict == "rejected"
    assert "way=fork: it keeps up to 2, and falls short from 4 on" in answer.sentence
    assert "way=kept-alive: it keeps up to 4, the largest users tried" in answer.sentence
