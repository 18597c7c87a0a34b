"""Messages between conductor and agent: one JSON object per line, each of one of these types.

This file is sent to the host with the agent, so like the agent it needs only the host's Python (3.10 or later).
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Literal, get_args


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


# Orders


@dataclass(frozen=True)
class TellFacts:
    """Report the facts for pre-flight; `kit_files` are the files that must be the same as the conductor's."""

    kit_files: list[str]


@dataclass(frozen=True)
class Begin:
    """Make the run's folder, then start JMeter's server, or the controller by its `command`.

    controller: the run that the host works on, in words. files: base64 by path in the folder.
    follow: files to send as they grow, by their name on the conductor. cut: options of the frame cutter.
    """

    run: str
    controller: str
    files: dict[str, str]
    follow: dict[str, str]
    command: list[str] | None = None
    cut: list[str] | None = None


@dataclass(frozen=True)
class Do:
    """Call a method of the agent; ping shows that the conductor is alive."""

    what: Literal["ping", "tell_time", "watch", "stop", "interrupt", "end"]


Order = TellFacts | Begin | Do


# Answers


@dataclass(frozen=True)
class Facts:
    """Answer to TellFacts.

    kit: a digest of the kit's files there. unit: the LoadState of its server's unit. busy_with: the run that uses it.
    """

    described: Description = field(default_factory=Description)
    hostname: str = ""
    java: str | None = None
    jmeter: str | None = None
    kit: str | None = None
    unit: str = ""
    cores: int | None = None
    memory_bytes: int = 0
    free_bytes: int = 0
    busy_with: str | None = None


@dataclass(frozen=True)
class Ready:
    """Answer to Begin, and to the orders to watch and to report the time; has the host's own time (epoch ms)."""

    time_ms: float


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

    frozen: JMeter's server is stopped by a signal. exit_status: of the controller, once it has ended.
    """

    time_ms: float
    cpu_percent: float
    rss_bytes: int
    processes: int
    host_cpu_percent: float
    host_memory_bytes: int
    load: float
    frozen: bool = False
    exit_status: int | None = None


@dataclass(frozen=True)
class Done:
    """Answer to the order to end, after the last Chunk: how many lines each followed file has."""

    lines: dict[str, int] = field(default_factory=dict)


Answer = Facts | Ready | Failed | Chunk | Beat | Done
ORDERS: dict[str, type[Order]] = {each.__name__: each for each in get_args(Order)}
ANSWERS: dict[str, type[Answer]] = {each.__name__: each for each in get_args(Answer)}


def line(message: Order | Answer) -> bytes:
    """A message in the form in which it is sent."""
    return json.dumps({"type": type(message).__name__, **asdict(message)}).encode() + b"\n"
