"""Warnings that the load was not the one that was asked for."""

import math
from itertools import pairwise

from framestorm.model.overload import MOSTLY
from framestorm.model.series import Curves
from framestorm.model.summary import Reached, Summary
from framestorm.model.units import as_number, count, duration, listed, percent, plural
from framestorm.report.trust.machines import is_saturated

REACHED = 0.95  # of the users that were asked for
FULL_MEMORY = 0.9


def stopped(summary: Summary) -> list[str]:
    if summary.facts.stopped_by is None:
        return []
    return [
        f"The plan itself stopped the test ({summary.facts.stopped_by}): the load may be shorter than configured. A "
        "Thread Group does so after an error if it is set to, as do scripts and Flow Control Actions; see jmeter.log."
    ]


def arrivals(summary: Summary) -> list[str]:
    due, dropped = summary.facts.arrivals, summary.facts.dropped
    if due is None or not dropped:
        return []
    limit, in_flight = summary.run.properties.get("concurrency_limit", ""), summary.series.in_flight
    name = f"concurrency_limit={limit}" if limit else "the thread group's concurrency limit"
    why = f"all threads that {name} allows were waiting for an answer"
    advice = "Raise the limit, or read the throughput as what the function handles with that many requests in progress."
    # Taken by an arrival, and not sending yet.
    if limit.isdecimal() and in_flight and in_flight.most < int(limit):
        why = (
            f"all threads that {name} allows were taken, but at most {count(in_flight.most)} of them were waiting for "
            "an answer, so the load generator, not the function, was too slow"
        )
        advice = "Give JMeter free cores, lower the rate, or use more slaves."
    elif (overload := summary.facts.overload) and overload.is_held_by_failures:
        advice = "Find the cause of the errors first: more threads would wait for such requests too."
    were = "was" if dropped == 1 else "were"
    return [
        f"{count(dropped)} of {plural(due, 'arrival')} {were} dropped: {why}. The configured rate was not offered; "
        f"success rate and times are of what was sent: {plural(summary.main.n, summary.unit)}. {advice}"
    ]


def schedules(summary: Summary) -> list[str]:
    """Return each schedule that was not kept, with the reasons; dropped arrivals have a warning of their own."""
    return [
        _of_schedule(reached, summary)
        for reached in summary.reached
        if not reached.is_kept and not (reached.dropped and abs(reached.asked - reached.sent - reached.dropped) <= 2)
    ]


def _of_schedule(reached: Reached, summary: Summary) -> str:
    asked = f"{reached.name!r} ({reached.kind}) asked for {plural(round(reached.asked), 'arrival')}"
    if not reached.sent:
        return f"{asked}, and none was sent: see jmeter.log. No figure describes this part of the plan."
    rates = ""
    if reached.span_s > 0:
        rates = f" ({reached.asked / reached.span_s:.3g}/s and {reached.sent / reached.span_s:.3g}/s)"
    sent = f"{asked} in {duration(1000 * reached.span_s)}, and {count(reached.sent)} were sent{rates}"
    if reached.burst:
        sent += f", of them {count(reached.burst)} within a second in which {reached.burst_due:.3g} were due"
    if reached.sent > reached.asked and not reached.burst and reached.kind == "VariableThroughputTimer":
        return f"{sent}: the timer sends whole samples in each second, 3 for 2.5. Use rates that are whole numbers."
    reasons = _why_fewer_arrivals(reached, summary) if reached.sent < reached.asked else []
    why = listed(reasons) if reasons else "the reason is not known; jmeter.log may have it"
    return f"{sent}: {why}. All figures describe the load that was sent."


