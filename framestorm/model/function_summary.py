"""The figures of a function under load, as its platform measured them: a part of summary.json."""

from dataclasses import dataclass, field

from framestorm.model.activation import Activation


@dataclass(frozen=True)
class Range:
    """The smallest and the largest value."""

    min: int
    max: int


@dataclass(frozen=True)
class ShortOfReplicas:
    """The moment at which most replicas were missing."""

    ready: int
    wanted: int


@dataclass(frozen=True)
class ReplicaUsage:
    """Resource usage of one replica; None if not known."""

    name: str
    cores_mean: float | None
    throttled_mean: float | None
    memory_max_bytes: float | None
    received_bytes_per_s: float | None
    sent_bytes_per_s: float | None


@dataclass(frozen=True)
class VanishedReplicas:
    """Replicas that ended without being scaled down, at_s seconds after the start."""

    replicas: int
    names: list[str]
    at_s: float


@dataclass(frozen=True)
class EndedReplica:
    """A replica whose program ended without being asked to, at_s after the start; why, as the platform says.

    failed: samples in progress at that time that failed.
    """

    name: str
    reason: str
    exit_status: int
    at_s: float
    failed: int


@dataclass(frozen=True)
class NodeOutage:
    """A time under load in which a node that had replicas was not ready, at_s after the start."""

    node: str
    at_s: float
    length_s: float


@dataclass(frozen=True)
class PlatformWarning:
    """A warning from the platform about one of its objects during the load: its count, and its first and last time."""

    about: str
    reason: str
    message: str
    times: int
    first_s: float
    last_s: float


@dataclass(frozen=True)
class FunctionSummary:
    """One function on its platform under load; cores, network and in_flight are of all its replicas together.

    activator_share: of the time in which requests went through Knative's activator; None where there is none.
    """

    function: str
    wanted: Range | None
    ready: Range | None
    seen: int
    in_flight_max: float | None
    cores_mean: float | None
    cores_max: float | None
    throttled_mean: float | None
    memory_max_bytes: float | None
    received_bytes_per_s: float | None
    sent_bytes_per_s: float | None
    replicas: list[ReplicaUsage]
    short_s: float
    short_worst: ShortOfReplicas | None
    lost: int
    vanished: list[VanishedReplicas]
    ended: list[EndedReplica] = field(default_factory=list)
    activations: list[Activation] = field(default_factory=list)
    node_outages: list[NodeOutage] = field(default_factory=list)
    warnings: list[PlatformWarning] = field(default_factory=list)
    activator_share: float | None = None
