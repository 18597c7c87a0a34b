"""`--sink KIND:URL`."""

import pytest

from framestorm.errors import UsageError
from framestorm.model.sink import EXAMPLES, KINDS, SinkAddress, parse_sink


@pytest.mark.parametrize("kind", KINDS)
def test_the_examples_of_each_kind_are_addresses(kind: str) -> None:
    for url in EXAMPLES[kind].split(" or "):  # type: ignore[index]
        assert parse_sink(f"{kind}:{url}") == SinkAddress(kind, url)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("http://h:9090/api/v1/write", "expected KIND:URL, with one of the kinds influxdb, prometheus, otlp"),
        ("prometheus", "expected an address to write to, such as http://host:9090/api/v1/write"),
        ("prometheus:h:9090/api/v1/write", "expected an address to write to"),
        ("prometheus:http://h:9090/", "expected an address to write to"),
        ("prometheus:http://h:99999/api/v1/write", "expected an address to write to"),
        ("otlp:http://h:4318/v1/traces", "expected an address to write to, such as http://host:4318/v1/metrics"),
        ("otlp:http://ada:secret@h:4318/v1/metrics", "an address with a password would be kept in the run"),
    ],
)
def test_what_is_no_address_is_refused(text: str, why: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_sink(text)
    assert why in str(refusal.value) and "secret" not in str(refusal.value)


def test_mimir_takes_remote_write_by_another_name() -> None:
    assert parse_sink("prometheus:https://h/api/v1/push").url == "https://h/api/v1/push"


def test_a_query_is_not_shown() -> None:
    assert parse_sink("influxdb:http://h/write?db=a&p=secret").shown == "influxdb:http://h/write"
