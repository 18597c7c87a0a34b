"""The options of a run, and every check that can be made before it starts."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from framestorm import client_server, paths
from framestorm.endpoint import check_certificate, check_reachable, host_and_port, proxy_url
from framestorm.errors import UsageError
from framestorm.load import kit_load
from framestorm.load.kit_load import KitLoad
from framestorm.load.reading import read_loads
from framestorm.model import criteria, facets, metric, units
from framestorm.model import plan as plans
from framestorm.model.load import Load
from framestorm.model.name import Name
from framestorm.model.plan import Plan, trim
from framestorm.model.plan_files import Known
from framestorm.model.sample import ELAPSED_US, SAMPLE_KIND, is_figure_name
from framestorm.plain import note
from framestorm.platform.base import DEFAULT_PORT, Platform, Site
from framestorm.platform.embedded import Embedded, EmbeddedSettings
from framestorm.probe import limits, why_unreached
from framestorm.run import capacity, http2, influxdb, jmeter, meaning, names, pacing, proxy, video
from framestorm.run import properties as java_properties
from framestorm.run.capacity import Demand
from framestorm.run.needs import Address, Needs, look
from framestorm.run.output import check_output
from framestorm.run.proxy import Proxies
from framestorm.run.secrets import literal_secrets
from framestorm.run.target import find_platform
from framestorm.run.values import SECRET, complete, headers_of

DEFAULT_PLAN = paths.JMX / "face-blur.jmx"


@dataclass(frozen=True)
class RunOptions:
    """The options of the command line; `given`: the properties that it sets, also by the files of -q, `property_files`.

    jmeter_options: further words for JMeter.
    platform: already has the settings to measure; if None, it is found by the url or is the embedded target.
    """

    plan: Path = DEFAULT_PLAN
    given: Mapping[str, str] = field(default_factory=dict)
    criteria: tuple[str, ...] = ()
    accepts_overload: bool = False
    run_dir: Path | None = None
    samples_copy: Path | None = None
    log_copy: Path | None = None
    property_files: tuple[Path, ...] = ()
    jmeter_options: tuple[str, ...] = ()
    proxy_password: str | None = field(default=None, repr=False)
    extra: Mapping[str, str] = field(default_factory=dict)
    slaves: str | None = None
    inventory: Path = paths.INVENTORY
    without_faulty: bool = False
    continue_on_loss: bool = False
    split_csv: bool = False
    whole_plan: bool = False
    anyway: bool = False
    port: int = DEFAULT_PORT
    platform: Platform[Any] | None = None
    influxdb_url: str | None = None
    is_for_gui: bool = False
    title: str | None = None
    command: tuple[str, ...] = ()

    @property
    def site(self) -> Site:
        """Where the function under test runs, unless it has an address."""
        return Site(self.port, over_slaves=self.slaves is not None)

    @property
    def all_property_files(self) -> list[Path]:
        """JMeter's property files, in the order in which it reads them."""
        return [*(Path(word[2:]) for word in self.jmeter_options if word.startswith("-p")), *self.property_files]

    @property
    def for_jmeter(self) -> list[str]:
        """JMeter's own options, in the order in which it has to read them."""
        return [*self.jmeter_options, *(f"-q{path}" for path in self.property_files)]


@dataclass(frozen=True)
class Prepared:
    """A run that passed every check here and has not started.

    needs: what the plan needs beyond its text.
    properties: the plan's properties that a user may set, as they are set; values: those and what is filled in.
    jmeter_values: JMeter's own properties.
    loads: what each thread group of the plan asks for, and each timer. kit_load: that of a plan of the kit whose
        properties have it.
    asked: what all users together take of the hosts that start them.
    platform: where the function under test runs.
    called: the addresses that requests go to, as far as they are known; names: those of them that have several
        addresses on this machine, which sends the requests.
    proxies: those by which JMeter on this machine sends its requests.
    target: host:port that slaves have to reach; empty without slaves, or where it is not known.
    """

    options: RunOptions
    run_dir: Path
    plan: Plan
    needs: Needs
    properties: Mapping[str, str]
    values: Mapping[str, str]
    jmeter_values: Mapping[str, str]
    platform: Platform[Any]
    asked: Demand
    proxies: Proxies
    loads: tuple[Load, ...] = ()
    kit_load: KitLoad | None = None
    called: tuple[Address, ...] = ()
    names: tuple[Name, ...] = ()
    target: str = ""

    def write_load(self) -> None:
        """Write the load into the run's folder if JMeter cannot read it from the plan's properties."""
        if self.kit_load is not None and kit_load.PROPERTY in self.jmeter_values:
            (self.run_dir / kit_load.FILE).write_text(self.kit_load.written)


