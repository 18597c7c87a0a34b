"""What the timers ask for that pace the users of thread groups: so many samples per second."""

import math
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from framestorm import paths
from framestorm.load.fields import MOST_STEPS, STEPS, Fields, UnknownValueError, area, calls, curve, stretches
from framestorm.model.load import Load

# The modes of a Constant Throughput Timer, by the numbers in its field.
OF_EACH_THREAD, AMONG_ALL_THREADS, OF_ALL_THREADS = (0,), 1, (1, 3)


@cache
def _words_of_modes() -> dict[str, int]:
    """The names of a Constant Throughput Timer's modes, in each language of JMeter, in which old plans have them."""
    words: dict[str, int] = {}
    for jar in (paths.JMETER_HOME / "lib" / "ext").glob("ApacheJMeter_components*.jar"):
        with zipfile.ZipFile(jar) as archive:
            names = [name for name in archive.namelist() if "/ConstantThroughputTimerResources" in name]
            text = "\n".join(archive.read(name).decode("latin-1") for name in names)
        text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda escape: chr(int(escape[1], 16)), text)
        for mode, word in re.findall(r"^calcMode\.(\d)=(.+?)\s*$", text, flags=re.MULTILINE):
            words[word] = int(mode) - 1
    return words


def mode_of(fields: Fields) -> int:
    """Return the number of a Constant Throughput Timer's mode, 0 if it has none. Raises UnknownValueError."""
    text = fields.text("calcMode")
    if not text or text.isdecimal():
        return int(text or 0)
    return _words_of_modes().get(text, 0)


def property_names(fields: Fields) -> tuple[str, ...]:
    """The properties that replace the table of a timer or thread group of jmeter-plugins, the first before the next."""
    kind = fields.element.tag.rpartition(".")[2]
    if kind == "VariableThroughputTimer":
        return (f"{fields.element.get('testname', '')}.load_profile", "load_profile")
    return ("threads_schedule",) if kind == "UltimateThreadGroup" else ()


def of_constant_timer(fields: Fields, load: Load) -> Load:
    rate = fields.number("throughput") / 60
    return replace(load, curve=curve([(0, rate)]), has_end=False)


def of_precise_timer(fields: Fields, load: Load) -> Load:
    period_s, lasts_s = fields.number("throughputPeriod"), fields.number("duration")
    rate = fields.number("throughput") / period_s if period_s else 0.0
    batch = max(1, fields.whole("batchSize", 1))
    total = math.ceil(round(rate / batch * lasts_s, 9)) * batch
    return replace(load, total=total, curve=curve([(0, rate), (lasts_s, rate)]), has_end=bool(lasts_s))


def of_shaping_timer(fields: Fields, load: Load) -> Load:
    rows = [(row[0], row[1], row[2]) for row in fields.rows("load_profile") if len(row) > 2]
    if text := next(filter(None, map(fields.properties.get, property_names(fields))), None):
        rows = list(profile(text))
    points = curve(stretches(rows))
    return replace(load, total=round(area(points)), curve=points, has_end=True)


def profile(text: str) -> Iterator[tuple[float, float, float]]:
    """Yield the rows of the Shaping Timer's property: rate at the start and at the end per s, and length in s.

    Raises:
        UnknownValueError: it has too many steps.
    """
    for name, numbers in calls(text):
        if name == "const" and len(numbers) == 2:
            yield numbers[0], numbers[0], numbers[1]
        elif name == "line" and len(numbers) == 3:
            yield numbers[0], numbers[1], numbers[2]
        elif name == "step" and len(numbers) == 4 and numbers[2]:
            start, end, step, length_s = numbers
            count = int(abs(end - start) // step) + (start <= end or bool(abs(end - start) % step))
            if count > MOST_STEPS:
                raise UnknownValueError(STEPS)
            way = step if start <= end else -step
            yield from ((start + way * n, start + way * n, length_s) for n in range(count))
