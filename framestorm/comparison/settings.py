"""What was set otherwise: properties, target, plan, versions, kit and hosts of two sides, only where they differ."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from framestorm.comparison.sides import Run, RunSide, StudySide
from framestorm.report.document import value
from framestorm.report.files import read_run
from framestorm.report.units import plural, size

# Where a run keeps its files and the kit its parts: never the same for two runs, and no setting of either.
PLACES = frozenset({"python", "client", "client_log", "cache", "journal", "stop", "tree", "frame_dir"})
Settings = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Change:
    """A setting whose values differ; several values of one side: they differ among its runs or points."""

    what: str
    old: tuple[str, ...]
    new: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def changes(old: RunSide | StudySide, new: RunSide | StudySide) -> list[Change]:
    """What differs in the settings of two sides, in the order in which one looks for it."""
    if isinstance(old, StudySide) and isinstance(new, StudySide):
        shared = old.points.keys() & new.points.keys()
        return differing(_of_study(old, shared), _of_study(new, shared))
    assert isinstance(old, RunSide) and isinstance(new, RunSide)  # noqa: S101 - sides.read_sides sees to it
    return differing(_of_runs(old.runs), _of_runs(new.runs))


def differing(old: Settings, new: Settings) -> list[Change]:
    names = [*old, *(name for name in new if name not in old)]
    found = [Change(name, old.get(name, ()), new.get(name, ())) for name in names]
    return [change for change in found if change.old != change.new]


def warnings(found: Iterable[Change], labels: tuple[str, str]) -> list[str]:
    """What makes the figures a comparison of something else than of what one meant to change."""
    by_kind: dict[str, list[str]] = {}
    for change in found:
        kind, _, name = change.what.partition(" ")
        by_kind.setdefault(kind, []).append(name or kind)
    said = []
    a, b = labels
    if "hosts" in by_kind:
        said.append(f"{a} and {b} ran on different hosts: their figures compare machines, not settings.")
    if "version" in by_kind:
        said.append(
            f"{a} and {b} ran with other versions ({', '.join(by_kind['version'])}): a difference may be theirs."
        )
    if "kit" in by_kind:
        said.append(f"{a} and {b} were made by different states of Framestorm: a difference may be the kit's own.")
    if "plan" in by_kind:
        said.append(f"{a} and {b} are of different plans: the load itself differs, not only what answers it.")
    return said


def _of_runs(runs: Iterable[Run]) -> Settings:
    return _gathered(_of_run(run) for run in runs)


def _of_run(run: Run) -> dict[str, str]:
    """All settings of a run.json and of the target, by name, as text."""
    record = run.record
    properties = dict(record.get("properties") or {})
    extra = {name: text for name, text in (record.get("given") or {}).items() if name not in properties}
    target = {name: each for name, each in (run.target or record.get("target") or {}).items() if name != "url"}
    found = {"plan": record.get("plan")}
    found |= {f"property {name}": each for name, each in properties.items() if name not in PLACES}
    found |= {f"property {name}": each for name, each in extra.items()}
    found |= _flat("target", target)
    return {name: value(each) for name, each in found.items()} | _of_machines(record)


def _of_machines(record: Mapping[str, Any]) -> dict[str, str]:
    """Hosts, versions and kit: what the figures depend on beside what was asked for."""
    found = {f"version {name}": value(each) for name, each in (record.get("versions") or {}).items()}
    kit = record.get("kit") or {}
    commit = f", commit {kit['commit'][:12]}" if kit.get("commit") else ""
    changed = " with changes not committed" if kit.get("dirty") else ""
    found["kit"] = f"{value(kit.get('version'))}{commit}{changed}"
    hosts = sorted(_host(host) for host in record.get("hosts") or ())
    return found | {"hosts": "; ".join(hosts) or value(None)}


def _host(host: Mapping[str, Any]) -> str:
    """What of a host bears on the figures; what it was used for is seen by the plan and the shares."""
    parts = [str(host.get("name"))]
    parts.append(plural(host["cores"], "core") if host.get("cores") else "")
    parts.append(f"{size(host['memory_bytes'])} memory" if host.get("memory_bytes") else "")
    return ", ".join(part for part in parts if part)


def _of_study(side: StudySide, shared: Iterable[str]) -> Settings:
    """A study's settings: those of the points that both have (what a factor sets is the point's), and its machines."""
    points = [side.points[key] for key in shared]
    gathered = _gathered(
        {"plan": value(point.get("plan"))}
        | {f"property {name}": value(each) for name, each in (point.get("properties") or {}).items()}
        | {name: value(each) for name, each in _flat("target", point.get("target") or {}).items()}
        for point in points
    )
    definition = side.study.get("definition") or {}
    for name in ("repetitions", "order", "stop", "warm_up_s", "temperature"):
        gathered[f"study {name}"] = (value(definition.get(name)),)
    for name in ("quick", "gateway", "slaves"):
        gathered[f"study {name}"] = (value(side.study.get(name)),)
    return gathered | _gathered(_of_machines(record) for record in _records(side))


def _records(side: StudySide) -> list[dict[str, Any]]:
    """run.json of each complete run; a study that came without its runs has the kit of study.json at least."""
    folders = [side.folder / Path(str(name)) for name in side.results["run"]] if "run" in side.results.columns else []
    read = [record for record, problem in map(read_run, folders) if not problem]
    return read or [{"kit": side.study.get("kit")}]


def _gathered(each: Iterable[Mapping[str, str]]) -> Settings:
    """The values that a setting has among several, each once, in order of first sight."""
    found: dict[str, dict[str, None]] = {}
    for settings in each:
        for name, text in settings.items():
            found.setdefault(name, {})[text] = None
    return {name: tuple(sorted(texts)) for name, texts in found.items()}


def _flat(prefix: str, nested: Mapping[str, Any]) -> dict[str, Any]:
    flat = {f"{prefix} {name}": each for name, each in nested.items() if not isinstance(each, Mapping)}
    for name, each in nested.items():
        if isinstance(each, Mapping):
            flat |= {f"{prefix} {name}.{key}": json.dumps(deep) for key, deep in each.items()}
    return flat
