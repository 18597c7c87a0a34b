"""The parts of a study's summary.json: figures of points, and the answers to its hypotheses."""

from dataclasses import dataclass, field
from typing import Literal

from framestorm.model.expectation import HypothesisVerdict
from framestorm.model.study import Value
from framestorm.model.summary import Doubt
from framestorm.stats.estimate import Estimate
from framestorm.stats.scalability import Knee, Usl

Levels = dict[str, Value]
PointState = Literal["complete", "partial", "failed", "missing"]


@dataclass(frozen=True)
class EffectSize:
    """How far two settings lie apart; `of`: by samples or by runs; `size` in a word, where there is one."""

    name: str
    of: Literal["samples", "runs"]
    value: float
    size: str | None


@dataclass(frozen=True)
class Basis:
    """The runs that a claim's figure is made of.

    runs: their number. failed: number of failed runs of the same points, which are in no figure. doubts: kinds of
    doubt, each with the number of `runs` that have it.
    """

    runs: int = 0
    failed: int = 0
    doubts: dict[Doubt, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ClaimAnswer:
    """What a claim's figure is, with its 95 % confidence interval, and what that says of the claim.

    n: repetitions; cells: the points, or pairs of points, that the figure is of; notes: what a reader has to know.
    """

    verdict: HypothesisVerdict
    sentence: str
    kind: str
    metric: str
    expect: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    cells: list[str] = field(default_factory=list)
    method: str = ""
    effect: EffectSize | None = None
    notes: list[str] = field(default_factory=list)
    basis: Basis = field(default_factory=Basis)


@dataclass(frozen=True)
class HypothesisAnswer:
    """A hypothesis and what came of its claims; any: one confirmed claim is enough."""

    name: str
    text: str
    published: str | None
    verdict: HypothesisVerdict
    any: bool
    claims: list[ClaimAnswer]


@dataclass(frozen=True)
class PointRun:
    """A run of a point; reason: why it failed; warnings: how many its own page has."""

    repetition: int
    run: str
    state: Literal["complete", "failed"]
    reason: str | None
    order: int
    warnings: int | None
    doubts: tuple[Doubt, ...]


@dataclass(frozen=True)
class RestrictedMean:
    """The mean of the response times up to the shortest timeout, which is known whatever the true times are."""

    mean: Estimate
    up_to_ms: float


@dataclass(frozen=True)
class PointSummary:
    """All runs of a point together; counts are sums over them, figures by metric, doubts by how many runs have them."""

    id: str
    factors: Levels
    state: PointState
    planned: int
    complete: int
    failed: int
    causes: list[str]
    counts: dict[str, int]
    figures: dict[str, Estimate]
    restricted_mean: RestrictedMean | None
    doubts: dict[Doubt, int]
    runs: list[PointRun]


@dataclass(frozen=True)
class PublishedPoint:
    """A row of the published results: levels of factors, and figures by metric."""

    factors: Levels
    figures: dict[str, Estimate]


@dataclass(frozen=True)
class Progress:
    """How many runs of how many are complete, and how long the engine took between them.

    repeated_runs: earlier attempts at these runs, which no figure has; repeated_causes: why those of them failed.
    """

    points: int
    planned_runs: int
    complete_runs: int
    failed_runs: int
    states: dict[PointState, int]
    started_ms: float | None
    ended_ms: float | None
    engine_mean_ms: float | None
    engine_max_ms: float | None
    doubts: dict[Doubt, int]
    counts: dict[str, int]
    repeated_runs: int = 0
    repeated_causes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class LawCurve:
    """Points of the fitted scalability law."""

    loads: list[float]
    throughput: list[float]


@dataclass(frozen=True)
class ScalabilityLine:
    """How a rate grows over one factor while the others stay as they are."""

    over: str
    metric: str
    factors: Levels
    loads: list[float]
    knee: Knee | None
    usl: Usl | None
    curve: LawCurve | None


@dataclass(frozen=True)
class IndexBand:
    """5 %, median and 95 % of all users and repetitions, by the sample's index."""

    x: list[int]
    low: list[float]
    mid: list[float]
    high: list[float]


@dataclass(frozen=True)
class IndexCell:
    """The bands of one panel and row of a chart by index; `step` indices share a point."""

    panel: Value | None
    row: Value | None
    runs: int
    step: int
    timed_out: int
    bands: dict[str, IndexBand]