def _why_fewer_arrivals(reached: Reached, summary: Summary) -> list[str]:
    reasons = []
    if summary.losses:
        reasons.append(f"{listed([loss.host for loss in summary.losses])} was lost")
    generators = {host.name for host in summary.run.hosts if host.role != "target"}
    reasons += [
        f"{each.host} had no core left for the load generator"
        for each in summary.machines
        if each.host in generators and is_saturated(each)
    ]
    if reached.limit and reached.each_s:
        most_per_s = reached.limit / reached.each_s
        if most_per_s < reached.most_per_s / REACHED:
            needed = math.ceil(reached.most_per_s * reached.each_s * 1.1)
            advice = f"; for {reached.most_per_s:.3g}/s it needs about {plural(needed, 'thread')}"
            if reached.failed_s >= MOSTLY * reached.each_s:
                advice = f", {percent(reached.failed_s / reached.each_s)} of that time for samples that failed"
            reasons.append(
                f"its {plural(reached.limit, 'thread')} can send {most_per_s:.3g}/s at most, as a thread waits "
                f"{duration(1000 * reached.each_s)} (mean) for its answers before it sends again{advice}"
            )
    if reached.span_s - reached.last_s > max(1.0, 3 * reached.span_s / max(reached.asked, 1)):
        reasons.append(
            f"the last was sent {duration(1000 * reached.last_s)} after the first: the thread group ended before the "
            "schedule did (its loops, its duration or errors)"
        )
    elif reached.short_s and reached.short_until_s <= max(5, reached.span_s / 3):
        reasons.append(f"too few were sent in the first {reached.short_until_s} s only, while threads were started")
    if reached.failed > reached.sent / 10:
        reasons.append(f"{plural(reached.failed, 'sample')} of its thread group failed")
    return reasons


def users(summary: Summary) -> list[str]:
    for each in (summary.series.threads, summary.series.in_flight):
        asked = round(_most_in_a_second(each.asked)) if each and each.asked else 0
        if each and each.most < REACHED * asked:
            return [
                f"{plural(asked, 'user')} at the same time were asked for, and at most {count(each.most)} were "
                f"reached: {_why_fewer_users(summary)}. All figures describe the smaller load."
            ]
    return []


def _most_in_a_second(asked: Curves) -> float:
    """Return the most users that are asked for during a whole second: a peak that is shorter may have no sample."""
    corners = [(x, y) for x, y in zip(asked["x"], asked["y"], strict=True) if x is not None and y is not None]
    levels = [
        max(y, next_y) - abs(next_y - y) / (next_x - x)
        for (x, y), (next_x, next_y) in pairwise(corners)
        if next_x - x >= 1
    ]
    return max(levels, default=0)


def _why_fewer_users(summary: Summary) -> str:
    run, main = summary.run, summary.users
    generators = [host.name for host in run.hosts if host.role != "target"]
    hosts = [machine for machine in summary.machines if machine.part == "host" and machine.host in generators]
    reasons = [f"{each.host} had no core left to start more" for each in hosts if is_saturated(each)]
    for each in hosts:
        host = run.host(each.host)
        if host and host.memory_bytes and each.rss_max_bytes > FULL_MEMORY * host.memory_bytes:
            reasons.append(f"the memory of {each.host} was full")
    if summary.facts.out_of_memory:
        reasons.append(f"JMeter's log says {summary.facts.out_of_memory}")
    if summary.losses:
        reasons.append(f"{listed([loss.host for loss in summary.losses])} was lost")
    ramp_ms = 1000 * (as_number(run.properties.get("ramp_s")) or 0)
    if summary.load and summary.load.duration_ms < ramp_ms:
        reasons.append(f"the load was over after {duration(summary.load.duration_ms)}, before ramp_s had passed")
    if not reasons and main and "duration" in main.times and main.times["duration"].p50 and summary.load:
        started_per_s = main.n / summary.load.duration_ms * 1000
        reasons.append(
            f"a user took {duration(main.times['duration'].p50.value)} (median), and only {started_per_s:.3g} per "
            "second were started"
        )
    return listed(reasons) if reasons else "the reason is not known; jmeter.log may have it"
