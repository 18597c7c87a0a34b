"""Warnings about hosts and replicas: lost, saturated, held up, unlike each other, or with a wrong clock."""

import math
from collections.abc import Sequence

import polars as pl

from framestorm.model.summary import Machine, Summary
from framestorm.model.units import core_count, count, duration, listed, percent, plural
from framestorm.results.hosts import BUSY_SHARE, share_text
from framestorm.results.table import height

BUSY_TIME = 0.2  # of the run
OTHERS, OTHER_WORK_CORES = "other processes", 0.2
# What it means, and what helps: on a generator, and on another host of a distributed run by its role.
SATURATED_GENERATOR = (
    "Response times measured there include waiting for a core, so they describe this machine more than the function.",
    "use fewer users or more machines",
)
SATURATED = {
    "master": (
        "Slaves may have waited to deliver their samples, so less load may have been sent than configured; response "
        "times are measured on the slaves.",
        "give the master more cores, or use fewer users",
    ),
    "target": (
        "The function had to wait for a core: the figures describe the function on this saturated machine.", "",
    ),
}  # fmt: skip
HOSTS_DIFFER = 1.25  # times the median of the fastest host
CLOCK_OFFSET_MS = 50.0
CLOCK_SLACK_MS = 1000.0
NAMED_STALLS = 3


def _since_start(summary: Summary, at_s: float) -> str:
    """Return a moment as people read it: how long after the start of the load, or before it."""
    after_ms = 1000 * (at_s - summary.load_start_s)
    return f"{duration(abs(after_ms))} {'before' if after_ms < 0 else 'after'} the start of the load"


def losses(summary: Summary) -> list[str]:
    sentences = []
    for loss in summary.losses:
        reason = f" ({loss.reason})" if loss.reason else ""
        share = share_text(loss.share) or "not known"
        last = f"No {summary.unit} of this host arrived."
        if loss.last_sample_s is not None:
            last = f"Its last {summary.unit} that arrived started at {_since_start(summary, loss.last_sample_s)}."
        sentences.append(
            f"{loss.host} was lost {_since_start(summary, loss.at_s)}{reason}: its share of it, {share}, was missing "
            f"from then on. {last} Throughput and times after the loss describe the smaller load; figures of the "
            "whole run mix both."
        )
    return sentences


def replicas(summary: Summary) -> list[str]:
    if not summary.functions and any(file.path == "metrics.csv" for file in summary.files):
        return ["metrics.csv has no figures from the time of the load: what the replicas did is not known."]
    sentences = []
    for each in summary.functions:
        ends: list[tuple[int, str]] = []
        for one in each.ended:
            why = "was killed because it used more memory than its limit" if one.reason == "OOMKilled" else "ended"
            lost = f"{plural(one.failed, summary.unit)} in progress then failed" if one.failed else "none failed then"
            sentences.append(
                f"{one.name} of {each.function} {why} ({one.reason}, exit status {one.exit_status}) "
                f"{_since_start(summary, one.at_s)}: {lost}."
            )
        sentences += [
            f"Node {outage.node}, which had replicas of {each.function}, was not ready for "
            f"{duration(outage.length_s * 1000)}, from {_since_start(summary, outage.at_s)} on. A cluster "
            "notices that a node is gone only some 40 s later: its replicas may have answered nothing since before "
            "then."
            for outage in each.node_outages
        ]
        for group in each.vanished:
            names = "" if group.replicas < len(group.names) else f" ({', '.join(group.names)})"
            ends.append((group.replicas, f"{names} ended {_since_start(summary, group.at_s)}"))
        named = sum(group.replicas for group in each.vanished) + len(each.ended)
        ends.append((each.lost - named, " ended between two measurements"))
        sentences += [
            f"{plural(n, 'replica')} of {each.function}{when} without being scaled down. Requests in progress there "
            "were lost, and the other replicas had to take the load until there was a new one."
            for n, when in ends
            if n > 0
        ]
        if each.short_s:
            worst = each.short_worst
            at_worst = f", at worst {count(worst.ready)} of {count(worst.wanted)}" if worst else ""
            sentences.append(
                f"{each.function} had fewer replicas ready than wanted for {duration(each.short_s * 1000)} of the "
                f"load{at_worst}: times and throughput of that part describe a smaller deployment than configured."
            )
    return sentences


