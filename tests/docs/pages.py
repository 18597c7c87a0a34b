"""The commands that README and docs show."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@dataclass(frozen=True)
class Command:
    """A command as a page shows it, without its comment."""

    page: str
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)[1:]

    @property
    def verb(self) -> str:
        """The verb after ./run.sh; empty for a run."""
        return self.words[0] if self.words and not self.words[0].startswith("-") else ""

    @property
    def plan(self) -> str:
        """The plan of a run, by its stem."""
        return Path(self.words[self.words.index("-t") + 1]).stem if "-t" in self.words else "face-blur"


def shown(page: Path) -> list[Command]:
    """The commands in the shell blocks of a page, in order."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    lines = [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [Command(page.name, line) for line in lines if line and not line.startswith("#")]
