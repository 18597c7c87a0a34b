"""Tasks as calls through OpenFaaS's queue, which reports here when each is done."""

import re
import socket
import time
from collections.abc import Callable
from urllib.parse import urlsplit, urlunsplit

from callbacks import Call, CallbackReceiver
from caller import Response
from dispatch import Acceptance, DispatchError, TaskOutcome
from push import Calls, Push


class Pull(Push):
    """All tasks are handed over at once; the queue's workers take them when free, and report when each is done."""

    def __init__(self, calls: Calls) -> None:
        """Listen for finished tasks; the tasks are posted over as many connections as Push uses."""
        self._receiver = _receiver(calls.url, self._on_call)
        super().__init__(calls._replace(url=queue_url(calls.url)), X_Callback_Url=self._receiver.url)
        self._tasks_by_call: dict[str, int] = {}
        self._early: dict[str, Call] = {}
        self._receiver.__enter__()

    @property
    def repeated(self) -> int:
        return self._receiver.repeated

    def _on_call(self, call: Call) -> None:
        self._events.put(call)

    def _read_answer(self, task: int, answer: Response) -> TaskOutcome | Acceptance:
        if answer.cause is None and answer.status == 202:
            return Acceptance(task, answer.headers.get("x-call-id", ""), time.time() * 1000)
        return super()._read_answer(task, answer)

    def _outcome_of(self, event: Acceptance | Call) -> TaskOutcome | None:
        if isinstance(event, Acceptance):
            self._accepted_ms[event.task] = event.accepted_ms
            self._tasks_by_call[event.call_id] = event.task
            call = self._early.pop(event.call_id, None)
        else:
            call = event
            if call.call_id not in self._tasks_by_call:
                self._early[call.call_id] = call  # reported before the answer to its own request was read
                return None
        if call is None:
            return None
        return TaskOutcome(
            self._tasks_by_call[call.call_id],
            call.done_s,
            self._cause(call.status),
            call.status,
            call.took_ms,
            call.started_ms,
            call.worker,
            call.received_bytes,
        )

    def halt(self) -> None:
        super().halt()
        self._receiver.__exit__()


def queue_url(url: str) -> str:
    """Return the gateway's address of a function's queue.

    Raises:
        DispatchError: the URL is not that of a function behind OpenFaaS's gateway.
    """
    parts = urlsplit(url)
    path, is_function = re.subn(r"/(async-)?function/(?=.)", "/async-function/", parts.path, count=1)
    if not is_function:
        raise DispatchError(f"URL {url!r} has no queue: the gateway's /function/NAME is expected")
    return urlunsplit(parts._replace(path=path))


def _receiver(url: str, on_call: Callable[[Call], None]) -> CallbackReceiver:
    """A receiver at this host's address on the route to the gateway, so the gateway can reach it; sends no packet."""
    parts = urlsplit(url)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((parts.hostname or "", parts.port or 80))
            return CallbackReceiver(str(probe.getsockname()[0]), on_call=on_call)
    except (OSError, ValueError) as error:  # the second by a wrong port
        raise DispatchError(f"callbacks of {url!r} cannot be received here: {error}") from error
