import pytest

from framestorm.model.metric import column, is_of_run, metric


@pytest.mark.parametrize(
    ("name", "series", "unit"),
    [
        ("p95_ms", "", "ms"),
        ("user_p99_ms", "user", "ms"),
        ("handler_mean_ms", "handler_ms", "ms"),
        ("first_token_p95_ms", "first_token_ms", "ms"),
        ("tokens_mean", "tokens", ""),
        ("tokens_max_per_s", "tokens_per_s", "1/s"),
        ("answer_sd_bytes", "answer_bytes", "bytes"),
    ],
)
def test_a_statistic_of_any_series(name: str, series: str, unit: str) -> None:
    about = metric(name)
    assert (about.name, about.series, about.unit, about.worse) == (
        name,
        series,
        unit,
        "higher" if unit == "ms" else None,
    )
    assert column(series, str(about.statistic)) == name and is_of_run(name)


@pytest.mark.parametrize(
    ("name", "figure", "shown"),
    [
        ("mean_ms", (2.02, 1.01, 3.04), "1.01 \u2013 3.04"),
        ("mean_ms", (500.0, -20.0, 1500.0), "\N{MINUS SIGN}20\u00a0ms \u2013 1.50\u00a0s"),
        ("mean_ms", (500.0, 0.0, 1500.0), "0 \u2013 1.50\u00a0s"),
        ("mean_ms", (1000.0, 990.0, 1020.0), "990\u00a0ms \u2013 1.02\u00a0s"),
        ("mean_ms", (5740.0, 0.0, 12_900.0), "0 \u2013 12.9"),
        ("mean_ms", (125_000.0, 123_000.0, 130_000.0), "2\u00a0min 03\u00a0s \u2013 2\u00a0min 10\u00a0s"),
        ("worker_cores_max", (0.25, 0.25, 0.26), "0.25 \u2013 0.26"),
        ("served_per_s", (500.0, 499.0, None), "499 \u2013 \N{HORIZONTAL ELLIPSIS}"),
        ("served_per_s", (500.0, None, None), ""),
    ],
)
def test_ends_of_an_interval_have_units_where_these_differ(
    name: str, figure: tuple[float, float | None, float | None], shown: str
) -> None:
    assert metric(name).ends_text(*figure) == shown


@pytest.mark.parametrize("name", ["mean", "handler_mean", "warm_up_s", "speedup"])
def test_no_metric_of_a_run(name: str) -> None:
    assert not is_of_run(name) and metric(name).series is None


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("ttft_p95_ms", "p95 time to first token"),
        ("itl_p99_mean_ms", "mean inter-token latency, p99"),
        ("tokens_p95_per_s", "p95 token rate of an answer"),
        ("handler_p95_ms", "p95 handler time"),
        ("first_token_p95_ms", "p95 first token time"),
    ],
)
def test_a_declared_figure_has_its_title(name: str, label: str) -> None:
    assert metric(name).label == label


@pytest.mark.parametrize(("name", "is_metric"), [("ttft_p95", False), ("tokens_p95", True), ("tokens_p95_per_s", True)])
def test_a_declared_time_needs_its_unit(name: str, is_metric: bool) -> None:
    assert is_of_run(name) is is_metric
