"""The load of one of the kit's plans, by its properties: words, a trace, or the short forms of a rate and of users."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path

from framestorm.errors import UsageError
from framestorm.load import poisson, trace
from framestorm.load.text import Points, is_meant_as_load, parse
from framestorm.model.facets import LARGEST
from framestorm.model.foreign import as_utf_8
from framestorm.model.load import LoadModel
from framestorm.model.plan import Plan
from framestorm.model.units import listed, plural

# JMeter's property with a load that it cannot read from the plan's properties, by this file: jmx/java/Load.java.
PROPERTY, FILE = "framestorm.load", "load.txt"
RATE, USERS = "rate_per_s", "users"
RANDOM = "poisson"
RATES_PLAN = "jmx/request-rate.jmx"
MOST_RANDOM = 10_000_000  # 5 s
MOST_BINS = 500
_FORMS = (
    f"give a time a line ({trace.FORMS}), a header with a column timestamp, time, start or t, or words such as "
    "10/s for 30 s"
)


@dataclass(frozen=True)
class KitLoad:
    """A load over time.

    points: the corners of its line: seconds since the start, and arrivals per second, or users; a jump has two points
        with one time.
    seed: of arrivals that come at random; None if they come evenly.
    words: as people wrote it; empty if it is made of the plan's short forms.
    is_trace: the line is made of the times of single arrivals, or of counts.
    """

    model: LoadModel
    points: Points
    seed: int | None = None
    words: str = ""
    is_trace: bool = False

    @property
    def total(self) -> int:
        """The number of arrivals, or the highest number of users at the same time."""
        if self.model == "users":
            return int(max(y for _, y in self.points))
        return math.ceil(self.area - 1e-9) if self.seed is None else poisson.count(self.area, self.seed)

    @property
    def area(self) -> float:
        """The arrivals by the line alone; at random there are some more or less."""
        return sum(self._areas())

    def _areas(self) -> Iterator[float]:
        return ((next_x - x) * (y + next_y) / 2 for (x, y), (next_x, next_y) in pairwise(self.points))

    @property
    def of_kind(self) -> str:
        """The kind of thread group that it is of: any other group of the plan has a load of its own."""
        return "ThreadGroup" if self.model == "arrivals" else "ConcurrencyThreadGroup"

    @property
    def is_plain(self) -> bool:
        """Whether JMeter reads it from the plan's own properties."""
        return not self.words and self.seed is None

    @property
    def written(self) -> str:
        """As JMeter reads it from FILE."""
        seed = () if self.seed is None else (f"seed={self.seed}",)
        return " ".join((self.model, *(f"{x!r}:{y!r}" for x, y in self.points), *seed))

    @property
    def curve(self) -> Points:
        """The line as it is drawn: of a trace the rate in equal parts of its length, of a second or more."""
        if not self.is_trace:
            return self.points
        x = [at for at, _ in self.points]
        areas = [0.0, *accumulate(self._areas())]
        length_s, n = x[-1], max(1, min(MOST_BINS, int(x[-1])))
        due = []
        for number in range(n + 1):
            at_s = length_s * number / n
            low = min(bisect_right(x, at_s), len(x) - 1) - 1
            within_s = x[low + 1] - x[low]
            due.append(areas[low] + (areas[low + 1] - areas[low]) * ((at_s - x[low]) / within_s if within_s else 1.0))
        rates = [(after - before) * n / length_s for before, after in pairwise(due)]
        return [(length_s * at / n, rate) for number, rate in enumerate(rates) for at in (number, number + 1)]

    def takes_place_of(self, name: str) -> bool:
        """Return whether the property has no effect beside this load."""
        return not self.is_plain and name in _short_form(self.model)


def reference(folder: str | Path, number: int = 0, of: int = 1) -> str:
    """Return the value of JMeter's property: the file in a folder, and which part of the load is this JMeter's own.

    One of several JMeters makes every so many-th arrival, or has every so many-th user: together they make what one
    would, at the same moments.
    """
    return f"@{folder}/{FILE} {number}/{of}"


def read(plan: Plan, values: Mapping[str, str]) -> KitLoad | None:
    """Read the load of one of the kit's plans from its properties; None where its thread groups have it, as in others.

    Raises:
        UsageError: its words are not understood, or it has more random arrivals than can be drawn.
    """
    load = _read(plan, values)
    if load is not None and load.seed is not None and load.area > MOST_RANDOM:
        raise UsageError(
            f"-Jarrivals={RANDOM}: the load has {load.area:,.0f} arrivals, and at most {MOST_RANDOM:,} can be drawn: "
            "ask for a lower rate or a shorter time"
        )
    return load


