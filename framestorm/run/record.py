"""Collects the versions that the figures of a run depend on, for its record."""

import platform
import re
import shutil
import subprocess

from framestorm import __version__, paths, probe
from framestorm.model.run import Kit

FILE = "run.json"


def kit() -> Kit:
    """Version of the kit, and the commit of its checkout where there is one."""
    commit = _git("rev-parse", "HEAD")
    return Kit(__version__, commit, bool(_git("status", "--porcelain")) if commit else None)


def versions() -> dict[str, str | None]:
    """What the run's figures depend on, read from files: starting each program to ask it would cost seconds."""
    release = paths.JAVA_HOME / "release"
    java = re.search(r'JAVA_VERSION="([^"]+)"', release.read_text()) if release.exists() else None
    tensorflow = list(paths.FUNCTION_PYTHON.parent.parent.glob("lib/python*/site-packages/tensorflow_cpu-*.dist-info"))
    return {
        "jmeter": probe.jmeter_version(paths.JMETER_HOME),
        "java": java.group(1) if java else None,
        "python": platform.python_version(),
        "tensorflow": tensorflow[0].name.split("-")[1].removesuffix(".dist") if tensorflow else None,
        "os": platform.freedesktop_os_release().get("PRETTY_NAME"),
        "kernel": platform.release(),
    }


def _git(*words: str) -> str | None:
    if shutil.which("git") is None:
        return None
    done = subprocess.run(["git", "-C", paths.ROOT, *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
