"""The commands that README and docs show."""

import re

from framestorm import paths

PAGES = [paths.ROOT / "README.md", *sorted((paths.ROOT / "docs").glob("*.md"))]


def shown(name: str) -> list[str]:
    """The commands in the shell blocks of a page, in order, without comments."""
    page = next(page for page in PAGES if page.name == name)
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    lines = [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]
