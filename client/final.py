"""The final answer to a request: informational ones before it, such as 103 Early Hints, are passed over."""

import functools
import http.client
import io
import socket
import ssl
import struct
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

    def begin(self) -> None:
        super().begin()
        if not self.chunked and len({*self.headers.get_all("Content-Length", ())}) > 1:
            raise http.client.HTTPException("the answer has two lengths that differ")

    def _read_next_chunk_size(self) -> int:
        """Return the size; http.client takes one that is none for an answer that was cut off."""
        is_cut_off = not self.fp.peek(1)
        try:
            size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        except ValueError:
            if is_cut_off:
                raise
            size = -1
        if size < 0:
            raise http.client.HTTPException("a chunk has no size")
        return size


def breaks_http(error: object) -> bool:
    """Return whether an error is of an answer that is no HTTP, and not of one that was cut off."""
    is_cut_off = isinstance(error, http.client.IncompleteRead | http.client.RemoteDisconnected)
    return isinstance(error, http.client.HTTPException) and not is_cut_off


class TimedResponse(FinalResponse):
    """A response that knows when the last bytes that were read of it had arrived."""

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self._arrivals = _Arrivals(sock, self.fp.detach())
        self.fp = io.BufferedReader(self._arrivals, _RECEIVE_BYTES)

    @property
    def arrived_ns(self) -> int:
        """When they had arrived, by time.perf_counter_ns."""
        return self._arrivals.at_ns


@functools.cache
def stamp_options() -> list[tuple[int, int, int]]:
    """Return the options of a socket whose bytes the kernel stamps with their arrival; none if it does not."""
    option = (socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    with socket.socket() as tried:
        try:
            tried.setsockopt(*option)
        except OSError:
            return []
    return [option]


# A burst of pieces is read at once, as its bytes arrived at once.
_RECEIVE_BYTES = 64 * 1024
# See socket(7). Python has no name for it.
_SO_TIMESTAMPNS = 35
_STAMP = struct.Struct("qq")
_SAME_MOMENT_NS, _MOST_READINGS = 20_000, 10
# An older stamp is of a clock that was set.
_OLDEST_NS = 60_000_000_000


class _Arrivals(io.RawIOBase):
    """A socket's file that knows when the last bytes read had arrived.

    By the kernel's stamp, as this process may get its turn late; or else, as over TLS, right after they were read.
    """

    def __init__(self, sock: socket.socket, file: io.RawIOBase) -> None:
        super().__init__()
        self._socket, self._file = sock, file
        self._is_stamped = not isinstance(sock, ssl.SSLSocket)
        self.at_ns = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if not self._is_stamped:
            read: int | None = self._file.readinto(buffer)
            self.at_ns = time.perf_counter_ns()
            return read
        count, stamps, _, _ = self._socket.recvmsg_into([buffer], socket.CMSG_SPACE(_STAMP.size))
        now_ns, now_epoch_ns = _now()
        ages_ns = [now_epoch_ns - _epoch_ns(stamp) for _, kind, stamp in stamps if kind == _SO_TIMESTAMPNS]
        self.at_ns = now_ns - next((age_ns for age_ns in ages_ns if 0 <= age_ns < _OLDEST_NS), 0)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def _now() -> tuple[int, int]:
    """Return the time by time.perf_counter_ns, and since the epoch, at one moment: nothing else ran in between."""
    before_ns = time.perf_counter_ns()
    for _ in range(_MOST_READINGS):
        epoch_ns, after_ns = time.time_ns(), time.perf_counter_ns()
        if after_ns - before_ns < _SAME_MOMENT_NS:
            break
        before_ns = after_ns
    return after_ns, epoch_ns


def _epoch_ns(stamp: bytes) -> int:
    seconds, rest_ns = _STAMP.unpack(stamp)
    return int(seconds) * 1_000_000_000 + int(rest_ns)
