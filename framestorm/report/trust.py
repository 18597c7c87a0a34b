"""When figures cannot be trusted as the function's own: each warning says why, by how much, and what to do."""

from typing import Any

import polars as pl

from framestorm.report.criteria import Group
from framestorm.report.unit import FRAME, TASK
from framestorm.report.units import count, duration, percent, plural

BUSY_SHARE = 0.9  # of all cores: past this, work waits for a core
BUSY_TIME = 0.2  # of the run
OTHER_WORK_CORES = 0.2
SATURATED_ALONE = (
    "Times include waiting for a core; they say more about this machine than about the function. Use fewer users, or "
    "more machines."
)
# What it means on a host of a distributed run, by its role.
SATURATED = {
    "slave": "Times of its {unit}s include waiting for a core; they say more about this slave than about the function. "
    "Use fewer users, or more slaves.",
    "master": "Slaves may have had to wait to hand in their samples, so that less was sent than asked for; the times "
    "themselves are taken on the slaves. Give the master more cores, or use fewer users.",
    "target": "The function waited for a core there: times and rates say what it can do on this machine, as busy as it "
    "was, and not what it can do at all.",
}
CLOCK_OFFSET_MS = 50.0
CLOCK_SLACK_MS = 1000.0


def warnings(
    run: dict[str, Any],
    frames: pl.DataFrame,
    groups: dict[str, Group],
    unit: str,
    resources: list[dict[str, Any]],
    facts: dict[str, Any],
) -> list[str]:
    """Sentences, the gravest first."""
    return [
        *_arrivals(frames.height, facts["arrivals"], run),
        *_saturation(run, unit, resources),
        *_clocks(run, frames, unit),
        *_samples(groups, unit),
        *_times(groups[unit], frames),
        *_facts(facts, unit),
    ]


def doubts(
    run: dict[str, Any],
    frames: pl.DataFrame,
    unit: str,
    resources: list[dict[str, Any]],
    facts: dict[str, Any],
    lost_hosts: list[dict[str, Any]],
    functions: list[dict[str, Any]],
) -> list[str]:
    """The grave ones of a run's warnings by their kinds, for whoever counts them over many runs."""
    found = {
        "saturated": any(_is_saturated(row) for row in resources),
        "not_offered": bool(_arrivals(frames.height, facts["arrivals"], run)),
        "slave_lost": bool(lost_hosts),
        "replica_lost": any(row["lost"] for row in functions),
        "replicas_short": any(row["short_s"] for row in functions),
        "clock": bool(_clocks(run, frames, unit)),
    }
    return [kind for kind, holds in found.items() if holds]


def _is_saturated(row: dict[str, Any]) -> bool:
    return row["part"] == "host" and row["busy_time"] is not None and row["busy_time"] >= BUSY_TIME


def _arrivals(sent: int, due: int | None, run: dict[str, Any]) -> list[str]:
    # One arrival too many is what a rate that does not divide evenly may count, on each slave.
    slaves = sum(host.get("role") == "slave" for host in run.get("hosts") or [])
    if due is None or due - sent <= max(1, slaves):
        return []
    limit = (run.get("properties") or {}).get("concurrency_limit")
    return [
        f"{count(due - sent)} of {plural(due, 'arrival')} never became a request: every thread that "
        f"concurrency_limit={limit} allows was waiting for an answer. The asked rate was not offered; success and "
        f"times are of the {count(sent)} that were sent. Raise concurrency_limit, or read this as the rate that the "
        "function can take."
    ]


