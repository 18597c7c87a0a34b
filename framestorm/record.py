"""run.json: what a run was asked for, what it ran on and how it ended; rewritten whole at each change."""

import json
import os
import platform
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil

from framestorm import __version__, jmeter, paths

FORMAT = 1


class RunRecord:
    """The contents of run.json; every change is on disk before the call returns, whole or not at all."""

    def __init__(self, run_dir: Path, **fields: Any) -> None:
        self._path = run_dir / "run.json"
        self._fields: dict[str, Any] = {
            "format": FORMAT,
            "kit": kit(),
            "state": "running",
            "reason": None,
            "pid": os.getpid(),
            "started_ms": now_ms(),
            "ended_ms": None,
            "hosts": [],
            "losses": [],
            "versions": versions(),
            **fields,
        }
        self._save()

    def update(self, **fields: Any) -> None:
        self._fields.update(fields)
        self._save()

    def _save(self) -> None:
        draft = self._path.with_suffix(".json.tmp")
        draft.write_text(json.dumps(self._fields, indent=2) + "\n")
        draft.replace(self._path)


def now_ms() -> int:
    return int(time.time() * 1000)


def kit() -> dict[str, Any]:
    """Version of the kit, and the commit of its checkout where there is one."""
    commit = _git("rev-parse", "HEAD")
    return {"version": __version__, "commit": commit, "dirty": bool(_git("status", "--porcelain")) if commit else None}


def host(role: str) -> dict[str, Any]:
    """This machine, and what it is in the run."""
    return {
        "name": socket.gethostname(),
        "address": "127.0.0.1",
        "role": role,
        "cores": psutil.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "clock_offset_ms": 0,
    }


def versions() -> dict[str, str | None]:
    """What the run's figures depend on, read from files: starting each program to ask it would cost seconds."""
    release = paths.JAVA_HOME / "release"
    java = re.search(r'JAVA_VERSION="([^"]+)"', release.read_text()) if release.exists() else None
    tensorflow = list(paths.FUNCTION_PYTHON.parent.parent.glob("lib/python*/site-packages/tensorflow_cpu-*.dist-info"))
    return {
        "jmeter": jmeter.version(),
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
