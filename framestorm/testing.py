"""The checks and tests, the same for a person and for CI."""

import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from framestorm import paths, sbom
from framestorm.errors import UsageError
from framestorm.parser import Parser
from framestorm.plain import tell
from framestorm.platform.kubernetes import engine, kind
from framestorm.platform.kubernetes import parts as kubernetes
from framestorm.platform.kubernetes.layout import SOURCE as KUBERNETES
from framestorm.platform.openfaas import docker, parts
from framestorm.platform.openfaas.layout import FUNCTIONS, SOURCE
from framestorm.setup import golang, packages
from framestorm.setup import pieces as setup
from lab import base as lab_base
from lab import container
from lab import lifecycle as lab

# A browser for the report, a screen and its tools for JMeter's GUI, and what takes the figures of --sink.
TEST_PACKAGES = (
    "chromium", "imagemagick", "influxdb", "openssl", "prometheus", "x11-utils", "xdotool", "xvfb",
)  # fmt: skip

# Modules in Go with tests of their own.
GO_MODULES = [SOURCE / "provider", SOURCE / "parts" / "faas-cli", FUNCTIONS]
GO_MODULES += [KUBERNETES, KUBERNETES / "registry"]
# And one whose sources a test reads.
GO_SOURCES = [*GO_MODULES, FUNCTIONS / "kind"]

BIN = paths.TEST_PYTHON.parent

# Three workers on two cores: the tests of the lab and of OpenFaaS have one worker each, which mostly waits for hosts
# and JVMs. tests/conftest.py says which tests stay together.
EVERYTHING = ("--numprocesses=3", "--no-loadscope-reorder", "--durations=40", "-m", "not long")


def main(words: Sequence[str]) -> int:
    """Set up what the tests need, then check and test the kit as CI does."""
    parser = Parser(
        prog="./run.sh test", description=main.__doc__, usage="%(prog)s [-h] [PYTEST-OPTION ...] [TEST ...]",
        epilog="Words that follow go to pytest, which then runs alone, without the static checks. `-m long` runs the "
        "tests of minutes each, which CI leaves out.",
    )  # fmt: skip
    if list(words) in (["-h"], ["--help"]):
        parser.print_help()
        return 0
    return run(words)


def run(words: Sequence[str]) -> int:
    """Run pytest and the static checks; if there are words, run only pytest, with these words as its arguments.

    Returns:
        0 only if everything passed.

    Raises:
        UsageError: all tests were asked for without root, or pytest does not know an option.
    """
    if not words and os.geteuid() != 0:
        raise UsageError(
            "the tests of the lab and of OpenFaaS need root: run `sudo ./run.sh test`; "
            "as another user, name tests that need no root: `./run.sh test tests/framestorm`"
        )
    if words:
        _check_options(words)
    _set_up()
    before = packages.installed()
    pool = ThreadPoolExecutor(1)
    try:
        # One after another, beside the tests, which wait for hosts more than they compute.
        commands = () if words else _checks()
        checks = {name: pool.submit(_passes, name, command, captured=True) for name, command in commands}
        passed = _passes("pytest", [BIN / "python", "-m", "pytest", *(words or EVERYTHING)])
        failed = [name for name, check in checks.items() if not check.result()] + ([] if passed else ["pytest"])
    finally:
        pool.shutdown(cancel_futures=True)
    if new := sorted(packages.installed() - before):
        print(f"tests installed packages that set-up should have installed: {' '.join(new)}")
        failed.append("packages")
    if failed:
        tell(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def _check_options(words: Sequence[str]) -> None:
    """Raise UsageError, before minutes of set-up, if pytest does not know an option."""
    setup.ensure([setup.TEST_VENV])
    # It reads its options and shows its markers, without collecting a test.
    asked: list[str | Path] = [BIN / "python", "-m", "pytest", "--markers", *words]
    done = subprocess.run(asked, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    if wrong := re.search("error: (.*)", done.stderr):
        raise UsageError(f"pytest: {wrong[1]}; ./run.sh test --help says what goes to it")


def _set_up() -> None:
    """Install and build everything that the tests need; the tests themselves install nothing."""
    packages.install(
        [*TEST_PACKAGES, *lab_base.TOOLS, *parts.needed_packages(), *docker.needed_packages(), *engine.PACKAGES]
    )
    # What takes longest begins first.
    pieces = [kubernetes.PROGRAMS, setup.TEST_VENV, *parts.PIECES, *setup.FOR_A_RUN, *setup.FACE_BLUR, setup.CHAT_VENV]
    pieces += [setup.FOR_WINDOWS, setup.TEST_JARS, setup.KSERVE_VENV, *kubernetes.CLUSTER_PIECES]
    pieces += [setup.ANSIBLE_VENV, setup.ANSIBLE_TEST_VENV, *sbom.PIECES, golang.sources(GO_SOURCES)]
    if os.geteuid() != 0:
        setup.ensure(pieces)
        return
    with ThreadPoolExecutor(1) as pool:
        lab_base_made = pool.submit(lab.prepare)
        setup.ensure([docker.BASE_IMAGE, container.PIECE, *pieces, *kind.PIECES])
        lab_base_made.result()


def _checks() -> Iterator[tuple[str, list[str | Path]]]:
    scripts = ["run.sh", ".ci/run", "framestorm/setup/apt.sh", "lab/launch.sh"]
    scripts += [f"function/kind/{name}.sh" for name in ("up", "down", "versions")]
    scripts += [f"function/kubernetes/node/{name}.sh" for name in ("pod-network", "private-sysctls")]
    # The rooms share no imports, and each has a handler.py or the like: each is checked as a program of its own.
    shell = [str(path.relative_to(paths.ROOT)) for path in sorted((paths.ROOT / "function").glob("*.py"))]
    functions = [[*shell, f"function/{name}"] for name in ("face-blur", "chat")]
    for room in (["ansible/pack.py", "client", "lab", "tests", "framestorm"], *functions):
        name = f"mypy {room[-1]}"
        # Separate caches: two rooms may have modules of the same name.
        yield name, [BIN / "mypy", f"--cache-dir=.mypy_cache/{Path(room[-1]).name}", *room]
    yield "ruff check", [BIN / "ruff", "check", "."]
    yield "ruff format", [BIN / "ruff", "format", "--check", "."]
    yield "shellcheck", [BIN / "shellcheck", "--external-sources", "--source-path=SCRIPTDIR", *scripts]
    yield "shfmt", [BIN / "shfmt", "-i", "4", "-d", *scripts]


def _environment() -> dict[str, str]:
    # shellcheck and shfmt are looked for on PATH by what calls them.
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    # The tests start Python hundreds of times: if each compiled what it imports, they would take a seventh more CPU.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def _passes(name: str, command: Sequence[str | Path], captured: bool = False) -> bool:
    """Return whether a command succeeds; its output is shown as it comes, or, captured, together at the end."""
    heading = f"== {name}"
    if not captured:
        print(heading, flush=True)
    started_s = time.monotonic()
    done = subprocess.run(
        command,
        cwd=paths.ROOT,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if captured else None,
        stderr=subprocess.STDOUT if captured else None,
        text=True,
        check=False,
    )
    verdict = "passed" if done.returncode == 0 else "FAILED"
    print(f"{done.stdout or ''}{heading}: {verdict} in {time.monotonic() - started_s:.0f} s", flush=True)
    return done.returncode == 0
