"""The names that a plan sends requests to: which addresses each has, and in which order a client tries them."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from framestorm.connections import addresses
from framestorm.endpoint import host_and_port
from framestorm.errors import UsageError
from framestorm.model.name import Name
from framestorm.model.plan import Plan
from framestorm.run.needs import Address
from framestorm.run.proxy import Proxies

Resolver = Callable[[Sequence[str], int], dict[str, str | None]]


def several(plan: Plan, called: Sequence[Address], proxies: Proxies, resolve: Resolver = addresses) -> tuple[Name, ...]:
    """Return the names with several addresses that a plan sends requests to, or its proxies.

    resolve: looks up the addresses of hosts on the machine that sends.
    """
    each_of = _of_clients if "python" in plan.filled_in else _of_jmeter
    return tuple(name for name in each_of(called, proxies, resolve) if len(name.addresses) > 1)


def _of_clients(called: Sequence[Address], _: Proxies, resolve: Resolver) -> Iterator[Name]:
    """Yield those of Python clients, which try them in the resolver's order."""
    for address in called:
        target = address.proxy or "{}:{}".format(*host_and_port(address.url))
        yield Name(target, _resolved(target, (), resolve))


def _of_jmeter(called: Sequence[Address], proxies: Proxies, resolve: Resolver) -> Iterator[Name]:
    """Yield those of JMeter's samplers."""
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
        every = _resolved(target, hosts, resolve)
        yield Name(target, every if hosts else _ordered(every, proxies.system), address.is_java_client)


def _resolved(target: str, hosts: Sequence[str], resolve: Resolver) -> dict[str, str | None]:
    """Return the addresses of the name in host:port; `hosts`: what the plan itself has for the name."""
    host, _, port = target.rpartition(":")
    return resolve(hosts or (host.strip("[]"),), int(port))


def _ordered(every: Mapping[str, str | None], system: Mapping[str, str]) -> dict[str, str | None]:
    """Return addresses in Java's order: those of IPv4 first, unless a system property says otherwise."""
    if system.get("java.net.preferIPv4Stack") == "true":
        return {address: why for address, why in every.items() if ":" not in address}
    first = system.get("java.net.preferIPv6Addresses", "false")
    if first == "system":
        return dict(every)
    return dict(sorted(every.items(), key=lambda each: (":" in each[0]) is not (first == "true")))
