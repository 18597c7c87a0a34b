"""What an answer in JSON has to have: the JSONPath to a value, and what that has to be.

A part of what jmx/java/plan/Answer.java takes: names and numbers only, `$.outputs[0].data[-1] >= 0.5`.
"""

import json
import operator
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

_STEP = r"\.[A-Za-z_][\w-]*|\[-?[0-9]+\]"
_CONDITION = re.compile(rf"\$(?P<path>(?:{_STEP})+)(?:\s*(?P<sign>==|!=|>=|<=|>|<)\s*(?P<value>.*\S))?\s*", re.DOTALL)
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


_FLOATS = {"FP16": "<e", "BF16": "<f", "FP32": "<f"}


class Condition(NamedTuple):
    """A path by its names and numbers; without a sign, it is enough that there is a value."""

    path: tuple[str | int, ...]
    sign: str | None = None
    value: Any = None

    def is_met(self, answer: Any) -> bool:
        """Return whether the answer meets the condition."""
        datatype = None  # of the output, where it has one
        try:
            for step in self.path:
                datatype = answer.get("datatype", datatype) if isinstance(answer, dict) else datatype
                answer = answer[step]
        except (LookupError, TypeError):
            return False
        if self.sign is None:
            return answer is not None
        value = _as_stored(self.value, datatype)
        if self.sign in {"==", "!="}:
            # In JSON, true is not 1.
            is_equal = answer == value and isinstance(answer, bool) == isinstance(value, bool)
            return is_equal == (self.sign == "==")
        return isinstance(answer, int | float) and _ORDERS[self.sign](answer, value)


def _as_stored(value: Any, datatype: Any) -> Any:
    """Return a number as an output of this type has it: the 0.1 of an FP32 is another than that of Python."""
    if datatype not in _FLOATS or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        if datatype == "BF16":  # the upper half of FP32, rounded as tensors.py does
            bits = int.from_bytes(struct.pack("<f", value), "little") + 0x8000 >> 16 << 16
            return struct.unpack("<f", struct.pack("<I", bits))[0]
        return struct.unpack(_FLOATS[datatype], struct.pack(_FLOATS[datatype], value))[0]
    except (OverflowError, struct.error):  # it has no such number
        return value


def parse(text: str) -> Condition:
    """Return the condition of a text.

    Raises:
        ValueError: it is none.
    """
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not a path such as $.outputs[0].data[0], alone or with >= 0.5 or == text after it"
        )
    steps = re.findall(_STEP, match["path"])
    path = tuple(step[1:] if step[0] == "." else int(step[1:-1]) for step in steps)
    if match["sign"] is None:
        return Condition(path)
    try:
        value = json.loads(match["value"])
    except ValueError:
        value = match["value"]
    if match["sign"] not in {"==", "!="} and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ValueError(f"{text!r}: {match['value']} is not a number")
    return Condition(path, match["sign"], value)
