"""One metric of one side against that of another: figures, difference, ratio, and what may be claimed of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from framestorm.comparison.evidence import Evidence, holm, two_sided
from framestorm.comparison.metrics import Metric, Worse, metric
from framestorm.statistics.effects import magnitude

Scale = Literal["ratio", "difference"]
NEUTRAL = {"ratio": 1.0, "difference": 0.0}
NONE_SHOWN = "no difference shown"
NOT_COMPARED = "not compared"
OPEN = "its interval is open to both sides, for too few samples or for time-outs"
TIME_CLAIMS = {"higher": "slower", "lower": "faster"}


@dataclass(frozen=True)
class Side:
    """A figure of one side; `is_bound`: the true one is larger, a time-out hides it; n: samples, runs: repetitions."""

    value: float
    is_bound: bool = False
    n: int = 0
    runs: int = 1


@dataclass(frozen=True)
class Missing:
    """A metric that the old side has and the new one has not; `why` says what there is instead."""

    metric: str
    why: str
    point: str | None = None


@dataclass(frozen=True)
class Contrast:
    """`new` against `old`; evidence by scale, none where nothing can be said; `why` says why not, or what to mind."""

    metric: str
    old: Side
    new: Side
    evidence: dict[Scale, Evidence]
    method: str
    point: str | None = None
    effect: float | None = None
    why: str | None = None
    # What is claimed of the new side's figure.
    direction: Worse | None = None
    # The ratio, where it is not that of the two figures: over repetitions it is that of geometric means.
    own_ratio: float | None = None

    @property
    def about(self) -> Metric:
        return metric(self.metric)

    @property
    def scale(self) -> Scale:
        """The scale on which claims are made."""
        has_ratio = self.value("ratio") is not None and ("ratio" in self.evidence or not self.evidence)
        return "ratio" if has_ratio and not self.about.is_share else "difference"

    @property
    def p_value(self) -> float | None:
        """Of no difference; None without an interval."""
        if self.is_open or self.scale not in self.evidence:
            return None
        return two_sided(self.evidence[self.scale], NEUTRAL[self.scale])

    @property
    def is_constant(self) -> bool:
        """Whether the two sides are the same without any spread, such as a rate that was asked of both."""
        ends = self.evidence[self.scale].interval() if self.scale in self.evidence else ()
        return ends == (NEUTRAL[self.scale], NEUTRAL[self.scale])

    @property
    def is_open(self) -> bool:
        """Whether there is an interval of which neither end is known."""
        return self.scale in self.evidence and self.evidence[self.scale].interval() == (None, None)

    def value(self, scale: Scale) -> float | None:
        if scale == "ratio" and self.own_ratio is not None:
            return self.own_ratio
        if scale == "ratio":
            return self.new.value / self.old.value if self.old.value > 0 and self.new.value > 0 else None
        return self.new.value - self.old.value

    @property
    def bound(self) -> str:
        """What is known of difference and ratio: they are exact, at least, at most, or not known to any side."""
        by_bounds = {(False, False): "exact", (False, True): "at least", (True, False): "at most"}
        return by_bounds.get((self.old.is_bound, self.new.is_bound), "unknown")

    def as_json(self) -> dict[str, Any]:
        """As it stands in comparison.json."""
        spans = {}
        for scale in ("difference", "ratio"):
            value, seen = self.value(scale), self.evidence.get(scale)
            low, high = seen.interval() if seen else (None, None)
            spans[scale] = None if value is None else {"value": value, "low": low, "high": high}
        figures = {
            name: {"value": s.value, "is_lower_bound": s.is_bound} for name, s in (("old", self.old), ("new", self.new))
        }
        return {
            "metric": self.metric,
            "words": self.about.words,
            "unit": self.about.unit,
            "point": self.point,
            **figures,
            "n": {"old": self.old.n, "new": self.new.n},
            "repetitions": {"old": self.old.runs, "new": self.new.runs},
            **spans,
            "scale": self.scale,
            "bound": self.bound,
            "p_value": self.p_value,
            "claim": self.claim,
            "is_worse": self.is_worse,
            "cliffs_delta": self.effect,
            "cliffs_words": magnitude(self.effect) if self.effect is not None else None,
            "method": self.method,
            "why": self.why,
        }

    @property
    def claim(self) -> str:
        """The claim in words."""
        if self.direction is None:
            return NOT_COMPARED if self.p_value is None else NONE_SHOWN
        return TIME_CLAIMS[self.direction] if self.about.is_time else self.direction

    @property
    def is_worse(self) -> bool | None:
        """Whether what is claimed is for the worse; None if nothing is, or neither way is worse."""
        if self.direction is None or self.about.worse is None:
            return None
        return self.direction == self.about.worse


def claimed(family: Sequence[Contrast]) -> list[Contrast]:
    """The contrasts with their claims; of all families like this one, at most 5 % hold any wrong claim (Holm).

    Constants do not count: of them no claim can be wrong.
    """
    known = [(each, p) for each in family if (p := each.p_value) is not None and not each.is_constant]
    stands = holm([p for _, p in known])
    ways = {id(each): _way(each) for (each, _), stand in zip(known, stands, strict=True) if stand}
    return [replace(each, direction=ways.get(id(each)), why=OPEN if each.is_open else each.why) for each in family]


def _way(contrast: Contrast) -> Worse:
    seen, neutral = contrast.evidence[contrast.scale], NEUTRAL[contrast.scale]
    return "higher" if seen.above(neutral) < seen.below(neutral) else "lower"