def _saturation(run: dict[str, Any], unit: str, resources: list[dict[str, Any]]) -> list[str]:
    found = []
    if not resources:
        found.append(
            "resources.csv is missing or empty: whether the machine that made the load was the bottleneck is not known."
        )
    cores = {host.get("name"): host.get("cores") for host in run.get("hosts") or []}
    roles = {host.get("name"): host.get("role") for host in run.get("hosts") or []}
    embedded = (run.get("target") or {}).get("kind") == "embedded"
    seen = {row["host"] for row in resources if row["part"] == "host"}
    unseen = [str(name) for name, role in roles.items() if role in ("slave", "target") and name not in seen]
    if unseen and resources:
        found.append(f"resources.csv has nothing of {_listed(unseen)}: whether it was the bottleneck is not known.")
    for row in resources:
        if row["part"] != "host" or row["busy_time"] is None:
            continue
        parts = {r["part"]: r["cores_mean"] for r in resources if r["host"] == row["host"] and r["part"] != "host"}
        rest = row["cores_mean"] - sum(parts.values())
        shares = [f"the {part} took {mean:.2f} cores" for part, mean in parts.items()]
        if parts and rest > OTHER_WORK_CORES:
            shares.append(f"work that is no part of the run {rest:.2f}")
        took = _listed(shares) if shares else ""
        if _is_saturated(row):
            found.append(
                f"{row['host']} was saturated: at least {percent(BUSY_SHARE)} of its {cores.get(row['host'])} cores "
                f"were busy in {percent(row['busy_time'])} of the run ({took or 'by parts not known'} on average). "
                + SATURATED.get(str(roles.get(row["host"])), SATURATED_ALONE).format(unit=unit)
            )
        elif embedded and {"generator", "target"} <= parts.keys():
            found.append(
                f"Generator and target shared {row['host']} ({took} on average). It was not saturated, but they "
                "compete for caches and cores: for figures to publish, put the target on a machine of its own."
            )
    return found


def _clocks(run: dict[str, Any], frames: pl.DataFrame, unit: str) -> list[str]:
    found = []
    for host in run.get("hosts") or []:
        offset = host.get("clock_offset_ms")
        if isinstance(offset, (int, float)) and abs(offset) > CLOCK_OFFSET_MS:
            found.append(
                f"The clock of {host.get('name')} was off by {duration(offset)}: durations are right, but its place "
                "in the charts over time is not."
            )
    negative = frames.filter(pl.col("rtt_ms") < 0).height
    if negative:
        found.append(f"{plural(negative, unit)} with a negative time: a clock ran backwards; do not use these figures.")
    start, end = run.get("started_ms"), run.get("ended_ms")
    if isinstance(start, (int, float)) and isinstance(end, (int, float)):
        early, late = pl.col("start_ms") < start - CLOCK_SLACK_MS, pl.col("start_ms") > end + CLOCK_SLACK_MS
        outside = frames.filter(early | late).height
        if outside:
            found.append(
                f"{plural(outside, unit)} started outside of the run's own time: a clock was set, or is wrong."
            )
    return found


def _samples(groups: dict[str, Group], unit: str) -> list[str]:
    needed = {"p90": 10, "p95": 20, "p99": 100}
    found = []
    for label, group in groups.items():
        if label == "user" and unit == TASK:
            continue  # there is one, however long it runs
        sample: Any = next(iter(group.samples.values()), None)
        if sample is None or not sample.n:
            continue
        few = [name for name, n in needed.items() if sample.n < n]
        if few:
            found.append(
                f"Only {plural(sample.n, f'{label} time')}: {_listed(few)} of them "
                f"{'is' if len(few) == 1 else 'are'} just the largest seen (marked †). Run longer."
            )
    return found


def _times(group: Group, frames: pl.DataFrame) -> list[str]:
    found: list[str] = []
    if not group.n:
        return found
    timed_out = int(frames["timed_out"].sum())
    if timed_out:
        found.append(
            f"{plural(timed_out, group.label)} timed out: known only to take longer than was waited. They count as "
            "lower bounds in the round trip (marked >), and are not in handler and model times, which are of those "
            "answered only."
        )
    stopped = frames.filter(pl.col("cause").cast(pl.String) == "stopped").height
    if stopped:
        found.append(
            f"{plural(stopped, group.label)} cut off as the user was stopped: failures, but in no statistic of times."
        )
    other = group.n - group.ok - timed_out - stopped
    if other:
        found.append(
            f"{plural(other, group.label)} failed otherwise ({percent(other / group.n)}): counted by cause, in no "
            "statistic of times. Failing can be faster than working: read times and success together."
        )
    return found


def _facts(facts: dict[str, Any], unit: str) -> list[str]:
    found = []
    if facts["unverified"] and unit == FRAME:
        found.append(
            f"{count(facts['unverified'])} of the answers were taken as right without a look at the image: "
            "verify_share is below 1, or the plan has no frame client."
        )
    if facts["other_labels"]:
        listed = ", ".join(f"{label} ({count(n)})" for label, n in facts["other_labels"].items())
        found.append(f"samples.jtl has rows of other labels, shown in JMeter's dashboard only: {listed}.")
    if facts["from_killed_users"]:
        found.append(
            f"{plural(facts['from_killed_users'], unit)} of users that were ended by JMeter (user_timeout_s) "
            "are known from the journal only."
        )
    return found


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
