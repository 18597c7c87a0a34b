"""The thresholds of a comparison: what counts as a regression, as people write it."""

import re
from collections.abc import Sequence

from framestorm.compare.sides import Sides
from framestorm.errors import UsageError
from framestorm.judge.contrasts import Threshold
from framestorm.model.criteria import DIGITS
from framestorm.model.metric import Worse, metric, quoted, split_label
from framestorm.model.study import catalogue_name

# Separate runs on a quiet machine may differ by a tenth; a percentage point of success is one error in a hundred.
ALWAYS = "success 1 point"
DEFAULTS = ("mean 10 %", "median 10 %", "p95 10 %", ALWAYS)
EXAMPLES = "'mean 5 %', 'handler p95 10 %', 'login p95 10 %', 'success 1 point', 'chat tokens mean -5 %'"
SIGNS: dict[str, Worse] = {"+": "higher", "-": "lower"}
_FORM = re.compile(
    rf"\s*(?P<metric>\S.*?)\s+(?P<sign>[+-]?)(?P<limit>{DIGITS})\s*(?P<unit>%|points?)\s*", re.IGNORECASE
)


def check_measured(thresholds: Sequence[Threshold], sides: Sides) -> None:
    """Check that the metrics to be judged were measured."""
    for threshold in thresholds:
        if any(side.has(threshold.metric) for side in sides):
            continue
        label, name = split_label(threshold.metric)
        names = {each for side in sides for each in side.metrics_of(label)}
        what = f"there is no {name}" + (f" of {quoted(label)}" if label is not None else "")
        there = sorted(each for each in names if (about := metric(each)).worse is not None or about.series is not None)
        if label is not None and not names:
            what = f"there is no label {quoted(label)}"
            there = sorted(quoted(each) for each in {each for side in sides for each in side.labels()})
        raise UsageError(f"--threshold: {what}; there are {', '.join(there) or 'none'}")


def thresholds_of(texts: Sequence[str], sides: Sides) -> list[Threshold]:
    """The thresholds of a comparison; success is always one, because times alone look better the more samples fail."""
    mains = {side.main_label for side in sides}
    chosen = [
        each for text in texts or DEFAULTS for each in parse_threshold(text, min(mains) if len(mains) == 1 else "")
    ]
    success = parse_threshold(ALWAYS)
    return chosen if any(each.metric == success[0].metric for each in chosen) else [*chosen, *success]


def parse_threshold(text: str, main_label: str = "") -> tuple[Threshold, ...]:
    """Read `metric [sign]limit unit`: by how much a metric of the candidate may differ before it is a regression.

    Without a sign it is by how much it may be worse; of a metric that is not known to be worse in one direction, two
    thresholds: it may neither rise nor fall by more.

    Raises:
        UsageError: it is not valid; the message says what is allowed.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"--threshold {text!r}: expected a metric, a number and % or points, e.g. {EXAMPLES}")
    about = metric(catalogue_name(match["metric"], main_label=main_label))
    if about.is_share == (match["unit"] == "%"):
        unit = "points, e.g. 'success 1 point'" if about.is_share else "%, e.g. 'mean 5 %'"
        raise UsageError(f"--threshold {text!r}: {match['metric']} is compared in {unit}")
    limit = float(match["limit"]) / 100
    worse = SIGNS.get(match["sign"], about.worse)
    if worse == "lower" and limit >= 1:
        raise UsageError(
            f"--threshold {text!r}: {match['metric']} cannot fall by 100 % or more, so it would never be a regression"
        )
    words = " ".join(text.split())
    if worse is not None:
        return (Threshold(words, about.name, limit, worse),)
    return tuple(
        Threshold(f"{match['metric']} {sign}{match['limit']} {match['unit']}", about.name, limit, worse)
        for sign, worse in SIGNS.items()
        if worse == "higher" or limit < 1
    )
