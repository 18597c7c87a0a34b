"""What Prometheus has seen of gateway, functions and replicas in a span of time."""

import urllib.parse
from collections.abc import Iterator
from typing import Any

from framestorm.errors import FramestormError
from framestorm.machine import request
from framestorm.platform.base import Reading
from framestorm.platform.openfaas.layout import NAMESPACE, PROMETHEUS_URL

# Of what Prometheus calculates: half of the scrape interval, so that no scrape falls between two steps.
STEP_S = 1.0
# It refuses more than 11,000 of them a query: those of a run of hours are longer.
STEPS_AT_MOST = 10_000
OF_REPLICA = "replica"
# The query of each metric, and the label that tells series of one function apart.
METRICS = {
    "replicas_wanted": ("framestorm_replicas_wanted", ""),
    "replicas_ready": ("framestorm_replicas_ready", ""),
    # Both count from the deployment on; the second grows while fewer are ready than wanted, also while scaling up.
    "replicas_lost": ("framestorm_replicas_lost_total", ""),
    "replicas_short_s": ("framestorm_replicas_short_seconds_total", ""),
    "in_flight": ("framestorm_replica_in_flight", OF_REPLICA),
    # Counters since the replica's start, so that a run's own share is exact however short it is.
    "cpu_s": ("framestorm_replica_cpu_seconds_total", OF_REPLICA),
    "cpu_throttled_s": ("framestorm_replica_cpu_throttled_seconds_total", OF_REPLICA),
    "received_bytes": ("framestorm_replica_network_receive_bytes_total", OF_REPLICA),
    "sent_bytes": ("framestorm_replica_network_transmit_bytes_total", OF_REPLICA),
    "memory_bytes": ("framestorm_replica_memory_bytes", OF_REPLICA),
    "requests_per_s": ("sum by (function_name, code) (rate(gateway_function_invocation_total[10s]))", "code"),
    "gateway_p95_s": (
        "histogram_quantile(0.95, sum by (function_name, le) (rate(gateway_functions_seconds_bucket[10s])))",
        "",
    ),
}


def readings(start_ms: float, end_ms: float, function: str | None) -> list[Reading]:
    """Return the metrics of a span of time, by metric and time; of one function if it is named."""
    rows = (row for metric in METRICS for row in _readings(metric, start_ms / 1000, end_ms / 1000))
    return [row for row in rows if function is None or row.function == function]


def is_alerting(function: str) -> bool:
    """Return whether OpenFaaS's scaling alert is on, or about to be, for a function."""
    alerts = _ask("alerts", {})["alerts"]
    return any(alert["labels"].get("function_name", "").removesuffix(f".{NAMESPACE}") == function for alert in alerts)


def _question(query: str, start_s: float, end_s: float) -> tuple[str, dict[str, str | float]]:
    """Return the API and its words for a span of time.

    The provider's own series are asked for at the very times of its scrapes, what is calculated at equal steps.
    """
    span_s = end_s - start_s
    if query.isidentifier():
        return "query", {"query": f"{query}[{max(1, round(1000 * span_s))}ms]", "time": end_s}
    step_s = max(STEP_S, span_s / STEPS_AT_MOST)
    return "query_range", {"query": query, "start": start_s, "end": end_s, "step": step_s}


def _readings(metric: str, start_s: float, end_s: float) -> Iterator[Reading]:
    query, detail = METRICS[metric]
    for series in _ask(*_question(query, start_s, end_s))["result"]:
        labels = series["metric"]
        name = (labels.get("function") or labels.get("function_name", "")).removesuffix(f".{NAMESPACE}")
        for time_s, value in series["values"]:
            # Between two requests a quantile is not a number.
            if value != "NaN":
                yield Reading(round(time_s * 1000), metric, name, labels.get(detail, ""), float(value))


def _ask(api: str, words: dict[str, str | float]) -> Any:
    address = f"{PROMETHEUS_URL}/api/v1/{api}?{urllib.parse.urlencode(words)}"
    answer = request("GET", address)
    try:
        return answer.json()["data"]
    except (ValueError, KeyError):
        raise FramestormError(f"Prometheus: GET {address}: status {answer.status_code}: {answer.text}") from None
