"""Every check of a run that can be made before it starts."""

import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framestorm.errors import UsageError
from framestorm.load import kit_load
from framestorm.load.kit_load import KitLoad
from framestorm.load.reading import read_loads
from framestorm.model import criteria, metric, stop_rule, units
from framestorm.model import plan as plans
from framestorm.model.load import Load
from framestorm.model.name import Name
from framestorm.model.plan import Plan
from framestorm.model.plan_files import Known
from framestorm.model.sample import is_figure_name
from framestorm.model.scraped import divided
from framestorm.plain import note
from framestorm.platform.base import Platform
from framestorm.platform.embedded import Embedded, EmbeddedSettings
from framestorm.probe import limits
from framestorm.run import capacity, http2, meaning, names, pacing
from framestorm.run import settings as run_settings
from framestorm.run.capacity import Demand
from framestorm.run.needs import Address, Needs, look
from framestorm.run.options import HERE, Output, What, Where
from framestorm.run.proxy import Proxies
from framestorm.run.secrets import literal_secrets, secrets_of_java
from framestorm.run.settings import Settings
from framestorm.run.target import check_way, find_platform, read_proxies, way_to


@dataclass(frozen=True)
class Prepared:
    """A run that passed every check here and has not started.

    needs: what the plan needs beyond its text.
    loads: what each thread group of the plan asks for, and each timer. kit_load: that of a plan of the kit whose
        properties have it.
    asked: what all users together take of the hosts that start them.
    platform: where the function under test runs.
    called: the addresses that requests go to, as far as they are known; names: those of them that have several
        addresses on this machine, which sends the requests.
    proxies: those by which JMeter on this machine sends its requests.
    target: host:port that slaves have to reach; empty without slaves, or where it is not known.
    unread: the properties of the command line that neither the plan nor JMeter reads.
    """

    what: What
    where: Where
    run_dir: Path
    plan: Plan
    settings: Settings
    needs: Needs
    platform: Platform[Any]
    asked: Demand
    proxies: Proxies
    loads: tuple[Load, ...] = ()
    kit_load: KitLoad | None = None
    called: tuple[Address, ...] = ()
    names: tuple[Name, ...] = ()
    target: str = ""
    unread: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """The address of the function under test, or of the only server that the plan calls; empty if not known."""
        urls = {address.url for address in self.called}
        return self.platform.url or (urls.pop() if len(urls) == 1 else "")

    def write_load(self) -> None:
        """Write the load into the run's folder if JMeter cannot read it from the plan's properties."""
        if self.kit_load is not None and kit_load.PROPERTY in self.settings.of_jmeter:
            (self.run_dir / kit_load.FILE).write_text(self.kit_load.written)


def prepare(
    what: What, run_dir: Path, where: Where = HERE, function_url: str | None = None, plan: Plan | None = None
) -> Prepared:
    """Check plan, properties and target, make what the plan sends, and work out the values of all properties.

    Args:
        what: the plan, and what is set for it.
        run_dir: the folder that the run will make.
        where: the hosts that make the load.
        function_url: the address of the inventory's function, for a run over slaves that does not set url.
        plan: the plan, if it has been read.

    Raises:
        UsageError: plan, properties or folder are wrong.
        FramestormError: something that the run needs is missing.
    """
    plan = plan or plans.read(what.plan)
    is_over_slaves, is_for_gui = where.is_over_slaves, what.is_for_gui
    settings = run_settings.read_settings(plan, what)
    proxies = read_proxies(what, settings, is_over_slaves=is_over_slaves)
    site = what.site(where)
    platform = find_platform(plan, settings.given, site, prepared=what.platform, function_url=function_url)
    if isinstance(platform, Embedded) and not platform.url:
        platform.prepare(EmbeddedSettings(function=platform.function))
    settings = run_settings.complete(
        settings,
        plan,
        platform.url,
        platform.headers(),
        is_over_slaves=is_over_slaves,
        is_for_gui=is_for_gui,
        is_traced=what.is_traced,
    )
    # A plan of the kit's may have them from a curl command.
    own = {name: settings.properties.get(name, "") for name in ("url", "proxy") if plan.is_for_kit}
    secrets = [
        *literal_secrets({**own, **settings.given}, is_for_kit=plan.is_for_kit),
        *literal_secrets(settings.extra, "-G", is_for_kit=False),
        *secrets_of_java(what.jmeter_options),
    ]
    for sentence in [] if is_for_gui else secrets:
        note(sentence)
    settings, of_kit = run_settings.resolve_load(settings, plan, run_dir)
    if not is_for_gui and {settings.properties.get(name) for name in ("ramp_s", "hold_s")} == {"0"}:
        raise UsageError("-Jramp_s=0 -Jhold_s=0: a load of 0 s measures nothing")
    way = None
    # To edit a plan, its function need not run.
    if platform.url and not (platform.runs_with_load or is_for_gui):
        way = way_to(platform.url, settings, proxies)
        check_way(way, plan, settings, is_over_slaves=is_over_slaves)
    settings = run_settings.fill_in(settings, plan, run_dir)
    needs = look(plan, settings.every, where, is_for_gui=is_for_gui, anyway=what.anyway)
    unread = run_settings.note_unread(settings, needs)
    loads = read_loads(plan, needs.fragments.values(), settings.every)
    if not is_for_gui:
        _check_meaning(plan, settings, needs, loads, anyway=what.anyway)
    asked = capacity.asked_of(plan, loads)
    if not is_over_slaves and not is_for_gui:
        refuse(capacity.shortages(asked, limits()), "this machine cannot hold the users", anyway=what.anyway)
    called = (way.address,) if way else (Address(platform.url),) if platform.url else needs.addresses
    several: tuple[Name, ...] = ()
    if not (is_over_slaves or is_for_gui or platform.runs_with_load):
        several = names.several(plan, called, proxies)
        for sentence in (name.before_load for name in several):
            note(sentence)
        http2.note_agreed(called, proxies)
    return Prepared(
        what,
        where,
        run_dir,
        plan,
        settings,
        needs,
        platform,
        asked,
        proxies,
        loads=loads,
        kit_load=of_kit,
        called=called,
        names=several,
        target=way.first if way and is_over_slaves else "",
        unread=unread,
    )


