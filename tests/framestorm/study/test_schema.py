"""The schema of study.yml is one, and says what each key means."""

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator

from framestorm.study.design import schema
from framestorm.study.design.metrics import CATALOGUE, METRICS


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(schema.schema())


def test_every_key_is_described():
    def undescribed(part: Any, path: str) -> Iterator[str]:
        for name, key in part.get("properties", {}).items():
            if not key.get("description"):
                yield f"{path}.{name}"
            yield from undescribed(key, f"{path}.{name}")

    parts = {"": schema.schema(), **schema.schema()["$defs"]}
    assert [missing for name, part in parts.items() for missing in undescribed(part, name)] == []


def test_defaults_are_right_by_the_schema_itself():
    target = {name: value for name, value in schema.defaults("target").items() if value is not None}
    content = {"title": "a", "question": "b", "plan": "c.jmx", "factors": {"users": [1]}, "run_s": 1, "metrics": ["n"]}
    whole = {**schema.defaults(), **content, "target": target}
    assert list(Draft202012Validator(schema.schema()).iter_errors(whole)) == []


def test_metrics_have_one_name_and_a_meaning():
    assert len(METRICS) == len(CATALOGUE)
    assert all(metric.meaning and not metric.meaning.endswith(".") for metric in CATALOGUE)
    units = {"ms": "ms", "s": "s", "bytes": "bytes"}
    for metric in CATALOGUE:
        suffix = metric.name.rpartition("_")[2]
        if metric.name.endswith("_per_s"):
            assert metric.unit == ("bytes/s" if metric.name.endswith("_bytes_per_s") else "1/s")
        elif suffix in units:
            assert metric.unit == units[suffix]
