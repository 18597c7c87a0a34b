"""The commands that README and docs show, run in their order as a reader would, only with less load."""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, Command, shown

WITHIN_S = 600
# What makes a plan's run short; each run takes its own folder and a port that a local OpenFaaS does not hold.
SHORT = {
    "face-blur": ("-Jhold_s=3", "-Jramp_s=0"),
    "requests": ("-Jhold_s=2",),
    "request-rate": ("-Jhold_s=2",),
    "tasks": (),
}


class Reader:
    """Runs the commands of a page one after the other; `names` are folders that a page names and a test has made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, str] = {}
        self.runs = 0

    def run(self, command: Command, *more: str, status: int = 0, instead: Mapping[str, str] | None = None) -> str:
        """Run a command with further words to its end; its output."""
        assert command.text.startswith("./run.sh"), command
        names = {**self.names, **(instead or {})}
        words = [names.get(word, word) for word in command.words]
        if not command.verb:
            self.runs += 1
            more = (*SHORT[command.plan], "--port", "18080", *more)
            if "-o" not in words:
                more = (*more, "-o", str(self.folder / f"run-{self.runs}"))
        done = subprocess.run(
            [ROOT / "run.sh", *words, *more], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=WITHIN_S, check=False,
        )  # fmt: skip
        assert done.returncode == status, f"{command.page}: {command.text}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A reader with a folder of its own."""
    return Reader(tmp_path_factory.mktemp("reader"))


@pytest.fixture
def commands() -> Callable[[str], list[Command]]:
    """The commands of a page, by its name."""
    return lambda name: next(shown(page) for page in PAGES if page.name == name)
