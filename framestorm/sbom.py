"""`./run.sh sbom`: the software that the kit brings along, as CycloneDX files, by the tools of each ecosystem."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.parser import Parser
from framestorm.plain import say
from framestorm.platform.kubernetes.layout import BIN
from framestorm.platform.kubernetes.parts import CLUSTER_PIECES
from framestorm.platform.openfaas import layout, parts
from framestorm.setup import pieces as setup
from framestorm.setup.log import call

PIECES = (setup.JMETER_SBOM, *parts.GO_PIECES, parts.SBOM_TOOL, setup.SBOM_VENV)
_LOCKED = (paths.ROOT / "framestorm", paths.CLIENT, paths.FACE_BLUR, paths.CHAT, paths.ANSIBLE)
LOCKS = tuple(folder / "requirements.txt" for folder in _LOCKED)


def main(words: Sequence[str]) -> int:
    """Write the files: one of JMeter's home, one of each Python lock file, one of each program in Go."""
    parser = Parser(prog="./run.sh sbom", description=__doc__)
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", type=Path, default=paths.LOCAL / "sbom",
        help="where to write them (default: .local/sbom)",
    )  # fmt: skip
    folder = parser.parse_args(list(words)).folder.absolute()
    setup.ensure(PIECES)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(setup.JMETER_SBOM.output, folder)
    for lock in LOCKS:
        file = folder / f"python-{lock.parent.name}.cdx.json"
        call([setup.SBOM_VENV.output / "bin" / "python", "-P", "-m", "cyclonedx_py", "requirements", lock, "-o", file])
    # A cluster's programs take many minutes to build: only those that are there.
    for prefix, home, pieces in (("go", layout.BIN, parts.GO_PIECES), ("go-cluster", BIN, CLUSTER_PIECES)):
        for piece in pieces:
            if os.access(piece.output, os.X_OK) and piece.output.parent == home:
                file = folder / f"{prefix}-{piece.output.name}.cdx.json"
                call([parts.SBOM_TOOL.output, "bin", "-json", "-output", file, piece.output])
    for file in sorted(folder.glob("*.cdx.json")):
        say(f"wrote {paths.shown(file)}")
    return 0
