"""What conductor and agent say to each other: a JSON object a line, of one of these types.

Sent to the host with the agent, and so, like that, for its own Python (3.10 or later) and nothing else.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Literal, get_args


@dataclass(frozen=True)
class Description:
    """A host as the playbook left it in /etc/framestorm/host.json; what its roles have no use for is empty."""

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
    """Tell what pre-flight judges the host by; `kit_files` are those that it must have as the conductor has them."""

    kit_files: list[str]


@dataclass(frozen=True)
class Begin:
    """Make the run's folder, then start JMeter's server, or the controller by its `command`.

    controller: the run that the host is busy with, in words. files: base64 by path in the folder.
    follow: files to send as they grow, by the name that they get on the conductor. cut: options of the frame cutter.
    """

    run: str
    controller: str
    files: dict[str, str]
    follow: dict[str, str]
    command: list[str] | None = None
    cut: list[str] | None = None


@dataclass(frozen=True)
class Do:
    """Do what a method of the agent says; ping is to show that the conductor lives."""

    what: Literal["ping", "tell_time", "watch", "stop", "interrupt", "end"]


Order = TellFacts | Begin | Do


# Answers


@dataclass(frozen=True)
class Facts:
    """Answer to TellFacts.

    kit: a digest of the kit's files there. unit: the LoadState of its server's unit. busy_with: the run that has it.
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
    """Answer to Begin, and to the orders to watch and to tell the time, at this time of the host's day (epoch ms)."""

    time_ms: float


@dataclass(frozen=True)
class Failed:
    """The host cannot do its part; the agent goes."""

    error: str


@dataclass(frozen=True)
class Chunk:
    """What was added to a followed file, in base64."""

    file: str
    data: str


@dataclass(frozen=True)
class Beat:
    """How busy the host is, and the account that the run has there; 100 percent is one core.

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
    """A message as it is sent."""
    return json.dumps({"type": type(message).__name__, **asdict(message)}).encode() + b"\n"
