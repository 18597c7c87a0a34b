"""The kit's image, made for the tests on the bare system that hosts of the lab start from."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from framestorm import paths
from framestorm.hosts import container, preflight
from framestorm.machine import execute
from framestorm.platform.openfaas import docker
from framestorm.setup import archives
from framestorm.setup.pieces import Piece
from lab import base, lifecycle

IMAGE = f"{docker.PREFIX}/kit:tests"
BARE = f"{docker.PREFIX}/bare:tests"
# The bare system has the registries' certificates, and apt would go by the lab's proxy, which containers do not need.
_OUTSIDE = f"""FROM {BARE}
RUN rm /etc/apt/apt.conf.d/90lab
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt
"""
# Most tests put the checkout's sources over those of the image: it is made anew for what its set-up is made of, and for
# what a slave has of the kit.
MADE_OF = (
    *(paths.ROOT / name for name in ("Dockerfile", ".dockerignore", "run.sh", "framestorm/requirements.txt")),
    *sorted((paths.ROOT / "framestorm" / "setup").glob("*.py")),
    *(paths.ROOT / name for name in ("framestorm/hosts/container.py", *preflight.kit_files())),
    *dict.fromkeys(path for piece in container.PIECES for path in piece.inputs),
    Path(__file__),
)


def _make(_piece: Piece) -> None:
    lifecycle.prepare()
    with docker.engine(), tempfile.TemporaryDirectory() as folder:
        docker.ENGINE.import_system(base.ensure(archives.of_this_machine()), BARE)
        (Path(folder) / "Dockerfile").write_text(_OUTSIDE)
        docker.ENGINE.run("build", "--quiet", "--tag", BARE, folder)
        # As under the strictest umask: the account of a container has to read what its owner alone may read here.
        checkout = Path(folder) / "checkout"
        shutil.copytree(paths.ROOT, checkout, ignore=shutil.ignore_patterns(".git", ".local", "dashboards"))
        execute("chmod", "-R", "go=", str(checkout))
        options = ("--network", "host", "--build-arg", f"BASE={BARE}", "--tag", IMAGE)
        docker.ENGINE.run("build", "--quiet", *options, str(checkout))
        docker.ENGINE.run("image", "prune", "--force")


# After the base image: a machine has one engine at a time.
PIECE = Piece("kit-image", "image of the kit", MADE_OF, docker.DATA, _make, after=(docker.BASE_IMAGE,))
