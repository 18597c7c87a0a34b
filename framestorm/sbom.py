"""`./run.sh sbom`: the software that the kit brings along, as CycloneDX files, by the tools of each ecosystem."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.platform.openfaas import layout, parts
from framestorm.setup import pieces as setup

MAVEN_PLUGIN = "org.cyclonedx:cyclonedx-maven-plugin:2.9.1:makeBom"
LOCKS = tuple(
    folder / "requirements.txt" for folder in (paths.ROOT / "framestorm", paths.CLIENT, paths.FACE_BLUR, paths.ANSIBLE)
)


def main(words: Sequence[str]) -> int:
    """Write the files: one of JMeter's home, one of each Python lock file, one of each program in Go."""
    parser = argparse.ArgumentParser(prog="./run.sh sbom", description=__doc__)
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", type=Path, default=paths.LOCAL / "sbom",
        help="where to write them (default: .local/sbom)",
    )  # fmt: skip
    folder = parser.parse_args(list(words)).folder.absolute()
    setup.ensure([setup.JMETER, *parts.GO_PIECES, parts.SBOM_TOOL, setup.SBOM_VENV])
    folder.mkdir(parents=True, exist_ok=True)
    output = (f"-DoutputDirectory={folder}", "-DoutputName=jmeter.cdx", "-DoutputFormat=json")
    setup.call(["mvn", "-q", "-B", "-C", "-f", paths.JMX / "pom.xml", MAVEN_PLUGIN, *output])
    for lock in LOCKS:
        file = folder / f"python-{lock.parent.name}.cdx.json"
        setup.call([setup.SBOM_VENV.output / "bin" / "cyclonedx-py", "requirements", lock, "-o", file])
    for piece in parts.GO_PIECES:
        if os.access(piece.output, os.X_OK) and piece.output.parent == layout.BIN:
            file = folder / f"go-{piece.output.name}.cdx.json"
            setup.call([parts.SBOM_TOOL.output, "bin", "-json", "-output", file, piece.output])
    for file in sorted(folder.glob("*.cdx.json")):
        print(f"wrote {paths.shown(file)}")
    return 0
