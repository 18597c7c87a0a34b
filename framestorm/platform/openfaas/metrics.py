"""What Prometheus has seen of gateway, functions and replicas in a span of time."""

import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from framestorm.errors import FramestormError
from framestorm.platform import http
from framestorm.platform.base import Reading
from framestorm.platform.openfaas.layout import NAMESPACE, PROMETHEUS_URL

# Of what Prometheus calculates: half of the scrape interval, so that no scrape falls between two steps.
STEP_S = 1
# It refuses more than 11,000 of them a query.
STEPS_AT_ONCE = 10_000
Words = dict[str, str | float]


@dataclass(frozen=True)
class PrometheusSeries:
    """A series over time: its name in metrics.csv, the query, and the label that tells series of one function apart.

    scraped: as the provider told it, at the very times that it was asked; otherwise calculated at equal steps.
    """

    name: str
    query: str
    detail: str = ""

    @property
    def scraped(self) -> bool:
        return self.query.isidentifier()


METRICS = (
    PrometheusSeries("replicas_wanted", "framestorm_replicas_wanted"),
    PrometheusSeries("replicas_ready", "framestorm_replicas_ready"),
    # Both count from the deployment on; the second grows while fewer are ready than wanted, also while scaling up.
    PrometheusSeries("replicas_lost", "framestorm_replicas_lost_total"),
    PrometheusSeries("replicas_short_s", "framestorm_replicas_short_seconds_total"),
    PrometheusSeries("in_flight", "framestorm_replica_in_flight", "replica"),
    # Counters since the replica's start, so that a run's own share is exact however short it is.
    PrometheusSeries("cpu_s", "framestorm_replica_cpu_seconds_total", "replica"),
    PrometheusSeries("cpu_throttled_s", "framestorm_replica_cpu_throttled_seconds_total", "replica"),
    PrometheusSeries("received_bytes", "framestorm_replica_network_receive_bytes_total", "replica"),
    PrometheusSeries("sent_bytes", "framestorm_replica_network_transmit_bytes_total", "replica"),
    PrometheusSeries("memory_bytes", "framestorm_replica_memory_bytes", "replica"),
    PrometheusSeries(
        "requests_per_s", "sum by (function_name, code) (rate(gateway_function_invocation_total[10s]))", "code"
    ),
    PrometheusSeries(
        "gateway_p95_s",
        "histogram_quantile(0.95, sum by (function_name, le) (rate(gateway_functions_seconds_bucket[10s])))",
    ),
)


def readings(
    start_ms: float, end_ms: float, function: str | None = None, prometheus_url: str = PROMETHEUS_URL
) -> list[Reading]:
    """The metrics of a span of time, by metric and time; of one function if it is named.

    Raises:
        FramestormError: Prometheus does not answer or refuses a query.
    """
    rows = (row for metric in METRICS for row in _readings(metric, start_ms / 1000, end_ms / 1000, prometheus_url))
    return [row for row in rows if function is None or row.function == function]


def is_alerting(function: str, prometheus_url: str = PROMETHEUS_URL) -> bool:
    """Whether OpenFaaS's scaling alert is on, or about to be, for a function.

    Raises:
        FramestormError: Prometheus does not answer.
    """
    alerts = _ask(prometheus_url, "alerts", {})["alerts"]
    return any(alert["labels"].get("function_name", "").removesuffix(f".{NAMESPACE}") == function for alert in alerts)


def _queries(metric: PrometheusSeries, start_s: float, end_s: float) -> Iterator[tuple[str, Words]]:
    """The queries for a span of time, as an API and its words."""
    if metric.scraped:
        yield "query", {"query": f"{metric.query}[{max(1, round(1000 * (end_s - start_s)))}ms]", "time": end_s}
        return
    while start_s <= end_s:
        # Ends are part of a span, so the next begins a step later.
        last_s = min(end_s, start_s + (STEPS_AT_ONCE - 1) * STEP_S)
        yield "query_range", {"query": metric.query, "start": start_s, "end": last_s, "step": STEP_S}
        start_s += STEPS_AT_ONCE * STEP_S


def _readings(metric: PrometheusSeries, start_s: float, end_s: float, url: str) -> Iterator[Reading]:
    for api, words in _queries(metric, start_s, end_s):
        for series in _ask(url, api, words)["result"]:
            labels = series["metric"]
            name = (labels.get("function") or labels.get("function_name", "")).removesuffix(f".{NAMESPACE}")
            detail = labels.get(metric.detail, "")
            for time_s, value in series["values"]:
                # Between two requests a quantile is no number.
                if value != "NaN":
                    yield Reading(round(time_s * 1000), metric.name, name, detail, float(value))


def _ask(url: str, api: str, words: Words) -> Any:
    address = f"{url}/api/v1/{api}?{urllib.parse.urlencode(words)}"
    answer = http.request("GET", address)
    try:
        return answer.json()["data"]
    except (ValueError, KeyError):
        raise FramestormError(f"Prometheus: GET {address}: status {answer.status_code}: {answer.text}") from None
