"""Told to end by SIGTERM or SIGINT: at once where waiting is interrupted, else after the step under way."""

import signal
from types import FrameType
from typing import Self


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

    def allowed(self) -> Self:
        """Let Stopped be raised inside `with`, at once if a signal came before."""
        return self

    def __enter__(self) -> None:
        self._allowed = True
        if self._asked:
            self._allowed = False
            raise Stopped

    def __exit__(self, *_: object) -> None:
        self._allowed = False
