"""What a reader has to know before the figures are trusted: in sentences, and which settings of two sides differ.

Settings are properties, target, plan, versions, kit and hosts.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from framestorm.compare.questions import Questions
from framestorm.compare.runs import Run, RunSide, settings_of
from framestorm.compare.sides import StudySide
from framestorm.judge.contrasts import share_without_time
from framestorm.judge.differences import ONE_ONLY
from framestorm.model.comparison import DifferentSetting
from framestorm.model.run import Host, Kit, Record
from framestorm.model.summary import Doubt
from framestorm.model.units import core_count, count, listed, percent, plural, size
from framestorm.report.document import value
from framestorm.results.reading import read_run

SettingTexts = dict[str, tuple[str, ...]]


OVERLOADED: Doubt = "overloaded"
# What a difference of a kind may explain in place of what one meant to change.
WARNINGS = {
    "hosts": "ran on different hosts: their figures compare machines, not settings",
    "version": "ran with different versions ({}): they may explain a difference",
    "kit": "were made by different versions of Framestorm's code, which may explain a difference",
    "plan": "ran different plans: the load itself differs",
    "part": "are judged by different parts of a run: make the reports of both with --steady, or of both without",
}


def between(old: RunSide | StudySide, new: RunSide | StudySide, asked: Questions) -> list[str]:
    """Return what to know before one trusts a comparison of two sides."""
    overload = _of_overload(old, new)
    if isinstance(old, StudySide) and isinstance(new, StudySide):
        return [*overload, *_of_studies(old, new, asked)]
    assert isinstance(old, RunSide) and isinstance(new, RunSide)  # noqa: S101 - sides.read_sides sees to it
    return [*overload, *_of_runs(old, new)]


def is_overloaded(side: RunSide | StudySide) -> bool:
    """Return whether a function did not keep up with a side's load, in any run of it."""
    return bool(side.points_with(OVERLOADED))


def are_queues(old: RunSide | StudySide, new: RunSide | StudySide, point: str | None) -> bool:
    """Whether times of both sides, at a point or over all, are those of queues: then they are not the function's."""
    both = old.points_with(OVERLOADED) & new.points_with(OVERLOADED)
    return bool(both) and ({point} if point else old.points.keys() & new.points.keys()) <= both


def _of_overload(old: RunSide | StudySide, new: RunSide | StudySide) -> list[str]:
    """Return the caveat that times are those of a queue, which grows with the load and with the length of the run."""
    if isinstance(old, StudySide) and isinstance(new, StudySide):
        return [
            f"{side.label}: at {n} of {plural(len(side.points), 'point')} the function did not keep up with the load: "
            "response times there are those of a queue. They are not judged where both sides were overloaded."
            for side in (old, new)
            if (n := len(side.points_with(OVERLOADED)))
        ]
    overloaded = [side.label for side in (old, new) if is_overloaded(side)]
    if len(overloaded) == 2:
        return [
            f"{listed(overloaded)} were both overloaded: their response times are those of a queue, describe the "
            "length of the runs and not the function, and are not judged. Compare the rate that was answered, as by "
            "--threshold 'rate 5 %', or repeat both with a lower load."
        ]
    return [
        f"{label} was overloaded, and the other side was not: its response times are those of a queue, and how much "
        "they differ depends on the length of its run."
        for label in overloaded
    ]


def _of_runs(old: RunSide, new: RunSide) -> list[str]:
    a, b, runs = old.label, new.label, (*old.runs, *new.runs)
    shared = {run.folder for run in old.runs} & {run.folder for run in new.runs}
    names = ", ".join(sorted(folder.name for folder in shared))
    sentences = [f"{a} and {b} both have {names}, so a run is compared with itself."] if shared else []
    if len(runs) == 2:
        sentences.append(
            f"{a} and {b} are one run each: the intervals do not show run-to-run variation, so a claimed difference "
            "may be no more than that. Repeat both, and give the runs as A1,A2,A3 B1,B2,B3."
        )
    sentences += _single(old, new, (len(old.runs), len(new.runs)), "run")
    imported = dict.fromkeys(run.name for run in runs if run.record.source)
    if imported:
        sentences.append(
            f"{', '.join(imported)}: made from a JTL, which does not say by which plan, on which hosts and with which "
            "versions; they may differ without being listed here."
        )
    bare = dict.fromkeys(run.name for run in runs if run.target is None and not run.record.source)
    if bare:
        sentences.append(
            f"{', '.join(bare)}: how the function was set up (replicas, limits, environment) is not recorded, and may "
            "differ without being listed here."
        )
    failures = [_many_failed(run.name, run.of().right.size, int(run.of().right.sum()), run.timed_out) for run in runs]
    return [*sentences, *dict.fromkeys(sentence for of_run in failures for sentence in of_run)]


