import pytest

from framestorm.model.criteria import CriteriaError
from framestorm.model.run import StopOption
from framestorm.model.stop_rule import STOP_IF, STOP_WHEN, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p95 > 5 s for 30 s", ("request", "p95", 5000.0, 0, 30)),
        ("errors > 10 % over 20 s", ("request", "errors", 0.1, 20, 0)),
        ("errors > 10 % over 20 s for 1 min", ("request", "errors", 0.1, 20, 60)),
        ("login mean >= 300 ms FOR 1.5 s", ("login", "mean", 300.0, 0, 2)),
        ("'for ever' p99 > 2 s over 5 s", ("for ever", "p99", 2000.0, 5, 0)),
        ("user mean > 30 s over 4.15 min", ("user", "mean", 30_000.0, 249, 0)),
        ("* rate < 5/s for 10 s", ("*", "rate", 5.0, 0, 10)),
        ("errors > 100", ("request", "errors", 100.0, 0, 0)),
    ],
)
def test_stop_if_is_a_criterion_with_a_time(text: str, expected: tuple[object, ...]) -> None:
    rule = parse(STOP_IF, text, "request")
    criterion = rule.criterion
    found = (criterion.label, criterion.metric, criterion.limit, rule.over_s, rule.for_s)
    assert found == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p95 within 5 %", ("request", "p95", 0.05)),
        ("login mean within 2.5 %", ("login", "mean", 0.025)),
        ("'log in' median WITHIN 10 %", ("log in", "median", 0.1)),
    ],
)
def test_stop_when_is_a_figure_and_a_share(text: str, expected: tuple[object, ...]) -> None:
    rule = parse(STOP_WHEN, text, "request")
    assert (rule.criterion.label, rule.criterion.metric, rule.within) == expected


@pytest.mark.parametrize(
    ("option", "text", "marked", "words"),
    [
        (STOP_IF, "p95 > 5 s", "", "'p95 > 5 s for 30 s' (in each second of 30) or 'p95 > 5 s over 30 s'"),
        (STOP_IF, "errors > 10 %", "", "needs a time"),
        (STOP_IF, "p95 > 5 s for 30", "", "expected s or min after 30, got nothing"),
        (STOP_IF, "p95 > 5 s for ever", "ever", "a number of seconds"),
        (STOP_IF, f"p95 > 5 s for {'9' * 400} s", "9" * 400, "a number of seconds"),
        (STOP_IF, "p95 > 5 s over 0 s", "0", "from 1 s to 10 min"),
        (STOP_IF, "p95 > 5 s over 11 min", "11", "from 1 s to 10 min"),
        (STOP_IF, "p95 > 5 s for 3 s for 4 s", "for", "stands twice"),
        (STOP_IF, "p95 > 5 s for 3 s please", "please", "unexpected"),
        (STOP_IF, "p95 > 5 parsecs for 3 s", "parsecs", "needs a unit: ms, s or min"),
        (STOP_IF, "avg > 5 s for 3 s", "avg", "in criteria that is mean"),
        (STOP_IF, "latency_ms p95 > 5 s for 3 s", None, "known only after the run"),
        (STOP_IF, "answered rate < 5/s for 3 s", None, "judged after the run by --fail-if"),
        (STOP_IF, "overload for 3 s", None, "judged after the run by --fail-if"),
        (STOP_WHEN, "p95", "", "expected 'within' after 'p95', got nothing"),
        (STOP_WHEN, "p95 within 5", "", "expected % after 5"),
        (STOP_WHEN, "p95 within 0 %", "0", "above 0, at most 50"),
        (STOP_WHEN, "p95 within 5 % now", "now", "unexpected"),
        (STOP_WHEN, "p9x within 5 %", None, "expected a metric"),
        (STOP_WHEN, "errors within 5 %", None, "'p95 within 5 %'"),
        (STOP_WHEN, "max within 5 %", None, "max has no interval"),
    ],
)
def test_a_wrong_rule_is_marked_and_has_a_right_form(
    option: StopOption, text: str, marked: str | None, words: str
) -> None:
    with pytest.raises(CriteriaError) as raised:
        parse(option, text, "request")
    message = str(raised.value)
    assert message.startswith(f"{option}: ") and words in message
    if marked is not None:
        _, shown, mark, *_ = message.split("\n")
        begin = mark.index("^") - 2
        assert (shown, shown[2 + begin : 2 + begin + len(marked)]) == (f"  {text}", marked)