def drawn(plan: Plan, given: Mapping[str, str], number: int) -> dict[str, str]:
    """Return the properties of one of several runs, each with a seed of its own for random arrivals.

    A seed that is given is that of the first; after the largest, 0 is next. number: of the run, from 1 on.
    """
    load = _read(plan, {**plan.defaults, **given})
    if load is None or load.seed is None:
        return dict(given)
    return {**given, "seed": str((load.seed + number - 1) % (LARGEST + 1))}


def resolve(
    plan: Plan, properties: Mapping[str, str], given: Mapping[str, str]
) -> tuple[KitLoad | None, dict[str, str]]:
    """Read a load as `read`, and return the properties with it: one in words takes the place of the short forms.

    Raises:
        UsageError: as `read`; a short form is given beside the words; or they might be of several thread groups.
    """
    load, others = read(plan, properties), dict(properties)
    if load is None or not load.words or plan.load is None:
        return load, others
    if both := [f"-J{name}" for name in given if load.takes_place_of(name)]:
        raise UsageError(f"-J{plan.load.name} is the whole load: leave out {listed(both)}")
    groups = [each.get("testname", "") for each in plan.elements if each.tag.rpartition(".")[2] == load.of_kind]
    if len(groups) > 1:
        raise UsageError(
            f"-J{plan.load.name} is the load of one {load.of_kind}, and {plan.path.name} has {len(groups)}: "
            f"{listed(groups)}"
        )
    others = {name: value for name, value in others.items() if not load.takes_place_of(name)}
    return load, others | ({USERS: str(load.total)} if load.model == "users" else {})


def _read(plan: Plan, values: Mapping[str, str]) -> KitLoad | None:
    if plan.load is None:
        return None
    model: LoadModel = "arrivals" if RATE in plan.settable else "users"
    is_random = model == "arrivals" and values.get("arrivals") == RANDOM
    try:
        seed = int(values["seed"]) if is_random else None
        if words := values.get(plan.load.name):
            if words.startswith("@"):
                return _of_file(Path(words[1:]), model, values, seed)
            return KitLoad(model, parse(words, model), seed, words)
        if model == "users":
            return None
        rate, ramp_s, hold_s = (float(values[name]) for name in _short_form(model))
    except (KeyError, ValueError):
        return None
    return KitLoad(model, [(0.0, 0.0), (ramp_s, rate), (ramp_s, rate), (ramp_s + hold_s, rate)], seed)


def _of_file(path: Path, model: LoadModel, values: Mapping[str, str], seed: int | None) -> KitLoad:
    load = _read_file(path, model, float(values.get("speed", 1)))
    if load.is_trace and seed is not None:
        raise UsageError(f"-Jarrivals={RANDOM}: {path.name} says when each request arrives: leave it out")
    return replace(load, seed=seed)


@lru_cache(1)
def _read_file(path: Path, model: LoadModel, speed: float) -> KitLoad:
    text = _text_of(path)
    if not trace.is_trace(text):
        lines = [line for line in map(str.strip, text.split("\n")) if line and not line.startswith("#")]
        if not lines or not is_meant_as_load(lines[0]):
            what = f"{lines[0][:60]!r} is no line" if lines else "it has no line"
            raise UsageError(f"-Jload=@{path}: {what} of a trace, or of a load in words: {_FORMS}")
        words = ", ".join(line.rstrip(",;") for line in lines)
        return KitLoad(model, parse(words, model), words=words)
    if model == "users":
        raise UsageError(f"-Jload=@{path}: a trace is of arrivals, and this plan's load is users: use {RATES_PLAN}")
    points, assumed = trace.read(path, text, speed)
    load = KitLoad(model, points, is_trace=True)
    words = f"{path.name}: {plural(load.total, 'arrival')} in {round(points[-1][0], 3):.6g} s"
    return replace(load, words=", ".join(filter(None, (words, assumed))))


def _text_of(path: Path) -> str:
    """Return the text of a file with a load, whatever its encoding and line ends.

    Raises:
        UsageError: it cannot be read, or is no text.
    """
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no file"
        raise UsageError(f"-Jload=@{path} is {what}: name a file with a load")
    try:
        foreign = as_utf_8(path)
        text = foreign.read().decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise UsageError(f"-Jload=@{path} cannot be read: {error.strerror}") from None
    if not foreign.is_whole:
        raise UsageError(f"-Jload=@{path} is a gzip file that is cut off or damaged: copy it again, or unpack it")
    if "\0" in text:
        raise UsageError(
            f"-Jload=@{path} is no text: it begins with {text[:12]!r}; unpack an archive, export a table as CSV, and "
            "save UTF-16 with its byte order mark, or as UTF-8"
        )
    if text.lstrip().startswith("<"):
        raise UsageError(
            f"-Jload=@{path} is XML; of a JTL, ./run.sh report {path} -o DIR makes DIR/samples.jtl, which can be "
            "replayed"
        )
    return text


def _short_form(model: LoadModel) -> tuple[str, str, str]:
    return (RATE if model == "arrivals" else USERS, "ramp_s", "hold_s")
