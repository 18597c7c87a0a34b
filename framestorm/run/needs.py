"""What a plan needs beyond its text, looked at before the load: files, classes of plug-ins, and hosts that it calls."""

import contextlib
import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from framestorm.errors import UsageError
from framestorm.model import plan as plans
from framestorm.model import units
from framestorm.model.plan import Plan
from framestorm.model.plan_files import Known, NamedFile, named_files
from framestorm.plain import note
from framestorm.run import meaning, plugins, structure
from framestorm.run.options import HERE, Where
from framestorm.run.proxy import Proxies

# A row, a script or a fragment is needed from these; an empty body may be meant.
_NEVER_EMPTY = ("CSVDataSet", "RandomCSVDataSetConfig", "JSR223", "BeanShell", "BSF", "IncludeController")
# The path of a drive, which no other machine has.
_OF_WINDOWS = re.compile(r"[A-Za-z]:[\\/]")
# The scripts of the kit's plans before their elements called classes.
_OLD_SCRIPT = re.compile(r"\$\{scripts\}/(answer|arrival|frame|request|stop|user)\.groovy")
# References in booleans, which JMeter does not look up.
_ENABLED = re.compile(r'\benabled="([^"]*\$\{[^"]*)"')
_BOOLEAN = re.compile(r'<boolProp name="([^"]*)">([^<]*\$\{[^<]*)</boolProp>')
_HTTP = ("domain", "port", "protocol", "path", "proxyHost", "proxyPort", "implementation")


class Address(NamedTuple):
    """Where an HTTP sampler sends its requests: scheme, host and port, and host:port of the sampler's own proxy.

    hosts: what a DNS Cache Manager of the plan has for the name in the URL; none if it has nothing.
    is_of_resolver: a DNS Cache Manager asks servers of its own for names that it does not have.
    """

    url: str
    proxy: str = ""
    is_java_client: bool = False
    hosts: tuple[str, ...] = ()
    is_of_resolver: bool = False

    def way(self, proxies: Proxies) -> str:
        """Return host:port of the proxy by which JMeter sends them: its own before that of the run; empty if none.

        Empty too of what is no URL, of which JMeter says so.
        """
        with contextlib.suppress(UsageError):
            return self.proxy or proxies.way_to(self.url, is_java_client=self.is_java_client)
        return ""


@dataclass(frozen=True)
class Needs:
    """What a plan needs: files, and addresses that its HTTP samplers call, as far as they are known before the run.

    samplers: the names of its samplers; unknown: files that only JMeter can work out.
    fragments: what it includes, by path. texts: of its elements, with those of fragments, and of its script files.
    """

    samplers: tuple[str, ...]
    files: tuple[Path, ...]
    unknown: tuple[str, ...]
    addresses: tuple[Address, ...]
    fragments: dict[Path, ET.Element]
    texts: tuple[str, ...]

    def has_property(self, name: str) -> bool:
        """Return whether the plan, a fragment or a script refers to it; a name that a script computes is not found."""
        of_script = re.compile(rf"\b(?:props|JMeterUtils)\b\W{{0,3}}(?:\w+\W{{1,3}})?{re.escape(name)}\b")
        return any(name in dict(plans.references(text)) or of_script.search(text) for text in self.texts)


