"""Samples that a tracing system knows by their trace ids."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class TracedSample:
    """A sample by its trace id; times in ms, cause: why it failed, None if it did not."""

    trace_id: str
    start_ms: float | None
    rtt_ms: float | None
    cause: str | None = None


@dataclass(frozen=True)
class Traces:
    """The samples of a label that are worth a look in a tracing system.

    slowest: of those without an error, the slowest first. failed: the first of each cause, the most frequent causes
        first.
    """

    slowest: list[TracedSample] = field(default_factory=list)
    failed: list[TracedSample] = field(default_factory=list)