def _check_meaning(plan: Plan, settings: Settings, needs: Needs, loads: Sequence[Load], *, anyway: bool) -> None:
    """Note what JMeter makes up, and refuse a plan whose load is not what it says."""
    if without := plan.without_value(settings.every):
        have, give = "has" if len(without) == 1 else "have", " ".join(f"-J{name}=" for name in without)
        made_up = "no default, so JMeter makes one up (1, or the name)"
        note(f"{plan.path.name}: {units.listed(without)} {have} {made_up}: give {give}")
    roots = [plan.root, *needs.fragments.values()]
    elements = [each for root in roots for each in plans.enabled_elements(root)]
    defined = Known(elements, settings.every, plan.path.parent)
    meaning.tell(pacing.findings(plan.path.name, roots, defined, settings.every, loads), anyway=anyway)


def check_criteria(plan: Plan, output: Output, families: Collection[str] = ()) -> None:
    """Raise UsageError if a criterion or a stop rule is none, or has a label that the plan has not.

    families: the names of the series that the targets of --scrape have.
    """
    known = plan.known_labels
    texts = list(output.criteria)
    if output.scrape:
        of_targets, texts = divided(texts, families)
        for family in (each.family for each in of_targets if each.family not in families):
            similar = difflib.get_close_matches(family, families, n=3, cutoff=0.5)
            hint = f"; there are {', '.join(similar)}" if similar else ""
            raise UsageError(f"--fail-if: no target of --scrape has a series {family}{hint}")
    parsed = [("--fail-if", text, criteria.parse(text, plan.label)) for text in texts]
    rules = stop_rule.parse_all(output.stop_if, output.stop_when, plan.label)
    parsed += [(rule.option, rule.text, rule.criterion) for rule in rules]
    for option, text, criterion in parsed:
        label = criterion.label
        # Sub-results, such as redirects and embedded resources, have the label of their sample and a number.
        if known and label != criteria.EACH and not {label, re.sub(r"(-\d+)+$", "", label)} & known:
            labels = units.in_lines(metric.quoted(name) for name in sorted(known - {criteria.ALL}))
            hint = "; the name of a figure that is a time ends in _ms: latency_ms is the time to the first byte"
            may_be_figure = is_figure_name(label) and criterion.metric not in criteria.COUNT_UNITS
            raise UsageError(
                f"{option} '{text}': {plan.path.name} has no label {metric.quoted(label)}"
                f"{hint if may_be_figure else ''}. Its labels:{labels}"
            )


def refuse(shortages: Sequence[str], what: str, *, anyway: bool) -> None:
    """Raise UsageError if a host has too little of something; with --anyway it is a note."""
    if shortages and not anyway:
        hint = "ask for fewer users, share them among more slaves (-R), or run with --anyway"
        raise UsageError("\n  ".join((f"{what}:", *shortages, hint)))
    for each in shortages:
        note(f"{what}: {each}")
