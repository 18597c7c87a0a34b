"""Connections from this host to another: to any address of a name, and to each.

This file is sent to the host with the agent, so like the agent it needs only the host's Python (3.10 or later).
"""

import contextlib
import socket
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

# However many addresses there are, each has time for an answer by satellite; 25 silent ones are tried in less than what
# a conductor waits for an agent.
CONNECT_WITHIN_S, LEAST_SHARE_S = 5.0, 0.75


def connection(hosts: Sequence[str], port: int) -> socket.socket:
    """Return a connection to the first address of hosts that takes one; all of them share the time.

    Raises:
        OSError, UnicodeError: none does; the latter is of a name such as a..b.
    """
    deadline_s = time.monotonic() + CONNECT_WITHIN_S
    every, problem = list[str](), Exception("no address")
    for host in hosts:
        try:
            every += _resolved(host, port)
        except (OSError, UnicodeError) as error:
            problem = error
    for number, address in enumerate(every):
        share_s = (deadline_s - time.monotonic()) / (len(every) - number)
        try:
            connected = socket.create_connection((address, port), max(LEAST_SHARE_S, share_s))
        except OSError as error:
            problem = error
        else:
            connected.settimeout(CONNECT_WITHIN_S)
            return connected
    raise problem


def _resolved(host: str, port: int) -> list[str]:
    """Return the addresses of a host without repetition, in the resolver's order."""
    places = (place for *_, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    return [*dict.fromkeys(str(place[0]) for place in places)]


def why_unreached(target: str, hosts: Sequence[str] = ()) -> str | None:
    """Return why host:port, or each of `hosts` in its place, takes no connection from here; None if one does."""
    host, _, port = target.rpartition(":")
    try:
        connection(hosts or (host,), int(port)).close()
    except (OSError, UnicodeError) as error:
        return getattr(error, "strerror", None) or str(error)
    return None


def addresses(hosts: Iterable[str], port: int) -> dict[str, str | None]:
    """Return the addresses of hosts together, in the resolver's order.

    Each has the reason why it takes no connection from here; None if it does, or if it is the only one.
    """
    every: dict[str, str | None] = {}
    for host in hosts:
        with contextlib.suppress(OSError, UnicodeError):
            every |= dict.fromkeys(_resolved(host, port))
    if len(every) < 2:
        return every
    with ThreadPoolExecutor(len(every)) as threads:
        return dict(zip(every, threads.map(lambda each: why_unreached(f"{each}:{port}"), every), strict=True))
