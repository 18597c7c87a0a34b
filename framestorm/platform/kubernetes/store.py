"""The cluster's registry of images: pushed on this machine's loopback, pulled by the nodes under the same name."""

import shutil
from functools import partial
from pathlib import Path

from framestorm.machine import answers
from framestorm.platform.kubernetes import engine, layout
from framestorm.platform.kubernetes.layout import BIN, HOME
from framestorm.platform.openfaas import services
from framestorm.platform.openfaas.services import Program, StartedServices

IMAGES = HOME / "registry"
STATE = HOME / "registry.json"


def start() -> None:
    """Start the registry; the engine, whose network the nodes pull in, has to run.

    Raises:
        FramestormError: its port is taken, or it does not start.
    """
    IMAGES.mkdir(exist_ok=True)
    command: list[str | Path] = [
        *(BIN / "registry", "-folder", IMAGES, "-push", layout.REGISTRY),
        *("-pull", layout.REGISTRY_FOR_NODES, "-namespace", engine.network()),
    ]
    ready = partial(answers, f"http://{layout.REGISTRY}/v2/")
    program = Program("kind-registry", command, ready, (layout.REGISTRY_PORT,))
    services.check_ports_free([program])
    services.start(program, StartedServices("kind"), STATE)


def stop() -> None:
    """Stop the registry and delete the images that were pushed to it."""
    if (started := services.read(STATE)) is not None:
        services.end(started.services.values())
        STATE.unlink()
    shutil.rmtree(IMAGES, ignore_errors=True)
