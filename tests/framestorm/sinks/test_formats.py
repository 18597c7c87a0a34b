"""What each kind of sink writes: the formats of the services, read by parsers that are not the kit's."""

import json
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # type: ignore[import-untyped]
    ExportMetricsServiceRequest,
)

from framestorm import paths
from framestorm.model.run import Record
from framestorm.model.sink import parse_sink
from framestorm.sinks.prometheus import snappy
from framestorm.sinks.services import open_sinks
from framestorm.sinks.sink import finish
from framestorm.sinks.totals import BOUNDS_S, MAX_CAUSES, MAX_SERIES, Of, Totals
from tests.framestorm.sinks.test_pushed import delivered_to
from tests.framestorm.sinks.updates import BEGAN_S, interval_of, update
from tests.stand_in import serving

RECORD = Record(plan="jmx/requests.jmx", started_ms=BEGAN_S * 1000)
FIRST = interval_of(3, 10.0, 20.0, label="log in, now", slave="slave1", status_503=2)
LATER = interval_of(3, 40.0, label="log in, now", slave="slave1")


def bodies(kind: str, path: str) -> list[bytes]:
    """What a run of two updates sends."""
    with serving({"status": 204, "body": b""}) as service:
        (sink,) = open_sinks([parse_sink(f"{kind}:{service.origin}{path}")], 'run "1"', RECORD)
        sink.put(update(3.6, FIRST, users=4, cores={"slave1": 1.5}))
        sink.put(update(4.7, LATER, users=3))
        finish([sink])
        return [sent.body for sent in service.received]


def test_points_of_influxdb_are_those_of_jmeters_listener() -> None:
    lines = b"\n".join(bodies("influxdb", "/write")).decode().splitlines()
    of_label = [line for line in lines if r"transaction=log\ in\,\ now" in line]
    tags = r'jmeter,application=requests,run=run\ "1",transaction=log\ in\,\ now,slave=slave1'
    at = (BEGAN_S + 3) * 1_000_000_000
    assert of_label == [
        f"{tags},statut=ok count=2.0,avg=15.0,min=10.0,max=20.0,pct50.0=10.0,pct90.0=20.0,pct95.0=20.0,pct99.0=20.0"
        f" {at}",
        f"{tags},statut=ko count=2.0 {at}",
        f"{tags},statut=all count=4.0,avg=10.0,countError=2.0 {at}",
        f"{tags},responseMessage=status-503 count=2.0 {at}",
        # Another point of the same second, which must not replace the first one.
        f"{tags},statut=ok count=1.0,avg=40.0,min=40.0,max=40.0,pct50.0=40.0,pct90.0=40.0,pct95.0=40.0,pct99.0=40.0"
        f" {at + 1}",
        f"{tags},statut=all count=1.0,avg=40.0,countError=0.0 {at + 1}",
    ]  # fmt: skip
    assert [line.partition(" count=")[2].partition(",")[0] for line in lines if "=all,statut=all" in line] == [
        "4.0",
        "1.0",
    ]
    users = [line.partition("meanAT=")[2].partition(" ")[0] for line in lines if "meanAT" in line]
    assert users == ["4.0", "3.0", "0.0"]
    assert [line.partition('text="')[2].rpartition('" ')[0] for line in lines if line.startswith("events")] == [
        r"run \"1\" started", r"run \"1\" ended",
    ]  # fmt: skip


@pytest.mark.parametrize(("kind", "path"), [("influxdb", "/write"), ("prometheus", "/write"), ("otlp", "/v1/metrics")])
def test_half_a_character_in_a_label_loses_nothing(kind: str, path: str) -> None:
    with serving({"status": 204, "body": b""}) as service:
        (sink,) = open_sinks([parse_sink(f"{kind}:{service.origin}{path}")], "run", RECORD)
        sink.put(update(3.6, interval_of(3, 10.0, label="half \ud83d")))
        sink.put(update(4.7, interval_of(4, 10.0, label="whole")))
        finish([sink])
        sent = b"".join(each.body for each in service.received)
    assert (sink.outcome().missed, sink.problem) == (0, None)
    assert b"half" in sent and b"whole" in sent


