import subprocess
import sys

import numpy as np
import pytest

from framestorm.model.criteria import CriteriaError, metric_name, parse
from framestorm.model.judgement import Group, judge
from framestorm.model.metric import METRICS, metric, of_label, quoted, split_label
from framestorm.stats.percentiles import Sample


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("frame p95 > 2 s", ("frame", "rtt", "p95", ">", 2000.0)),
        ("p95>2s", ("frame", "rtt", "p95", ">", 2000.0)),
        ("frame p99.9 >= 350 ms", ("frame", "rtt", "p99.9", ">=", 350.0)),
        ("frame median > 0.5 min", ("frame", "rtt", "median", ">", 30_000.0)),
        ("frame handler p95 > 1 s", ("frame", "handler", "p95", ">", 1000.0)),
        ("frame warm max > 1 s", ("frame", "warm", "max", ">", 1000.0)),
        ("model mean > 40 ms", ("frame", "model", "mean", ">", 40.0)),
        ("frame success < 99.5 %", ("frame", "rtt", "success", "<", 0.995)),
        ("failures > 0", ("frame", "rtt", "errors", ">", 0.0)),
        ("failures>1%", ("frame", "rtt", "errors", ">", 0.01)),
        ("errors > 1 %", ("frame", "rtt", "errors", ">", 0.01)),
        ("request first_token_ms p95 > 1 s", ("request", "first_token", "p95", ">", 1000.0)),
        ("user mean > 30 s", ("user", "duration", "mean", ">", 30_000.0)),
        ("user Success <= 50 %", ("user", "duration", "success", "<=", 0.5)),
        ("frame rate < 5/s", ("frame", "rtt", "rate", "<", 5.0)),
        ("frame rate < 300 /min", ("frame", "rtt", "rate", "<", 5.0)),
        ("frame n < 100", ("frame", "rtt", "n", "<", 100.0)),
        ("request p95 > 2 s", ("request", "rtt", "p95", ">", 2000.0)),
        ("task success < 100 %", ("task", "rtt", "success", "<", 1.0)),
        # Any word may be a label; without one it is of what the run counts.
        ("handler p95 > 2 s", ("sample", "handler", "p95", ">", 2000.0)),
        ("first_token_ms p95 > 2 s", ("sample", "first_token", "p95", ">", 2000.0)),
        ("login p95 > 2 s", ("login", "rtt", "p95", ">", 2000.0)),
        ("login handler p95 > 2 s", ("login", "handler", "p95", ">", 2000.0)),
        ("login ttft_ms p95 > 500", ("login", "ttft", "p95", ">", 500.0)),
        ("login tokens p95 > 500", ("login", "tokens", "p95", ">", 500.0)),
        ("login n mean > 3", ("login", "n", "mean", ">", 3.0)),
        ("tokens_per_s mean < 20 /s", ("sample", "tokens_per_s", "mean", "<", 20.0)),
        ("answer_bytes max > 5 kB", ("sample", "answer_bytes", "max", ">", 5000.0)),
        ("cpu_percent max > 150 %", ("sample", "cpu_percent", "max", ">", 150.0)),
        ("cached_share mean < 50 %", ("sample", "cached_share", "mean", "<", 0.5)),
    ],
)
def test_understood(text: str, expected: tuple[object, ...]) -> None:
    c = parse(text, "frame" if expected[0] in ("user", "login") else str(expected[0]))
    assert (c.label, c.series, c.metric, c.op, c.limit) == expected


