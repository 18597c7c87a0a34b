"""The settings of a run: the properties of its plan, those that Framestorm fills in, and JMeter's own."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from framestorm import client_server, paths
from framestorm.errors import UsageError
from framestorm.load import kit_load
from framestorm.load.kit_load import KitLoad
from framestorm.model.facets import GRPC
from framestorm.model.plan import HTTP_SAMPLERS, Plan, trim
from framestorm.model.sample import KIT_COLUMNS, TRACE_ID
from framestorm.plain import note
from framestorm.run import jmeter, values, video
from framestorm.run import properties as java_properties
from framestorm.run.needs import Needs
from framestorm.run.options import What

# Each request gets a trace id of its own (client/traceparent.py, jmx/java/plan/Traceparent.java): by the headers of one
# of the kit's plans, or in any other plan by JMeter (jmx/java/Traces.java).
TRACE = {"traceparent": "new"}
_TRACE_BY_JMETER = {"framestorm.trace": "true"}
_MAY_SEND_HTTP = (*HTTP_SAMPLERS, "IncludeController")
# Properties of the kit's own classes, and of Java.
_READ_BY_JAVA = frozenset({"framestorm", "java", "javax", "jdk", "sun", "http", "https"})
# Which classes JMeter takes for functions, and the kit's own (jmx/java/Beginning.java).
_WHERE_FUNCTIONS_ARE, _START = "classfinder.functions.contain", "framestorm.functions.Beginning"


@dataclass(frozen=True)
class Settings:
    """The properties that JMeter gets.

    given: those that the command line sets; extra: those of -G; of_files: those of JMeter's property files.
    of_jmeter: JMeter's own.
    properties: the plan's that a user may set, as they are set; values: those of them that JMeter gets, and what
        Framestorm fills in.
    """

    given: Mapping[str, str]
    extra: Mapping[str, str]
    of_files: Mapping[str, str]
    of_jmeter: Mapping[str, str]
    properties: Mapping[str, str]
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def every(self) -> dict[str, str]:
        """All of them, as JMeter has them during the run."""
        return {**self.of_files, **self.of_jmeter, **self.values, **self.extra}

    def of_window(self, plan: Plan) -> dict[str, str]:
        """Return those that JMeter's GUI gets: a default of the plan is not among them, as it may be changed there."""
        defaults = {name: trim(value) for name, value in plan.defaults.items() if name not in self.given}
        return {**{name: value for name, value in self.values.items() if value != defaults.get(name)}, **self.of_jmeter}


def read_settings(plan: Plan, what: What) -> Settings:
    """Read what the command line and its files set for a plan.

    Raises:
        UsageError: the plan has no such property, or it cannot have that value.
    """
    of_kit = (*plan.settable, *plan.filled_in) if plan.is_for_kit else ()
    if own := next((name for name in what.extra if name in of_kit), None):
        raise UsageError(f"-G{own}: it is a property of {plan.path.name}: give it by -J, which reaches slaves too")
    of_files = java_properties.assigned(what.all_property_files)
    # As in JMeter: -J without a value removes a property, so that its default counts; in a file, nothing is a value.
    empty = [name for name, value in what.given.items() if name in plan.settable and not value]
    if not plan.is_for_kit:
        empty = [name for name in empty if of_files.get(name) != ""]
    for name in empty:
        note(f"-J{name} without a value: the plan's default counts, as in JMeter")
    asked = dict(what.given)
    if plan.is_for_kit:  # whose defaults JMeter gets by -J: they would count before those of -p
        asked = {name: of_files[name] for name in plan.settable if of_files.get(name)} | asked
    set_by_user = {**of_files, **asked, **what.extra}
    own_functions = set_by_user.get(_WHERE_FUNCTIONS_ARE)
    if own_functions is not None and own_functions not in _START:
        raise UsageError(
            f"{_WHERE_FUNCTIONS_ARE}={own_functions}: JMeter would not find {_START}, by which the kit begins a test; "
            "leave the property out, or give a value that is part of this name, such as .functions."
        )
    if overruled := sorted(name for name, value in _row_settings().items() if set_by_user.get(name, value) != value):
        note(f"the form of samples.jtl is fixed; left out: {', '.join(overruled)}")
    given = {
        # JMeter's functions leave out the blanks around a property; a script of somebody else's plan sees them.
        name: trim(value) if plan.is_for_kit and name in plan.settable else value
        for name, value in asked.items()
        if name not in {*empty, *overruled}
    }
    of_jmeter = _of_jmeter(plan, given, of_files)
    if jmeter.user_jars():
        others = of_jmeter.get("search_paths") or of_files.get("search_paths")
        of_jmeter["search_paths"] = ";".join([str(paths.JARS), *([others] if others else [])])
    of_user = filter(None, set_by_user.get("sample_variables", "").split(","))
    # The kit's own columns are written beside the variables, to samples.jtl alone.
    kit_columns = (*KIT_COLUMNS, TRACE_ID) if what.is_traced else KIT_COLUMNS
    if columns := dict.fromkeys(name for name in (*plan.sample_variables, *of_user) if name not in kit_columns):
        of_jmeter["sample_variables"] = ",".join(columns)
    of_plan = {name: value for name, value in given.items() if name in plan.settable}
    return Settings(
        given=given,
        extra={name: value for name, value in what.extra.items() if name not in {"sample_variables", *overruled}},
        of_files=of_files,
        of_jmeter=of_jmeter,
        properties={name: trim(value) for name, value in {**plan.defaults, **of_plan}.items()},
    )


