"""Words of other load generators for what criteria measure, and the words of criteria for them."""

import difflib
import re
from collections.abc import Iterable

_PERCENTILE = re.compile(r"(?:p|perc|pct|percentile|p_)?\(?_?(\d{1,2}(?:\.\d+)?)\)?(?:%|th)?(?: ?line| ?percentile)?")
_WORDS = {
    "mean": "avg average avg-rt avg_rt avgrt mean_response_time",
    "median": "med",
    "max": "maximum worst",
    "min": "minimum",
    "errors": "error fail fails failed failure error-rate error_rate errorrate error% fail% failure-rate failure_rate "
    "http_req_failed ko kos failedrequests",
    "success": "succ ok checks successes success-rate success_rate successful",
    "rate": "rps tps qps throughput hits http_reqs req/s requests/s requestspersec reqs hits/s",
    "n": "count samples requests iterations sample_count total",
    "in_flight": "inflight in-flight concurrency concurr vus active",
    "dropped": "dropped_iterations drops",
    "answered rate": "served served_per_s",
    "asked rate": "target offered arrival_rate arrival-rate",
    "p95": "http_req_duration response_time responsetime rt elapsed duration",
    "latency_ms p95": "latency http_req_waiting ttfb",
    "connect_ms p95": "connect http_req_connecting",
}
_OURS = {word: ours for ours, words in _WORDS.items() for word in words.split()}


def of_criteria(words: str, known: Iterable[str]) -> str | None:
    """The words of criteria for what another tool calls by the first of these words, or that is spelled like it."""
    text = words.lower().strip()
    first = text.split()[0] if text.split() else ""
    if re.match(r"(?:error|failure)s? ?(?:rate|%)", text):
        return "errors"
    match = re.match(r"p\((\d{1,2}(?:\.\d+)?)\)|(\d{1,2}(?:\.\d+)?)(?:%|th\b)", text) or _PERCENTILE.fullmatch(first)
    if match and any(match.groups()):
        return f"p{next(number for number in match.groups() if number)}"
    near = difflib.get_close_matches(first, known, n=1, cutoff=0.7) if first else []
    return _OURS.get(first) or (near[0] if near else None)