def is_saturated(machine: Machine) -> bool:
    return machine.busy_time is not None and machine.busy_time >= BUSY_TIME


def saturation(summary: Summary) -> list[str]:
    machines, run = summary.machines, summary.run
    if not machines and run.source:
        return ["A JTL has no figures of machines: it is not known whether the load generator was the bottleneck."]
    if not machines:
        return ["resources.csv is missing or empty: it is not known whether the load generator was the bottleneck."]
    sentences = []
    measured = {machine.host for machine in machines if machine.part == "host"}
    unmeasured = [host.name for host in run.hosts if host.role in ("slave", "target") and host.name not in measured]
    if unmeasured:
        sentences.append(
            f"resources.csv has no figures of {listed(unmeasured)}: it is not known whether the bottleneck was there."
        )
    # By what is said of them: the pods of a cluster, and slaves that are too small, all say the same.
    saturated: dict[tuple[str, tuple[str, ...], float | None], list[tuple[Machine, list[float]]]] = {}
    for machine in machines:
        if machine.busy_time is None:
            continue
        host = run.host(machine.host)
        role = host.role if host else ""
        used = {f"the {m.part}": m.cores_mean for m in machines if m.host == machine.host and m.part != "host"}
        parts, rest = tuple(used), machine.cores_mean - sum(used.values())
        if has_others := bool(parts) and rest > OTHER_WORK_CORES:
            used[OTHERS] = rest
        if is_saturated(machine):
            meaning, remedy = SATURATED.get(role, SATURATED_GENERATOR)
            if has_others:
                # Fewer users would not help where others take most of the machine.
                are_most = rest > machine.cores_mean / 2
                remedy = "stop the other processes" + (f", {remedy}" if remedy and not are_most else "")
            advice = f" {remedy[:1].upper()}{remedy[1:]}." if remedy else ""
            alike = (f"{meaning}{advice}", tuple(used), machine.cores)
            saturated.setdefault(alike, []).append((machine, [*used.values()]))
        elif role == "generator and target" and parts:
            sentences.append(
                f"Generator and target shared {machine.host}{_on_average([*used], [[*used.values()]])}. The machine "
                "was not saturated, but the two compete for caches and cores. For figures to publish, run the target "
                "on a machine of its own."
            )
    for (meaning, parts, cores), found in saturated.items():
        names = listed([machine.host for machine, _ in found])
        its = core_count(cores or 0)
        were, the_cores = ("was", f"its {its}") if len(found) == 1 else ("were", f"the {its} of each")
        busy = _span([percent(each) for each in sorted(machine.busy_time or 0.0 for machine, _ in found)])
        use = _on_average(parts, [cores_mean for _, cores_mean in found])
        sentences.append(
            f"{names} {were} saturated: at least {100 * BUSY_SHARE:g} % of {the_cores} were busy for {busy} of the "
            f"run{use}. {meaning}"
        )
    return sentences


def _span(texts: Sequence[str]) -> str:
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"


def _on_average(parts: Sequence[str], of_machines: Sequence[Sequence[float]]) -> str:
    """Return how many cores each part used on each machine, in words; empty without parts."""
    spans = [_span([f"{cores:.2f}" for cores in sorted(column)]) for column in zip(*of_machines, strict=True)]
    uses = [
        f"{part} {cores}" if part == OTHERS else f"{part} used {cores} cores"
        for part, cores in zip(parts, spans, strict=True)
    ]
    return f" ({listed(uses)} on average)" if uses else ""


