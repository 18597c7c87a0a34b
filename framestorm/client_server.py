"""The client server of a run on one host, client/server.py: its name, how it is started, and whether it works.

This file is sent to the hosts with the agent, so like the agent it needs only the host's Python (3.10 or later).
"""

import contextlib
import os
import secrets
import signal
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path

READY_WITHIN_S = 20.0
PING_EVERY_S = 2.0
# On a saturated host an answer may be late; a server that hangs for so long has users waiting.
SILENCE_S = 10.0


def new_name(run: str) -> str:
    """A name that no other server has, with the end of the run's own name, so that process lists tell whose it is."""
    return f"framestorm-{secrets.token_hex(8)}{run.encode()[-72:].decode(errors='ignore')}"


def command(python: str | Path, client_dir: str | Path, name: str) -> list[str]:
    """Return the command that runs it; it ends with the process that starts it."""
    return [str(python), f"{client_dir}/server.py", name]


class Heartbeat:
    """Asks a client server at intervals whether it works."""

    def __init__(self, name: str, has_ended: Callable[[], bool], account: int | None = None) -> None:
        """Connect and wait for its first answer; `account` is the user id that it has, unless that is this process's.

        Raises:
            OSError: it has ended, as `has_ended` says, does not answer in time, or another account has its name.
        """
        self._socket = socket.socket(socket.AF_UNIX)
        deadline_s = time.monotonic() + READY_WITHIN_S
        while self._socket.connect_ex(b"\0" + name.encode()) != 0:
            if has_ended() or time.monotonic() > deadline_s:
                self._socket.close()
                raise TimeoutError(f"it did not listen within {READY_WITHIN_S:.0f} s, or ended")
            time.sleep(0.01)
        if self._peer()[1] != (os.getuid() if account is None else account):
            self._socket.close()
            raise PermissionError("another account of this machine listens by its name")
        self._socket.settimeout(READY_WITHIN_S)
        self._socket.send(b"ping")
        self._socket.recv(64)
        self._socket.setblocking(False)
        self._heard_s = self._asked_s = time.monotonic()
        self._trouble: str | None = None

    def trouble(self) -> str | None:
        """Return why its users have failed, None while it works; one that hangs is killed, which ends its users."""
        if self._trouble is None:
            self._trouble = self._look()
        return self._trouble

    def _look(self) -> str | None:
        now_s = time.monotonic()
        try:
            if not self._socket.recv(64):
                return "the client server ended, and all users with it"
            self._heard_s = now_s
        except BlockingIOError:
            pass
        except OSError as error:
            return f"the client server ended, and all users with it ({error})"
        if self._asked_s > self._heard_s:
            if now_s - self._asked_s > SILENCE_S:
                self._kill()
                return f"the client server did not answer for {SILENCE_S:.0f} s and was ended, and all users with it"
        elif now_s - self._heard_s > PING_EVERY_S:
            with contextlib.suppress(OSError):
                self._socket.send(b"ping")
                self._asked_s = now_s
        return None

    def _peer(self) -> tuple[int, int]:
        """Return the process id and the account of who listens."""
        peer = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        process, account, _ = struct.unpack("3i", peer)
        return process, account

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._peer()[0], signal.SIGKILL)

    def close(self) -> None:
        """Ask no more."""
        self._socket.close()
