"""The checks and tests, the same for a person and for CI."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from framestorm import packages, paths, setup
from framestorm.openfaas import parts

# A browser for the report, a screen and its tools for JMeter's GUI.
TEST_PACKAGES = ("chromium", "imagemagick", "x11-utils", "xdotool", "xvfb")

BIN = paths.TEST_PYTHON.parent

# Two workers: most of the longer tests wait for a host or for a JVM. tests/conftest.py says what must stay together.
EVERYTHING = ("--numprocesses=2", "--no-loadscope-reorder", "--durations=40")


def run(words: Sequence[str]) -> int:
    """Run the static checks, then pytest; given words go to pytest, which then runs alone.

    Returns:
        0 only if everything passed.
    """
    packages.install(TEST_PACKAGES)
    setup.ensure([setup.TEST_VENV, setup.ANSIBLE_VENV, setup.ANSIBLE_TEST_VENV, *parts.PIECES, parts.KIND])
    failed = [] if words else [name for name, command in _checks() if not _passes(name, command)]
    if not _passes("pytest", [BIN / "python", "-m", "pytest", *(words or EVERYTHING)]):
        failed.append("pytest")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _checks() -> Iterator[tuple[str, list[str | Path]]]:
    scripts = [
        paths.ROOT / name
        for name in ("run.sh", ".ci/run", "lab/launch.sh", "function/kind/up.sh", "function/kind/down.sh")
    ]
    yield "ruff check", [BIN / "ruff", "check", "."]
    yield "ruff format", [BIN / "ruff", "format", "--check", "."]
    # The rooms share no imports, and each has a handler.py or the like: each is checked as a program of its own.
    shell = [str(path.relative_to(paths.ROOT)) for path in sorted((paths.ROOT / "function").glob("*.py"))]
    for room in (["framestorm"], ["client"], ["lab", "ansible/pack.py"], [*shell, "function/face-blur"]):
        yield f"mypy {room[-1]}", [BIN / "mypy", *room]
    yield "shellcheck", [BIN / "shellcheck", "--external-sources", "--source-path=SCRIPTDIR", *scripts]
    yield "shfmt", [BIN / "shfmt", "-i", "4", "-d", *scripts]


def _passes(name: str, command: Sequence[str | Path]) -> bool:
    print(f"== {name}", flush=True)
    started_s = time.monotonic()
    done = subprocess.run(command, cwd=paths.ROOT, env=_environment(), stdin=subprocess.DEVNULL, check=False)
    print(
        f"== {name}: {'passed' if done.returncode == 0 else 'FAILED'} in {time.monotonic() - started_s:.0f} s",
        flush=True,
    )
    return done.returncode == 0


def _environment() -> dict[str, str]:
    """shellcheck and shfmt are looked for on PATH by what calls them."""
    return {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
