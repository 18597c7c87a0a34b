"""Warnings that figures may not describe the function alone: each says why, by how much, and what to do."""

import re
from dataclasses import replace
from typing import get_args

import polars as pl

from framestorm.model.criteria import USER
from framestorm.model.sample import IS_SUB_RESULT
from framestorm.model.summary import Doubt, Machine, Summary
from framestorm.model.units import count, duration, percent, plural
from framestorm.results.hosts import BUSY_SHARE, share_text
from framestorm.results.jtl import MISSING
from framestorm.results.table import height

BUSY_TIME = 0.2  # of the run
OTHER_WORK_CORES = 0.2
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
REACHED = 0.95  # of the users that were asked for
FULL_MEMORY = 0.9
HOSTS_DIFFER = 1.25  # times the median of the fastest host
CLOCK_OFFSET_MS = 50.0
CLOCK_SLACK_MS = 1000.0
NAMED_STALLS = 3
MIN_N = {"p90": 10, "p95": 20, "p99": 100}


def warned(summary: Summary, samples: pl.LazyFrame) -> Summary:
    """The summary with the warnings of its run, the most serious first, and the kinds of the serious ones."""
    by_kind: list[tuple[Doubt | None, list[str]]] = [
        ("slave_lost", _losses(summary)),
        (None, _replicas(summary)),
        ("stopped", _stopped(summary)),
        (None, _videos(summary)),
        ("not_offered", [*_arrivals(summary), *_users(summary)]),
        (None, _saturation(summary)),
        (None, _stalls(summary)),
        ("hosts_differ", _hosts_differ(summary)),
        ("clock", _clocks(summary, samples)),
        (None, [*_few_samples(summary), *_times(summary), *_facts(summary)]),
    ]
    holds = {
        "saturated": any(_is_saturated(machine) for machine in summary.machines),
        "replica_lost": any(function.lost for function in summary.functions),
        "replicas_short": any(function.short_s for function in summary.functions),
        **{kind: bool(sentences) for kind, sentences in by_kind if kind},
    }
    return replace(
        summary,
        warnings=[sentence for _, sentences in by_kind for sentence in sentences],
        doubts=[kind for kind in get_args(Doubt) if holds[kind]],
    )


def _losses(summary: Summary) -> list[str]:
    sentences = []
    for loss in summary.losses:
        reason = f" ({loss.reason})" if loss.reason else ""
        share = share_text(loss.share) or "not known"
        last = f"No {summary.unit} of this host arrived."
        if loss.last_sample_s is not None:
            last = f"Its last {summary.unit} that arrived started at {duration(loss.last_sample_s * 1000)}."
        sentences.append(
            f"{loss.host} was lost {duration(loss.at_s * 1000)} after the start{reason}: its share of the load, "
            f"{share}, was missing from then on. {last} Throughput and times after the loss describe the smaller "
            "load; figures of the whole run mix both."
        )
    return sentences


def _replicas(summary: Summary) -> list[str]:
    if not summary.functions and any(file.path == "metrics.csv" for file in summary.files):
        return ["metrics.csv has no figures from the time of the load: what the replicas did is not known."]
    sentences = []
    for each in summary.functions:
        ends = []
        for group in each.vanished:
            names = "" if group.replicas < len(group.names) else f" ({', '.join(group.names)})"
            ends.append((group.replicas, f"{names} ended {duration(group.at_s * 1000)} after the start"))
        ends.append((each.lost - sum(group.replicas for group in each.vanished), " ended between two measurements"))
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


def _stopped(summary: Summary) -> list[str]:
    if summary.facts.stopped_by is None:
        return []
    return [
        f"The plan itself stopped the test ({summary.facts.stopped_by}): the load may be shorter than configured. A "
        "Thread Group does so after an error if it is set to, as do scripts and Flow Control Actions; see jmeter.log."
    ]


def _videos(summary: Summary) -> list[str]:
    videos = summary.facts.videos
    if len(videos) < 2:
        return []
    sent = _listed([f"{plural(users, 'user')} {video}…" for video, users in videos.items()])
    return [
        f"Users sent {len(videos)} different videos, by their SHA-256: {sent}. Unless the plan itself has several, the "
        "file was replaced during the run. The figures are of all of them together: repeat the run with one video."
    ]


def _is_saturated(machine: Machine) -> bool:
    return machine.busy_time is not None and machine.busy_time >= BUSY_TIME


