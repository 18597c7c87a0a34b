"""run.json: what a run was asked for, what it ran on and how it ended."""

from dataclasses import dataclass, field
from typing import Literal

from framestorm.model.files import FORMAT
from framestorm.model.load import Load
from framestorm.model.name import Name
from framestorm.model.sink import SinkOutcome

Undecided = Literal["pass", "fail"]
RunState = Literal["running", "complete", "decided", "stopped", "failed"]
StopOption = Literal["--stop-if", "--stop-when"]
Role = Literal["generator", "generator and target", "slave", "master", "target"]


@dataclass(frozen=True)
class Kit:
    """The version of Framestorm, and the commit of its checkout where there is one."""

    version: str
    commit: str | None = None
    dirty: bool | None = None


@dataclass(frozen=True)
class Checkout:
    """The commit of the folder that a run was started in, and the branch if it is on one."""

    commit: str
    branch: str | None = None


@dataclass(frozen=True)
class Target:
    """The system under test: the name of its platform; `settings` say how the platform set it up."""

    kind: str
    url: str | None = None
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Host:
    """A machine that takes part; `share` is its part of each total that was split over slaves.

    cores, memory_bytes: that the run may use there, which limits of a container make less than the machine has.
    """

    name: str
    role: Role
    address: str | None = None
    inventory_name: str | None = None
    cores: float | None = None
    memory_bytes: int | None = None
    clock_offset_ms: float = 0.0
    java: str | None = None
    share: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Loss:
    """A host that was lost during the run; `time_ms` is its last sign of life, in epoch ms."""

    host: str
    time_ms: float
    reason: str | None = None
    address: str | None = None
    share: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rmi:
    """How samples come from the slaves to JMeter's controller, and why in that way."""

    mode: str
    why: str
    ssl: bool
    slave_ports: str
    controller_ports: str


@dataclass(frozen=True)
class JMeterProcess:
    """JMeter's command line without its executable, and its exit status (None while it runs or where it was lost)."""

    arguments: tuple[str, ...] = ()
    exit_code: int | None = None


@dataclass(frozen=True)
class JtlPart:
    """One of several JTLs that a folder was made from.

    lacks: the columns that only others of them have; problem: a sentence if it was not whole.
    assumed: sentences on what it does not say itself, with {} for its name.
    """

    name: str
    lacks: tuple[str, ...] = ()
    problem: str | None = None
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    """A stop rule (model/stop_rule.py) that ended the load: which, when in epoch ms, and the figure in words.

    label: whose figure it was; value: that figure, in the unit of a criterion's limit.
    """

    option: StopOption
    text: str
    at_ms: float
    measured: str
    label: str
    value: float


@dataclass(frozen=True)
class Record:
    """The content of run.json. Times are epoch ms.

    label: the label of the plan's main samples; has_users: virtual users are processes, each a sample labelled user;
        has_journal: which also write what they send to a journal.
    state: `decided` if --stop-if ended the load; `stopped` if something else did before its time.
    scrapes: addresses of the target's own figures, which were read once a second.
    sinks: what became of the intervals for each sink, once the load is over.
    stop_if, stop_when: the rules by which the load may end before its time; decision: the one that ended it.
    stopping_ms: when a run that was stopped early was told to stop.
    clock_step_ms: by how much this machine's clock was set during the run.
    source: the JTL that the folder was made from, where no run of the kit made it; parts: each of several JTLs.
    properties: every property of the plan as it was set; given: those that the command line set; unread: those of them
        that neither the plan nor JMeter reads, such as the number of a build.
    checkout: the commit and branch of the folder that the run was started in, None where there is none.
    baseline: the run that it is compared with: last, best, main, or a folder.
    thresholds, undecided: of that comparison.
    accepts_overload: a load that comes by a schedule may be more than the function answers.
    judges_steady: figures and criteria are of the steady part only.
    loads: what each thread group of the plan asks for, and each timer.
    http2_only: the servers, as scheme://host:port, that broke every connection, and speak HTTP/2.
    names: those that requests go to, where a name has several addresses.
    title: what people call the run; None: the name of its folder.
    unpatched: what the run lacks because no class of JMeter was patched; empty where the kit's were.
    """

    format: int = FORMAT
    kit: Kit | None = None
    checkout: Checkout | None = None
    plan: str | None = None
    source: str | None = None
    parts: tuple[JtlPart, ...] = ()
    title: str | None = None
    command: tuple[str, ...] = ()
    state: RunState | None = None
    reason: str | None = None
    pid: int | None = None
    started_ms: float | None = None
    stopping_ms: float | None = None
    ended_ms: float | None = None
    clock_step_ms: float = 0.0
    label: str | None = None
    has_users: bool = False
    has_journal: bool = True
    properties: dict[str, str] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    loads: tuple[Load, ...] = ()
    names: tuple[Name, ...] = ()
    http2_only: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    scrapes: tuple[str, ...] = ()
    sinks: tuple[SinkOutcome, ...] = ()
    stop_if: tuple[str, ...] = ()
    stop_when: tuple[str, ...] = ()
    decision: Decision | None = None
    baseline: str | None = None
    thresholds: tuple[str, ...] = ()
    undecided: Undecided = "pass"
    accepts_overload: bool = False
    judges_steady: bool = False
    target: Target | None = None
    hosts: tuple[Host, ...] = ()
    losses: tuple[Loss, ...] = ()
    rmi: Rmi | None = None
    versions: dict[str, str | None] = field(default_factory=dict)
    jmeter: JMeterProcess = field(default_factory=JMeterProcess)
    unpatched: tuple[str, ...] = ()

    @property
    def url(self) -> str | None:
        """The address of the function under test; of a plan that does not say which it is, that of its only server."""
        return self.target.url if self.target else None

    @property
    def is_open_model(self) -> bool:
        """Whether requests arrive by a schedule (a fixed rate), not from users who wait."""
        # Of JMeter's own plain Thread Group, only the kit's plans make arrivals.
        is_in_words = any(load.is_open and load.kind == "ThreadGroup" for load in self.loads)
        return is_in_words or bool(self.properties.get("rate_per_s"))

    @property
    def may_have_users(self) -> bool:
        """Whether rows labelled user may be processes; without a plan that is not known."""
        return self.has_users or (self.plan is None and self.source is None)

    @property
    def slaves(self) -> tuple[Host, ...]:
        """The hosts that make load for a JMeter elsewhere."""
        return tuple(host for host in self.hosts if host.role == "slave")

    def host(self, name: str) -> Host | None:
        """Return the host of that name."""
        return next((host for host in self.hosts if host.name == name), None)
