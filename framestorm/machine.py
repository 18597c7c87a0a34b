"""This machine: its versions, addresses, ports and what answers there; commands, waits and work in the background."""

import contextlib
import platform
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psutil

from framestorm import __version__, paths, probe
from framestorm.errors import FramestormError
from framestorm.model.run import Kit

if TYPE_CHECKING:
    from requests import Response

LOOPBACK = "127.0.0.1"
POLL_S = 0.1
REQUEST_WITHIN_S = 30.0
PROBE_WITHIN_S = 2.0
END_WITHIN_S = 5.0  # of work in the background
T = TypeVar("T")


def now_ms() -> int:
    """Epoch ms by this machine's clock."""
    return int(time.time() * 1000)


def kit() -> Kit:
    """Return the version of the kit and, in a Git checkout, the commit."""
    commit = _git("rev-parse", "HEAD")
    return Kit(__version__, commit, bool(_git("status", "--porcelain")) if commit else None)


def versions() -> dict[str, str | None]:
    """Return what the run's figures depend on, read from files: starting each program to ask it would cost seconds."""
    release = paths.JAVA_HOME / "release"
    java = re.search(r'JAVA_VERSION="([^"]+)"', release.read_text()) if release.exists() else None
    return {
        "jmeter": probe.jmeter_version(paths.JMETER_HOME),
        "java": java.group(1) if java else None,
        "python": platform.python_version(),
        "os": platform.freedesktop_os_release().get("PRETTY_NAME"),
        "kernel": platform.release(),
    }


def _git(*words: str) -> str | None:
    # A copy in a repository of somebody else's has no commit of its own.
    if shutil.which("git") is None or not (paths.ROOT / ".git").exists():
        return None
    done = subprocess.run(["git", "-C", paths.ROOT, *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def execute(*command: str) -> str:
    """Run a command and return its output; raises FramestormError with its error output if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FramestormError(
            f"`{' '.join(command)}` failed with {done.returncode}: {done.stderr.strip() or done.stdout.strip()}"
        )
    return done.stdout


def wait_until(condition: Callable[[], T], within_s: float, poll_s: float = POLL_S) -> T:
    """Return the first true value of `condition`, else its value once `within_s` have passed."""
    deadline_s = time.monotonic() + within_s
    while True:
        value = condition()
        if value or time.monotonic() >= deadline_s:
            return value
        time.sleep(poll_s)


@contextlib.contextmanager
def in_background(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run `work` in a thread during the block; its event is set at the block's end, and it should then return soon.

    Work that does not, such as a view whose terminal takes nothing more, is left behind: it ends with the process.
    """
    is_over = threading.Event()
    thread = threading.Thread(target=work, args=(is_over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(END_WITHIN_S)


def own_addresses() -> set[str]:
    """Return all addresses of this machine, loopback too."""
    return {each.address for addresses in psutil.net_if_addrs().values() for each in addresses}


def listens(port: int) -> bool:
    """Return whether something on this machine accepts connections on a port of its loopback."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def port_holder(port: int) -> str | None:
    """Return the process that listens on a TCP port, with what this user may see of it; None if nothing listens."""
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
    """Return the last lines of a log, for an error message."""
    lines = log.read_text(errors="replace").splitlines()[-8:] if log.exists() else []
    return f"the end of {paths.shown(log)}:\n" + "\n".join(f"  {line}" for line in lines)


def request(
    method: str,
    url: str,
    *,
    content: Any = None,
    auth: tuple[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = REQUEST_WITHIN_S,
    follows_redirects: bool = True,
) -> "Response":
    """Send a request with JSON content and return the answer; bypasses proxies, which must not get passwords."""
    import requests  # takes 0.1 s, and only some runs need it

    class Direct(requests.Session):
        """Follows no redirect; allow_redirects=False would still read where it leads, which may be no address."""

        def get_redirect_target(self, resp: requests.Response) -> None:
            return None

    with requests.Session() if follows_redirects else Direct() as session:
        session.trust_env = False
        try:
            return session.request(method, url, json=content, auth=auth, headers=headers, timeout=timeout_s)
        except (requests.RequestException, ValueError) as error:  # the latter for odd addresses of redirects
            raise FramestormError(f"{method} {url}: {error}") from None


def answers(url: str, timeout_s: float = PROBE_WITHIN_S) -> bool:
    """Return whether a page is there."""
    try:
        return request("GET", url, timeout_s=timeout_s).status_code // 100 == 2
    except FramestormError:
        return False
