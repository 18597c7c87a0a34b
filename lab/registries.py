"""This machine's registries of Python and Maven packages, and how a host of the lab reaches them by the lab's proxy."""

from __future__ import annotations

import ast
import re
import shutil
import sys
import zipfile
from pathlib import Path

from framestorm.machine import execute
from lab.hosts import CONTROLLER_ADDRESS, USER, LabHost
from lab.network import PROXY_PORT

CERTIFICATES = "/etc/ssl/lab.crt"  # what this machine trusts; base.py puts it there
_MAVEN_SETTINGS = (Path.home() / ".m2/settings.xml", Path("/etc/maven/settings.xml"))
_INDEXES = ("index-url", "extra-index-url")
_PIP_DEFAULTS = """
from pip._internal.models.index import PyPI
print(PyPI.simple_url, "https://" + PyPI.file_storage_domain)
"""


def urls() -> list[str]:
    """The URLs from which pip and Maven on this machine get packages: from their settings, or else their defaults."""
    return [*_pip_urls(), *_maven_urls()]


def _pip_settings() -> dict[str, str]:
    """pip's settings for indexes here, by name without its section; several values are words of one line."""
    settings = {}
    for line in execute(sys.executable, "-P", "-m", "pip", "config", "list").splitlines():
        name, _, value = line.partition("=")  # pip writes the value as Python does
        settings[name.rpartition(".")[2]] = " ".join(ast.literal_eval(value).split())
    return {name: value for name, value in settings.items() if name in (*_INDEXES, "trusted-host")}


def _pip_urls() -> list[str]:
    chosen = _pip_settings()
    defaults = [] if "index-url" in chosen else execute(sys.executable, "-P", "-c", _PIP_DEFAULTS).split()
    return [*defaults, *(url for name in _INDEXES for url in chosen.get(name, "").split())]


def _maven_mirrors() -> str:
    """Return the mirrors in this machine's Maven settings, except those with which Maven blocks plain HTTP."""
    texts = [path.read_text() for path in _MAVEN_SETTINGS if path.is_file()]
    visible = re.sub(r"<!--.*?-->", "", "".join(texts), flags=re.DOTALL)
    mirrors = re.findall(r"<mirror>.*?</mirror>", visible, re.DOTALL)
    return "".join(mirror for mirror in mirrors if "<blocked>" not in mirror)


def _maven_urls() -> list[str]:
    program = shutil.which("mvn")
    text = _maven_mirrors()
    if program is not None:
        # What every project inherits: Maven's own default repository.
        [builder] = (Path(program).resolve().parents[1] / "lib").glob("maven-model-builder-*.jar")
        with zipfile.ZipFile(builder) as jar:
            text += re.sub(r"<!--.*?-->", "", jar.read("org/apache/maven/model/pom-4.0.0.xml").decode())
    return re.findall(r"<url>\s*(https?://[^<\s]+)", text)


def configure(host: LabHost) -> None:
    """Let pip and Maven on a host that is not started yet use the proxy, with this machine's indexes and mirrors."""
    pip = {"proxy": f"http://{CONTROLLER_ADDRESS}:{PROXY_PORT}", "cert": CERTIFICATES, **_pip_settings()}
    settings = host.disk / "etc/pip.conf"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[global]\n" + "".join(f"{name} = {value}\n" for name, value in pip.items()))
    proxies = "".join(
        f"<proxy><id>{protocol}</id><protocol>{protocol}</protocol>"
        f"<host>{CONTROLLER_ADDRESS}</host><port>{PROXY_PORT}</port></proxy>"
        for protocol in ("http", "https")
    )
    folder = host.disk / "home" / USER / ".m2"
    folder.mkdir(parents=True)
    (folder / "settings.xml").write_text(
        f"<settings><proxies>{proxies}</proxies><mirrors>{_maven_mirrors()}</mirrors></settings>\n"
    )
    for path in (folder, folder / "settings.xml"):
        shutil.chown(path, 1000, 1000)
