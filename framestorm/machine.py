"""This machine: its addresses, the holders of its ports, waiting for other processes, work in the background."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psutil

from framestorm import paths

LOOPBACK = "127.0.0.1"
POLL_S = 0.1
T = TypeVar("T")


def now_ms() -> int:
    """Epoch ms by this machine's clock."""
    return int(time.time() * 1000)


def wait_until(condition: Callable[[], T], within_s: float, poll_s: float = POLL_S) -> T:
    """The first true value of `condition`, else its value once `within_s` have passed."""
    deadline_s = time.monotonic() + within_s
    while True:
        value = condition()
        if value or time.monotonic() >= deadline_s:
            return value
        time.sleep(poll_s)


@contextlib.contextmanager
def in_background(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Do `work` in a thread beside the block; it is to return soon after its event is set, at the block's end."""
    is_over = threading.Event()
    thread = threading.Thread(target=work, args=(is_over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def own_addresses() -> set[str]:
    """All addresses of this machine, loopback too."""
    return {each.address for addresses in psutil.net_if_addrs().values() for each in addresses}


def listens(port: int) -> bool:
    """Whether something on this machine accepts connections on a port of its loopback."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def port_holder(port: int) -> str | None:
    """The process that listens on a TCP port, as far as this user may see it; None where nothing listens."""
    holder = None
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port:
                holder = f"a process of another user (see it by `sudo ss -ltnp sport = :{port}`)"
                if connection.pid:
                    process = psutil.Process(connection.pid)
                    return f"{process.name()} (pid {process.pid}, user {process.username()})"
    except psutil.Error:
        pass
    return holder


def last_lines(log: Path) -> str:
    """The end of a log, as an error shows it."""
    lines = log.read_text(errors="replace").splitlines()[-8:] if log.exists() else []
    return f"the end of {paths.shown(log)}:\n" + "\n".join(f"  {line}" for line in lines)