def complete(
    settings: Settings,
    plan: Plan,
    url: str,
    headers: Mapping[str, str],
    *,
    is_over_slaves: bool,
    is_for_gui: bool,
    is_traced: bool = False,
) -> Settings:
    """Return the settings with the function's address, and with each of the plan's properties as it is used.

    headers: that requests to this address need; those that the user sets count before them.
    is_traced: each request gets a trace id of its own.

    Raises:
        UsageError: a property cannot be used, or one that is needed is missing.
    """
    properties = dict(settings.properties)
    if plan.url is not None:
        properties[plan.url.name] = url
        if url.startswith(("grpc://", "grpcs://")) and GRPC not in plan.url.facets:
            raise UsageError(
                f"-J{plan.url.name}={url}: {plan.path.name} sends HTTP; jmx/infer.jmx and jmx/infer-rate.jmx call "
                "models by gRPC"
            )
        if "python" not in plan.filled_in and "%" in (urlsplit(url).hostname or ""):
            raise UsageError(
                f"-J{plan.url.name}={url}: JMeter's HTTP client cannot send to an IPv6 address with a zone. "
                "Use an address without one, or give the address a name in /etc/hosts"
            )
    has_headers = "headers" in plan.settable and plan.is_for_kit
    if is_traced and not (has_headers or any(each.tag in _MAY_SEND_HTTP for each in plan.elements)):
        raise UsageError(
            f"--trace: {plan.path.name} has neither an HTTP sampler nor the property headers, so nothing that it sends "
            "can have a traceparent: leave --trace out"
        )
    by_jmeter = _TRACE_BY_JMETER if is_traced and not has_headers else {}
    properties |= _with_headers(plan, properties, {**headers, **(TRACE if is_traced and has_headers else {})})
    properties |= video.absolute(plan, properties, settings.given)
    completed = values.complete(plan, properties, settings.given, is_over_slaves=is_over_slaves, is_for_gui=is_for_gui)
    return replace(settings, properties=completed, of_jmeter={**settings.of_jmeter, **by_jmeter})


def _with_headers(plan: Plan, properties: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, str]:
    """Return the property `headers` with those that a platform needs; nothing if it needs none.

    Raises:
        UsageError: the plan has no such property.
    """
    if not headers:
        return {}
    if "headers" not in plan.settable or not plan.is_for_kit:
        lines = ", ".join(f"{name}: {value}" for name, value in headers.items())
        raise UsageError(
            f"{plan.path.name} has no property headers, and requests to this address need {lines}: add an HTTP Header "
            "Manager with them to the plan, and leave --context out; or use jmx/requests.jmx"
        )
    own = properties["headers"]
    there = {name.lower() for name, _ in values.headers_of(own)}
    more = [f"{name}: {value}" for name, value in headers.items() if name.lower() not in there]
    if more and own.startswith("@"):  # its lines stay there, where secrets may be
        raise UsageError(f"-Jheaders={own}: requests need, in this file, too: {', '.join(more)}")
    return {"headers": r"\n".join([*([own] if own else []), *more])} if more else {}


