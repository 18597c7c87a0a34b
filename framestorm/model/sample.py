"""A sample's line: its fields, as client/sample.json declares them for clients, plans and readers alike."""

import json
import math
import re
from functools import cache
from typing import Any, Literal, TypeGuard

from framestorm import paths

Line = dict[str, Any]
SCHEMA: Line = json.loads((paths.CLIENT / "sample.json").read_text(encoding="utf-8"))
_KINDS: dict[str, set[type]] = {
    "string": {str}, "integer": {int}, "number": {int, float}, "boolean": {bool}, "null": {type(None)},
}  # fmt: skip


def _kinds(field: Line) -> tuple[str, ...]:
    declared = field["type"]
    return (declared,) if isinstance(declared, str) else tuple(declared)


def _types(field: Line) -> set[type]:
    return {kind for name in _kinds(field) for kind in _KINDS[name]}


# The kind of each common field, without null: string, integer, number or boolean.
COMMON = {name: _kinds(field)[0] for name, field in SCHEMA["properties"].items() if name != "type"}
# The further figures that the kit's own clients declare: their types, and the words for them.
DECLARED: Line = SCHEMA["$defs"]["figures"]["properties"]
TIMES = tuple(name for name, field in DECLARED.items() if field["type"] == "number")
# By figure with words for people: its title and its definition.
FIGURE_WORDS: dict[str, tuple[str, str]] = {
    name: (field["title"], field["description"])
    for name, field in {**DECLARED, **SCHEMA["$defs"]["stream_figures"]["properties"]}.items()
    if "title" in field
}
# By figure: what each sample of JMeter's own samplers that has it has too.
IMPLIED: dict[str, Line] = {
    figure: {name: DECLARED[name]["default"] for name in names}
    for figure, names in SCHEMA["$defs"]["figures"]["dependentRequired"].items()
}
# What the results add to each line: the machine it came from, JMeter's thread, and the file that it was read from.
ORIGIN = ("host", "thread", "source")
# Columns that the kit adds to samples.jtl (jmx/java/Rows.java): JMeter cuts its times off at whole ms, and it writes
# sub-results and transactions as rows like others.
KIT_COLUMNS = ELAPSED_US, SAMPLE_KIND = "elapsed_us", "sample_kind"
# In files of versions before 2026-11-25, which told transactions by their message as JMeter does.
IS_SUB_RESULT = "is_sub_result"
# Kinds of rows that are not samples of their own: a Transaction Controller's is made of its samplers' rows, and a
# sub-result (a redirect, an embedded resource) is part of the row before it. The end of its thread can cut a
# transaction off.
TRANSACTION, SUB_RESULT, CUT_TRANSACTION = "transaction", "sub-result", "cut-transaction"
SampleKind = Literal["sampler", "transaction", "sub-result"]
# Names in tables, criteria and metrics of what is calculated from the common fields.
OTHER_SERIES = ("rtt", "warm", "cold", "open", "outside", "timed_out")
# The labels of the kit's own plans that are nouns; in other plans, a label may be any text.
_NOUNS: list[str] = SCHEMA["properties"]["label"]["examples"]
INDEX_LIMIT: int = SCHEMA["properties"]["index"]["maximum"]
_REQUIRED = tuple(SCHEMA["required"])
_TYPES = {name: _types(SCHEMA["properties"][name]) for name in COMMON}
_FURTHER = _types(SCHEMA["additionalProperties"])
_NAME = re.compile(SCHEMA["propertyNames"]["pattern"])


def noun(label: str) -> str:
    """Return the noun for one sample with this label."""
    return label if label in _NOUNS else "sample"


# The column by which an audit compares the texts of answers: a checksum of each, by jmx/java/plan/Answer.java.
ANSWER_DIGEST = "answer_digest"
# The column by which a sample is found in a tracing system: that of its header traceparent (--trace).
TRACE_ID = "trace_id"


def is_measured(name: str) -> bool:
    """Return whether a further figure with that name is a metric; names of times of day and of other series are not."""
    of_others = {*COMMON, *ORIGIN, *OTHER_SERIES, ANSWER_DIGEST, TRACE_ID}
    return not name.endswith("_at_ms") and of_others.isdisjoint({name, name.removesuffix("_ms")})


def is_length(name: str) -> bool:
    """Return whether the further figure of that name is a length of time in ms."""
    return name.endswith("_ms") and is_measured(name)


@cache
def is_figure_name(name: str) -> bool:
    """Return whether a further figure may have that name."""
    return name not in COMMON and name not in ORIGIN and name != "type" and bool(_NAME.match(name))


def is_sample(line: object) -> TypeGuard[Line]:
    """Return whether a parsed line is a sample by the schema; its numbers are finite."""
    if not isinstance(line, dict) or line.get("type") != "sample" or any(name not in line for name in _REQUIRED):
        return False
    for name, value in line.items():
        kind = type(value)
        if kind is float and not math.isfinite(value):
            return False
        if name in _TYPES:
            if kind not in _TYPES[name]:
                return False
        elif name != "type" and (kind not in _FURTHER or not is_figure_name(name)):
            return False
    index: int = line["index"]
    return 0 <= index <= INDEX_LIMIT


def parsed(text: str) -> Line:
    """Return the JSON object that a line holds; empty if it holds none."""
    try:
        line = json.loads(text)
        if "\\u" in text:
            json.dumps(line, ensure_ascii=False).encode()  # half a character is not text
    except (ValueError, RecursionError):
        return {}
    return line if isinstance(line, dict) else {}


def is_of_user(line: Line, *types: str) -> bool:
    """Return whether a line is a user's own, of one of these types."""
    return line.get("type") in types and isinstance(line.get("user"), str)