def stalls(summary: Summary) -> list[str]:
    stalls, during = summary.facts.stalls, summary.facts.during_stalls
    if not during:
        return []
    worst = sorted(stalls, key=lambda stall: -stall.longest_ms)[:NAMED_STALLS]
    places = [
        f"{max(0.0, stall.at_s - summary.load_start_s):.0f} s" for stall in sorted(worst, key=lambda each: each.at_s)
    ]
    of_all = "the longest " if len(stalls) > len(worst) else ""
    longest_ms = max(stall.longest_ms for stall in stalls)
    gc_ms = sum(stall.gc_ms for stall in stalls)
    by_memory = f" Java's garbage collection took {duration(gc_ms)} in all." if gc_ms else ""
    were = "was" if during == 1 else "were"
    # Pauses are those of the whole run: the samples that --steady leaves out count too.
    share = percent(during / (summary.main.n + summary.facts.left_out))
    n = summary.main.errors_in_bursts
    errors = f" Requests that it sent late, and then together, may have caused {plural(n, 'error')}." if n else ""
    return [
        f"JMeter paused during {_seconds_of_load(summary)}, for {duration(longest_ms)} at most ({of_all}"
        f"{listed([*dict.fromkeys(places)])} after the start of the load).{by_memory} {plural(during, summary.unit)} "
        f"({share}) {were} in progress then: their times may include the pause.{errors} "
        "Give JMeter free cores, or use more slaves."
    ]


def _seconds_of_load(summary: Summary) -> str:
    """Return how many of the load's seconds had a stall."""
    n, load = len(summary.facts.stalls), summary.load
    of = math.ceil(load.duration_ms / 1000) if load else 0
    return f"{count(n)} of the {plural(of, 'second')} of the load" if of > n else f"{plural(n, 'second')} of the load"


def hosts_differ(summary: Summary) -> list[str]:
    """A warning if the intervals of two hosts' medians do not overlap: a function does not know which host sends."""
    medians = {host.host: host.p50 for host in summary.hosts if host.p50 and host.p50.low is not None}
    if len(medians) < 2:
        return []
    fast, *_, slow = sorted(medians, key=lambda host: medians[host].value)
    least, most = medians[fast], medians[slow]
    if least.high is None or most.low is None or most.low <= least.high or most.value < HOSTS_DIFFER * least.value:
        return []
    return [
        f"The median response time was {duration(most.value)} on {slow} and {duration(least.value)} on {fast}: unless "
        f"they sent different data, {slow} or its network, not the function, makes the difference. Compare the rows of "
        "the hosts, and use slaves that are alike and equally near to the function."
    ]


def clocks(summary: Summary, samples: pl.LazyFrame) -> list[str]:
    run, label = summary.run, summary.unit
    sentences = [
        f"The clock of {host.name} was off by {duration(host.clock_offset_ms)}: durations are right, but its "
        "samples are at wrong times in the charts over time."
        for host in run.hosts
        if abs(host.clock_offset_ms) > CLOCK_OFFSET_MS
    ]
    if abs(run.clock_step_ms) > CLOCK_OFFSET_MS:
        sentences.append(
            f"The clock of the machine that made the run was set by {duration(run.clock_step_ms)} meanwhile: response "
            "times are right, but throughput, other rates and charts over time are not."
        )
    negative = height(samples.filter(pl.col("rtt_ms") < 0))
    if negative:
        sentences.append(
            f"The response time of {plural(negative, label)} is negative: a clock ran backwards. Do not use these "
            "figures."
        )
    if run.started_ms is not None and run.ended_ms is not None:
        during = pl.col("start_ms").is_between(run.started_ms - CLOCK_SLACK_MS, run.ended_ms + CLOCK_SLACK_MS)
        # What has no time has a warning of its own.
        outside = height(samples.filter(~during))
        if outside:
            sentences.append(f"{plural(outside, label)} started before or after the run: a clock was set or is wrong.")
    return sentences
