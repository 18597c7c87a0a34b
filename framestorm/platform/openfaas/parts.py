"""Set-up of the local OpenFaaS: the Go toolchain, OpenFaaS's own parts, our provider and functions; made once."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from framestorm import paths
from framestorm.platform.openfaas.layout import BIN, FUNCTIONS, HOME, SOURCE
from framestorm.setup import packages
from framestorm.setup import pieces as setup
from framestorm.setup.pieces import Piece

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
        version = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False)
    except OSError:
        return ()
    return tuple(int(number) for number in re.findall(r"\d+", version.stdout)[:2])


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


def _program(name: str, title: str, source: Path, package: str, inputs: Iterable[Path], after: Piece) -> Piece:
    """A program in Go, made after another: Go uses all cores, and two builds would compile the same packages twice."""
    make = partial(_make_program, source=source, package=package)
    return Piece(f"openfaas-{name}", title, tuple(sorted(inputs)), binary(name), make, (after,))


def _sources(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.glob("*.go") if not path.name.endswith("_test.go")]


def _make_packages(piece: Piece) -> None:
    """Install Debian's packages, except those whose programs this machine has from elsewhere."""
    packages.install(needed_packages())
    piece.output.parent.mkdir(parents=True, exist_ok=True)
    piece.output.touch()


def needed_packages() -> list[str]:
    """The Debian packages that the local OpenFaaS needs; a JDK or a Node from another source will do as well."""
    wanted = [*PACKAGES, *([] if shutil.which("javac") else [COMPILER])]
    # Node from another source has no package of that name, and would be downgraded.
    return [package for package in wanted if package != "nodejs" or not shutil.which("node")]


def _make_java_noop(piece: Piece) -> None:
    JAVA_CLASSES.mkdir(parents=True, exist_ok=True)
    setup.call(["javac", "--release", "17", "-d", JAVA_CLASSES, piece.inputs[0]])


def _module(folder: Path) -> tuple[Path, ...]:
    return tuple(path for path in (folder / "go.mod", folder / "go.sum") if path.exists())


def _go_pieces() -> tuple[Piece, ...]:
    check, provider = SOURCE / "parts" / "faas-cli", SOURCE / "provider"
    programs = [
        *(
            (part, title, SOURCE / "parts" / part, "tool", _module(SOURCE / "parts" / part))
            for part, title in PARTS.items()
        ),
        ("stack-check", "stack.yml check", check, "./check", [*_module(check), *_sources(check / "check")]),
        ("provider", "OpenFaaS provider", provider, ".", [*_module(provider), *_sources(provider)]),
    ]
    for name, package in GO_FUNCTIONS.items():
        inputs = [*_module(FUNCTIONS), *_sources(FUNCTIONS / package, FUNCTIONS / "shell")]
        programs.append((name, f"function {name}", FUNCTIONS, f"./{package}", inputs))
    pieces = [Piece("openfaas-go", "Go", (GO_LOCK,), GO, _make_go)]
    for program in programs:
        pieces.append(_program(*program, after=pieces[-1]))
    return tuple(pieces)


GO_FUNCTIONS = {"noop": "noop/go", "sleep": "sleep", "cpu": "cpu", "redirect": "balancers/redirect"}
GO_PIECES = _go_pieces()
# For function/kind/up.sh; not needed by the local OpenFaaS.
KIND = _program("kind", "kind", FUNCTIONS / "kind", "tool", _module(FUNCTIONS / "kind"), GO_PIECES[-1])
PACKAGES_PIECE = Piece(
    "openfaas-packages", "Debian packages of the local OpenFaaS", (), HOME / "packages", _make_packages
)
PIECES = (
    PACKAGES_PIECE,
    *GO_PIECES,
    Piece(
        "openfaas-noop-java",
        "function noop-java",
        (FUNCTIONS / "noop" / "java" / "Noop.java",),
        JAVA_CLASSES / "Noop.class",
        _make_java_noop,
        (PACKAGES_PIECE,),
    ),
    setup.JAVA,
    setup.FUNCTION_VENV,
    setup.FACE_GRAPH,
)


def java() -> str:
    """The Java that runs the function: the kit's own where it is set up."""
    kit = paths.JAVA_HOME / "bin" / "java"
    return str(kit) if kit.exists() else "java"
