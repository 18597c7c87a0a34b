"""Whether what JMeter counted by itself agrees with the rows that a run's figures are made of."""

from framestorm.model.summary import Audit, Summary
from framestorm.model.units import count, duration, percent

# Of what was in progress, and per sample: a sampler also works for a fraction of a millisecond, beside the wait.
MOST_RESIDUAL, MATTERS_MS = 0.05, 0.5


def disagreement(summary: Summary) -> list[str]:
    """Return the warning that the times of the rows are wrong; rows that are missing make a run partial."""
    audit = summary.facts.audit
    if audit is None or not _is_wrong(audit):
        return []
    return [
        f"The measurement is wrong, not the function: {_compared(audit)}, {percent(abs(audit.residual or 0))} apart. "
        "The load generator had no core left, a clock was set during the run, or a script set the times of samples. "
        "Do not use the times of this run."
    ]


def agreement(summary: Summary) -> list[str]:
    """Return the note that the rows are those of what was sent."""
    audit = summary.facts.audit
    if audit is None or audit.rows != audit.counted or _is_wrong(audit):
        return []
    text = f"Self-check: all {count(audit.counted)} samples that JMeter counted have a row"
    if audit.residual is None:
        return [f"{text}; how long they took cannot be checked."]
    apart = duration(abs(audit.apart_ms or 0))
    return [
        f"{text}; {audit.in_progress:.3g} were in progress on average, {audit.of_rows:.3g} by Little's law ({apart} a "
        "sample apart)."
    ]


def _compared(audit: Audit) -> str:
    return (
        f"by JMeter's own clock, {audit.in_progress:.3g} were in progress on average, and by Little's law, the rows' "
        f"rate times their mean response time, {audit.of_rows:.3g}"
    )


def _is_wrong(audit: Audit) -> bool:
    share, apart_ms = audit.residual, audit.apart_ms
    if share is None or apart_ms is None or audit.rows != audit.counted:
        return False
    return abs(share) > MOST_RESIDUAL and abs(apart_ms) > MATTERS_MS