def test_the_dashboard_adds_no_transactions_to_their_samplers() -> None:
    """They may have the same label, and the errors of both would be counted."""
    dashboard = json.loads((paths.DASHBOARDS / "grafana-runs.json").read_text())
    sums = [each["expr"] for panel in dashboard["panels"] for each in panel["targets"] if "sum by" in each["expr"]]
    assert len(sums) == 4
    assert all("kind" in each.partition("sum by (")[2].partition(")")[0].split(", ") for each in sums)


def write_request() -> Any:
    """The message WriteRequest of prometheus/prompb, made anew from its documentation."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="remote.proto", package="prometheus", syntax="proto3")
    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    messages: dict[str, list[tuple[str, int, Any, Any, str]]] = {
        "Label": [("name", 1, one, field.TYPE_STRING, ""), ("value", 2, one, field.TYPE_STRING, "")],
        "Sample": [("value", 1, one, field.TYPE_DOUBLE, ""), ("timestamp", 2, one, field.TYPE_INT64, "")],
        "TimeSeries": [
            ("labels", 1, many, field.TYPE_MESSAGE, ".prometheus.Label"),
            ("samples", 2, many, field.TYPE_MESSAGE, ".prometheus.Sample"),
        ],
        "WriteRequest": [("timeseries", 1, many, field.TYPE_MESSAGE, ".prometheus.TimeSeries")],
    }
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field_name, number, label, kind, type_name in fields:
            message.field.add(name=field_name, number=number, label=label, type=kind, type_name=type_name or None)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # type: ignore[no-untyped-call]
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("prometheus.WriteRequest"))  # type: ignore[no-untyped-call]


def unpacked(content: bytes) -> bytes:
    """Snappy's blocks of plain bytes, by its format description."""
    length = shift = at = 0
    while True:
        byte = content[at]
        length |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    out = b""
    while at < len(content):
        assert content[at] == 61 << 2
        size = int.from_bytes(content[at + 1 : at + 3], "little") + 1
        out += content[at + 3 : at + 3 + size]
        at += 3 + size
    assert len(out) == length
    return out


@pytest.mark.parametrize("size", [0, 1, 127, 128, 65_536, 65_537, 300_000])
def test_snappy_blocks_have_all_bytes(size: int) -> None:
    content = bytes(n % 251 for n in range(size))
    assert unpacked(snappy(content)) == content


def test_totals_of_prometheus_begin_at_0_and_only_grow() -> None:
    message = write_request()
    requests = [message.FromString(unpacked(body)) for body in bodies("prometheus", "/api/v1/write")]
    series: dict[tuple[tuple[str, str], ...], list[tuple[int, float]]] = {}
    for request in requests:
        for each in request.timeseries:
            labels = tuple((label.name, label.value) for label in each.labels)
            assert list(labels) == sorted(labels)
            series.setdefault(labels, []).extend((sample.timestamp, sample.value) for sample in each.samples)
    of = {"job": "framestorm", "kind": "sampler", "label": "log in, now", "plan": "requests", "run": 'run "1"'}

    def values(name: str, **more: str) -> list[float]:
        labels = {"__name__": f"framestorm_{name}", **of, "slave": "slave1", **more}
        times, numbers = zip(*series[tuple(sorted(labels.items()))], strict=True)
        assert list(times) == sorted(set(times))
        return list(numbers)

    began, first, second = 0.0, 3.6, 4.7
    assert values("samples_total")[:3] == [0, 4, 5]
    assert values("errors_total", cause="status-503")[:3] == [0, 2, 2]
    assert values("response_time_seconds_count")[:3] == [0, 2, 3]
    assert values("response_time_seconds_sum")[:3] == [0, 0.03, 0.07]
    for bound, counts in {
        "0.007": [0, 0, 0],
        "0.01": [0, 1, 1],
        "0.03": [0, 2, 2],
        "0.05": [0, 2, 3],
        "+Inf": [0, 2, 3],
    }.items():
        assert values("response_time_seconds_bucket", le=bound)[:3] == counts
    users = series[
        tuple(
            sorted({"__name__": "framestorm_users", "job": "framestorm", "plan": "requests", "run": 'run "1"'}.items())
        )
    ]
    assert [value for _, value in users] == [4, 3, 0]
    times = [at_ms for at_ms, _ in series[next(labels for labels in series if ("le", "+Inf") in labels)]]
    assert times[:3] == [round((BEGAN_S + at_s) * 1000) for at_s in (began, first, second)]


