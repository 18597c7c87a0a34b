"""What a plan would do otherwise than it says, found before the load: JMeter itself runs it without a word."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from framestorm.errors import UsageError
from framestorm.model.plan import Plan
from framestorm.model.plan_files import Known, NamedFile
from framestorm.model.variables import definitions, walk
from framestorm.plain import note
from framestorm.run import data_sets, engines, groups, links, structure, undefined
from framestorm.run.finding import Finding
from framestorm.run.options import Where


def check(
    plan: Plan,
    fragments: Mapping[Path, ET.Element],
    files: Iterable[NamedFile],
    known: Known,
    values: Mapping[str, str],
    where: Where,
    *,
    anyway: bool = False,
) -> None:
    """Note what a plan and its fragments would do otherwise than they say.

    Args:
        plan: the plan.
        fragments: what it includes of files, by their paths.
        files: what it names.
        known: its variables.
        values: of all properties.
        where: the hosts that make the load.
        anyway: to run it even if nothing would be sent, or the load would never end.

    Raises:
        UsageError: a thread group would start nobody, or never end, or a Module Controller finds no part to run.
    """
    name = plan.path.name
    if not any(element.tag.endswith("ThreadGroup") for element in plan.elements):
        raise UsageError(f"{name} has no enabled thread group, so nothing would be sent: enable or add one")
    broken = links.broken_modules(name, plan.root)
    tell([*structure.findings(name, plan.root), *groups.findings(name, plan.elements, known), *broken], anyway=anyway)
    for text in _notes(name, plan.root, fragments, list(files), known, values, where):
        note(text)


def tell(findings: Iterable[Finding], *, anyway: bool) -> None:
    """Note findings; raise UsageError with those that are fatal, unless the plan is to run anyway."""
    fatal = []
    for finding in findings:
        if finding.is_fatal and not anyway:
            fatal.append(finding.text)
        else:
            note(finding.text)
    if fatal:
        raise UsageError("\n  ".join([*fatal, "--anyway runs it as it is"]))


def _notes(
    plan_name: str,
    root: ET.Element,
    fragments: Mapping[Path, ET.Element],
    files: Sequence[NamedFile],
    known: Known,
    values: Mapping[str, str],
    where: Where,
) -> Iterator[str]:
    roots = [root, *fragments.values()]
    places = [place for each in roots for place in walk(each)]
    by_element = {id(place.element): place for place in places}
    # A Module Controller runs what is disabled, too.
    has_modules = any(place.element.tag == "ModuleController" for place in places)
    defining = [place for each in roots for place in walk(each, with_disabled=True)] if has_modules else places
    scripts = [(place, text) for file in files if file.is_script and (place := by_element.get(id(file.element)))
               and (text := _content(file.path)) is not None]  # fmt: skip
    sets = [(place, data) for file in files if file.is_data_set and (place := by_element.get(id(file.element)))
            and (data := data_sets.describe(file, known, values)) is not None]  # fmt: skip
    headers = [(place, data.names) for place, data in sets if data.has_header]
    defined = definitions(defining, scripts, headers)
    # Scripts and data sets whose file is known only during the run may define anything.
    read = {id(place.element) for place, _ in (*scripts, *sets)}
    defined.is_open |= any((file.is_script or file.is_data_set) and id(file.element) not in read for file in files)
    order = [place for place in places if place.element.tag in ("Arguments", "TestPlan")]
    yield from undefined.findings(plan_name, places, defined, values, order)
    yield from engines.findings(plan_name, places, defined, values)
    yield from links.findings(plan_name, root, fragments, places, known)
    text = "\n".join(text for place in places for text in place.element.itertext())
    text += "\n".join(text for _, text in scripts)
    all_groups = [place.element for place in places if place.element.tag.endswith("ThreadGroup")]
    readers = data_sets.Readers(
        known,
        all_groups,
        sets,
        divides_users=where.is_over_slaves and not where.whole_plan,
        divides_rows=where.is_over_slaves and where.split_csv,
    )
    for place, data in sets:
        yield from data_sets.findings(place, data, readers, text)


def _content(path: Path | None) -> str | None:
    return path.read_text(encoding="utf-8", errors="replace") if path is not None and path.is_file() else None