def _single(old: RunSide | StudySide, new: RunSide | StudySide, n: tuple[int, int], noun: str) -> list[str]:
    if min(n) > 1 or max(n) == 1:
        return []
    one, many = (old, new) if n[0] == 1 else (new, old)
    return [f"{one.label} is a single {noun}: its {noun}-to-{noun} variation is assumed to be that of {many.label}."]


def _of_studies(old: StudySide, new: StudySide, asked: Questions) -> list[str]:
    a, b = old.label, new.label
    # Levels of one study have its folder in common, and no run.
    is_itself = (old.folder, old.name) == (new.folder, new.name)
    sentences = [f"{a} and {b} are the same study, {old.name}: it is compared with itself."] if is_itself else []
    sentences += _single(old, new, (len(old.repetitions), len(new.repetitions)), "repetition")
    for side in {old.folder: old, new.folder: new}.values():
        if side.left_out:
            are = "is" if side.left_out == 1 else "are"
            sentences.append(f"{plural(side.left_out, 'run')} of {side.folder.name} failed and {are} left out.")
    if any(ONE_ONLY in (question.why or "") for question in (*asked.overall, *asked.points)):
        sentences.append(f"Some figures have no interval: {ONE_ONLY}.")
    if asked.pairs == "point" and old.folder != new.folder:
        sentences.append(
            f"{a} and {b} ran once each: the intervals over all points show how the points vary, not how much the "
            "result of a whole study varies from run to run. Repeat both."
        )
    for side in (old, new):
        n, ok, timed_out = (sum(side.total(point, name) for point in asked.shared) for name in ("n", "ok", "timed_out"))
        sentences += _many_failed(side.name, n, ok, timed_out)
    return sentences


def _many_failed(name: str, n: int, ok: int, timed_out: int) -> list[str]:
    share = share_without_time(n, ok, timed_out)
    if share is None:
        return []
    if not ok and not timed_out:
        return [f"{name}: no sample succeeded (of {count(n)}), so it has no response times."]
    return [
        f"{name}: {percent(share)} of the samples failed, timeouts aside. They have no response time, so the times of "
        "the others may look better than the service was."
    ]


def of_run(run: Run) -> list[str]:
    """Return what of a run is not in its figures, or should not be, and what its own page warns of."""
    sentences, verdict = [], run.summary.verdict
    if verdict.word in {"partial", "unjudged"}:
        sentences.append(f"{run.name} is {verdict.word}: {verdict.text}.")
    if run.timed_out:
        n = plural(run.of().right.size, "sample")
        sentences.append(f"{run.name}: {count(run.timed_out)} of {n} timed out; their times are lower bounds.")
    if cold := run.summary.main.times.get("cold"):
        sentences.append(f"{run.name}: the figures include {plural(cold.n, 'cold start')}.")
    return sentences + [f"{run.name}: {sentence}" for sentence in run.summary.warnings]


def changes(old: RunSide | StudySide, new: RunSide | StudySide) -> list[DifferentSetting]:
    """Return what differs in the settings of two sides, in the order in which one looks for it; of JTLs nothing."""
    if any(run.record.source for side in (old, new) if isinstance(side, RunSide) for run in side.runs):
        return []
    a, b = _settings(old, new), _settings(new, old)
    names = dict.fromkeys([*a, *b])
    return [
        DifferentSetting(name, a.get(name, ()), b.get(name, ())) for name in names if a.get(name, ()) != b.get(name, ())
    ]


