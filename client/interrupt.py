"""Told to end by SIGTERM or SIGINT: at once where waiting is interrupted, else after the step under way."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class Stopped(BaseException):
    """The user is told to end. No Exception, so that no library takes it for a failure of its own."""


class Interrupts:
    """Turn the signals into Stopped, but only inside `allowed()`, so that no line is written by halves."""

    def __init__(self) -> None:
        self._asked = False
        self._allowed = False
        signal.signal(signal.SIGTERM, self._handle)
        signal.signal(signal.SIGINT, self._handle)

    def _handle(self, _signal: int, _frame: FrameType | None) -> None:
        self._asked = True
        if self._allowed:
            self._allowed = False
            raise Stopped

    @contextlib.contextmanager
    def allowed(self) -> Iterator[None]:
        """Let Stopped be raised inside, at once if a signal came before."""
        try:
            self._allowed = True
            if self._asked:
                raise Stopped
            yield
        finally:
            self._allowed = False
