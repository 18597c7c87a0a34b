"""Thresholds: how much worse a metric may be before it counts as a regression, and what was shown of each."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from framestorm.comparison.contrast import Contrast, Missing
from framestorm.comparison.evidence import holm
from framestorm.comparison.metrics import find, metric
from framestorm.errors import UsageError

# A tenth is what separate runs on a quiet machine may differ by; a point of success is one failure in a hundred.
ALWAYS = "success 1 point"
DEFAULTS = ("mean 10 %", "median 10 %", "p95 10 %", ALWAYS)
EXAMPLES = "'mean 5 %', 'handler p95 10 %', 'success 1 point', 'rate 5 %'"
_FORM = re.compile(r"\s*(?P<metric>[a-z][\w ]*?)\s+(?P<limit>\d+(?:\.\d+)?)\s*(?P<unit>%|points?)\s*", re.IGNORECASE)
State = Literal["regression", "missing", "within", "undecided", "not compared"]


@dataclass(frozen=True)
class Threshold:
    """`limit`: by which share of the old figure, or of shares by which difference, a metric may be worse."""

    text: str
    metric: str
    limit: float


@dataclass(frozen=True)
class Judged:
    """A threshold and what it is about: one contrast, or why there is none."""

    threshold: Threshold
    label: str
    about: Contrast | Missing | None
    state: State

    def as_json(self) -> dict[str, Any]:
        """As it stands in comparison.json."""
        return {
            "threshold": self.threshold.text,
            "metric": self.threshold.metric,
            "limit": self.threshold.limit,
            "side": self.label,
            "point": self.about.point if self.about else None,
            "state": self.state,
            "why": self.why,
        }

    @property
    def why(self) -> str | None:
        """Why nothing is decided, or not what the interval alone would say."""
        if (
            self.state == "undecided"
            and isinstance(self.about, Contrast)
            and _excludes_within(self.threshold, self.about)
        ):
            return "alone it would be a regression, but not among so many judgements"
        if self.state not in {"missing", "not compared"}:
            return None
        return self.about.why if self.about else "the baseline has none"


def parse_all(texts: Sequence[str]) -> list[Threshold]:
    """The thresholds of a comparison; success is always among them, for times alone look better the more fail.

    Raises:
        UsageError: as `parse`.
    """
    given = [parse(text) for text in texts or DEFAULTS]
    success = parse(ALWAYS)
    return given if any(each.metric == success.metric for each in given) else [*given, success]


def parse(text: str) -> Threshold:
    """Read `metric limit unit`.

    Raises:
        UsageError: it is not understood; the message says what is allowed.
    """
    read = _FORM.fullmatch(text)
    if read is None:
        raise UsageError(f"--threshold {text!r}: a metric, a number and % or points are wanted, e.g. {EXAMPLES}")
    name, about = find(read["metric"]), metric(find(read["metric"]))
    if about.worse is None:
        raise UsageError(
            f"--threshold {text!r}: it is not known which way {read['metric']!r} gets worse; give a time (mean, "
            "median, p95, p99, also of handler, model or user), success or rate, or a study's metric that has a way"
        )
    if about.is_share == (read["unit"] == "%"):
        wanted = "points, e.g. 'success 1 point'" if about.is_share else "%, e.g. 'mean 5 %'"
        raise UsageError(f"--threshold {text!r}: {read['metric']} is compared in {wanted}")
    limit = float(read["limit"]) / 100
    if about.worse == "lower" and limit >= 1:
        raise UsageError(
            f"--threshold {text!r}: {read['metric']} cannot fall by 100 % or more, so nothing would be found"
        )
    return Threshold(" ".join(text.split()), name, limit)


def judge(
    thresholds: Sequence[Threshold], found: Sequence[tuple[str, Contrast]], missing: Sequence[tuple[str, Missing]] = ()
) -> list[Judged]:
    """Judge every contrast, given with its side's label, by every threshold on its metric; what is missing has no pass.

    A regression is a worsening beyond the threshold that the interval shows; that at most 2.5 % of all judgements like
    this one call a regression what is none, they are held together by Holm's procedure.
    """
    rows = [
        (each, label, contrast) for each in thresholds for label, contrast in found if contrast.metric == each.metric
    ]
    known = [row for row in rows if _scale(row[2]) in row[2].evidence]
    stands = holm([2 * _beyond(threshold, contrast) for threshold, _, contrast in known])
    regressions = {id(row) for row, stand in zip(known, stands, strict=True) if stand}
    judged = [
        Judged(row[0], row[1], row[2], "regression" if id(row) in regressions else _state(row[0], row[2]))
        for row in rows
    ]
    judged += [
        Judged(each, label, what, "missing")
        for each in thresholds
        for label, what in missing
        if what.metric == each.metric
    ]
    seen = {each.threshold.metric for each in judged}
    return judged + [Judged(each, "", None, "not compared") for each in thresholds if each.metric not in seen]


def _scale(contrast: Contrast) -> Literal["ratio", "difference"]:
    return "difference" if contrast.about.is_share else "ratio"


def _margin(threshold: Threshold, contrast: Contrast) -> float:
    worse = threshold.limit if contrast.about.worse == "higher" else -threshold.limit
    return worse if contrast.about.is_share else 1 + worse


def _beyond(threshold: Threshold, contrast: Contrast) -> float:
    """The p-value of no worsening beyond the threshold."""
    seen, margin = contrast.evidence[_scale(contrast)], _margin(threshold, contrast)
    return seen.above(margin) if contrast.about.worse == "higher" else seen.below(margin)


def _excludes_within(threshold: Threshold, contrast: Contrast) -> bool:
    """Whether the interval alone shows a worsening beyond the threshold."""
    low, high = contrast.evidence[_scale(contrast)].interval()
    margin = _margin(threshold, contrast)
    if contrast.about.worse == "higher":
        return low is not None and low > margin
    return high is not None and high < margin


def _state(threshold: Threshold, contrast: Contrast) -> State:
    seen = contrast.evidence.get(_scale(contrast))
    if seen is None:
        return "not compared"
    low, high = seen.interval()
    margin = _margin(threshold, contrast)
    if contrast.about.worse == "higher":
        return "within" if high is not None and high <= margin else "undecided"
    return "within" if low is not None and low >= margin else "undecided"