def prepare(options: RunOptions, run_dir: Path, function_url: str | None = None, plan: Plan | None = None) -> Prepared:
    """Check plan, properties, folders and target, cut the video, and work out the values of all properties.

    Args:
        options: the options of the command line.
        run_dir: the folder that the run will make.
        function_url: the address of the inventory's function, for a run over slaves that does not set url.
        plan: the plan of the options, if it has been read.

    Raises:
        UsageError: plan, properties or folder are wrong.
        FramestormError: something that the run needs is missing.
    """
    plan = plan or plans.read(options.plan)
    of_files = java_properties.assigned(options.all_property_files)
    # As in JMeter: -J without a value removes a property, so that its default counts; in a file, nothing is a value.
    empty = [name for name, value in options.given.items() if name in plan.settable and not value]
    if not plan.is_for_kit:
        empty = [name for name in empty if of_files.get(name) != ""]
    for name in empty:
        note(f"-J{name} without a value: the plan's default counts, as in JMeter")
    set_by_user = {**of_files, **options.given, **options.extra}
    if overruled := sorted(name for name, value in _row_settings().items() if set_by_user.get(name, value) != value):
        note(f"the form of samples.jtl is fixed; left out: {', '.join(overruled)}")
    given = {
        # JMeter's functions leave out the blanks around a property; a script of somebody else's plan sees them.
        name: trim(value) if plan.is_for_kit and name in plan.settable else value
        for name, value in options.given.items()
        if name not in {*empty, *overruled}
    }
    extra = {name: value for name, value in options.extra.items() if name not in {"sample_variables", *overruled}}
    options = replace(options, given=given, extra=extra)
    jmeter_values = _jmeter_values(plan, given, of_files)
    of_plan = {name: value for name, value in given.items() if name in plan.settable}
    properties = {name: trim(value) for name, value in {**plan.defaults, **of_plan}.items()}
    _check_proxy(options, of_files)
    if options.influxdb_url:
        influxdb.check_address(options.influxdb_url)
    check_output(run_dir, options.samples_copy, options.log_copy)
    known = plan.known_labels
    for text in options.criteria:
        criterion = criteria.parse(text, plan.label)
        label = criterion.label
        # Sub-results, such as redirects and embedded resources, have the label of their sample and a number.
        if known and label != criteria.EACH and not {label, re.sub(r"(-\d+)+$", "", label)} & known:
            labels = units.in_lines(metric.quoted(name) for name in sorted(known - {criteria.ALL}))
            hint = "; the name of a figure that is a time ends in _ms: latency_ms is the time to the first byte"
            may_be_figure = is_figure_name(label) and criterion.metric not in criteria.COUNT_UNITS
            raise UsageError(
                f"--fail-if '{text}': {plan.path.name} has no label {metric.quoted(label)}"
                f"{hint if may_be_figure else ''}. Its labels:{labels}"
            )
    is_over_slaves = options.slaves is not None
    given_url = options.given.get(plan.url.name) if plan.url else None
    platform = find_platform(
        plan, properties, given_url, options.site, prepared=options.platform, function_url=function_url
    )
    if isinstance(platform, Embedded) and not platform.url:
        platform.prepare(EmbeddedSettings())
    if plan.url is not None:
        properties[plan.url.name] = platform.url
        if "python" not in plan.filled_in and "%" in (urlsplit(platform.url).hostname or ""):
            raise UsageError(
                f"-J{plan.url.name}={platform.url}: JMeter's HTTP client cannot send to an IPv6 address with a zone. "
                "Use an address without one, or give the address a name in /etc/hosts"
            )
    if plan.video is not None:
        name = plan.video.name
        path = Path(options.given[name]).expanduser().absolute() if name in options.given else None
        properties[name] = str(path or paths.ROOT / properties[name])
    properties = complete(plan, properties, options.given, is_over_slaves=is_over_slaves, is_for_gui=options.is_for_gui)
    for sentence in [] if options.is_for_gui else literal_secrets(options.given, is_for_kit=plan.is_for_kit):
        note(sentence)
    of_kit, properties = kit_load.resolve(plan, properties, options.given)
    if of_kit is not None and not of_kit.is_plain:
        jmeter_values[kit_load.PROPERTY] = kit_load.reference(run_dir.absolute())
    if not options.is_for_gui and {properties.get(name) for name in ("ramp_s", "hold_s")} == {"0"}:
        raise UsageError("-Jramp_s=0 -Jhold_s=0: a load of 0 s measures nothing")
    proxies = Proxies({}) if is_over_slaves else proxy.read(options.jmeter_options, os.environ)
    if proxies.has_ignored_https:
        note(
            "https.proxyHost: only samplers with the implementation Java read it; all others send https requests by "
            "the proxy of http.proxyHost, too: give that, or -H HOST and -P PORT"
        )
    target = own_way = ""
    # To edit a plan, its function need not run.
    if platform.url and not (platform.runs_with_load or options.is_for_gui):
        of_plan_proxy = proxy_url(SECRET.sub(lambda match: os.environ[match[1]], properties.get("proxy", "")))
        own_way = "{}:{}".format(*host_and_port(re.sub("//.*@", "//", of_plan_proxy))) if of_plan_proxy else ""
        way = own_way or proxies.way_to(platform.url)
        if is_over_slaves:
            # They may reach what this machine does not, and the other way round.
            target = way or "{}:{}".format(*host_and_port(platform.url))
        else:
            check_reachable(platform.url, way)
        has_certificate = platform.url.startswith("https://") and way == own_way
        has_certificate &= not (is_over_slaves and why_unreached(target))
        for name, each in plan.settable.items():
            if facets.AUTHORITIES in each.facets and has_certificate:
                server_name = _server_name(plan, properties)
                check_certificate(platform.url, f"-J{name}", properties[name], of_plan_proxy, server_name)
    # JMeter itself reads the defaults of a plan that is not made for the kit, and the files of -q.
    own = properties if plan.is_for_kit else {name: value for name, value in of_plan.items() if value}
    values = {**own, **_filled_in(plan, properties, run_dir)}
    if jmeter.user_jars():
        others = jmeter_values.get("search_paths") or of_files.get("search_paths")
        jmeter_values["search_paths"] = ";".join([str(paths.JARS), *([others] if others else [])])
    of_user = filter(None, set_by_user.get("sample_variables", "").split(","))
    columns = dict.fromkeys((*plan.sample_variables, *of_user, ELAPSED_US, SAMPLE_KIND))
    jmeter_values["sample_variables"] = ",".join(columns)
    of_all = {**of_files, **options.extra, **jmeter_values, **values}
    needs = look(plan, of_all, is_for_gui=options.is_for_gui, anyway=options.anyway)
    for name in given.keys() & jmeter_values.keys() - jmeter_names():
        if not needs.has_property(name):
            what = f"neither the plan nor JMeter's property files have {name}"
            note(f"-J{name}: {what}; passed on")
    loads = read_loads(plan, needs.fragments.values(), of_all)
    without = [] if options.is_for_gui else plan.without_value(of_all)
    if without:
        have, give = "has" if len(without) == 1 else "have", " ".join(f"-J{name}=" for name in without)
        made_up = "no default, so JMeter makes one up (1, or the name)"
        note(f"{plan.path.name}: {units.listed(without)} {have} {made_up}: give {give}")
    if not options.is_for_gui:
        roots = [plan.root, *needs.fragments.values()]
        defined = Known([each for root in roots for each in plans.enabled_elements(root)], of_all, plan.path.parent)
        meaning.tell(pacing.findings(plan.path.name, roots, defined, of_all, loads), anyway=options.anyway)
    asked = capacity.asked_of(plan, loads)
    if not is_over_slaves and not options.is_for_gui:
        refuse(capacity.shortages(asked, limits()), "this machine cannot hold the users", options)
    called = (Address(platform.url, own_way),) if platform.url else needs.addresses
    several: tuple[Name, ...] = ()
    if not (is_over_slaves or options.is_for_gui or platform.runs_with_load):
        several = names.several(plan, called, proxies)
        for sentence in (name.before_load for name in several):
            note(sentence)
        http2.note_agreed(called, proxies)
    return Prepared(
        options,
        run_dir,
        plan,
        needs,
        properties,
        values,
        jmeter_values,
        platform,
        asked,
        proxies,
        loads=loads,
        kit_load=of_kit,
        called=called,
        names=several,
        target=target,
    )