@pytest.mark.parametrize(
    ("text", "marked", "words"),
    [
        ("", "", "empty"),
        ("frame p95 > 2 parsecs", "parsecs", "needs a unit: ms, s or min"),
        ("frame p95 > 2", "", "needs a unit: ms, s or min"),
        ("frame p95 > fast", "fast", "a number"),
        ("frame p95 = 2 s", "=", ">, >=, <, <="),
        ("frame p95 2 s", "2", ">, >=, <, <="),
        ("frame p95", "", ">, >=, <, <="),
        ("frame p100 > 2 s", "p100", "max"),
        ("frame p0 > 2 s", "p0", "min"),
        ("frame p150 > 2 s", "p150", "max"),
        ("frame worst > 2 s", "worst", "in criteria that is max;"),
        ("frame glad > 2 s", "glad", "success, errors"),
        ("frame success rate < 99 %", "rate", "leave 'rate' out"),
        ("success rate < 99 %", "rate", "leave 'rate' out"),
        ("frame success < 99", "", "success needs a unit: %"),
        ("frame success < 0.99 s", "s", "success needs a unit: %, got 's'"),
        ("frame errors > 2 s", "s", "errors is given without a unit, or in %, got 's'"),
        ("frame success < 101 %", "101", "above 100 %"),
        ("frame warm success < 99 %", "warm", "selects times"),
        ("user warm p95 > 2 s", "warm", "expected a metric"),
        ("user model_ms p95 > 2 s", "model_ms", "expected a metric"),
        ("frame slow p95 > 2 s", "s", "slow is given without a unit, got 's'"),
        ("frame db p95 > 2 ms", "ms", "ends in its unit: db_ms"),
        ("frame slow p95 > 2 apples", "apples", "got 'apples'\n"),
        ("frame slow p9 x > 2 s", "x", "expected one of"),
        ("frame rate < 5", "", "rate needs a unit: /s or /min"),
        ("frame p95 > -2 s", "-2", "below 0"),
        ("frame p95 > 2,5 s", ",", "ms"),
        # Else a limit that nothing is ever above.
        (f"frame p95 > {'9' * 400} s", "9" * 400, "expected a number such as 2 or 0.5"),
        ("frame p95 > \u0662 s", "\u0662", "expected a number such as 2 or 0.5"),
        ("frame p95 > 2 s or so", "or", "unexpected 'or'"),
        ("frame n < 5 s", "s", "without a unit"),
    ],
)
def test_errors_point_at_the_word(text: str, marked: str, words: str) -> None:
    with pytest.raises(CriteriaError) as caught:
        parse(text, "frame")
    _, shown, mark, *_ = str(caught.value).split("\n")
    assert words in str(caught.value)
    start, end = mark.index("^"), mark.rindex("^") + 1
    assert shown[start:end] == marked
    assert caught.value.exit_status == 2


def test_what_may_stand_there_is_below_the_criterion_in_lines() -> None:
    with pytest.raises(CriteriaError) as caught:
        parse("foo > 3", "all")
    message, _, _, *forms = str(caught.value).split("\n")
    assert message == "--fail-if: expected a metric, got 'foo'"
    assert len(forms) > 2 and all(len(line) < 120 for line in forms)


@pytest.mark.parametrize("label", ["Home Page", "GET /", "01 Home", "/checkout", "Log in to shop"])
def test_a_label_without_its_quotes_is_shown_with_them(label: str) -> None:
    for rest in ("p95 > 2 s", "errors > 0", "success < 99 %"):
        with pytest.raises(CriteriaError) as caught:
            parse(f"{label} {rest}", "all")
        assert str(caught.value).endswith(f'"{label}" {rest}')
    with pytest.raises(CriteriaError) as caught:
        parse(f"{label} p95 > 2 apples", "all")
    assert '"' not in str(caught.value)


