"""comparison.json: every number of the page of a comparison."""

from dataclasses import dataclass, field
from typing import Literal

from framestorm.model.files import FORMAT
from framestorm.model.metric import Metric, metric
from framestorm.model.run import Kit, Undecided
from framestorm.stats.evidence import Scale

Bound = Literal["exact", "at least", "at most", "unknown"]
ChangeWord = Literal["slower", "faster", "higher", "lower", "no significant difference", "not compared"]
ThresholdState = Literal["regression", "missing", "within", "inconclusive", "not compared"]
ComparisonWord = Literal["regression", "missing", "none", "inconclusive"]
NEUTRAL: dict[Scale, float] = {"ratio": 1.0, "difference": 0.0}
NOT_SIGNIFICANT: ChangeWord = "no significant difference"
NOT_COMPARED: ChangeWord = "not compared"


@dataclass(frozen=True)
class SideFigure:
    """A figure of one side, from n samples in all repetitions; a lower bound if a timeout hides the true figure."""

    value: float
    is_lower_bound: bool = False
    n: int = 0
    repetitions: int = 1


@dataclass(frozen=True)
class Change:
    """The ratio or difference of candidate to baseline, with its 95 % confidence interval."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Contrast:
    """One metric of a candidate compared with the baseline, over all points or at `point`, and the claim about it.

    scale: that of the claim; bound: what is known about ratio and difference if timeouts hide a figure.
    is_worse: None if nothing is claimed, or neither direction is worse. why: why it was not compared, or a caution.
    """

    metric: str
    point: str | None
    baseline: SideFigure
    candidate: SideFigure
    difference: Change | None
    ratio: Change | None
    scale: Scale
    bound: Bound
    p_value: float | None
    claim: ChangeWord
    is_worse: bool | None
    cliffs_delta: float | None
    cliffs_magnitude: str | None
    method: str
    why: str | None

    @property
    def about(self) -> Metric:
        """The metric from the catalogue."""
        return metric(self.metric)

    @property
    def change(self) -> Change | None:
        """The ratio or difference, on the scale of the claim."""
        return self.ratio if self.scale == "ratio" else self.difference


@dataclass(frozen=True)
class JudgedThreshold:
    """A threshold and its result; `limit` is a share of the baseline's figure, or for shares a difference.

    text: the interval in words, or why there is none. needed: how much data would decide one that is not decided.
    """

    threshold: str
    metric: str
    limit: float
    side: str
    point: str | None
    state: ThresholdState
    why: str | None
    text: str
    needed: str | None = None

    @property
    def is_undecided(self) -> bool:
        """Whether the check has no verdict, for lack of data or of a comparison."""
        return self.state in {"inconclusive", "not compared"}


@dataclass(frozen=True)
class ComparisonVerdict:
    """The result of the comparison: one word, run.sh's exit status, and a sentence."""

    word: ComparisonWord
    exit_status: int
    text: str


@dataclass(frozen=True)
class Link:
    """A run or study and the path of its page from here."""

    name: str
    path: str


@dataclass(frozen=True)
class ComparedSide:
    """One side: its letter and name, its runs or its study, how much data it has, and cautions.

    is_overloaded: a run of it was, so that its times are those of a queue.
    """

    label: str
    name: str
    parts: list[Link]
    extent: str
    warnings: list[str]
    is_overloaded: bool = False


@dataclass(frozen=True)
class DifferentSetting:
    """A setting whose values differ; if one side has several values, its runs or points differ."""

    name: str
    baseline: tuple[str, ...]
    candidate: tuple[str, ...]


@dataclass(frozen=True)
class SideComparison:
    """A candidate against the baseline, each by its letter.

    answers: the main metrics in sentences. overall: one contrast per metric; points: one per metric and shared point.
    pairs: what was compared in pairs.
    """

    label: str
    against: str
    answers: list[str]
    changes: list[DifferentSetting]
    warnings: list[str]
    overall: list[Contrast]
    points: list[Contrast]
    shared: list[str]
    only_baseline: list[str]
    only_candidate: list[str]
    pairs: Literal["repetition", "point"] | None


@dataclass(frozen=True)
class Curve:
    """Share of all samples of a side that ended without error within a time; the others timed out or failed.

    untimed: those without error whose time is not known.
    """

    label: str
    x_ms: list[float]
    share: list[float]
    n: int
    timed_out: int
    failed: int
    untimed: int = 0


@dataclass(frozen=True)
class Comparison:
    """The content of comparison.json; the first side is the baseline of all others.

    undecided: whether checks that could not be decided fail the comparison. subject: what the baseline measured, by a
    name that stays: the run's title or plan, or the study.
    """

    of: Literal["runs", "studies", "levels"]
    kit: Kit
    made_ms: float
    command: tuple[str, ...]
    verdict: ComparisonVerdict
    sides: list[ComparedSide]
    comparisons: list[SideComparison]
    thresholds: list[JudgedThreshold]
    curves: list[Curve]
    factor: str | None = None
    study: str | None = None
    undecided: Undecided = "pass"
    subject: str = ""
    format: int = field(default=FORMAT, kw_only=True)
    kind: Literal["comparison"] = field(default="comparison", kw_only=True)
