"""The layers of docs/architecture.md: imports, those within functions too, lead down."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from framestorm import paths

SOURCES = paths.ROOT / "framestorm"


def layers() -> dict[str, int]:
    """The rank of each package and module in the list, the topmost first."""
    page = (paths.ROOT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", page.partition("| package |")[2].partition("\n\n")[0], re.MULTILINE)
    names = [re.findall(r"`(\w+)(?:/|\.py)`", row) for row in rows]
    return {name: rank for rank, of_row in enumerate(names) for name in of_row}


def imports(path: Path) -> Iterator[list[str]]:
    """The parts of the name of each module that a file imports, or takes a name from."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}".split(".") for alias in node.names)


def test_imports_lead_down() -> None:
    ranks = layers()
    assert {folder.name for folder in SOURCES.iterdir() if any(folder.glob("*.py"))} <= set(ranks)
    upward = []
    for path in SOURCES.rglob("*.py"):
        room = path.relative_to(SOURCES).parts[0].removesuffix(".py")
        for package, *parts in imports(path):
            other = parts[0] if parts else ""
            is_upward = package == "framestorm" and ranks.get(other, 99) < ranks.get(room, 0)
            if is_upward or (package == "lab" and room != "testing"):
                upward.append(f"{path.relative_to(paths.ROOT)} imports {'.'.join([package, *parts])}")
    assert upward == []


@pytest.mark.parametrize(
    ("folder", "modules"),
    [
        ("client", r"framestorm\b"),
        ("function", r"framestorm\b"),
        ("framestorm/stats", r"framestorm\.(?!stats\b)"),
        ("framestorm/compare", r"framestorm\.study\b"),
    ],
)
def test_what_imports_nothing_of_others(folder: str, modules: str) -> None:
    names = [".".join(parts) for path in (paths.ROOT / folder).rglob("*.py") for parts in imports(path)]
    assert names and [name for name in names if re.match(modules, name)] == []