@pytest.mark.parametrize("status", [400, 409, 403])
def test_what_prometheus_has_already_is_not_repeated_for_ever(status: int) -> None:
    """The answer to the first body was lost, so the service refuses the second for its old samples."""
    refused = {"status": status, "body": b"out of order sample"}
    with serving({"resets": True}, refused, *({"status": 204, "body": b""},) * 20) as service:
        outcome = delivered_to(service.origin, "prometheus")
        bodies = [write_request().FromString(unpacked(sent.body)) for sent in service.received]
    has_old = [any(len(each.samples) > 1 for each in body.timeseries) for body in bodies]
    assert has_old[:4] == [True, True, status == 403, False] and not any(has_old[3:])
    assert outcome.missed == 0


def test_a_message_of_otlp_is_one_of_its_own_definition() -> None:
    requests = [json_format.Parse(body, ExportMetricsServiceRequest()) for body in bodies("otlp", "/v1/metrics")]
    (of_resource,) = requests[1].resource_metrics
    resource = {each.key: each.value.string_value for each in of_resource.resource.attributes}
    assert resource == {"service.name": "framestorm", "framestorm.run": 'run "1"', "framestorm.plan": "requests"}
    (of_scope,) = of_resource.scope_metrics
    metrics = {metric.name: metric for metric in of_scope.metrics}
    (samples,) = metrics["framestorm.samples"].sum.data_points
    assert {each.key: each.value.string_value for each in samples.attributes} == {
        "label": "log in, now", "kind": "sampler", "slave": "slave1"
    }  # fmt: skip
    assert (samples.as_int, samples.start_time_unix_nano) == (5, BEGAN_S * 10**9)
    assert (
        metrics["framestorm.samples"].sum.is_monotonic
        and metrics["framestorm.samples"].sum.aggregation_temporality == 2
    )
    (times,) = metrics["framestorm.response_time"].histogram.data_points
    assert (times.count, times.sum, len(times.bucket_counts)) == (3, 0.07, len(times.explicit_bounds) + 1)
    counts = dict(zip(times.explicit_bounds, times.bucket_counts, strict=False))
    assert {bound: n for bound, n in counts.items() if n} == {0.01: 1, 0.02: 1, 0.05: 1}
    (error,) = metrics["framestorm.errors"].sum.data_points
    assert error.as_int == 2
    users = [
        {m.name: m for m in each.resource_metrics[0].scope_metrics[0].metrics}["framestorm.users"] for each in requests
    ]
    assert [each.gauge.data_points[0].as_int for each in users] == [4, 3, 0]


def test_totals_are_bounded() -> None:
    totals = Totals()
    totals.take(update(1, *(interval_of(1, 5.0, label=f"label {number}") for number in range(3 * MAX_SERIES))))
    assert len(totals.of) <= MAX_SERIES + 1 and sum(total.n for total in totals.of.values()) == 3 * MAX_SERIES
    assert totals.of[Of("other labels", "sampler", "")].n == 2 * MAX_SERIES
    causes = {f"cause{number}: text": 1 for number in range(3 * MAX_CAUSES)}
    totals.take(update(2, interval_of(2, label="label 1", **causes)))
    counted = totals.of[Of("label 1", "sampler", "")].causes
    assert len(counted) == MAX_CAUSES + 1 and counted["other"] == 2 * MAX_CAUSES and counted["cause0"] == 1


def test_each_time_is_in_the_bucket_whose_bound_it_does_not_exceed() -> None:
    totals = Totals()
    totals.take(update(1, interval_of(1, 1.0, 1.01, 99_999.0, 101_000.0)))
    (total,) = totals.of.values()
    assert [n for n, count in enumerate(total.buckets) if count] == [0, 1, len(BOUNDS_S) - 1, len(BOUNDS_S)]
    assert json.dumps(BOUNDS_S[:3]) == "[0.001, 0.0015, 0.002]"