def _arrivals(summary: Summary) -> list[str]:
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
    were = "was" if dropped == 1 else "were"
    return [
        f"{count(dropped)} of {plural(due, 'arrival')} {were} dropped: {why}. The configured rate was not offered; "
        f"success rate and times are of the {count(summary.main.n)} {summary.unit}s that were sent. {advice}"
    ]


def _users(summary: Summary) -> list[str]:
    for each in (summary.series.threads, summary.series.in_flight):
        asked = round(max((y or 0 for y in each.asked["y"]), default=0)) if each and each.asked else 0
        if each and each.most < REACHED * asked:
            return [
                f"{plural(asked, 'user')} at the same time were asked for, and at most {count(each.most)} were "
                f"reached: {_why_fewer_users(summary)}. All figures describe the smaller load."
            ]
    return []


def _why_fewer_users(summary: Summary) -> str:
    run, main = summary.run, summary.users
    generators = [host.name for host in run.hosts if host.role != "target"]
    hosts = [machine for machine in summary.machines if machine.part == "host" and machine.host in generators]
    reasons = [f"{each.host} had no core left to start more" for each in hosts if _is_saturated(each)]
    for each in hosts:
        host = run.host(each.host)
        if host and host.memory_bytes and each.rss_max_bytes > FULL_MEMORY * host.memory_bytes:
            reasons.append(f"the memory of {each.host} was full")
    if summary.facts.out_of_memory:
        reasons.append(f"JMeter's log says {summary.facts.out_of_memory}")
    if summary.losses:
        reasons.append(f"{_listed([loss.host for loss in summary.losses])} was lost")
    ramp_ms = 1000 * float(run.properties["ramp_s"])
    if summary.load and summary.load.duration_ms < ramp_ms:
        reasons.append(f"the load was over after {duration(summary.load.duration_ms)}, before ramp_s had passed")
    if not reasons and main and "duration" in main.times and main.times["duration"].p50 and summary.load:
        started_per_s = main.n / summary.load.duration_ms * 1000
        reasons.append(
            f"a user took {duration(main.times['duration'].p50.value)} (median), and only {started_per_s:.3g} per "
            "second were started"
        )
    return _listed(reasons) if reasons else "the reason is not known; jmeter.log may have it"


def _saturation(summary: Summary) -> list[str]:
    machines, run = summary.machines, summary.run
    if not machines:
        return ["resources.csv is missing or empty: it is not known whether the load generator was the bottleneck."]
    sentences = []
    measured = {machine.host for machine in machines if machine.part == "host"}
    unmeasured = [host.name for host in run.hosts if host.role in ("slave", "target") and host.name not in measured]
    if unmeasured:
        sentences.append(
            f"resources.csv has no figures of {_listed(unmeasured)}: it is not known whether the bottleneck was there."
        )
    for machine in machines:
        if machine.busy_time is None:
            continue
        host = run.host(machine.host)
        role = host.role if host else ""
        parts = {m.part: m.cores_mean for m in machines if m.host == machine.host and m.part != "host"}
        rest = machine.cores_mean - sum(parts.values())
        use = [f"the {part} used {mean:.2f} cores" for part, mean in parts.items()]
        if has_others := bool(parts) and rest > OTHER_WORK_CORES:
            use.append(f"other processes {rest:.2f}")
        on_average = f" ({_listed(use)} on average)" if use else ""
        if _is_saturated(machine):
            meaning, remedy = SATURATED.get(role, SATURATED_GENERATOR)
            if has_others:
                # Fewer users would not help where others take most of the machine.
                are_most = rest > machine.cores_mean / 2
                remedy = "stop the other processes" + (f", {remedy}" if remedy and not are_most else "")
            advice = f" {remedy[:1].upper()}{remedy[1:]}." if remedy else ""
            sentences.append(
                f"{machine.host} was saturated: at least {100 * BUSY_SHARE:g} % of its {machine.cores} cores were busy "
                f"for {percent(machine.busy_time)} of the run{on_average}. {meaning}{advice}"
            )
        elif role == "generator and target" and parts:
            sentences.append(
                f"Generator and target shared {machine.host}{on_average}. The machine was not saturated, but the two "
                "compete for caches and cores. For figures to publish, run the target on a machine of its own."
            )
    return sentences


