"""The commands of the page about slaves, on the lab's hosts; last of all, for they take back what was deployed."""

from collections.abc import Callable
from typing import Any


def test_slaves(reader: Any, commands: Callable[[str], list[Any]], deployed: Any) -> None:
    shown = commands("slaves.md")
    late = [command for command in shown if "--uninstall" in command.words or command.words[:2] == ["lab", "down"]]
    for command in [each for each in shown if each not in late] + late:
        output = reader.run(command, *(("-Jframes=3",) if not command.verb else ()))
        if command.words[:2] == ["lab", "status"]:
            assert "slave2" in output
