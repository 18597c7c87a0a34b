"""The final answer to a request: informational ones before it, such as 103 Early Hints, are passed over."""

import http.client
import io
import time
from http import HTTPStatus
from typing import Any


class FinalResponse(http.client.HTTPResponse):
    """A response of http.client, which by itself passes over 100 Continue only."""

    def _read_status(self) -> tuple[str, int, str]:
        version, status, reason = super()._read_status()  # type: ignore[misc]
        while HTTPStatus.SWITCHING_PROTOCOLS < status < HTTPStatus.OK:
            http.client.parse_headers(self.fp)
            version, status, reason = super()._read_status()  # type: ignore[misc]
        return version, status, reason


class TimedResponse(FinalResponse):
    """A response that knows when the last bytes that were read of it had arrived."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._arrivals = _Arrivals(self.fp.detach())
        self.fp = io.BufferedReader(self._arrivals, _RECEIVE_BYTES)

    @property
    def arrived_ns(self) -> int:
        """When they had arrived, by time.perf_counter_ns."""
        return self._arrivals.at_ns


# A burst of pieces is read at once, as its bytes arrived at once.
_RECEIVE_BYTES = 64 * 1024


class _Arrivals(io.RawIOBase):
    """A socket's file that takes the time as soon as bytes are there, before anything else is done with them."""

    def __init__(self, file: io.RawIOBase) -> None:
        super().__init__()
        self._file = file
        self.at_ns = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        count: int | None = self._file.readinto(buffer)
        self.at_ns = time.perf_counter_ns()
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
