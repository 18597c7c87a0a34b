"""Whether what JMeter counted by itself agrees with the rows that a run's figures are made of."""

from framestorm.model.summary import SelfCheck, Summary
from framestorm.model.units import count, duration, percent

# Of what was in progress, and per sample: a sampler also works for a fraction of a millisecond, beside the wait.
MOST_RESIDUAL, MATTERS_MS = 0.05, 0.5
# Of all samples together: the first ones also load classes, and one that fails before it begins has no time in its
# row.
MATTERS_IN_ALL_MS = 100


def disagreement(summary: Summary) -> list[str]:
    """Return the warning that the times of the rows are wrong; rows that are missing make a run partial."""
    check = summary.facts.self_check
    if check is None or not _is_wrong(check):
        return []
    return [
        f"The measurement is wrong, not the function: {_compared(check)}, {percent(abs(check.residual or 0))} apart. "
        "The load generator had no core left, a clock was set during the run, or a script set the times of samples. "
        "Do not use the times of this run."
    ]


def agreement(summary: Summary) -> list[str]:
    """Return the note that the rows are those of what was sent."""
    check = summary.facts.self_check
    if check is None or check.rows != check.counted or _is_wrong(check):
        return []
    have = "sample that JMeter counted has a row" if check.counted == 1 else "samples that JMeter counted have a row"
    text = f"Self-check: {'the' if check.counted == 1 else 'all'} {count(check.counted)} {have}"
    if check.residual is None:
        return [f"{text}; how long they took cannot be checked."]
    apart = duration(abs(check.apart_ms or 0))
    return [
        f"{text}; {check.in_progress:.3g} were in progress on average, {check.of_rows:.3g} by Little's law ({apart} a "
        "sample apart)."
    ]


def _compared(check: SelfCheck) -> str:
    return (
        f"by JMeter's own clock, {check.in_progress:.3g} were in progress on average, and by Little's law, the rows' "
        f"rate times their mean response time, {check.of_rows:.3g}"
    )


def _is_wrong(check: SelfCheck) -> bool:
    share, apart_ms = check.residual, check.apart_ms
    if share is None or apart_ms is None or check.rows != check.counted:
        return False
    in_all_ms = abs(apart_ms) * check.counted
    return abs(share) > MOST_RESIDUAL and abs(apart_ms) > MATTERS_MS and in_all_ms > MATTERS_IN_ALL_MS
