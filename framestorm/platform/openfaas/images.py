"""How each image of function/stack.yml is run, by the process backend here and in a container: the same programs."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from framestorm import paths
from framestorm.platform.openfaas.layout import BIN, FUNCTIONS
from framestorm.platform.openfaas.parts import JAVA_CLASSES

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


HERE = Places(
    bin=BIN,
    functions=FUNCTIONS,
    python=str(paths.FUNCTION_PYTHON),
    node=shutil.which("node") or "node",
    java=str(paths.JAVA_HOME / "bin" / "java"),
    java_classes=JAVA_CLASSES,
    face_graph=paths.FACE_GRAPH,
)


def catalogue(places: Places) -> dict[str, Image]:
    """Every image by its own name.

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
    images: dict[str, Image] = {}
    for name, (serve, fork) in ways.items():
        environment = {"FACE_MODEL": str(places.face_graph)} if name == "face-blur" else {}
        images[name] = {"command": serve, "env": environment}
        # stderr apart from the answer, as a body of bytes must not be mixed with warnings.
        images[f"{name}-fork"] = {"fprocess": " ".join(fork), "env": {**environment, "combine_output": "false"}}
    return images
