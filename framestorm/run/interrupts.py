"""Signals that ask a run to stop."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType


class Interrupts:
    """Counts the signals that ask to stop: the first stops gently, the second at once."""

    def __init__(self) -> None:
        self.count = 0
        self.name = ""

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = [signal.signal(number, self._note) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.name = signal.Signals(number).name
        if self.count == 1:
            print("\nstopping gently, the report follows; once more ends it at once", file=sys.stderr, flush=True)