def resolve_load(settings: Settings, plan: Plan, run_dir: Path) -> tuple[Settings, KitLoad | None]:
    """Read the load of one of the kit's plans, and return the settings with it.

    Raises:
        UsageError: the load is not understood.
    """
    load, properties = kit_load.resolve(plan, settings.properties, settings.given)
    of_jmeter = dict(settings.of_jmeter)
    if load is not None and not load.is_plain:
        of_jmeter[kit_load.PROPERTY] = kit_load.reference(run_dir.absolute())
    return replace(settings, properties=properties, of_jmeter=of_jmeter), load


def fill_in(settings: Settings, plan: Plan, run_dir: Path) -> Settings:
    """Return the settings with the values of the properties that a plan leaves to Framestorm to fill in.

    Raises:
        UsageError: the plan asks for a value that Framestorm does not have.
        FramestormError: what the plan sends cannot be made.
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
    own |= video.fill_in(plan, settings.properties)
    if unknown := [name for name in plan.filled_in if name not in own]:
        raise UsageError(f"{plan.path.name}: Framestorm cannot fill in {unknown[0]}, but only {', '.join(own)}")
    # JMeter itself reads the defaults of a plan that is not made for the kit, and the files of -q.
    of_plan = {name: value for name, value in settings.given.items() if name in plan.settable and value}
    filled_in = {name: str(own[name]) for name in plan.filled_in}
    return replace(settings, values={**(settings.properties if plan.is_for_kit else of_plan), **filled_in})


def note_unread(settings: Settings, needs: Needs) -> tuple[str, ...]:
    """Note each property of the command line that neither the plan nor JMeter knows; return those that nothing reads.

    One that is named like JMeter's own (`httpclient4.…`) may be read all the same: not all are in JMeter's files.
    """
    asked = {**settings.given, **settings.extra}
    names = asked.keys() & (settings.of_jmeter.keys() | settings.extra.keys()) - jmeter_names()
    unknown = [name for name in asked if name in names and not needs.has_property(name)]
    for name in unknown:
        letter = "-J" if name in settings.given else "-G"
        note(f"{letter}{name}: neither the plan nor JMeter's property files have {name}; passed on")
    of_jmeter = {_first_word(name) for name in jmeter_names()} | _READ_BY_JAVA
    return tuple(name for name in unknown if _first_word(name) not in of_jmeter)


def _first_word(name: str) -> str:
    return name.partition(".")[0]


def kit_settings(plan: Plan) -> dict[str, str]:
    """Return JMeter's settings for a plan that is made for the kit; none for any other."""
    return java_properties.read(paths.JMX / "kit.properties") if plan.is_for_kit else {}


@cache
def jmeter_names() -> frozenset[str]:
    """Return the names in JMeter's own property files."""
    files = [paths.JMETER_HOME / "bin" / f"{name}.properties" for name in ("jmeter", "reportgenerator", "user")]
    files += [paths.JMX / f"{name}.properties" for name in ("user", "kit")]
    text = "\n".join(path.read_text(errors="replace") for path in files)
    return frozenset(re.findall(r"^#?\s*([\w.-]+)\s*=", text, flags=re.MULTILINE))


def _of_jmeter(plan: Plan, given: Mapping[str, str], of_files: Mapping[str, str]) -> dict[str, str]:
    """Properties of the command line that are not the plan's; an unknown one is refused if the plan describes its own.

    A plan that does not may read further ones where nobody sees it, such as in a script. JMeter reads those of files.
    """
    is_described = any(each.facets for each in plan.settable.values())
    of_jmeter = kit_settings(plan)
    for name, value in given.items():
        is_known = "." in name or name in jmeter_names() or name in of_files
        if name in plan.settable or name in plan.filled_in or (is_described and not is_known):
            plan.check(name, value)
        elif of_files.get(name) == value and name not in _own_settings():
            of_jmeter.pop(name, None)
        else:
            of_jmeter[name] = value
    return of_jmeter


@cache
def _own_settings() -> dict[str, str]:
    """Return JMeter's settings for every run, which JMeter reads after the files of -q."""
    return java_properties.read(paths.JMX / "user.properties")


def _row_settings() -> dict[str, str]:
    """Return the settings without which samples.jtl could not be read."""
    settings = _own_settings()
    return {name: value for name, value in settings.items() if "saveservice" in name or "timestamp" in name}
