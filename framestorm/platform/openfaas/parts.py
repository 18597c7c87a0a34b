"""The programs of the local OpenFaaS: how they are made, once, and how those of function/stack.yml are run."""

import os
import shutil
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypedDict

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.platform.openfaas.layout import BIN, FUNCTIONS, HOME, HOST, SOURCE
from framestorm.setup import golang, packages
from framestorm.setup import pieces as setup
from framestorm.setup.log import call
from framestorm.setup.pieces import Piece

# Each in a folder of function/openfaas/parts/ whose go.mod names it as its tool, and go.sum pins all it is made from.
PARTS = ("gateway", "watchdog", "queue-worker", "nats-streaming", "faas-cli")
# Go calls a binary by the last word of its package.
BINARIES = {"queue-worker": "nats-queue-worker", "nats-streaming": "nats-streaming-server"}
GATEWAY_MODULE = "github.com/openfaas/faas/gateway"
ON_ALL_ADDRESSES = 'fmt.Sprintf(":%d"'
GO_FUNCTIONS = {"noop": "noop/go", "sleep": "sleep", "cpu": "cpu"}
GO_BALANCERS = {"redirect": "balancers/redirect", "dnsrr": "balancers/dnsrr"}

PACKAGES = ("prometheus", "prometheus-alertmanager", "iproute2", "nginx-light", "haproxy", "nodejs")
COMPILER = "openjdk-17-jdk-headless"
JAVA_CLASSES = HOME / "noop-java"


def binary(part: str) -> Path:
    """Return where a part's program is once it is built."""
    return BIN / BINARIES.get(part, part)


def _make_gateway(piece: Piece, module: Path) -> None:
    """The gateway from its own sources, but for one thing: its main names no address to listen on, and so takes all."""
    sources = HOME / "gateway-source"
    shutil.rmtree(sources, ignore_errors=True)
    shutil.copytree(golang.folder(module, GATEWAY_MODULE), sources)
    main = sources / "main.go"
    text = main.read_text()
    if text.count(ON_ALL_ADDRESSES) != 2:
        raise FramestormError(
            f"{main} listens in another way than expected: the gateway cannot be kept to this machine"
        )
    main.write_text(text.replace(ON_ALL_ADDRESSES, f'fmt.Sprintf("{HOST}:%d"'))
    go_mod = sources / "build.mod"
    go_mod.write_text(f"{(module / 'go.mod').read_text()}\nreplace {GATEWAY_MODULE} => {sources}\n")
    shutil.copyfile(module / "go.sum", sources / "build.sum")
    BIN.mkdir(parents=True, exist_ok=True)
    golang.build(module, f"-modfile={go_mod}", "-o", f"{BIN}{os.sep}", "tool")


def _program(after: Piece, name: str, module: Path, package: str, *sources: Path) -> Piece:
    """Return a part's program, made after another piece; see `golang.program`."""
    return golang.program(
        f"openfaas-{name}", f"OpenFaaS: {name}", binary(name), module, package, after=after, sources=sources
    )


def _go_pieces() -> tuple[Piece, ...]:
    pieces = [golang.PIECE]
    for part in PARTS:
        pieces.append(_program(pieces[-1], part, SOURCE / "parts" / part, "tool"))
        if part == "gateway":
            make = partial(_make_gateway, module=SOURCE / "parts" / part)
            pieces[-1] = replace(pieces[-1], name="openfaas-gateway-on-loopback", make=make)
    check, provider = SOURCE / "parts" / "faas-cli", SOURCE / "provider"
    pieces.append(_program(pieces[-1], "stack-check", check, "./check", check / "check"))
    pieces.append(_program(pieces[-1], "provider", provider, ".", provider))
    for name, package in {**GO_FUNCTIONS, **GO_BALANCERS}.items():
        sources = (FUNCTIONS / package, FUNCTIONS / "shell")
        pieces.append(_program(pieces[-1], name, FUNCTIONS, f"./{package}", *sources))
    return tuple(pieces)


def programs(*names: str) -> tuple[Piece, ...]:
    """Return the pieces that are these parts, functions or balancers."""
    outputs = {binary(name) for name in names}
    return tuple(piece for piece in GO_PIECES if piece.output in outputs)


