"""An activation: the start of one replica, which the first requests wait for."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

# Each step of an activation after `asked`, in order.
STEPS = ("scheduled", "started", "ready")
_ASKED = "activation_asked"


@dataclass(frozen=True)
class ColdSplit:
    """What the first answer of a replica waited for: parts of its response time, in ms; None where nothing tells it.

    queue_ms: until the platform asked for the replica. start_ms: until its program was started: a node, the image, the
        container; without that time until it was ready. init_ms: until it was ready. handler_ms: in the function's
        handler, as the answer says. rest_ms: what is left, such as the way there and back.
    """

    rtt_ms: float
    queue_ms: float
    start_ms: float | None
    init_ms: float | None
    handler_ms: float | None
    rest_ms: float

    @classmethod
    def of(cls, start: "Activation", sent_ms: float, rtt_ms: float, handler_ms: float | None) -> "ColdSplit | None":
        """Return the split of a sample that was sent at that time; None if it waited for no start.

        Times of the platform may be of another clock: they count as far as they are within the sample.
        """
        end_ms = sent_ms + rtt_ms
        if start.ready_ms is None or start.ready_ms <= sent_ms:
            return None
        asked_ms = min(max(sent_ms, start.asked_ms), end_ms)
        ready_ms = min(max(asked_ms, start.ready_ms), end_ms)
        started_ms = ready_ms if start.started_ms is None else min(max(asked_ms, start.started_ms), ready_ms)
        return cls(
            rtt_ms=rtt_ms,
            queue_ms=asked_ms - sent_ms,
            start_ms=started_ms - asked_ms,
            init_ms=None if start.started_ms is None else ready_ms - started_ms,
            handler_ms=handler_ms,
            rest_ms=max(0.0, end_ms - ready_ms - (handler_ms or 0.0)),
        )


@dataclass(frozen=True)
class Activation:
    """When a replica was asked for, and when it came to each step; None for a step that it has not come to.

    asked_ms: the platform made the replica. scheduled_ms: it has a node. started_ms: its program was started.
    ready_ms: requests may be sent to it. first_answer_ms: the first successful sample after that ended; split: what
        that sample waited for.
    """

    function: str
    replica: str
    asked_ms: float
    scheduled_ms: float | None = None
    started_ms: float | None = None
    ready_ms: float | None = None
    first_answer_ms: float | None = None
    split: ColdSplit | None = None

    @classmethod
    def of(cls, function: str, replica: str, times: Mapping[str, float]) -> Self:
        """Return it with the times of its steps, by their names with `_ms` behind them.

        A step that comes before the one before it by the clock of its node, or in whole seconds, came with that one.
        """
        reached, at_ms = dict[str, float](), times["asked_ms"]
        for name in (f"{step}_ms" for step in STEPS):
            if name in times:
                reached[name] = at_ms = max(at_ms, times[name])
        scheduled_ms, started_ms, ready_ms = (reached.get(f"{step}_ms") for step in STEPS)
        return cls(function, replica, times["asked_ms"], scheduled_ms, started_ms, ready_ms)

    def rows(self) -> Iterator[tuple[float, str, str, str, float]]:
        """Yield it as rows of metrics.csv: that it was asked for, and how many seconds later each step was reached."""
        yield self.asked_ms, _ASKED, self.function, self.replica, 1.0
        for step in STEPS:
            at_ms = getattr(self, f"{step}_ms")
            if at_ms is not None:
                after_s = round((at_ms - self.asked_ms) / 1000, 3)
                yield self.asked_ms, f"activation_{step}_s", self.function, self.replica, after_s


METRICS = (_ASKED, *(f"activation_{step}_s" for step in STEPS))


def activations(rows: Iterable[tuple[float, str, str, str, float]]) -> list[Activation]:
    """Return the activations in rows of metrics.csv, in the order in which they were asked for."""
    times: dict[tuple[str, str, float], dict[str, float]] = {}
    for time_ms, metric, function, replica, value in rows:
        if metric in METRICS:
            of_one = times.setdefault((function, replica, time_ms), {})
            if metric != _ASKED:
                step = metric.removeprefix("activation_").removesuffix("_s")
                of_one[f"{step}_ms"] = time_ms + 1000 * value
    ordered = sorted(times.items(), key=lambda each: each[0][2])
    return [
        Activation.of(function, replica, {**steps, "asked_ms": asked_ms})
        for (function, replica, asked_ms), steps in ordered
    ]
