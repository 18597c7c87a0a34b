"""The published schema of study.yml: made of the models, right, and complete."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from framestorm import paths
from framestorm.model.metric import CATALOGUE, METRICS
from framestorm.study.design import schema

PUBLISHED: dict[str, Any] = json.loads(schema.FILE.read_text())


def test_the_published_schema_is_up_to_date():
    assert schema.FILE.read_text() == schema.text(), "run: python -m framestorm.study.design.schema"
    Draft202012Validator.check_schema(PUBLISHED)


@pytest.mark.parametrize(
    "file", sorted(paths.STUDIES.glob("*/*.yml")), ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_the_studies_of_the_kit_have_the_published_format(file):
    study = YAML(typ="safe").load(file)
    assert list(Draft202012Validator(PUBLISHED).iter_errors(study)) == []
    assert list(Draft202012Validator(PUBLISHED).iter_errors(study | {"titel": "x"}))
    assert list(Draft202012Validator(PUBLISHED).iter_errors(study | {"target": {"replica": 1}}))


def test_every_key_is_described():
    def undescribed(part: Any, path: str) -> Iterator[str]:
        for name, key in part.get("properties", {}).items():
            if not key.get("description"):
                yield f"{path}.{name}"

    parts = {"": PUBLISHED, **PUBLISHED["$defs"]}
    assert [missing for name, part in parts.items() for missing in undescribed(part, name)] == []


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