def needed_packages() -> list[str]:
    """Return the Debian packages that the local OpenFaaS needs; a JDK or a Node from another source will do as well."""
    # Node from another source has no package of that name, and would be downgraded.
    is_there = {"nodejs": shutil.which("node"), COMPILER: shutil.which("javac")}
    return [package for package in (*PACKAGES, COMPILER) if not is_there.get(package)]


def _make_packages(piece: Piece) -> None:
    packages.install(needed_packages())
    piece.output.parent.mkdir(parents=True, exist_ok=True)
    piece.output.touch()


def _make_java_noop(piece: Piece) -> None:
    JAVA_CLASSES.mkdir(parents=True, exist_ok=True)
    call(["javac", "--release", "17", "-d", JAVA_CLASSES, piece.inputs[0]])


GO_PIECES = _go_pieces()
# For ./run.sh sbom, and for function/kind/up.sh; the local OpenFaaS needs neither.
SBOM_TOOL = _program(GO_PIECES[-1], "cyclonedx-gomod", SOURCE / "parts" / "cyclonedx-gomod", "tool")
KIND = _program(GO_PIECES[-1], "kind", FUNCTIONS / "kind", "tool")
PACKAGES_PIECE = Piece(
    "openfaas-packages", "Debian packages of the local OpenFaaS", (), HOME / "packages", _make_packages
)
NOOP_SOURCE = FUNCTIONS / "noop" / "java" / "Noop.java"
NOOP_CLASS = JAVA_CLASSES / "Noop.class"
JAVA_NOOP = Piece(
    "openfaas-noop-java", "function noop-java", (NOOP_SOURCE,), NOOP_CLASS, _make_java_noop, (PACKAGES_PIECE,)
)
PIECES = (PACKAGES_PIECE, *GO_PIECES, JAVA_NOOP, setup.JAVA, setup.FUNCTION_VENV, setup.FACE_GRAPH)

# A forked JVM gains nothing from its optimising compiler.
JAVA_FORK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


class ImageStart(TypedDict, total=False):
    """How an image is run: `command` is a server, `fprocess` is forked by the classic watchdog."""

    command: list[str]
    fprocess: str
    env: dict[str, str]


@dataclass(frozen=True)
class Places:
    """Where the programs lie."""

    bin: Path
    functions: Path
    python: str
    node: str
    java: str
    java_classes: Path
    face_graph: Path


HERE = Places(
    bin=BIN,
    functions=FUNCTIONS,
    python=str(paths.FUNCTION_PYTHON),
    node=shutil.which("node") or "node",
    java=str(paths.JAVA_HOME / "bin" / "java"),
    java_classes=JAVA_CLASSES,
    face_graph=paths.FACE_GRAPH,
)


def catalogue(places: Places) -> dict[str, ImageStart]:
    """Return every image by its own name.

    Where a server listens, the backend tells it by {host} and {port}, and by `host` and `port` in its environment.
    """
    face_blur, noop = places.functions / "face-blur", places.functions / "noop"
    serve_frames = [places.python, f"{face_blur}/app.py", "--host", "{host}", "--port", "{port}"]
    python_noop, node_noop = f"{noop}/python/noop.py", [places.node, f"{noop}/node/noop.js"]
    java_noop = ["-cp", str(places.java_classes), "Noop"]
    ways = {
        "face-blur": (serve_frames, [places.python, f"{face_blur}/fork.py"]),
        "noop-python": ([places.python, python_noop, "serve"], [places.python, "-I", "-S", python_noop, "fork"]),
        "noop-node": ([*node_noop, "serve"], [*node_noop, "fork"]),
        "noop-java": ([places.java, *java_noop, "serve"], [places.java, *JAVA_FORK, *java_noop, "fork"]),
    }
    for name in ("noop", "sleep", "cpu"):
        ways[name] = ([f"{places.bin}/{name}", "serve"], [f"{places.bin}/{name}", "fork"])
    images: dict[str, ImageStart] = {}
    for name, (serve, fork) in ways.items():
        environment = {"FACE_MODEL": str(places.face_graph)} if name == "face-blur" else {}
        images[name] = {"command": serve, "env": environment}
        # stderr apart from the answer, as a body of bytes must not be mixed with warnings.
        images[f"{name}-fork"] = {"fprocess": " ".join(fork), "env": {**environment, "combine_output": "false"}}
    chat = places.functions / "chat" / "app.py"
    images["chat"] = {"command": [places.python, str(chat), "--host", "{host}", "--port", "{port}"], "env": {}}
    return images
