"""This machine: its addresses, ports and what answers there, waiting for others, work in the background."""

import base64
import contextlib
import http.client
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psutil

from framestorm import paths
from framestorm.errors import FramestormError, UsageError

if TYPE_CHECKING:
    from requests import Response

LOOPBACK = "127.0.0.1"
POLL_S = 0.1
REQUEST_WITHIN_S = 30.0
PROBE_WITHIN_S = 2.0
CONNECT_WITHIN_S = 5.0
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
    """Run `work` in a thread during the block; its event is set at the block's end, and it must then return soon."""
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
    """The process that listens on a TCP port, with what this user may see of it; None if nothing listens."""
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
    """The last lines of a log, for an error message."""
    lines = log.read_text(errors="replace").splitlines()[-8:] if log.exists() else []
    return f"the end of {paths.shown(log)}:\n" + "\n".join(f"  {line}" for line in lines)


def request(
    method: str,
    url: str,
    *,
    content: Any = None,
    auth: tuple[str, str] | None = None,
    timeout_s: float = REQUEST_WITHIN_S,
) -> "Response":
    """Send a request with JSON content and return the answer; bypasses proxies, which must not get passwords."""
    import requests  # takes 0.1 s, and only some runs need it

    with requests.Session() as session:
        session.trust_env = False
        try:
            return session.request(method, url, json=content, auth=auth, timeout=timeout_s)
        except requests.RequestException as error:
            raise FramestormError(f"{method} {url}: {error}") from None


def answers(url: str, timeout_s: float = PROBE_WITHIN_S) -> bool:
    """Whether a page is there."""
    try:
        return request("GET", url, timeout_s=timeout_s).status_code // 100 == 2
    except FramestormError:
        return False


def host_and_port(url: str) -> tuple[str, int]:
    """Where a URL leads to.

    Raises:
        UsageError: the URL has no http(s) scheme, no host, a wrong port, or a login, which no client here would send.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{url}: {error}") from None
    if not url.startswith(("http://", "https://")) or not parts.hostname or port == 0:
        raise UsageError(f"{url}: a URL starts with http:// or https:// and a host, and has no port 0")
    if "@" in parts.netloc:
        raise UsageError("the URL holds a login; put it into a header: Authorization: Basic ${env:NAME}")
    return parts.hostname, port or (443 if parts.scheme == "https" else 80)


def check_reachable(url: str) -> None:
    """Check that something accepts connections at a URL; sends no request, because a function may be costly.

    Raises:
        UsageError: the URL is wrong.
        FramestormError: nothing answers there.
    """
    host, port = host_and_port(url)
    try:
        socket.create_connection((host, port), timeout=CONNECT_WITHIN_S).close()
    except (OSError, UnicodeError) as error:  # the latter of a name such as a..b
        raise FramestormError(
            f"nothing answers at {host}:{port} ({error}); does the gateway run, is the url right?"
        ) from None


def check_certificate(url: str, authorities: str, proxy: str = "") -> None:
    """Check a server's certificate by a handshake without a request. JMeter itself accepts any.

    Args:
        url: the function's; one without TLS has none.
        authorities: who may have signed it: `@file`, empty for those of the system, or `none` for no check.
        proxy: URL of the proxy on the way, with its login.

    Raises:
        UsageError: the file holds no certificates.
        FramestormError: the certificate is not valid, or there is no TLS.
    """
    if not url.startswith("https://") or authorities == "none":
        return
    host, port = host_and_port(url)
    try:
        context = ssl.create_default_context(cafile=authorities.removeprefix("@") or None)
    except OSError as error:
        raise UsageError(f"-Jca={authorities}: no certificates in PEM can be read there: {error}") from None
    way = urllib.parse.urlsplit(proxy)
    connection = http.client.HTTPSConnection(
        way.hostname or host, (way.port or 80) if proxy else port, timeout=CONNECT_WITHIN_S, context=context
    )
    if proxy:
        login = base64.b64encode(f"{way.username}:{way.password or ''}".encode()).decode()
        connection.set_tunnel(host, port, {"Proxy-Authorization": f"Basic {login}"} if way.username else {})
    try:
        connection.connect()
    except ssl.SSLCertVerificationError as error:
        raise FramestormError(
            f"the certificate of {host}:{port} is not valid: {error.verify_message}; "
            "-Jca=@ca.pem names the authority that signed it, -Jca=none accepts any"
        ) from None
    except ssl.SSLError as error:
        if error.reason == "WRONG_VERSION_NUMBER":
            raise FramestormError(f"{host}:{port} does not speak TLS: does its URL begin with http://?") from None
        # It may want a client's certificate, which the samples show.
    except (OSError, http.client.HTTPException) as error:
        raise FramestormError(f"no TLS connection to {host}:{port}: {error}") from None
    finally:
        connection.close()
