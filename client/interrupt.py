"""Told to end by SIGTERM or SIGINT: at once where waiting is interrupted, else after the step under way."""

import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from send import Reply


class Stopped(BaseException):
    """The user is told to end. No Exception, so that no library takes it for a failure of its own."""


class Interrupts:
    """Turn the signals into Stopped, but only inside `allowed()`, so that no line is written by halves."""

    def __init__(self) -> None:
        self._asked = False
        self._allowed = False
        self._call: Callable[[], None] | None = None
        signal.signal(signal.SIGTERM, self._handle)
        signal.signal(signal.SIGINT, self._handle)

    def _handle(self, _signal: int, _frame: FrameType | None) -> None:
        self._asked = True
        if self._call is not None:
            self._call()
        elif self._allowed:
            self._allowed = False
            raise Stopped

    def allowed(self) -> Self:
        """Let Stopped be raised inside `with`, at once if a signal came before."""
        return self

    def turn_into(self, call: Callable[[], None]) -> None:
        """Turn the signals into calls of this instead; one that came before, at once."""
        self._call = call
        if self._asked:
            call()

    def send(self, pause_s: float, send: Callable[[], "Reply"], size_bytes: int) -> "Reply":
        """Pause, then send a request; a Reply with the cause `stopped` is of one that was cut off, and the user ends.

        Raises:
            Stopped: the user is told to end, and nothing was sent.
        """
        start_ms, began_ns = 0.0, None
        try:
            with self.allowed():
                if pause_s > 0:
                    time.sleep(pause_s)
                start_ms, began_ns = time.time() * 1000, time.perf_counter_ns()
                return send()
        except Stopped:
            if began_ns is None:
                raise
            from send import Reply  # which takes long, and is there if something was sent

            rtt_ms = (time.perf_counter_ns() - began_ns) / 1e6
            return Reply(start_ms, rtt_ms, None, {}, b"", size_bytes, 0, "stopped", censored=True, started_ns=began_ns)

    def __enter__(self) -> None:
        self._allowed = True
        if self._asked:
            self._allowed = False
            raise Stopped

    def __exit__(self, *_: object) -> None:
        self._allowed = False
