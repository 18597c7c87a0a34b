import math

import pytest

from framestorm.model.scraped import divided, read_text, scraped_criterion

TEXT = """\
# HELP vllm:num_requests_waiting Number of requests, "waiting"
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="a } b",engine="0"} 7.0
# TYPE http_requests_total counter
http_requests_total{code="200",path="C:\\\\x\\"y\\""} 1027 1395066363000
# TYPE rpc_s histogram
rpc_s_bucket{le="+Inf"} 3 # {trace_id="1"} 0.5
rpc_s_count 3
no_type 1.5e-3
no_type_total 5
not_a_number NaN
endless +Inf
"""


def test_the_text_format() -> None:
    read = {each.series.partition("{")[0]: (each.kind, each.value) for each in read_text(TEXT)}
    assert read == {
        "vllm:num_requests_waiting": ("gauge", 7.0),
        "http_requests_total": ("counter", 1027.0),
        "rpc_s_bucket": ("counter", 3.0),
        "rpc_s_count": ("counter", 3.0),
        "no_type": ("gauge", 0.0015),
        "no_type_total": ("counter", 5.0),
        "not_a_number": ("gauge", pytest.approx(math.nan, nan_ok=True)),
        "endless": ("gauge", math.inf),
    }


@pytest.mark.parametrize("line", ["<!doctype html>", '{"status": "ok"}', "ok", "name one", 'name{a="1} 2'])
def test_other_text_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(ValueError, match=r"^") as raised:
        read_text(f"{TEXT}{line}\nlast 1\n")
    assert str(raised.value) == line


@pytest.mark.parametrize("limit", ["1e400", "9" * 400, "\u0662", "nan"])
def test_a_limit_that_nothing_is_above_is_none(limit: str) -> None:
    assert scraped_criterion(f"queue_length max > {limit}") is None


def test_a_criterion_is_about_the_series_with_its_labels() -> None:
    one = scraped_criterion('vllm:num_requests_waiting{engine="0"} max >= 8.5')
    assert one is not None
    assert (one.criterion.metric, one.criterion.op, one.criterion.limit) == ("max", ">=", 8.5)
    assert one.is_about('vllm:num_requests_waiting{model_name="a",engine="0"}')
    assert not one.is_about('vllm:num_requests_waiting{model_name="a",engine="1"}')
    assert not one.is_about("vllm:num_requests")


def test_criteria_about_samples_stay_these() -> None:
    texts = ["p95 > 2 s", "answer_bytes max > 5000", "rss_bytes max > 5e8", "queue max > 8", "login p95 > 2 s"]
    scraped, others = divided(texts, {"rss_bytes"})
    assert [each.family for each in scraped] == ["rss_bytes", "queue"]
    assert others == ["p95 > 2 s", "answer_bytes max > 5000", "login p95 > 2 s"]
