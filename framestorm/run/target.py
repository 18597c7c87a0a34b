"""The target of a run: the platform of the function under test, and the way of the requests to it."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framestorm.connections import why_unreached
from framestorm.endpoint import CLIENTS_AUTHORITIES, check_certificate, check_reachable, host_and_port, proxy_url
from framestorm.errors import UsageError
from framestorm.model import facets
from framestorm.model.plan import Plan, trim
from framestorm.plain import note
from framestorm.platform import registry
from framestorm.platform.base import Platform, Site
from framestorm.platform.embedded import Embedded, function_at
from framestorm.platform.registry import NoPlatform
from framestorm.run import proxy
from framestorm.run.needs import Address
from framestorm.run.options import What
from framestorm.run.proxy import Proxies
from framestorm.run.settings import Settings
from framestorm.run.values import SECRET, headers_of, with_file


def find_platform(
    plan: Plan,
    given: Mapping[str, str],
    site: Site,
    *,
    prepared: Platform[Any] | None = None,
    function_url: str | None = None,
) -> Platform[Any]:
    """Find the platform of the function under test; nothing is started, and the embedded target has no url yet.

    The kit never chooses a function for a plan that calls any function.

    Args:
        plan: the plan of the run.
        given: the properties that are set.
        site: where functions run, according to the command line.
        prepared: the platform of a study, which has the settings to measure.
        function_url: the address of the inventory's function.

    Raises:
        UsageError: an address is wrong.
    """
    properties = {name: trim(value) for name, value in {**plan.defaults, **given}.items()}
    if plan.url is None or not plan.url.is_needed(properties):
        if site.context is not None:
            raise UsageError(f"--context {site.context}: {plan.path.name} has no url to look for on the cluster")
        return NoPlatform(Site())
    if prepared is not None and prepared.url and not prepared.is_address_only:
        return prepared
    has_default = facets.EMBEDDED in plan.url.facets
    url = prepared.url if prepared else given.get(plan.url.name)
    if url is None and site.context is not None:
        raise UsageError(f"--context {site.context}: say which function of the cluster by -J{plan.url.name}=")
    if has_default and url is None and not site.over_slaves:
        embedded = Embedded(site)
        embedded.function = function_at(plan.url.default)
        return embedded
    url = url or (function_url if has_default else properties.get(plan.url.name))
    if plan.is_for_kit:
        properties["headers"] = with_file(plan, "headers", properties.get("headers", ""), given)
    host = server_name(plan, properties)
    return registry.at(url, site, host) if url else NoPlatform(Site())


@dataclass(frozen=True)
class Way:
    """The way of a run's requests to the function under test.

    own_proxy: URL of the plan's own proxy, with its login; empty without one.
    proxies: those by which JMeter on this machine sends its requests; none over slaves.
    """

    url: str
    own_proxy: str
    proxies: Proxies

    @property
    def own(self) -> str:
        """The plan's own proxy as host:port; empty without one."""
        return "{}:{}".format(*host_and_port(re.sub("//.*@", "//", self.own_proxy))) if self.own_proxy else ""

    @property
    def proxy(self) -> str:
        """The proxy as host:port; empty if the requests go there by themselves."""
        return self.own or self.proxies.way_to(self.url)

    @property
    def first(self) -> str:
        """The first host:port on the way, which slaves have to reach."""
        return self.proxy or "{}:{}".format(*host_and_port(self.url))

    @property
    def address(self) -> Address:
        """The function as an address that is called."""
        return Address(self.url, self.own)


def read_proxies(what: What, settings: Settings, *, is_over_slaves: bool) -> Proxies:
    """Read the proxies by which JMeter on this machine sends the requests of a run; none over slaves.

    Raises:
        UsageError: a proxy is not given completely, or not where it counts.
    """
    letters = {word[1] for word in what.jmeter_options}
    if ("H" in letters) != ("P" in letters):
        raise UsageError("a proxy is given by both -H HOST and -P PORT")
    if what.proxy_password is not None and "u" not in letters:
        raise UsageError("-a is the password of a user at the proxy: give that by -u")
    of_java = proxy.system_properties(what.jmeter_options)
    if is_over_slaves and (letters & set("EHPNu") or of_java.keys() & proxy.NAMES):
        raise UsageError(
            "-H, -P, -N, -u and http.proxyHost set the proxy of this machine, and slaves send the requests: set it on "
            "them"
        )
    if ignored := sorted(proxy.NAMES & {**settings.of_files, **settings.given}.keys()):
        note(f"{', '.join(ignored)}: JMeter takes a proxy from -H and -P, or from -D and -S, but not from -J and -q")
    proxies = Proxies({}) if is_over_slaves else proxy.read(what.jmeter_options, os.environ)
    if proxies.has_ignored_https:
        note(
            "https.proxyHost: only samplers with the implementation Java read it; all others send https requests by "
            "the proxy of http.proxyHost, too: give that, or -H HOST and -P PORT"
        )
    return proxies


def check_way(way: Way, plan: Plan, settings: Settings, *, is_over_slaves: bool) -> None:
    """Check that something accepts connections at the function's address, and its certificate.

    Slaves may reach what this machine does not, and the other way round: they look themselves.

    Raises:
        UsageError: a file holds no certificates.
        FramestormError: nothing answers there, or the certificate is not valid.
    """
    if not is_over_slaves:
        check_reachable(way.url, way.proxy)
    has_certificate = way.url.startswith("https://") and way.proxy == way.own
    if not has_certificate or (is_over_slaves and why_unreached(way.first)):
        return
    named = server_name(plan, settings.properties)
    for name, each in plan.settable.items():
        if facets.AUTHORITIES in each.facets:
            check_certificate(way.url, f"-J{name}", settings.properties[name], way.own_proxy, named)
    if plan.has_journal and not is_over_slaves:  # whose clients go by their own host's environment
        authorities = os.environ.get(CLIENTS_AUTHORITIES, "")
        check_certificate(way.url, CLIENTS_AUTHORITIES, authorities, way.own_proxy, named)


def way_to(url: str, settings: Settings, proxies: Proxies) -> Way:
    """Find the way to the function at this address.

    Raises:
        UsageError: the plan's own proxy is none.
    """
    own = SECRET.sub(lambda match: os.environ[match[1]], settings.properties.get("proxy", ""))
    return Way(url, proxy_url(own), proxies)


def server_name(plan: Plan, properties: Mapping[str, str]) -> str:
    """Return the name in the Host header, as JMeter's handshake has it (TlsSockets.java); empty without one.

    A name that comes from a row is not known here.
    """
    headers = headers_of(properties.get("headers", "")) if plan.is_for_kit else []
    host = next((value for name, value in headers if name.lower() == "host" and "{" not in value), "")
    return re.sub(r":\d*$", "", host).strip("[]")
