"""summary.json: every number of the page, put together from the tables; the page is made of this and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from framestorm.report import completeness, losses, replicas, trust
from framestorm.report.arrivals import read_arrivals
from framestorm.report.criteria import Criterion, Group, Judgement, judge, parse
from framestorm.report.frames import Merged
from framestorm.report.jtl import Jtl
from framestorm.report.machines import read_machines, summarise_machines
from framestorm.report.series import all_series
from framestorm.report.stats import Sample, wilson
from framestorm.report.table import causes, frame_group, is_at_rate, read_frames, span_ms, user_group
from framestorm.report.units import plural

FORMAT = 1
RUN_FIELDS = (
    "kit", "plan", "command", "state", "reason", "started_ms", "ended_ms", "properties", "given", "default_criteria",
    "target", "hosts", "rmi", "versions", "jmeter",
)  # fmt: skip
FILES = {
    "jmeter/index.html": "JMeter's own dashboard",
    "tree.xml": "result tree, for JMeter's View Results Tree",
    "samples.jtl": "every sample, JMeter's CSV",
    "frames.csv": "every {unit}, one row each",
    "journal.jsonl": "what the clients wrote as they went",
    "journal-*.jsonl": "what the clients of a slave wrote as they went",
    "client.log": "what the clients said on stderr",
    "client-*.log": "what the clients of a slave said on stderr",
    "resources.csv": "CPU and memory over time",
    "metrics.csv": "OpenFaaS's replicas over time, as Prometheus saw them",
    "run.json": "the run's settings, versions and hosts",
    "summary.json": "every number on this page",
    "junit.xml": "the verdict, for CI",
    "jmeter.log": "JMeter's log",
    "jmeter-server-*.log": "the log of a slave's JMeter",
    "target.log": "the function's log",
}
MADE_HERE = frozenset({"summary.json", "junit.xml"})
VERDICTS = {"pass": 0, "unjudged": 1, "fail": 3, "partial": 4}


@dataclass(frozen=True)
class Raw:
    """What was read from the raw files beside frames.csv."""

    run: Mapping[str, Any]
    run_problem: str | None
    merged: Merged
    jtl: Jtl
    users: pl.DataFrame


def summarise(run_dir: Path, frames_csv: Path, raw: Raw, criteria: Sequence[str] | None) -> dict[str, Any]:
    """The whole of summary.json."""
    run = dict(raw.run)
    frames = read_frames(frames_csv)
    unit = raw.jtl.unit
    groups = {unit: frame_group(frames, unit, at_rate=is_at_rate(run))}
    if raw.users.height:
        groups["user"] = user_group(raw.users)
    load = span_ms(frames, "rtt_ms") or span_ms(raw.users, "elapsed_ms")
    machines = read_machines(run_dir / "resources.csv")
    machine_rows = summarise_machines(machines, run, load)
    origin_ms = float(run.get("started_ms") or (load[0] if load else 0.0))
    lost_hosts = losses.read_losses(run, frames, origin_ms)
    metrics = replicas.read_metrics(run_dir / "metrics.csv", _url(run), load)
    replica_rows = replicas.summarise_replicas(metrics, load, origin_ms)
    judged = [judge(criterion, groups) for criterion in _criteria(run, criteria, groups, unit)]
    lost = completeness.missing(run, raw.run_problem, raw.merged, raw.jtl, groups)
    facts = {
        "unverified": frames.filter(pl.col("ok") & (pl.col("verified") == False)).height,  # noqa: E712 - null is not known
        "other_labels": raw.jtl.other_labels(),
        "from_killed_users": raw.merged.from_killed_users,
        "arrivals": read_arrivals(run_dir) if run.get("state") == "complete" else None,
    }
    return {
        "format": FORMAT,
        "name": run_dir.resolve().name,
        "unit": unit,
        "verdict": _verdict(judged, lost, groups, unit),
        "criteria": [judgement.as_json() for judgement in judged],
        "missing": lost,
        "warnings": [
            *losses.sentences(lost_hosts, unit),
            *replicas.sentences(metrics, replica_rows),
            *trust.warnings(run, frames, groups, unit, machine_rows, facts),
        ],
        "doubts": trust.doubts(run, frames, unit, machine_rows, facts, lost_hosts, replica_rows),
        "run": {name: run.get(name) for name in RUN_FIELDS},
        "load": {"start_ms": load[0], "end_ms": load[1], "duration_ms": load[1] - load[0]} if load else None,
        "frames": _group(groups[unit], causes(frames)) | {"timed_out": int(frames["timed_out"].sum())},
        "users": _group(groups["user"], causes(raw.users)) if "user" in groups else None,
        "hosts": _hosts(run, frames, groups[unit], completeness.reconciliation(raw.merged, raw.jtl), lost_hosts),
        "losses": lost_hosts,
        "machines": machine_rows,
        "openfaas": replica_rows,
        "facts": facts,
        "files": [
            {"path": path, "what": what.format(unit=unit)}
            for name, what in FILES.items()
            for path in _there(run_dir, name, frames_csv)
        ],
        "series": all_series(frames, raw.users, machines, lost_hosts, origin_ms, unit)
        | _openfaas_series(metrics, replica_rows, lost_hosts, origin_ms),
    }


def _there(run_dir: Path, name: str, frames_csv: Path) -> list[str]:
    if name in MADE_HERE or (name == "frames.csv" and frames_csv.exists()):
        return [name]
    return sorted(path.relative_to(run_dir).as_posix() for path in run_dir.glob(name))


def _url(run: Mapping[str, Any]) -> str | None:
    return (run.get("properties") or {}).get("url") or (run.get("target") or {}).get("url")


def _openfaas_series(
    metrics: pl.DataFrame | None, rows: list[dict[str, Any]], lost: list[dict[str, Any]], origin_ms: float
) -> dict[str, Any]:
    """The replicas over time, and the marks that all charts over time carry."""
    marks = [{"at_s": loss["at_s"], "label": f"{loss['host']} lost", "shaded": True} for loss in lost]
    for row in rows:
        for gone in row["vanished"]:
            label = f"{plural(gone['replicas'], 'replica')} gone"
            marks.append({"at_s": gone["at_s"], "label": label, "shaded": False})
    marks.sort(key=lambda mark: float(mark["at_s"]))
    found = {"openfaas": replicas.replicas_over_time(metrics, rows, origin_ms), "marks": marks}
    return {name: series for name, series in found.items() if series}


def _criteria(
    run: Mapping[str, Any], asked: Sequence[str] | None, groups: Mapping[str, Group], unit: str
) -> list[Criterion]:
    texts = list(asked) if asked is not None else list(run.get("criteria") or [])
    if not texts:
        texts = [f"{label} success < 100 %" for label in ("user", unit) if label in groups]
    return [parse(text, unit) for text in texts]


def _verdict(
    judged: Sequence[Judgement], lost: Sequence[str], groups: Mapping[str, Group], unit: str
) -> dict[str, Any]:
    """Partial goes before failed: figures of half a run prove nothing either way, but both are told."""
    failed = sum(judgement.state == "failed" for judgement in judged)
    unjudged = sum(judgement.state == "unjudged" for judgement in judged)
    measured = any(group.n for group in groups.values())
    n_units, users = groups[unit].n, groups["user"].n if "user" in groups else 0
    what = plural(n_units, unit) + (f" of {plural(users, 'user')}" if users else "")
    every = plural(len(judged), "criterion", "criteria")
    if unjudged and failed:
        came_out = f"{failed} of {every} failed and {unjudged} could not be judged"
    elif unjudged:
        came_out = f"{unjudged} of {every} could not be judged"
    elif failed:
        came_out = f"{failed} of {every} failed"
    else:
        came_out = "the criterion met" if len(judged) == 1 else f"all {every} met"
    if not measured:
        name, text = "unjudged", "nothing was measured: " + "; ".join(lost)
    elif lost:
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        name, text = "partial", f"{lost[0]}{more}; of what there is, {what}: {came_out}"
    else:
        name, text = "fail" if failed or unjudged else "pass", f"{came_out}, on {what}"
    return {"verdict": name, "exit_status": VERDICTS[name], "text": text, "failed": failed, "unjudged": unjudged}


def _group(group: Group, by_cause: dict[str, int]) -> dict[str, Any]:
    interval = wilson(group.ok, group.n)
    return {
        "n": group.n,
        "ok": group.ok,
        "failed": group.n - group.ok,
        "causes": by_cause,
        "success": group.ok / group.n if group.n else None,
        "success_low": interval[0] if interval else None,
        "success_high": interval[1] if interval else None,
        "rate_per_s": group.rate_per_s,
        "times": {name: sample.describe() for name, sample in group.samples.items() if isinstance(sample, Sample)},
    }


def _hosts(
    run: dict[str, Any],
    frames: pl.DataFrame,
    whole: Group,
    reconciled: list[dict[str, Any]],
    lost: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """What each host sent and what came of it; one row too where there is one host only, or where a slave sent none."""
    sending = {str(host) for host in frames["host"].unique()}
    known = {row["host"]: row for row in reconciled}
    described = {str(host.get("name")): host for host in run.get("hosts") or []}
    lost_at = {loss["host"]: loss["at_s"] for loss in lost}
    slaves = {name for name, host in described.items() if host.get("role") == "slave"}
    rows = []
    for host in sorted(sending | known.keys() | slaves):
        group = Group(whole.label)
        if host in sending:
            own = frames.filter(pl.col("host") == host)
            group = whole if len(sending) == 1 else frame_group(own, whole.label, at_rate=is_at_rate(run))
        sample = group.samples.get("rtt")
        middle, high = (sample.percentile("50"), sample.percentile("95")) if sample else (None, None)
        rows.append(
            {
                "host": host,
                "share": losses.share_of(described.get(host, {}).get("share"), run),
                "clock_offset_ms": described.get(host, {}).get("clock_offset_ms"),
                "lost_s": lost_at.get(host),
                **{name: known.get(host, {}).get(name) for name in ("users", "sent", "in_tree", "in_samples")},
                "shown": group.n,
                "ok": group.ok,
                "rate_per_s": group.rate_per_s,
                "p50": middle.as_json() if middle else None,
                "p95": high.as_json() if high else None,
            }
        )
    return rows
