"""An activation: the start of one replica, which the first requests wait for."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# Each step of an activation after `asked`, in order.
STEPS = ("scheduled", "started", "ready")
_ASKED = "activation_asked"


@dataclass(frozen=True)
class Activation:
    """When a replica was asked for, and when it came to each step; None for a step that it has not come to.

    asked_ms: the platform made the replica. scheduled_ms: it has a node. started_ms: its program was started.
    ready_ms: requests may be sent to it. first_answer_ms: the first successful sample after that ended.
    """

    function: str
    replica: str
    asked_ms: float
    scheduled_ms: float | None = None
    started_ms: float | None = None
    ready_ms: float | None = None
    first_answer_ms: float | None = None

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
    return [Activation(function, replica, asked_ms, **steps) for (function, replica, asked_ms), steps in ordered]
