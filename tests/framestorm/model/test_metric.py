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


@pytest.mark.parametrize(("low_ms", "text"), [(-20.0, "\N{MINUS SIGN}20\u00a0ms"), (0.0, "0")])
def test_ends_of_an_interval_have_units_where_these_differ(low_ms: float, text: str) -> None:
    assert metric("mean_ms").ends_text(500.0, low_ms, 1500.0) == f"{text} \N{EN DASH} 1.50\u00a0s"


@pytest.mark.parametrize("name", ["mean", "handler_mean", "warm_up_s", "speedup"])
def test_no_metric_of_a_run(name: str) -> None:
    assert not is_of_run(name) and metric(name).series is None
