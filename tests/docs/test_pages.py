"""Every command that README and docs show is run by a test here, links lead somewhere, and the map is the tree."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import PAGES, ROOT, shown

# By page: the test module that runs its commands.
RUN_BY = {
    "README.md": "test_openfaas_pages",
    "report.md": "test_openfaas_pages",
    "openfaas.md": "test_openfaas_pages",
    "studies.md": "test_openfaas_pages",
    "comparing.md": "test_openfaas_pages",
    "slaves.md": "test_slaves_page",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_every_page_are_run(page: Path) -> None:
    if shown(page):
        module = RUN_BY[page.name]
        assert f'"{page.name}"' in (Path(__file__).parent / f"{module}.py").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(((?!http)[^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_map_is_the_tree(commands: Callable[[str], list[Any]]) -> None:
    readme = (ROOT / "README.md").read_text()
    block = readme.partition("## The map")[2].partition("```\n")[2].partition("```")[0]
    names = re.findall(r"^(\S+?)/?  +", block, re.MULTILINE)
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))}
    assert folders <= set(names)
    for name in names:
        assert (ROOT / name).exists(), name


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 130
