"""Work beside the run: a thread that lives as long as a with block."""

import threading
from types import TracebackType
from typing import Self


class Background:
    """Runs `_run` in a thread from the block's beginning on; it is to return soon after `_closed` is set."""

    def __init__(self) -> None:
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        raise NotImplementedError