def of_settings(changed: Iterable[DifferentSetting], labels: tuple[str, str]) -> list[str]:
    """Return differences that may explain the figures in place of what one meant to change."""
    by_kind: dict[str, list[str]] = {}
    for change in changed:
        kind, _, name = change.name.partition(" ")
        by_kind.setdefault(kind, []).append(name)
    return [
        f"{labels[0]} and {labels[1]} {text.format(', '.join(by_kind[kind]))}."
        for kind, text in WARNINGS.items()
        if kind in by_kind
    ]


def _settings(side: RunSide | StudySide, other: RunSide | StudySide) -> SettingTexts:
    if isinstance(side, RunSide):
        return _gathered(_of_run(run) for run in side.runs)
    shared = side.points.keys() & other.points.keys() if isinstance(other, StudySide) else ()
    return _of_study(side, shared)


def _of_run(run: Run) -> dict[str, str]:
    """Return the settings in run.json and those of the target, as texts by name."""
    record = run.record
    recorded = run.target or (settings_of(record.target) if record.target else {})
    # Also what the plan does not name; a property's final value counts.
    properties = record.properties | record.given | record.properties
    target = {name: each for name, each in recorded.items() if name != "url"}
    part = {"part judged": "steady" if run.summary.run.judges_steady else "whole run"}
    return _of_load(record.plan, properties, target) | part | _of_machines(record)


def _of_load(plan: str | None, properties: Mapping[str, str], target: Mapping[str, Any]) -> dict[str, str]:
    """The plan, its properties, and the settings of the target, one that has parts, such as an environment, by part."""
    settings: dict[str, Any] = {"plan": plan} | {f"property {name}": each for name, each in properties.items()}
    settings |= {f"target {name}": each for name, each in target.items() if not isinstance(each, Mapping)}
    for name, parts in target.items():
        if isinstance(parts, Mapping):
            settings |= {f"target {name}.{key}": json.dumps(part) for key, part in parts.items()}
    return {name: value(each) for name, each in settings.items()}


def _of_machines(record: Record) -> dict[str, str]:
    """Hosts, versions and kit: what the figures depend on beside what was asked for."""
    settings = {f"version {name}": value(each) for name, each in record.versions.items()}
    kit = record.kit or Kit("")
    commit = f", commit {kit.commit[:12]}" if kit.commit else ""
    changed = " with changes not committed" if kit.dirty else ""
    settings["kit"] = f"{value(kit.version)}{commit}{changed}"
    hosts = sorted(_host(host) for host in record.hosts)
    return settings | {"hosts": "; ".join(hosts) or value(None)}


def _host(host: Host) -> str:
    """Return what of a host bears on the figures; what it was used for is seen by the plan and the shares."""
    parts = [host.name]
    parts.append(core_count(host.cores) if host.cores else "")
    parts.append(f"{size(host.memory_bytes)} memory" if host.memory_bytes else "")
    return ", ".join(part for part in parts if part)


def _of_study(side: StudySide, shared: Iterable[str]) -> SettingTexts:
    """A study's settings: those of the points that both have (what a factor sets is the point's), and its machines."""
    points = [side.points[key] for key in shared]
    gathered = _gathered(_of_load(point.plan, point.properties, point.target.model_dump()) for point in points)
    study, definition = side.study, side.study.definition
    asked = {
        "repetitions": definition.repetitions, "order": definition.order,
        "stop": definition.stop.model_dump() if definition.stop else None, "warm_up_s": definition.warm_up_s,
        "temperature": definition.temperature, "quick": study.quick, "gateway": study.gateway, "slaves": study.slaves,
    }  # fmt: skip
    gathered |= {f"study {name}": (value(each),) for name, each in asked.items()}
    return gathered | _gathered(_of_machines(record) for record in _records(side))


def _records(side: StudySide) -> list[Record]:
    """run.json of each complete run; a study that came without its runs has the kit of study.json at least."""
    read = [
        record for record, problem in (read_run(side.folder / row.run) for row in side.rows.values()) if not problem
    ]
    return read or [Record(kit=side.study.kit)]


def _gathered(each: Iterable[Mapping[str, str]]) -> SettingTexts:
    """Return the distinct values of each setting, sorted."""
    values: dict[str, set[str]] = {}
    for settings in each:
        for name, text in settings.items():
            values.setdefault(name, set()).add(text)
    return {name: tuple(sorted(texts)) for name, texts in values.items()}
