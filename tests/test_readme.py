"""README's commands are true: each verb, plan, property and criterion that it shows is there."""

import itertools
import re
import shlex
from pathlib import Path

import pytest

from framestorm import cli, properties
from framestorm.report import criteria

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
COMMANDS = [
    line.partition("#")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    for line in block.splitlines()
    if line.startswith("./run.sh")
]


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 8


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_what_there_is(command: str) -> None:
    words = shlex.split(command)[1:]
    if words and not words[0].startswith("-"):
        assert words[0] in cli.VERBS
    plan = words[words.index("-t") + 1] if "-t" in words else "jmx/face-blur.jmx"
    plan = next((word for word in words if word.endswith(".jmx")), plan)
    properties.effective(
        properties.read_plan(ROOT / plan),
        properties.parse_assignments(word[2:] for word in words if word.startswith("-J")),
    )
    for flag, criterion in itertools.pairwise(words):
        if flag == "--fail-if":
            criteria.parse(criterion)


def test_every_property_of_the_plans_is_explained() -> None:
    for plan in (ROOT / "jmx").glob("*.jmx"):
        for name in set(properties.read_plan(plan)) - properties.KIT_KNOBS:
            assert f"`{name}`" in README, f"{plan.name}: {name}"


def test_the_map_is_the_tree() -> None:
    named = re.findall(
        r"^(\S+?)/?  +", README.partition("## The map")[2].partition("```\n")[2].partition("```")[0], re.M
    )
    assert named
    for name in named:
        assert (ROOT / name).exists(), name
    for path in re.findall(r"\]\(((?!http)[^)]+)\)", README):
        assert (ROOT / path).exists(), path
