"""What conductor and agent say to each other: a JSON object a line, of one of these types.

Sent to the host with the agent, and so, like that, for its own Python (3.10 or later) and nothing else.
"""

import json
from dataclasses import asdict, dataclass, field


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
class TellTime:
    """Tell the time of day."""


@dataclass(frozen=True)
class Ping:
    """The conductor lives."""


@dataclass(frozen=True)
class Watch:
    """Tell how busy the host is and do nothing else."""


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
class Stop:
    """Start no new users, have those under way hand in what they have."""


@dataclass(frozen=True)
class Interrupt:
    """End the controller; its files stay as far as they are written."""


@dataclass(frozen=True)
class End:
    """Become idle, hand in the rest of the files, then go."""


Order = TellFacts | TellTime | Ping | Watch | Begin | Stop | Interrupt | End
ORDERS: dict[str, type[Order]] = {
    each.__name__: each for each in (TellFacts, TellTime, Ping, Watch, Begin, Stop, Interrupt, End)
}


# Answers


@dataclass(frozen=True)
class Facts:
    """Answer to TellFacts; `kit` is a digest of its kit's files, `busy_with` the run that has the host."""

    described: Description
    hostname: str
    java: str | None
    jmeter: str | None
    kit: str | None
    unit: dict[str, str]
    cores: int | None
    memory_bytes: int
    free_bytes: int
    busy_with: str | None = None


@dataclass(frozen=True)
class Time:
    """Answer to TellTime, in epoch ms."""

    time_ms: float


@dataclass(frozen=True)
class Ready:
    """Answer to Watch and Begin."""


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
    """How busy the host is, and the account that the run has there; 100 percent is one core."""

    time_ms: float
    cpu_percent: float
    rss_bytes: int
    processes: int
    host_cpu_percent: float
    host_memory_bytes: int
    load: float
    frozen: bool = False


@dataclass(frozen=True)
class Exit:
    """The controller has ended."""

    status: int


@dataclass(frozen=True)
class Done:
    """Answer to End, after the last Chunk: how many lines each followed file has."""

    lines: dict[str, int] = field(default_factory=dict)


Answer = Facts | Time | Ready | Failed | Chunk | Beat | Exit | Done
ANSWERS: dict[str, type[Answer]] = {
    each.__name__: each for each in (Facts, Time, Ready, Failed, Chunk, Beat, Exit, Done)
}


def line(message: Order | Answer) -> bytes:
    """A message as it is sent."""
    return json.dumps({"type": type(message).__name__, **asdict(message)}).encode() + b"\n"
