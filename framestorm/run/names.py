"""The names that a plan sends requests to: which addresses each has, and in which order a client tries them."""

from collections.abc import Iterator, Mapping, Sequence

from framestorm.endpoint import host_and_port
from framestorm.errors import UsageError
from framestorm.model.plan import Plan
from framestorm.model.run import Name
from framestorm.plain import note
from framestorm.probe import addresses
from framestorm.report.trust.names import before_load
from framestorm.run.needs import Address
from framestorm.run.proxy import Proxies


def look(plan: Plan, called: Sequence[Address], proxies: Proxies) -> tuple[Name, ...]:
    """Find the names with several addresses that a plan sends requests to, or its proxies, and note which take one."""
    has_clients = "python" in plan.filled_in
    names = tuple(_of_clients(called) if has_clients else _of_jmeter(called, proxies))
    for name in names:
        note(before_load(name))
    return names


def _of_clients(called: Sequence[Address]) -> Iterator[Name]:
    """Those of Python clients, which try them in the resolver's order."""
    for address in called:
        yield from _several(address.proxy or "{}:{}".format(*host_and_port(address.url)))


def _of_jmeter(called: Sequence[Address], proxies: Proxies) -> Iterator[Name]:
    """Those of JMeter's samplers."""
    told = set[str]()
    for address in called:
        way = address.way(proxies)
        try:
            target = way or "{}:{}".format(*host_and_port(address.url))
        except UsageError:  # JMeter says what it makes of it
            continue
        hosts = () if way else address.hosts
        if target in told or (address.is_of_resolver and not way and not hosts):
            continue
        told.add(target)
        for name in _several(target, hosts):
            every = name.addresses if hosts else _ordered(name.addresses, proxies.system)
            if len(every) > 1:
                yield Name(target, every, address.is_java_client)


def _several(target: str, hosts: Sequence[str] = ()) -> Iterator[Name]:
    """The name in host:port if it has several addresses; `hosts`: what the plan itself has for the name."""
    host, _, port = target.rpartition(":")
    if len(every := addresses(hosts or (host.strip("[]"),), int(port))) > 1:
        yield Name(target, every)


def _ordered(every: Mapping[str, str | None], system: Mapping[str, str]) -> dict[str, str | None]:
    """Addresses in Java's order: those of IPv4 first, unless a system property says otherwise."""
    if system.get("java.net.preferIPv4Stack") == "true":
        return {address: why for address, why in every.items() if ":" not in address}
    first = system.get("java.net.preferIPv6Addresses", "false")
    if first == "system":
        return dict(every)
    return dict(sorted(every.items(), key=lambda each: (":" in each[0]) is not (first == "true")))
