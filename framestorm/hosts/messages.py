"""Messages between conductor and agent: one JSON object per line, each of one of these types.

This file is sent to the host with the agent, so like the agent it needs only the host's Python (3.10 or later).
"""

import json
import os
import select
import time
from dataclasses import asdict, dataclass, field
from typing import Literal, get_args

from framestorm.probe import Limits

# What a message carries of a file: on a slow link, too, each message is there within seconds, and is a sign of life.
PIECE_BYTES = 1 << 16
READ_BYTES = 1 << 16
LINE_AT_MOST_BYTES = 1 << 22  # a run's orders with all of its properties stay far below


@dataclass(frozen=True)
class Description:
    """A host as the playbook describes it in /etc/framestorm/host.json; fields that its roles do not use are empty."""

    name: str = ""
    address: str = ""
    user: str = ""
    java: str = ""
    jmeter: str = ""
    jmeter_version: str = ""
    folder: str = ""
    python: str = ""
    client: str = ""
    video: str = ""
    cache: str = ""
    runs: str = "/"
    rmi_port: int = 0
    rmi_ssl: bool = False
    unit: str = ""
    log: str = ""
    url: str = ""
    # The environment of the start of JMeter's server where that is no unit; empty on a host that has systemd.
    server: dict[str, str] = field(default_factory=dict)


class CannotError(Exception):
    """A host cannot do its part; the message, which the conductor gets, says why and what to do."""


# Orders


@dataclass(frozen=True)
class TellFacts:
    """Report the facts for pre-flight; `kit_files` are the files that must be the same as the conductor's."""

    kit_files: list[str]


@dataclass(frozen=True)
class Connect:
    """Try to connect to host:port, without sending anything."""

    target: str


@dataclass(frozen=True)
class Resolve:
    """Look up the addresses of hosts, and try to connect to each on a port if there are several."""

    hosts: list[str]
    port: int


@dataclass(frozen=True)
class Open:
    """Make the folder of a run; `controller`: the run that the host works on, in words."""

    run: str
    controller: str


@dataclass(frozen=True)
class FilePiece:
    """The next bytes of a file in the run's folder, in base64; the last piece has the digest of the whole file."""

    file: str
    data: str
    digest: str = ""


@dataclass(frozen=True)
class Begin:
    """Start JMeter's server, or the controller by its `command`; the run's files are there.

    follow: files to send as they grow, by their name on the conductor. cut: options of the program that cuts the input.
    environment: further variables of the server's, secrets among them. client_server: the name of one to start, if any.
    """

    follow: dict[str, str]
    command: list[str] | None = None
    cut: list[str] | None = None
    environment: dict[str, str] = field(default_factory=dict, repr=False)
    client_server: str | None = None


Doing = Literal["ping", "tell_time", "watch", "stop", "interrupt", "kill", "end", "leave"]
DOINGS = get_args(Doing)


@dataclass(frozen=True)
class Do:
    """Call a method of the agent; ping shows that the conductor is alive."""

    what: Doing


Order = TellFacts | Connect | Resolve | Open | FilePiece | Begin | Do


# Answers

# What no host has less of: the conductor's pydantic reads it. This file needs nothing that hosts do not have.
AT_LEAST_0, MORE_THAN_0 = {"ge": 0}, {"gt": 0}


@dataclass(frozen=True)
class HostFacts:
    """Answer to TellFacts.

    kit: digest of the kit's files on the host. additions: digest of the kit's additions to JMeter. unit: LoadState of
    the unit of JMeter's server. cores: that it may use. busy_with: the run that uses the host.
    """

    described: Description = field(default_factory=Description)
    hostname: str = ""
    java: str | None = None
    jmeter: str | None = None
    kit: str | None = None
    unit: str = ""
    additions: str | None = None
    cores: float | None = field(default=None, metadata=MORE_THAN_0)
    memory_bytes: int = field(default=0, metadata=AT_LEAST_0)
    free_bytes: int = field(default=0, metadata=AT_LEAST_0)
    busy_with: str | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Connected:
    """Answer to Connect; `error`: why it failed."""

    error: str | None