def test_a_figure_without_its_label_is_shown_with_it() -> None:
    with pytest.raises(CriteriaError) as caught:
        parse("tokens p95 > 300", "request")
    assert str(caught.value).endswith("ends in no unit: request tokens p95 > 300")
    with pytest.raises(CriteriaError) as caught:
        parse("request p95 > 300", "request")
    assert "request request" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("avg > 2 s", "mean"),
        ("frame average > 2 s", "mean"),
        ("p(95) < 500", "p95"),
        ("95% > 2 s", "p95"),
        ("med > 2 s", "median"),
        ("error rate > 1 %", "errors"),
        ("http_req_failed > 1 %", "errors"),
        ("failure rate > 1 %", "errors"),
        ("rps < 5", "rate"),
        ("vus > 5", "in_flight"),
        ("dropped_iterations > 0", "dropped"),
        ("sucess < 99 %", "success"),
    ],
)
def test_words_of_other_tools_lead_to_those_of_criteria(text: str, ours: str) -> None:
    with pytest.raises(CriteriaError) as caught:
        parse(text, "frame")
    _, criterion, mark, hint = str(caught.value).split("\n")
    assert (criterion.strip(), mark.strip("^ ")) == (text, "") and hint.startswith(f"in criteria that is {ours};")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("answered rate < 79/s", ("answered", 79.0, "/s")),
        ("asked < 60/min", ("asked", 1.0, "/min")),
        ("in_flight > 100", ("in_flight", 100.0, "")),
        ("dropped > 1 %", ("dropped", 0.01, "%")),
        ("all dropped > 0", ("dropped", 0.0, "")),
        ("overload", ("overload", 0.0, "")),
    ],
)
def test_criteria_of_the_whole_load(text: str, expected: tuple[str, float, str]) -> None:
    criterion = parse(text, "frame")
    assert (criterion.metric, criterion.limit, criterion.unit) == expected


def test_the_whole_load_has_no_label() -> None:
    with pytest.raises(CriteriaError, match="leave login out"):
        parse("login dropped > 0", "frame")
    assert metric_name("answered rate", "frame") == "answered_per_s"
    assert parse("overload p95 > 2 s", "frame").label == "overload"


def group(ok: list[float], cut: list[float] | None = None, fast_failures: int = 0) -> dict[str, Group]:
    cut = cut or []
    sample = Sample(np.array(ok, float), np.array(cut, float))
    return {"frame": Group("frame", len(ok) + len(cut) + fast_failures, len(ok), 4.0, {"rtt": sample})}


CUT = group([1000.0] * 90, [25_000.0] * 10)
MIXED = group([100.0, 300.0], [200.0])


@pytest.mark.parametrize(
    ("groups", "text", "state", "measured"),
    [
        (group([100.0] * 99 + [5000.0]), "frame p99 > 2 s", "passed", "100 ms"),
        (group([100.0] * 98 + [5000.0] * 2), "frame p99 > 2 s", "failed", "5.00 s"),
        (group([100.0] * 99, fast_failures=1), "frame success < 99 %", "passed", "99.0 %"),
        (group([100.0] * 98, fast_failures=2), "frame success < 99 %", "failed", "98.0 %"),
        (group([100.0] * 98, fast_failures=2), "failures > 1", "failed", "2"),
        (group([100.0] * 98, fast_failures=2), "failures > 2 %", "passed", "2.0 %"),
        (group([100.0]), "rate < 5/s", "failed", "4.00/s"),
        (group([100.0]), "n < 2", "failed", "1"),
        # A percentile among time-outs is judged by its bound.
        (CUT, "frame p50 > 2 s", "passed", "1.00 s"),
        (CUT, "frame p95 > 2 s", "failed", "> 25.0 s"),
        (CUT, "frame p95 < 2 s", "passed", "> 25.0 s"),
        (CUT, "frame p95 > 30 s", "unjudged", "> 25.0 s"),
        (CUT, "frame p95 < 30 s", "unjudged", "> 25.0 s"),
        (CUT, "frame mean > 3 s", "failed", "> 3.40 s"),
        (CUT, "frame mean > 4 s", "unjudged", "> 3.40 s"),
        (CUT, "frame max >= 25 s", "failed", "> 25.0 s"),
        (CUT, "frame min > 2 s", "passed", "1.00 s"),
        (MIXED, "frame p33 > 200 ms", "passed", "100 ms"),
        (MIXED, "frame p90 > 200 ms", "failed", "> 300 ms"),
        # Never a pass by lack of data.
        (group([]), "frame p95 > 2 s", "unjudged", "no samples"),
        (group([]), "frame failures > 0", "unjudged", "no samples"),
        (group([]), "frame n < 1", "failed", "0"),
        (group([], fast_failures=3), "frame p95 > 2 s", "unjudged", "no samples"),
        (group([1.0]), "frame cold p95 > 2 s", "unjudged", "no samples"),
        (group([1.0]), "user success < 99 %", "unjudged", "no samples"),
    ],
)
def test_judged(groups: dict[str, Group], text: str, state: str, measured: str) -> None:
    judgement = judge(parse(text, "frame"), groups)
    assert (judgement.state, judgement.measured.replace("\u00a0", " ")) == (state, measured)
    assert bool(judgement.why) == (state != "passed")


