"""Different settings: properties, target, plan, versions, kit and hosts of two sides, only where they differ."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from framestorm.compare.sides import Run, RunSide, StudySide, settings_of
from framestorm.model.comparison import Setting
from framestorm.model.run import Host, Kit, Record
from framestorm.model.units import plural, size
from framestorm.report.document import value
from framestorm.results.reading import read_run

Settings = dict[str, tuple[str, ...]]


def changes(old: RunSide | StudySide, new: RunSide | StudySide) -> list[Setting]:
    """What differs in the settings of two sides, in the order in which one looks for it."""
    if isinstance(old, StudySide) and isinstance(new, StudySide):
        shared = old.points.keys() & new.points.keys()
        return differing(_of_study(old, shared), _of_study(new, shared))
    assert isinstance(old, RunSide) and isinstance(new, RunSide)  # noqa: S101 - sides.read_sides sees to it
    return differing(_of_runs(old.runs), _of_runs(new.runs))


def differing(old: Settings, new: Settings) -> list[Setting]:
    names = [*old, *(name for name in new if name not in old)]
    return [
        Setting(name, old.get(name, ()), new.get(name, ())) for name in names if old.get(name, ()) != new.get(name, ())
    ]


def warnings(changed: Iterable[Setting], labels: tuple[str, str]) -> list[str]:
    """Differences that may explain the figures in place of what one meant to change."""
    by_kind: dict[str, list[str]] = {}
    for change in changed:
        kind, _, name = change.name.partition(" ")
        by_kind.setdefault(kind, []).append(name or kind)
    sentences = []
    a, b = labels
    if "hosts" in by_kind:
        sentences.append(f"{a} and {b} ran on different hosts: their figures compare machines, not settings.")
    if "version" in by_kind:
        sentences.append(
            f"{a} and {b} ran with different versions ({', '.join(by_kind['version'])}): they may explain a difference."
        )
    if "kit" in by_kind:
        sentences.append(f"{a} and {b} were made by different states of Framestorm, which may explain a difference.")
    if "plan" in by_kind:
        sentences.append(f"{a} and {b} ran different plans: the load itself differs.")
    return sentences


def _of_runs(runs: Iterable[Run]) -> Settings:
    return _gathered(_of_run(run) for run in runs)


def _of_run(run: Run) -> dict[str, str]:
    """All settings of a run.json and of the target, by name, as text."""
    record = run.record
    properties = record.properties
    extra = {name: text for name, text in record.given.items() if name not in properties}
    recorded = run.target or (settings_of(record.target) if record.target else {})
    target = {name: each for name, each in recorded.items() if name != "url"}
    settings: dict[str, object] = {"plan": record.plan}
    settings |= {f"property {name}": each for name, each in properties.items()}
    settings |= {f"property {name}": each for name, each in extra.items()}
    settings |= _flat("target", target)
    return {name: value(each) for name, each in settings.items()} | _of_machines(record)


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
    """What of a host bears on the figures; what it was used for is seen by the plan and the shares."""
    parts = [host.name]
    parts.append(plural(host.cores, "core") if host.cores else "")
    parts.append(f"{size(host.memory_bytes)} memory" if host.memory_bytes else "")
    return ", ".join(part for part in parts if part)


def _of_study(side: StudySide, shared: Iterable[str]) -> Settings:
    """A study's settings: those of the points that both have (what a factor sets is the point's), and its machines."""
    points = [side.points[key] for key in shared]
    gathered = _gathered(
        {"plan": value(point.plan)}
        | {f"property {name}": value(each) for name, each in point.properties.items()}
        | {name: value(each) for name, each in _flat("target", point.target.model_dump()).items()}
        for point in points
    )
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
        record for record, problem in (read_run(side.folder / row["run"]) for row in side.rows.values()) if not problem
    ]
    return read or [Record(kit=side.study.kit)]


def _gathered(each: Iterable[Mapping[str, str]]) -> Settings:
    """The values that a setting has among several, each once, in order of first sight."""
    values: dict[str, dict[str, None]] = {}
    for settings in each:
        for name, text in settings.items():
            values.setdefault(name, {})[text] = None
    return {name: tuple(sorted(texts)) for name, texts in values.items()}


def _flat(prefix: str, nested: Mapping[str, Any]) -> dict[str, Any]:
    flat = {f"{prefix} {name}": each for name, each in nested.items() if not isinstance(each, Mapping)}
    for name, each in nested.items():
        if isinstance(each, Mapping):
            flat |= {f"{prefix} {name}.{key}": json.dumps(deep) for key, deep in each.items()}
    return flat
