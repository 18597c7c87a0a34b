"""A sample's line: what client/sample.json declares is what is read."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from framestorm.model import sample

LINE: dict[str, Any] = {"type": "sample", "label": "chat", "user": "u", "index": 0, "start_ms": 1, "ok": True}


@pytest.mark.parametrize(
    ("change", "is_valid"),
    [
        ({}, True),
        ({"index": 9_999_999, "rtt_ms": None, "cause": "timeout", "ok": False, "censored": True}, True),
        ({"first_token_ms": 31.5, "tokens": 7, "cold": None, "worker": "replica-1"}, True),
        ({"type": "frame"}, False),
        ({"user": None}, False),
        ({"label": 7}, False),
        ({"index": 10_000_000}, False),
        ({"index": -1}, False),
        ({"index": True}, False),
        ({"start_ms": "1"}, False),
        ({"start_ms": True}, False),
        ({"status": 200.5}, False),
        ({"ok": 1}, False),
        ({"faces": [1]}, False),
        ({"timings": {"model": 1}}, False),
        ({"host": "h"}, False),
        ({"source": "tree"}, False),
        ({"Bad-Name": 1}, False),
        ({"=cmd": 1}, False),
    ],
)
def test_a_line_is_read_if_the_schema_allows_it(change: dict[str, Any], is_valid: bool) -> None:
    line = LINE | change
    assert sample.is_sample(line) is is_valid
    assert Draft202012Validator(sample.SCHEMA).is_valid(line) is is_valid


@pytest.mark.parametrize("missing", sample.SCHEMA["required"])
def test_a_line_without_a_required_field_is_none(missing: str) -> None:
    assert not sample.is_sample({name: value for name, value in LINE.items() if name != missing})


@pytest.mark.parametrize(
    "text", ["[1]", "7", "null", '{"type": "sample"}', json.dumps(LINE | {"rtt_ms": float("nan")})]
)
def test_other_values_are_no_samples(text: str) -> None:
    assert not sample.is_sample(json.loads(text))


@pytest.mark.parametrize(
    ("name", "is_length"),
    [("handler_ms", True), ("first_token_ms", True), ("rtt_ms", False), ("begun_at_ms", False), ("faces", False)],
)
def test_lengths_are_told_by_their_names(name: str, is_length: bool) -> None:
    assert sample.is_length(name) is is_length