def refuse(shortages: Sequence[str], what: str, options: RunOptions) -> None:
    """Raise UsageError if a host has too little of something; with --anyway it is a note."""
    if shortages and not options.anyway:
        hint = "ask for fewer users, share them among more slaves (-R), or run with --anyway"
        raise UsageError("\n  ".join((f"{what}:", *shortages, hint)))
    for each in shortages:
        note(f"{what}: {each}")


def _jmeter_values(plan: Plan, given: Mapping[str, str], of_files: Mapping[str, str]) -> dict[str, str]:
    """Properties of the command line that are not the plan's; an unknown one is refused if the plan describes its own.

    A plan that does not may read further ones where nobody sees it, such as in a script. JMeter reads those of files.
    """
    is_described = any(each.facets for each in plan.settable.values())
    jmeter_values = kit_settings(plan)
    for name, value in given.items():
        is_known = "." in name or name in jmeter_names() or name in of_files
        if name in plan.settable or name in plan.filled_in or (is_described and not is_known):
            plan.check(name, value)
        elif of_files.get(name) == value and name not in _own_settings():
            jmeter_values.pop(name, None)
        else:
            jmeter_values[name] = value
    return jmeter_values


def _server_name(plan: Plan, properties: Mapping[str, str]) -> str:
    """The name in the Host header, as JMeter's handshake has it (HostHeader.java); empty without one.

    A name that comes from a row is not known here.
    """
    headers = headers_of(properties.get("headers", "")) if plan.is_for_kit else []
    host = next((value for name, value in headers if name.lower() == "host" and "{" not in value), "")
    return re.sub(r":\d*$", "", host).strip("[]")


