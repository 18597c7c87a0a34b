"""The sinks of `--sink`, each with its class, which is loaded where a run has such a one."""

from collections.abc import Sequence
from importlib import import_module

from framestorm.model.run import Record
from framestorm.model.sink import SinkAddress, SinkKind
from framestorm.sinks.pushed import PushedSink

CLASSES: dict[SinkKind, str] = {"influxdb": "InfluxDb", "prometheus": "Prometheus", "otlp": "Otlp"}


def open_sinks(addresses: Sequence[SinkAddress], run: str, record: Record) -> list[PushedSink]:
    """Return a sink for each address, of a run of that name that begins now."""
    sinks = []
    for address in addresses:
        room = import_module(f"framestorm.sinks.{address.kind}")
        sink: PushedSink = getattr(room, CLASSES[address.kind])(address, run, record)
        sinks.append(sink)
    return sinks