def look(
    plan: Plan, values: Mapping[str, str], where: Where = HERE, *, is_for_gui: bool = False, anyway: bool = False
) -> Needs:
    """Find what a plan needs, with these values of properties; in the GUI files may still be chosen.

    Raises:
        UsageError: JMeter lacks a class of the plan, a file is missing or empty, or a thread group would start no user.
    """
    folder, working_dir = plan.path.absolute().parent, Path.cwd()
    roots, fragments = [plan.root], dict[Path, ET.Element]()
    elements: list[ET.Element] = []
    found: dict[str, NamedFile] = {}
    every: list[NamedFile] = []
    _check_readable(plan, plan.path, plan.root, values)
    for root in roots:  # it grows by the fragments
        own = plans.enabled_elements(root)
        elements += own
        for named in named_files(own, Known(elements, values, folder), folder, working_dir):
            is_new = named.shown not in found
            found[named.shown] = named
            every.append(named)
            if is_new and named.is_fragment and named.path is not None and _problem(named, folder) is None:
                whole = plans.parse(named.path)
                _check_readable(plan, named.path, whole, values)
                fragments[named.path] = plans.included(whole)
                roots.append(fragments[named.path])
    if old := next((named.text for named in every if _OLD_SCRIPT.fullmatch(named.text)), None):
        raise UsageError(
            f"{plan.path.name} is a copy of a plan of an earlier version, whose script {old} is now a class: make it "
            "anew by ./run.sh new, or take over the JSR223 elements and the set-up of the plan in jmx/"
        )
    problems = {named: problem for named in found.values() if (problem := _problem(named, folder))}
    for named in [each for each in problems if each.is_of_class_path]:
        del found[named.shown]
        what = _line(named, problems.pop(named))
        note(f"{plan.path.name}: {what}, and JMeter runs without it: put it into jmx/lib/ if the plan needs it")
    if problems:
        lines = [_line(named, problem) for named, problem in problems.items()]
        # A thread group that sets up may write files for the others.
        may_come = any(
            group == "SetupThreadGroup" and not plans.is_call_of_kit(element)
            for root in roots
            for element, group in plans.enabled(root, "")
        )
        if not (is_for_gui or may_come or anyway):
            raise UsageError("\n  ".join([f"{plan.path.name} lacks files:", *lines, "--anyway runs it as it is"]))
        for line in lines:
            note(f"{plan.path.name}: {line}{', unless a setUp Thread Group makes it' if may_come else ''}")
    known = Known(elements, values, folder)
    if not is_for_gui:
        meaning.check(plan, fragments, every, known, values, where, anyway=anyway)
        _note_case(plan.path.name, elements, known)
        if names := _without_server(elements, known):
            what = f"{units.listed(names)} {'name' if len(names) > 1 else 'names'} no server"
            note(f"{plan.path.name}: {what}, nor do HTTP Request Defaults: unless a script does, each request fails")
    return Needs(
        samplers=tuple(
            each.get("testname", "")
            for each in elements
            if each.tag.endswith(plans.SAMPLERS) and not plans.is_call_of_kit(each)
        ),
        files=tuple(dict.fromkeys(named.path for named in found.values() if named.path is not None)),
        unknown=tuple(name for name, named in found.items() if named.path is None),
        addresses=tuple(dict.fromkeys(_addresses(elements, known))),
        fragments=fragments,
        texts=(
            *(text for each in elements for text in (each.get("testname", ""), *each.itertext())),
            *(_text(named.path) for named in found.values() if named.is_script and named.path is not None),
        ),
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _check_readable(plan: Plan, path: Path, root: ET.Element, values: Mapping[str, str]) -> None:
    """Check that JMeter can read the file of a plan, or of a fragment: it reads all of that, too."""
    structure.check(path.name, root)
    plugins.check(plan, root, values)
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        note(f"{path.name} is not in UTF-8, the encoding that JMeter reads: save it in UTF-8, or letters are lost")
    for reference in dict.fromkeys(_ENABLED.findall(_text(path))):
        what = f'enabled="{reference}" disables an element, as JMeter looks up no property there'
        note(f"{path.name}: {what}: set its users or loops by one")
    for name, reference in dict.fromkeys(_BOOLEAN.findall(_text(path))):
        what = f"the boolProp {name} has {reference}, which JMeter takes for false"
        note(f"{path.name}: {what}: make it a stringProp")


def _line(named: NamedFile, problem: str) -> str:
    """Return the element that names a file, the text that does so if the problem does not have it, and the problem."""
    title = plans.title(named.element)
    is_whole = named.text == str(named.path) or _OF_WINDOWS.match(named.text)
    return f"{title}: {problem}" if is_whole else f"{title}: {named.text}: {problem}"


def _problem(named: NamedFile, plan_folder: Path) -> str | None:
    """Return why a file cannot be used; None if it can, or is not known yet."""
    if named.path is None:
        return None
    if not named.path.exists():
        hint, plain = "", named.text.replace("\\", "/")
        if named.beside:
            hint = (
                f"; JMeter looks for it in the folder that it is started in: cd {shlex.quote(str(plan_folder))} first"
            )
        elif named.is_fragment and "${" in named.text:
            hint = "; JMeter looks up nothing in this path: write it out, and begin it by includecontroller.prefix"
        elif plain != named.text and not _OF_WINDOWS.match(named.text):
            hint = f"; only Windows takes \\ for /: write {plain}"
        shown = named.text if _OF_WINDOWS.match(named.text) else named.path
        return f"there is no file {shown}{hint}"
    if any(word in named.element.tag for word in _NEVER_EMPTY):
        if not named.path.is_file():
            return f"{named.path} is not a file"
        if not named.path.stat().st_size:
            return f"{named.path} is empty"
    return None


def _addresses(elements: Sequence[ET.Element], known: Known) -> Iterator[Address]:
    """Yield the address of each HTTP sampler, where it is known before the run and clear.

    What a sampler leaves open is from the HTTP Request Defaults; it is not clear if several of these differ.
    """
    defaults: dict[str, set[str]] = {name: set() for name in _HTTP}
    for element in elements:
        for name in _HTTP if element.tag == "ConfigTestElement" else ():
            defaults[name] |= {plans.field_text(element, f"HTTPSampler.{name}")} - {""}
    hosts = _static_hosts(elements, known)
    resolvers = [each for each in elements if each.tag == "DNSCacheManager"]
    has_resolver = any(
        plans.field_text(each, "DNSCacheManager.isCustomResolver") == "true"
        and any(server.text for server in each.iterfind("*[@name='DNSCacheManager.servers']/*"))
        for each in resolvers
    )
    for element in elements:
        if element.tag not in plans.HTTP_SAMPLERS:
            continue
        texts = [{plans.field_text(element, f"HTTPSampler.{name}")} - {""} or defaults[name] for name in _HTTP]
        if any(len(each) > 1 for each in texts):
            continue
        domain, port, scheme, path, proxy_host, proxy_port, client = (
            known.value_in_run("".join(each)) for each in texts
        )
        if proxy_host is None or proxy_port is None:
            continue
        has_proxy = bool(proxy_host) and proxy_port.isdecimal() and proxy_port.strip("0")
        proxy = f"{proxy_host}:{proxy_port}" if has_proxy else ""
        is_java_client = (client or known.value("${__P(jmeter.httpsampler,)}")) == "Java"
        if path and path.startswith(("http://", "https://")):
            scheme, _, rest = path.partition("://")
            domain, port = re.split("[/?#]", rest)[0].rpartition("@")[2], ""
        if port and not (port.strip().isdecimal() and int(port)):  # JMeter takes it for none
            port = ""
        if domain and port is not None and scheme in ("", "http", "https"):
            url = f"{scheme or 'http'}://{domain}" + (f":{port.strip()}" if port else "")
            # Java's own client does not ask the DNS Cache Manager.
            own = () if is_java_client else hosts.get(domain.partition(":")[0], ())
            yield Address(url, proxy, is_java_client, own, has_resolver and not is_java_client)


def _without_server(elements: Sequence[ET.Element], known: Known) -> list[str]:
    """Return the names of the HTTP samplers that have no server, neither their own nor one of HTTP Request Defaults."""
    if any(plans.field_text(each, "HTTPSampler.domain") for each in elements if each.tag == "ConfigTestElement"):
        return []
    names = []
    for element in elements:
        fields = (plans.field_text(element, f"HTTPSampler.{name}") for name in ("domain", "path", "protocol"))
        domain, path, scheme = map(known.value_in_run, fields)
        is_url = path is None or path.startswith(("http://", "https://"))
        if element.tag in plans.HTTP_SAMPLERS and domain == "" and not is_url and scheme != "file":
            names.append(element.get("testname", ""))
    return list(dict.fromkeys(names))


def _note_case(name: str, elements: Sequence[ET.Element], known: Known) -> None:
    """Note names that a DNS Cache Manager has in other letters: JMeter finds them, but not their addresses."""
    of_manager = {host.lower(): host for host in _static_hosts(elements, known)}
    for host in dict.fromkeys(re.split("[/:]+", address.url)[1] for address in _addresses(elements, known)):
        if (other := of_manager.get(host.lower(), host)) != host:
            note(
                f"{name}: the plan calls {host}, and its DNS Cache Manager has {other}: JMeter has no address for it, "
                "and each request fails (Connection is closed); write both in the same letters"
            )


def _static_hosts(elements: Sequence[ET.Element], known: Known) -> dict[str, tuple[str, ...]]:
    """Return the addresses of each name for which the DNS Cache Managers have some."""
    hosts: dict[str, tuple[str, ...]] = {}
    for element in elements:
        for entry in element.iter("elementProp") if element.tag == "DNSCacheManager" else ():
            name, addresses = (
                known.value(plans.field_text(entry, f"StaticHost.{what}")) for what in ("Name", "Address")
            )
            if name and addresses:
                hosts.setdefault(name, tuple(filter(None, map(str.strip, addresses.split(",")))))
    return hosts
