"""What Prometheus has seen of gateway, functions and replicas during a run, kept in the run's folder."""

import csv
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framestorm.errors import FramestormError
from framestorm.openfaas.layout import NAMESPACE, PROMETHEUS_URL

FILE = "metrics.csv"
FIELDS = ("time_ms", "metric", "function", "detail", "value")
# Of what Prometheus calculates: half of the scrape interval, so that no scrape falls between two steps.
STEP_S = 1
# It refuses more than 11,000 of them a query.
STEPS_AT_ONCE = 10_000
TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Metric:
    """A series over time: its name in the file, the query, and the label that tells series of one function apart.

    scraped: as the provider told it, at the very times that it was asked; otherwise calculated at equal steps.
    """

    name: str
    query: str
    detail: str = ""

    @property
    def scraped(self) -> bool:
        return self.query.isidentifier()


METRICS = (
    Metric("replicas_wanted", "framestorm_replicas_wanted"),
    Metric("replicas_ready", "framestorm_replicas_ready"),
    # Both count from the deployment on; the second grows while fewer are ready than wanted, also while scaling up.
    Metric("replicas_lost", "framestorm_replicas_lost_total"),
    Metric("replicas_short_s", "framestorm_replicas_short_seconds_total"),
    Metric("in_flight", "framestorm_replica_in_flight", "replica"),
    # Counters since the replica's start, so that a run's own share is exact however short it is.
    Metric("cpu_s", "framestorm_replica_cpu_seconds_total", "replica"),
    Metric("cpu_throttled_s", "framestorm_replica_cpu_throttled_seconds_total", "replica"),
    Metric("received_bytes", "framestorm_replica_network_receive_bytes_total", "replica"),
    Metric("sent_bytes", "framestorm_replica_network_transmit_bytes_total", "replica"),
    Metric("memory_bytes", "framestorm_replica_memory_bytes", "replica"),
    Metric("requests_per_s", "sum by (function_name, code) (rate(gateway_function_invocation_total[10s]))", "code"),
    Metric(
        "gateway_p95_s",
        "histogram_quantile(0.95, sum by (function_name, le) (rate(gateway_functions_seconds_bucket[10s])))",
    ),
)


def save(
    run_dir: Path, start_ms: float, end_ms: float, prometheus_url: str = PROMETHEUS_URL, function: str | None = None
) -> Path:
    """Write the metrics of a span of time as metrics.csv, a row a moment and series; of one function if it is named.

    Raises:
        FramestormError: Prometheus does not answer or refuses a query.
    """
    path = run_dir / FILE
    rows = [
        row
        for metric in METRICS
        for row in _rows(metric, start_ms / 1000, end_ms / 1000, prometheus_url)
        if function is None or row[2] == function
    ]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        writer.writerows(rows)
    return path


def is_alerting(function: str, prometheus_url: str = PROMETHEUS_URL) -> bool:
    """Whether OpenFaaS's scaling alert is on, or about to be, for a function.

    Raises:
        FramestormError: Prometheus does not answer.
    """
    try:
        with urllib.request.urlopen(f"{prometheus_url}/api/v1/alerts", timeout=TIMEOUT_S) as answer:  # noqa: S310
            alerts = json.load(answer)["data"]["alerts"]
    except (OSError, ValueError, KeyError) as error:
        raise FramestormError(f"Prometheus at {prometheus_url} did not say what alerts there are: {error}") from None
    return any(alert["labels"].get("function_name", "").removesuffix(f".{NAMESPACE}") == function for alert in alerts)


def _asked(metric: Metric, start_s: float, end_s: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """The queries for a span of time, as an API and its words."""
    if metric.scraped:
        yield "query", {"query": f"{metric.query}[{max(1, round(1000 * (end_s - start_s)))}ms]", "time": end_s}
        return
    while start_s <= end_s:
        # Ends are part of a span, so the next begins a step later.
        last_s = min(end_s, start_s + (STEPS_AT_ONCE - 1) * STEP_S)
        yield "query_range", {"query": metric.query, "start": start_s, "end": last_s, "step": STEP_S}
        start_s += STEPS_AT_ONCE * STEP_S


def _rows(metric: Metric, start_s: float, end_s: float, url: str) -> list[tuple[int, str, str, str, float]]:
    rows = []
    for api, words in _asked(metric, start_s, end_s):
        for one in _series(metric, f"{url}/api/v1/{api}?{urllib.parse.urlencode(words)}", url):
            labels = one["metric"]
            name = labels.get("function") or labels.get("function_name", "")
            for time_s, value in one["values"]:
                # Between two requests a quantile is no number.
                if value != "NaN":
                    row = (round(time_s * 1000), metric.name, name.removesuffix(f".{NAMESPACE}"))
                    rows.append((*row, labels.get(metric.detail, ""), float(value)))
    return rows


def _series(metric: Metric, address: str, url: str) -> list[dict[str, Any]]:
    try:
        # The scheme is what the caller gave.
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:  # noqa: S310
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        reason = error.read().decode(errors="replace")
        raise FramestormError(f"Prometheus at {url} refused {metric.query}: {reason}") from None
    except (OSError, ValueError, KeyError) as error:
        raise FramestormError(f"Prometheus at {url} gave no {metric.name}: {error}") from None
    return found
