"""Minimal systems for hosts, nodes and images, unpacked from the distribution's archives that this machine uses."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from framestorm.errors import FramestormError
from framestorm.machine import execute
from framestorm.setup import packages
from framestorm.setup.log import call

# Settings of this machine's apt without which its archives may be out of reach; mmdebstrap does not read them itself.
_FOR_MMDEBSTRAP = ("http::Proxy", "https::Proxy", "Check-Valid-Until", "Check-Date")
_LOGINS = Path("/etc/apt/auth.conf")  # and auth.conf.d beside it; see apt_auth.conf(5)


@dataclass(frozen=True)
class Archive:
    """One of apt's sources of the distribution's own packages; `login` is the user and password for its URL, if any."""

    url: str
    suite: str
    component: str
    signed_by: str
    login: str = ""

    @property
    def line(self) -> str:
        options = f" [signed-by={self.signed_by}]" if self.signed_by.startswith("/") else ""
        return f"deb{options} {self.url} {self.suite} {self.component}"


def of_this_machine() -> list[Archive]:
    """Return the distribution's archives that this machine itself uses; other vendors' are left out."""
    layout = "$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(SIGNED_BY)"
    known_archives = []
    for line in execute("apt-get", "indextargets", "--format", layout, "Created-By: Packages").splitlines():
        origin, url, suite, component, signed_by = line.split("|")
        url, login = _split_login(url)
        archive = Archive(url, suite, component, signed_by, login)
        if origin in ("Debian", "Ubuntu") and archive not in known_archives:
            known_archives.append(archive)
    if not known_archives:
        raise FramestormError("apt knows no archive of Debian or Ubuntu; run `apt-get update` first")
    return known_archives


def _split_login(url: str) -> tuple[str, str]:
    """Return a URL without user and password, and the line of apt_auth.conf(5) with them; "" if it has none."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, ""
    plain = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return plain, f"machine {plain} login {unquote(parts.username)} password {unquote(parts.password or '')}\n"


def logins(sources: Sequence[Archive]) -> str:
    """Return what apt_auth.conf(5) needs for these archives: the logins of their URLs and those of this machine."""
    files = [_LOGINS, *sorted(_LOGINS.with_name("auth.conf.d").glob("*.conf"))]
    own = [f"{path.read_text().rstrip()}\n" for path in files if path.is_file()]
    return "".join([*dict.fromkeys(each.login for each in sources), *own])


def unpack(root: Path, included: Sequence[str], sources: Sequence[Archive]) -> None:
    """Unpack a minimal system with these packages below `root`, by mmdebstrap, which is installed if it is missing."""
    packages.install(["mmdebstrap"])
    root.parent.mkdir(parents=True, exist_ok=True)
    # Passwords are neither for the command line, which all accounts and the log see, nor for the system.
    with tempfile.TemporaryDirectory() as folder:
        settings, auth = Path(folder) / "apt.conf", Path(folder) / "auth.conf"
        known = execute("apt-config", "dump", *(f"Acquire::{name}" for name in _FOR_MMDEBSTRAP))
        settings.write_text(f'{known}Dir::Etc::netrc "{auth}";\n')
        auth.write_text(logins(sources))
        command = ["mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory", f"--aptopt={settings}"]
        command += [f"--include={','.join(included)}", sources[0].suite, str(root), *(each.line for each in sources)]
        call(command)
    (root / "etc/apt/apt.conf.d/99mmdebstrap").unlink(missing_ok=True)