def _stalls(summary: Summary) -> list[str]:
    stalls, during = summary.facts.stalls, summary.facts.during_stalls
    if not during:
        return []
    worst = sorted(stalls, key=lambda stall: -stall.longest_ms)[:NAMED_STALLS]
    places = [f"{at_s:.0f} s" for at_s in sorted(stall.at_s for stall in worst)]
    of_all = "the longest " if len(stalls) > len(worst) else ""
    longest_ms = max(stall.longest_ms for stall in stalls)
    gc_ms = sum(stall.gc_ms for stall in stalls)
    by_memory = f" Java's garbage collection took {duration(gc_ms)} of that." if gc_ms else ""
    return [
        f"JMeter itself was held up in {plural(len(stalls), 'second')} of the load, at worst for "
        f"{duration(longest_ms)} ({of_all}{_listed(places)} after the start).{by_memory} The times of "
        f"{plural(during, summary.unit)} ({percent(during / summary.main.n)}) in progress then may include it. "
        "Give JMeter free cores, or use more slaves."
    ]


def _hosts_differ(summary: Summary) -> list[str]:
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


def _clocks(summary: Summary, samples: pl.LazyFrame) -> list[str]:
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
        # A sample of JMeter that never began has 0.
        is_zero = pl.col("start_ms").fill_null(1) == 0
        outside = height(samples.filter(~during.fill_null(value=False) & ~is_zero))
        if outside:
            sentences.append(f"{plural(outside, label)} started before or after the run: a clock was set or is wrong.")
    return sentences


def _few_samples(summary: Summary) -> list[str]:
    sentences = []
    judged = {USER: summary.users, summary.unit: summary.main}
    for label, figures in judged.items():
        if figures is None or (label == USER and "users" not in summary.run.properties):
            continue  # the plan has a fixed number of them, however long it runs
        n = next((times.n for times in figures.times.values()), 0)
        largest = [name for name, least in MIN_N.items() if 0 < n < least]
        if largest:
            sentences.append(
                f"Insufficient data: with only {plural(n, f'{label} time')}, {_listed(largest)} "
                f"{'is' if len(largest) == 1 else 'are'} just the largest of them (marked †). Run longer."
            )
    return sentences


def _times(summary: Summary) -> list[str]:
    main, sentences = summary.main, []
    if main.timed_out:
        sentences.append(
            f"{plural(main.timed_out, summary.unit)} timed out: the time waited is a lower bound of the response "
            "time (marked >). All other times are of successful samples only."
        )
    stopped = main.causes.get("stopped", 0)
    if stopped:
        sentences.append(
            f"{plural(stopped, summary.unit)} failed because the run was stopped. They have no response time."
        )
    other = main.failed - main.timed_out - stopped
    if other:
        how = " for another reason" if main.timed_out or stopped else ""
        sentences.append(
            f"{plural(other, summary.unit)} failed{how} ({percent(other / main.n)}): counted by "
            "cause, excluded from response times. An error can be faster than a success: read both together."
        )
    return sentences


def _facts(summary: Summary) -> list[str]:
    facts, sentences = summary.facts, []
    if facts.unverified and "video" in summary.run.properties:
        sentences.append(
            f"{count(facts.unverified)} of the answers count as correct without a check of the image: verify_share is "
            "below 1, or the plan does not use the frame client."
        )
    if facts.from_killed_users:
        sentences.append(
            f"{plural(facts.from_killed_users, summary.unit)} of users that JMeter ended (user_timeout_s) are known "
            "from the journal only."
        )
    # Separated as jmx/groovy/answer.groovy reads them.
    wanted = re.findall(r"(?:^|,)\s*(\w+)\s*=\s*\$", summary.run.properties.get("figures", ""))
    absent = [name for name in wanted if name not in summary.main.figures]
    if absent and summary.main.ok:
        sentences.append(
            f"-Jfigures found no figure for {_listed(absent)}: no response had a number there, or one was negative. "
            "Look at a response, and correct the JSONPath."
        )
    if absent := [name for name in facts.absent_columns if name in MISSING]:
        unknown = dict.fromkeys(MISSING[name] for name in absent)
        sentences.append(
            f"samples.jtl lacks {_listed(absent)}, so this is not known: {_listed([*unknown])}. "
            "Plans and -q files set such columns by jmeter.save.saveservice properties."
        )
    if IS_SUB_RESULT in facts.absent_columns and summary.users is None:
        sentences.append(
            "samples.jtl does not say which of its rows are sub-results (redirects, embedded resources), so all of "
            "them are counted as samples: it was not written by JMeter as ./run.sh starts it."
        )
    for label in summary.labels.values():
        if label.of_labels > 1:
            sentences.append(
                f"The plan has more labels than this page shows: {label.label} are counted together. Fewer names, such "
                "as item instead of item-${n}, make their figures comparable."
            )
    return sentences


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
