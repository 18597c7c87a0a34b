"""The warning that a function did not keep up with a load that comes by a schedule, and with what it is to be read."""

from framestorm.model.overload import Overload
from framestorm.model.summary import Summary
from framestorm.model.units import count, duration, listed, percent, plural, rate
from framestorm.plain import as_label

# Times the shortest response times: what takes longer has waited for others.
WAITS = 2.0
MOST_NAMES = 6


def overload(summary: Summary) -> list[str]:
    found = summary.facts.overload
    return [f"{why(found, summary.unit)} {_advice(found)}"] if found and found.signs else []


def why(overload: Overload, unit: str) -> str:
    """Return what happened, as a sentence or two; that of the failed criterion."""
    asked, answered = rate(overload.asked_per_s), rate(overload.answered_per_s)
    of_one, with_one = (f" of {overload.name!r}", f" with {overload.name!r}") if overload.name else ("", "")
    who = f"The load{of_one} was not answered"
    if overload.generator:
        who += ", and the load generator may be to blame"
    elif _is_of_function(overload):
        who = f"The function did not keep up{with_one}"
    signs = [_sign(sign, overload, unit) for sign in overload.signs]
    of_queue = overload.signs == ["queued"]
    parts = [f"{who}: {signs.pop(0)}" if of_queue else f"{who}: asked {asked}, answered {answered}", *signs]
    if overload.is_held_by_failures:
        parts.append(f"{percent(overload.failed_share)} of that time was for requests that failed")
    elif "unsent" in overload.signs and _waits(overload) and overload.least_ms is not None:
        parts.append(f"response times rose from {duration(overload.least_ms)} to {_typical(overload)} (median)")
    text = f"{'; '.join(parts)}."
    return f"{text} {overload.generator}." if overload.generator else text


def _sign(sign: str, overload: Overload, unit: str) -> str:
    if sign == "backlog":
        text = f"up to {count(overload.in_flight)} {unit}s waited, and response times grow with the length of the run"
        if overload.before_ms is not None and overload.after_ms is not None:
            means = f"{duration(overload.before_ms)} in the first half, {duration(overload.after_ms)} in the second"
            text += f" (mean: {means})"
        return text
    if sign == "timed_out":
        were = "waited until it" if overload.timed_out == 1 else "waited until they"
        return f"{plural(overload.timed_out, unit)} {were} timed out"
    if sign == "refused":
        was = "was" if overload.refused == 1 else "were"
        return f"{plural(overload.refused, unit)} {was} refused (status 429 or 503), which are failures"
    if sign == "queued" and (queue := overload.queue):
        rates = f"{rate(queue.accepted_per_s)} accepted (status 202), {rate(queue.done_per_s)} done"
        return f"{rates}, so its queue grew by about {plural(round(queue.grew), unit)}"
    threads = f"all {count(overload.limit)} threads" if overload.limit else "all threads"
    threads = "its only thread" if overload.limit == 1 else threads
    if overload.is_paced:
        was = "was" if overload.unsent == 1 else "were"
        return f"{plural(overload.unsent, unit)} fewer {was} sent than due, as {threads} waited for answers"
    were = "was" if overload.unsent == 1 else "were"
    return f"{plural(overload.unsent, 'arrival')} {were} dropped, as {threads} waited for answers"


def accepted(summary: Summary) -> list[str]:
    """Return a note on answers that say that the work is still to be done."""
    of_label = summary.facts.accepted
    n, names = sum(of_label.values()), [f"{as_label(label)} {count(of)}" for label, of in of_label.items()]
    if not n:
        return []
    more = [f"{count(len(names) - MOST_NAMES)} more labels"] if len(names) > MOST_NAMES + 1 else []
    shown = listed([*names[: MOST_NAMES if more else None], *more])
    its = "its response time is that" if n == 1 else "their response times are those"
    return [
        f"{plural(n, 'sample')} got status 202 ({shown}), which means accepted, not done: {its} of acceptance. How "
        "long the work takes, and how much of it waits, is not in these figures: a function has to report it."
    ]


def _is_of_function(overload: Overload) -> bool:
    return overload.signs != ["unsent"] or (_waits(overload) and not overload.is_held_by_failures)


def _waits(overload: Overload) -> bool:
    """Return whether requests wait for each other: most take much longer than the fastest."""
    least, typical = overload.least_ms, overload.typical_ms
    return least is not None and typical is not None and typical >= WAITS * least


def _typical(overload: Overload) -> str:
    return duration(overload.typical_ms or 0.0)


def _advice(overload: Overload) -> str:
    if overload.signs == ["queued"]:
        return (
            "Response times are those of acceptance, and what is accepted waits longer and longer. Send less, or give "
            "the function more replicas or queue workers; --accept-overload lets such a run pass."
        )
    if overload.generator:
        return "Give JMeter free cores, or use more slaves, and repeat the run."
    if overload.is_held_by_failures:
        return (
            f"Requests that failed took {duration(overload.failed_ms or 0.0)} each (mean): find the cause of these "
            "errors first. More threads would wait for them too."
        )
    if not _is_of_function(overload):
        threads = "users" if overload.is_paced else "threads (the concurrency limit)"
        return (
            f"Each answer takes {_typical(overload)}, as the fastest do: give the load more {threads}, which "
            "the function may answer."
        )
    words = []
    if "backlog" in overload.signs:
        words.append("response times describe the length of the run, and not the function")
    if "unsent" in overload.signs:
        words.append("response times are those of the requests that were sent")
    meaning = f"{listed(words)[:1].upper()}{listed(words)[1:]}. " if words else ""
    return (
        f"{meaning}The answered rate is what the function can do. Lower the rate, or give the function more replicas, "
        "workers or cores; --accept-overload lets such a run pass."
    )
