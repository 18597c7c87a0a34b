"""The load that a plan asks for: how much, by whom and when, for each of its thread groups and of its timers."""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from framestorm.model.series import Curves

LoadModel = Literal["users", "arrivals"]


@dataclass(frozen=True)
class Load:
    """What one thread group asks for, or a timer of one group or of all.

    name: that of the element; kind: its class without the package, such as OpenModelThreadGroup.
    model: `users` send again once they have their answer; `arrivals` are started by a schedule.
    total: users, or arrivals in the whole schedule; None if that is not known before the run.
    curve: x in seconds since the group's start, y users, or arrivals per second; straight lines between the points, and
        a jump where two have the same x. Empty if it is not known. The last y goes on if the end is not known.
    has_end: the curve ends with its last point.
    groups: the thread groups whose samples these are; numbers: which of JMeter's groups they are, from 1 on, if a plan
        has several of one name; else empty. labels: those of the samplers that a timer paces; empty for all.
    start_s: from the test's start to the group's, None if it waits for others or that is not known.
    delay_s: of that, or after the others, the part that JMeter waits once it has begun the group.
    limit: the most threads that may send at the same time, None without a limit.
    is_aside: of a group that sets up or tears down.
    unknown: what of it is not known before the run, and why.
    seed: of arrivals at random, by a Poisson process, in one of the kit's plans; None if they come evenly.
    words: the load as people wrote it, where the plan takes words.
    """

    name: str
    kind: str
    model: LoadModel
    total: int | None = None
    curve: Curves = field(default_factory=dict)
    has_end: bool = True
    groups: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    start_s: float | None = 0.0
    delay_s: float = 0.0
    limit: int | None = None
    is_aside: bool = False
    unknown: str = ""
    seed: int | None = None
    words: str = ""

    def on_each_of(self, hosts: int) -> "Load":
        """Return the load of so many hosts of which each makes the whole of it."""
        y = [None if value is None else value * hosts for value in self.curve.get("y", [])]
        return replace(
            self,
            total=None if self.total is None else self.total * hosts,
            limit=None if self.limit is None else self.limit * hosts,
            curve=self.curve | {"y": y} if self.curve else {},
        )

    @property
    def is_timer(self) -> bool:
        """Whether it slows down the users of thread groups; a timer starts nothing by itself."""
        return self.kind.endswith("Timer")

    @property
    def is_open(self) -> bool:
        """Whether its requests start by a schedule, answered or not."""
        return self.model == "arrivals" and not self.is_timer

    @property
    def points(self) -> list[tuple[float, float]]:
        """The points of the curve."""
        pairs = zip(self.curve.get("x", []), self.curve.get("y", []), strict=True)
        return [(x, y) for x, y in pairs if x is not None and y is not None]

    @property
    def most(self) -> float:
        """The most users at the same time, or the highest rate; 0 if the curve is not known."""
        return max((y for _, y in self.points), default=0.0)

    @property
    def length_s(self) -> float | None:
        """How long the schedule lasts, None if that is not known."""
        return self.points[-1][0] if self.has_end and self.points else None

    def at(self, time_s: float) -> float | None:
        """Return users, or arrivals per second, so long after the group's start; None outside of the known curve."""
        points = self.points
        if not points or time_s < points[0][0]:
            return None
        for (x, y), (next_x, next_y) in pairwise(points):
            if x <= time_s < next_x:
                return y + (next_y - y) * (time_s - x) / (next_x - x)
        if time_s == points[-1][0] or not self.has_end:
            return points[-1][1]
        return None

    def between(self, start_s: float, end_s: float) -> float:
        """The arrivals of a time after the group's start (of users: the seconds that they spend), by the curve."""
        points, area = self.points, 0.0
        if points and not self.has_end:
            points.append((max(end_s, points[-1][0]), points[-1][1]))
        for (x, y), (next_x, next_y) in pairwise(points):
            low, high = max(x, start_s), min(next_x, end_s)
            if high > low:
                slope = (next_y - y) / (next_x - x)
                area += (high - low) * (y + slope * ((low + high) / 2 - x))
        return area
