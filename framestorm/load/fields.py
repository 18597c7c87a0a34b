"""The fields of a thread group or timer, with the values that JMeter will see, as far as these are known."""

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import pairwise

from framestorm.model.plan_files import Known
from framestorm.model.series import Curves

# Larger numbers make no difference: a product of two of these is still a number.
MOST = 1e100
# More than so many are not drawn.
MOST_STEPS, STEPS = 10_000, "each of its steps"
_SHORT_TIMES = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class UnknownValueError(Exception):
    """A field has a value that is known only during the run; the text is that of the field."""


@dataclass(frozen=True)
class Fields:
    """The fields of one element with the values that JMeter will see, as far as they are known before the run."""

    element: ET.Element
    known: Known
    properties: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.element.get("testname") or self.element.tag

    def raw(self, name: str) -> str:
        """Return the text of a field as it stands in the plan; that of a test bean's number is in a child."""
        for child in self.element:
            if child.get("name") == name:
                return child.text or ""
            if child.findtext("name") == name:
                return child.findtext("value") or ""
        return ""

    def text(self, name: str) -> str:
        """Return the value of a field; raises UnknownValueError."""
        return self._known(self.raw(name))

    def number(self, name: str, empty: float = 0.0) -> float:
        """Return the value of a field with a number; raises UnknownValueError."""
        return _number(self.text(name), empty)

    def whole(self, name: str, empty: int = 0, digits: int = 10) -> int:
        """The value of a field with a whole number: JMeter takes anything else for 0. Raises UnknownValueError.

        digits: at most, as JMeter reads the field; 19 of a long.
        """
        text = self.text(name)
        return int(text) if re.fullmatch(rf"[+-]?[0-9]{{1,{digits}}}", text) else 0 if text else empty

    @property
    def ends_by_loops(self) -> bool:
        """Whether the users of a thread group may end before its schedule does, after so many loops."""
        controller = self.element.find("elementProp[@name='ThreadGroup.main_controller']")
        if controller is None:
            return False
        main = Fields(controller, self.known, self.properties)
        loops = self.known.value(main.raw("LoopController.loops"))
        is_endless = loops is not None and loops.strip().startswith("-")
        return main.raw("LoopController.continue_forever") == "false" and not is_endless

    def rows(self, name: str) -> list[list[float]]:
        """Return the numbers of a table; raises UnknownValueError."""
        rows = self.element.findall(f"collectionProp[@name='{name}']/collectionProp")
        return [[_number(self._known(cell.text or ""), 0) for cell in row] for row in rows]

    def _known(self, text: str) -> str:
        # A thread group is read before the run, a timer each time that it is asked.
        is_group = self.element.tag.endswith("ThreadGroup")
        value = self.known.value(text) if is_group else self.known.value_in_run(text)
        if value is None:
            raise UnknownValueError(text)
        return value.strip()


def _number(text: str, empty: float) -> float:
    try:
        number = float(Decimal(text)) if text else empty
    except (InvalidOperation, ValueError):  # a signalling NaN is no float
        return 0.0
    return 0.0 if math.isnan(number) else max(-MOST, min(MOST, number))


def curve(points: Iterable[tuple[float, float]]) -> Curves:
    """Return a curve through these points, each once."""
    unique = {(round(x, 6), round(y, 9)): y for x, y in points}
    return {"x": [x for x, _ in unique], "y": [*unique.values()]}


def stretches(rows: Iterable[tuple[float, float, float]]) -> list[tuple[float, float]]:
    """Return the points of rows with a start, an end and a length in s."""
    points, at_s = [], 0.0
    for start, end, length_s in rows:
        points += [(at_s, start), (at_s + length_s, end)]
        at_s += length_s
    return points


def calls(text: str) -> Iterator[tuple[str, list[float]]]:
    """Yield the calls in jmeter-plugins' property of a schedule, such as `const(10,5m) line(1,100,60s)`."""
    for call in re.finditer(r"(\w+)\s*\(([^()]*)\)", text):
        numbers = [_short_time(word.strip()) for word in call[2].split(",")]
        if all(number is not None for number in numbers):
            yield call[1].lower(), [number for number in numbers if number is not None]


def _short_time(text: str) -> float | None:
    """Return a number, or seconds of jmeter-plugins' short form `1h30m`; None if it is neither."""
    if re.fullmatch(r"-?\d+(\.\d+)?", text):
        return _number(text, 0)
    if not re.fullmatch(r"(?:\d+[smhd])+", text.lower()):
        return None
    return sum(_number(number, 0) * _SHORT_TIMES[unit] for number, unit in re.findall(r"(\d+)([smhd])", text.lower()))


def area(points: Curves) -> float:
    """Return what is below a curve, from its first point to its last: the arrivals of a rate."""
    pairs = list(zip(points["x"], points["y"], strict=True))
    return sum(
        ((y or 0) + (next_y or 0)) / 2 * ((next_x or 0) - (x or 0)) for (x, y), (next_x, next_y) in pairwise(pairs)
    )
