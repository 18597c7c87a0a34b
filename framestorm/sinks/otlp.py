"""Figures for OpenTelemetry: OTLP over HTTP, in its JSON encoding, which needs no library of the protocol."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from framestorm import __version__
from framestorm.model.run import Record
from framestorm.model.sink import SinkAddress
from framestorm.model.units import plural
from framestorm.sinks.pushed import PushedSink, in_brackets
from framestorm.sinks.sink import Update
from framestorm.sinks.totals import BOUNDS_S, Totals

# OpenTelemetry's own variable: NAME=VALUE,NAME=VALUE, each as in an address.
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
CUMULATIVE = 2
NS_PER_S = 1_000_000_000


class Otlp(PushedSink):
    """Sends totals once a second. Headers, such as one with a token, are read from OTEL_EXPORTER_OTLP_HEADERS."""

    IS_CUMULATIVE = True

    def __init__(self, address: SinkAddress, run: str, record: Record) -> None:
        self._totals = Totals()
        self._began_ns = str(int((record.started_ms or 0) * 1_000_000))
        self._now_ns = self._began_ns
        super().__init__(address, run, record)

    def collect(self, update: Update) -> None:
        self._totals.take(update)

    def body(self, now_s: float) -> bytes:
        self._now_ns = str(int(now_s * NS_PER_S))
        resource = {"service.name": "framestorm", "framestorm.run": self.run, "framestorm.plan": self.plan}
        scope = {"name": "framestorm", "version": __version__}
        of_scope = {"scope": scope, "metrics": list(self._metrics())}
        content = {"resourceMetrics": [{"resource": {"attributes": _attributes(resource)}, "scopeMetrics": [of_scope]}]}
        return json.dumps(content, separators=(",", ":"), allow_nan=False).encode()

    def delivered(self) -> None:
        """Totals stay."""

    def left_out(self, answer: bytes) -> str:
        try:
            partial = json.loads(answer)["partialSuccess"]
            n = int(partial["rejectedDataPoints"])
        except (ValueError, TypeError, LookupError):  # it took all, or speaks of it in another form
            return ""
        return f"it left out {plural(n, 'figure')}{in_brackets(str(partial.get('errorMessage', '')))}" if n > 0 else ""

    def headers(self) -> Mapping[str, str]:
        pairs = (each.partition("=") for each in os.environ.get(HEADERS, "").split(",") if "=" in each)
        return {"Content-Type": "application/json"} | {name.strip(): unquote(value.strip()) for name, _, value in pairs}

    def end(self) -> None:
        self._totals.users = 0
        super().end()

    def _metrics(self) -> Iterator[dict[str, Any]]:
        of = self._totals.of.items()
        samples = [self._point(key._asdict()) | {"asInt": str(total.n)} for key, total in of]
        errors = [
            self._point({**key._asdict(), "cause": cause}) | {"asInt": str(n)}
            for key, total in of
            for cause, n in total.causes.items()
        ]
        times = [
            self._point(key._asdict())
            | {
                "count": str(sum(total.buckets)),
                "sum": total.sum_s,
                "bucketCounts": list(map(str, total.buckets)),
                "explicitBounds": BOUNDS_S,
            }
            for key, total in of
        ]
        cores = [self._point({"host": host}) | {"asDouble": cores} for host, cores in self._totals.busy_cores.items()]
        users = [self._point({}) | {"asInt": str(self._totals.users)}]
        total_kind = {"aggregationTemporality": CUMULATIVE}
        for name, unit, kind, points, more in (
            ("samples", "{sample}", "sum", samples, total_kind | {"isMonotonic": True}),
            ("errors", "{error}", "sum", errors, total_kind | {"isMonotonic": True}),
            ("response_time", "s", "histogram", times, total_kind),
            ("users", "{user}", "gauge", users, {}),
            ("busy_cores", "{core}", "gauge", cores, {}),
        ):
            if points:
                yield {"name": f"framestorm.{name}", "unit": unit, kind: {"dataPoints": points, **more}}

    def _point(self, tags: Mapping[str, str]) -> dict[str, Any]:
        return {
            "attributes": _attributes(tags), "startTimeUnixNano": self._began_ns, "timeUnixNano": self._now_ns
        }  # fmt: skip


def _attributes(tags: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": name, "value": {"stringValue": value}} for name, value in tags.items() if value]
