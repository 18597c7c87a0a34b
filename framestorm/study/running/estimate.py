"""How long a study takes: before it begins from its own words, then from what its runs took."""

from collections.abc import Iterable, Sequence

from framestorm.report.units import duration
from framestorm.study.design import matrix
from framestorm.study.design.definition import Study
from framestorm.study.design.matrix import Point

# What a run takes beside its load: JMeter's start and end, its dashboard, the report, bringing the target to the point.
# Measured on two cores; every run of a study makes the rest of its estimate better.
RUN_OVERHEAD_S = 5.5


class Estimate:
    """Seconds of runs that are still to come; every run that ends makes it better."""

    def __init__(self, study: Study, points: Sequence[Point]) -> None:
        self._load_s = {point.id: matrix.estimate_s(study, point) for point in points}
        self._over_s: list[float] = []

    def saw(self, point: Point, took_s: float) -> None:
        """A run of the point took so long, all in all."""
        self._over_s.append(took_s - self._load_s[point.id])

    def of(self, points: Iterable[Point]) -> float:
        """s that these runs take."""
        # The constant has the weight of one run, so that the first does not turn everything over.
        over_s = (RUN_OVERHEAD_S + sum(self._over_s)) / (1 + len(self._over_s))
        return sum(max(0.0, self._load_s[point.id] + over_s) for point in points)


def whole_s(study: Study, points: Sequence[Point]) -> float:
    """s that a study takes without the repetitions that its stop rule may add."""
    return Estimate(study, points).of(point for point in points for _ in range(study.repetitions))


def shown(seconds: float) -> str:
    """A time for people at a terminal."""
    return duration(seconds * 1000).replace("\N{NO-BREAK SPACE}", " ")