def _check_proxy(options: RunOptions, of_files: Mapping[str, str]) -> None:
    letters = {word[1] for word in options.jmeter_options}
    if ("H" in letters) != ("P" in letters):
        raise UsageError("a proxy is given by both -H HOST and -P PORT")
    if options.proxy_password is not None and "u" not in letters:
        raise UsageError("-a is the password of a user at the proxy: give that by -u")
    of_java = proxy.system_properties(options.jmeter_options)
    if options.slaves is not None and (letters & set("EHPNu") or of_java.keys() & proxy.NAMES):
        raise UsageError(
            "-H, -P, -N, -u and http.proxyHost set the proxy of this machine, and slaves send the requests: set it on "
            "them"
        )
    if ignored := sorted(proxy.NAMES & {**of_files, **options.given}.keys()):
        note(f"{', '.join(ignored)}: JMeter takes a proxy from -H and -P, or from -D and -S, but not from -J and -q")


def kit_settings(plan: Plan) -> dict[str, str]:
    """JMeter's settings for a plan that is made for the kit; none for any other."""
    return java_properties.read(paths.JMX / "kit.properties") if plan.is_for_kit else {}


@cache
def _own_settings() -> dict[str, str]:
    """JMeter's settings for every run, which JMeter reads after the files of -q."""
    return java_properties.read(paths.JMX / "user.properties")


def _row_settings() -> dict[str, str]:
    """The settings without which samples.jtl could not be read."""
    settings = _own_settings()
    return {name: value for name, value in settings.items() if "saveservice" in name or "timestamp" in name}


@cache
def jmeter_names() -> frozenset[str]:
    """The names in JMeter's own property files."""
    files = [paths.JMETER_HOME / "bin" / f"{name}.properties" for name in ("jmeter", "reportgenerator", "user")]
    files += [paths.JMX / f"{name}.properties" for name in ("user", "kit")]
    text = "\n".join(path.read_text(errors="replace") for path in files)
    return frozenset(re.findall(r"^#?\s*([\w.-]+)\s*=", text, flags=re.MULTILINE))


def _filled_in(plan: Plan, properties: Mapping[str, str], run_dir: Path) -> dict[str, str]:
    """Values for the properties that the plan leaves to Framestorm to fill in.

    Raises:
        UsageError: the plan asks for a value that Framestorm does not have.
        FramestormError: the video cannot be cut.
    """
    own = {
        "python": paths.CLIENT_PYTHON,
        "client_dir": paths.CLIENT,
        "client_server": client_server.new_name(str(run_dir)),
        "client_log": run_dir / "client.log",
        "cache": paths.FRAME_CACHE,
        "journal": run_dir / "journal.jsonl",
        "tree": run_dir / "tree.xml",
        "stop": run_dir / "stop",
    }
    if plan.video is not None:
        own["frame_dir"] = video.cut(Path(properties[plan.video.name]), properties)
    if unknown := [name for name in plan.filled_in if name not in own]:
        raise UsageError(f"{plan.path.name}: Framestorm cannot fill in {unknown[0]}, but only {', '.join(own)}")
    return {name: str(own[name]) for name in plan.filled_in}
