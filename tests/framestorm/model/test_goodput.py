"""Objectives of each sample, as a plan's property has them."""

import pytest

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model import plan as plans
from framestorm.model.criteria import parse
from framestorm.model.goodput import Goodput, parse_objectives
from framestorm.model.judgement import LoadFigures, judge
from framestorm.run import values


@pytest.mark.parametrize(
    ("text", "objectives"),
    [
        ("", []),
        ("ttft_ms < 500, itl_p99_ms<=50 ms", [("ttft_ms", "<", 500), ("itl_p99_ms", "<=", 50)]),
        ("rtt_ms < 1.5 s", [("rtt_ms", "<", 1500)]),
        ("tokens >= 10,tokens_per_s > 600 /min", [("tokens", ">=", 10), ("tokens_per_s", ">", 10)]),
    ],
)
def test_objectives_are_in_the_unit_of_their_figure(text: str, objectives: list[tuple[str, str, float]]) -> None:
    assert [(each.figure, each.op, each.limit) for each in parse_objectives(text)] == objectives


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("ttft_ms", "not of the form"),
        ("ttft_ms < 500,", "not of the form"),
        ("ttft_ms < -5", "not of the form"),
        ("ttft_ms p95 < 500", "not of the form"),
        (f"ttft_ms < {'9' * 400}", "not of the form"),
        ("Host < 5", "not of the form"),
        ("ttft_ms < 5 MB", "one of the units ms, s, min"),
        ("tokens < 5 ms", "tokens has no unit"),
    ],
)
def test_others_are_refused_before_the_load(text: str, named: str) -> None:
    plan = plans.read(paths.JMX / "chat.jmx")
    given = {"url": "http://127.0.0.1:9/v1/completions", "goodput": text}
    with pytest.raises(UsageError, match=named):
        values.complete(plan, plan.defaults | given, given, is_over_slaves=False, is_for_gui=False)


GOOD = Goodput("ttft_ms < 500", n=100, good=90, share=0.9, low=0.82, high=0.94, per_s=4.5)


@pytest.mark.parametrize(
    ("text", "goodput", "state", "measured"),
    [
        ("goodput < 90 %", GOOD, "passed", "90"),
        ("goodput < 95 %", GOOD, "failed", "90"),
        ("goodput < 5/s", GOOD, "failed", "4.5"),
        ("goodput rate < 4/s", GOOD, "passed", "4.5"),
        ("goodput < 95 %", Goodput("x_ms < 5", 100, absent=["x_ms"]), "unjudged", "not known"),
        ("goodput < 95 %", None, "unjudged", "not known"),
    ],
)
def test_it_is_a_criterion(text: str, goodput: Goodput | None, state: str, measured: str) -> None:
    judgement = judge(parse(text, "request"), {}, LoadFigures(goodput=goodput))
    assert judgement.state == state
    assert measured in judgement.measured
    if goodput and goodput.absent:
        assert "no sample has x_ms" in judgement.why
