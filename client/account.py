"""A user's account of itself: a line at its start, one for each frame or task, one at its end."""

import os
import time
from collections import Counter
from typing import Any

from lines import Lines


class Account:
    """Says the lines and counts what came of them."""

    def __init__(self, lines: Lines, began: tuple[float, float]) -> None:
        """Take also when the process began, as epoch ms and as time.perf_counter."""
        self.start_ms, self._started = began
        self.name = f"{os.uname().nodename}-{os.getpid()}-{self.start_ms:.0f}"
        self._lines = lines
        self._causes: Counter[str] = Counter()
        self._said = 0

    def since_start_ms(self) -> float:
        return rounded_ms((time.perf_counter() - self._started) * 1000)

    def begin(self, count: int) -> None:
        """Say, in the journal only, that so many are to come."""
        start = {"type": "start", "user": self.name, "start_ms": rounded_ms(self.start_ms), "frames": count}
        self._lines.journal_only(start)

    def say(self, index: int, cause: str | None, fields: dict[str, Any]) -> None:
        """Say what came of one of them."""
        self._said += 1
        if cause is not None:
            self._causes[cause] += 1
        line = {"type": "frame", "user": self.name, "index": index, **fields}
        self._lines.say(line)

    def end(self, count: int, stopped: bool, **more: Any) -> bool:
        """Say the user's own line; whether all there were to be came, and all rightly.

        Raises:
            LineError: the line could not be written.
        """
        right = self._said - self._causes.total()
        ok = not stopped and right == count
        often = self._causes.most_common(1)
        self._lines.say(
            {
                "type": "user",
                "user": self.name,
                "start_ms": rounded_ms(self.start_ms),
                "duration_ms": self.since_start_ms(),
                "frames": self._said,
                "frames_ok": right,
                "ok": ok,
                "cause": "stopped" if stopped else often[0][0] if often else None,
                "causes": dict(self._causes),
                **more,
            }
        )
        return ok


def rounded_ms(value: float) -> float:
    return round(value, 3)
