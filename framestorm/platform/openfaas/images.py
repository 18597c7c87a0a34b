"""How each image of function/stack.yml is run, by the process backend here and in a container: the same programs."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from framestorm import paths
from framestorm.platform.openfaas.layout import BIN, FUNCTIONS
from framestorm.platform.openfaas.parts import JAVA_CLASSES, java

# A forked JVM gains nothing from its optimising compiler.
JAVA_FORK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


class Image(TypedDict, total=False):
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


def here() -> Places:
    """The places on this machine."""
    return Places(
        bin=BIN,
        functions=FUNCTIONS,
        python=str(paths.FUNCTION_PYTHON),
        node=shutil.which("node") or "node",
        java=java(),
        java_classes=JAVA_CLASSES,
        face_graph=paths.FACE_GRAPH,
    )


def catalogue(places: Places) -> dict[str, Image]:
    """Every image by its own name.

    Where a server listens, the backend tells it by {host} and {port}, and by `host` and `port` in its environment.
    """
    face_blur = places.functions / "face-blur"
    noop_python = str(places.functions / "noop" / "python" / "noop.py")
    noop_node = str(places.functions / "noop" / "node" / "noop.js")
    classes = str(places.java_classes)
    ways: dict[str, tuple[list[str], list[str], dict[str, str]]] = {
        "face-blur": (
            [places.python, str(face_blur / "app.py"), "--host", "{host}", "--port", "{port}"],
            [places.python, str(face_blur / "fork.py")],
            {"FACE_MODEL": str(places.face_graph)},
        ),
        "noop-python": (
            [places.python, noop_python, "serve"],
            [places.python, "-I", "-S", noop_python, "fork"],
            {},
        ),
        "noop-node": ([places.node, noop_node, "serve"], [places.node, noop_node, "fork"], {}),
        "noop-java": (
            [places.java, "-cp", classes, "Noop", "serve"],
            [places.java, *JAVA_FORK, "-cp", classes, "Noop", "fork"],
            {},
        ),
    }
    for name in ("noop", "sleep", "cpu"):
        program = str(places.bin / name)
        ways[name] = ([program, "serve"], [program, "fork"], {})
    images: dict[str, Image] = {}
    for name, (serve, fork, environment) in ways.items():
        images[name] = {"command": serve, "env": environment}
        # stderr apart from the answer, as a body of bytes must not be mixed with warnings.
        images[f"{name}-fork"] = {"fprocess": " ".join(fork), "env": {**environment, "combine_output": "false"}}
    return images


def as_json() -> str:
    """The catalogue as the provider reads it."""
    return json.dumps(catalogue(here()), indent=2)