@dataclass(frozen=True)
class Resolved:
    """Answer to Resolve, as connections.addresses gives it."""

    addresses: dict[str, str | None]


@dataclass(frozen=True)
class Ready:
    """Answer to Open and Begin, and to the orders to watch and to report the time; has the host's time (epoch ms)."""

    time_ms: float


@dataclass(frozen=True)
class Got:
    """Answer to a FilePiece: it is written, and where it was the last one, the digest is right."""

    file: str


@dataclass(frozen=True)
class Failed:
    """The host cannot do its part; the agent ends."""

    error: str


@dataclass(frozen=True)
class Chunk:
    """New content of a followed file, in base64."""

    file: str
    data: str


@dataclass(frozen=True)
class Beat:
    """Resource usage of the host, and of the run's account there; 100 percent is one core.

    free_bytes: of the disk that the run's files are on. frozen: JMeter is stopped by a signal.
    exit_status: of the controller, once it has ended.
    """

    time_ms: float = field(metadata=AT_LEAST_0)
    cpu_percent: float = field(metadata=AT_LEAST_0)
    rss_bytes: int = field(metadata=AT_LEAST_0)
    processes: int = field(metadata=AT_LEAST_0)
    host_cpu_percent: float = field(metadata=AT_LEAST_0)
    host_memory_bytes: int = field(metadata=AT_LEAST_0)
    load: float = field(metadata=AT_LEAST_0)
    free_bytes: int | None = field(default=None, metadata=AT_LEAST_0)
    frozen: bool = False
    exit_status: int | None = None


@dataclass(frozen=True)
class Done:
    """Answer to the order to end, after the last Chunk: how many lines each followed file has."""

    lines: dict[str, int] = field(default_factory=dict)


Answer = HostFacts | Connected | Resolved | Ready | Got | Failed | Chunk | Beat | Done
ORDERS: dict[str, type[Order]] = {each.__name__: each for each in get_args(Order)}
ANSWERS: dict[str, type[Answer]] = {each.__name__: each for each in get_args(Answer)}


def line(message: Order | Answer) -> bytes:
    """Return a message in the form in which it is sent."""
    return json.dumps({"type": type(message).__name__, **asdict(message)}).encode() + b"\n"


def order(line: bytes) -> Order:
    """Return the order in a line.

    Raises:
        ValueError: it has none.
    """
    try:
        fields = json.loads(line)
        order = ORDERS[fields.pop("type")](**fields)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{line[:200]!r} is not an order") from None
    if isinstance(order, Do) and order.what not in DOINGS:
        raise ValueError(f"{order.what!r} is not an order")
    return order


class DescriptorLines:
    """The lines of a descriptor, as they come."""

    def __init__(self, descriptor: int) -> None:
        self.ended = False
        self.heard_s = time.monotonic()  # when something came last, if only a part of a line
        self._descriptor = descriptor
        self._parts: list[bytes] = []
        self._bytes = 0

    def wait(self, timeout_s: float) -> list[bytes]:
        """Return the whole lines that are there, waited for up to `timeout_s`.

        Raises:
            ValueError: a line is longer than any message.
        """
        if not select.select([self._descriptor], [], [], timeout_s)[0]:
            return []
        data = os.read(self._descriptor, READ_BYTES)
        self.ended, self.heard_s = not data, time.monotonic()
        self._parts.append(data)
        self._bytes += len(data)
        # Put together once, and not for each of its parts.
        if b"\n" in data:
            *lines, rest = b"".join(self._parts).split(b"\n")
            self._parts, self._bytes = [rest], len(rest)
            return lines
        if self._bytes > LINE_AT_MOST_BYTES:
            raise ValueError(f"a line is longer than {LINE_AT_MOST_BYTES} bytes: {self._parts[0][:200]!r}")
        return []