def test_a_figure_that_no_sample_has_is_told_with_those_there_are() -> None:
    judgement = judge(parse("frame db_ms p95 > 2 s", "frame"), group([1.0]))
    assert (judgement.state, "(there are rtt)" in judgement.why) == ("unjudged", True)
    without = judge(parse("frame p95 > 2 s", "frame"), {})
    assert (without.state, "(there are" in without.why) == ("unjudged", False)


def test_read_before_anything_is_set_up() -> None:
    """The command line checks criteria with the system's Python, before the environment with numpy is there."""
    code = (
        "import sys; from framestorm.model import criteria; criteria.parse('p95 > 2 s', 'frame');"
        "sys.exit(bool({'numpy', 'polars', 'jinja2'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("tenths", [1, 7, 9, 50, 291, 999])
def test_a_share_at_its_limit_is_neither_above_nor_below(tenths: int) -> None:
    groups = {"frame": Group("frame", 1000, 1000 - tenths)}
    for text in (f"errors > {tenths / 10} %", f"errors < {tenths / 10} %", f"success < {(1000 - tenths) / 10} %"):
        assert judge(parse(text, "frame"), groups).state == "passed", text


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("p95", "p95_ms"),
        ("frame p95", "p95_ms"),
        ("login p95", "login p95_ms"),
        ("'log in' p99.9", '"log in" p99.9_ms'),
        ("all errors", "all failed"),
        ("rate", "served_per_s"),
        ("chat ttft_ms p50", "chat ttft_median_ms"),
        ("login tokens p95", "login tokens_p95"),
        ("login handler mean", "login handler_mean_ms"),
        ("warm p95", "warm_p95_ms"),
        ('"mean" max', '"mean" max_ms'),
        ("user mean", "user_mean_ms"),
        ("user success", "user_success"),
        ("dropped_arrivals", "dropped_arrivals"),
        ("login sd_ms", "login sd_ms"),
    ],
)
def test_the_words_of_criteria_name_a_metric(words: str, name: str) -> None:
    assert metric_name(words, "frame") == name == metric_name(name, "frame")
    about = metric(name)
    assert about.series is not None or about.name.split()[-1] in METRICS


@pytest.mark.parametrize("label", ["All", "Frame"])
def test_labels_differ_by_case(label: str) -> None:
    assert parse(f"{label} p95 > 1 s", "frame").label == label
    assert metric_name(f"{label} p95", "frame") == f"{label} p95_ms"


@pytest.mark.parametrize("words", ["", "login", "login speed", "* p95", "user rate", "p95 > 2 s", "handler success"])
def test_other_words_name_none(words: str) -> None:
    with pytest.raises(CriteriaError):
        metric_name(words, "frame")


@pytest.mark.parametrize("label", ['a "b"', "", "p95", "1 %", "it's", "users", "USER", """it's "b''c\"""", "'", '"'])
def test_a_label_is_named_as_it_is_quoted(label: str) -> None:
    assert parse(f"{quoted(label)} errors > 1 %", "main").label == label
    assert split_label(of_label(label, "p95_ms")) == (label, "p95_ms")
    assert metric_name(f"{quoted(label)} p95", "main") == of_label(label, "p95_ms")
