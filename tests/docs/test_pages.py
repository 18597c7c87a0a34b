"""Every command that README and docs show is run by a test, links lead somewhere, and the map is the tree."""

import re
from pathlib import Path

import pytest

from framestorm.paths import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
OTHERS = [path for pattern in ("*.md", "*/README.md", "studies/*/README.md") for path in sorted(ROOT.glob(pattern))]


def blocks(name: str, kind: str) -> list[str]:
    """The blocks of a kind that a page has, in order."""
    page = next(page for page in PAGES if page.name == name)
    return re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def shown(name: str, kind: str = "sh") -> list[str]:
    """The commands in the shell blocks of a page, in order, without comments.

    kind: "sh" for what needs this machine alone, "console" for what needs a cluster or an engine too.
    """
    text = "".join(blocks(name, kind)).replace("\\\n", " ")
    lines = [re.sub(r" +", " ", line.split(" #")[0]).strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("kind", ["sh", "console"])
@every_page
def test_commands_of_every_page_are_run(page: Path, kind: str) -> None:
    """By a test that has the command as the page shows it, or that runs all such blocks of the page."""
    tests = "".join(path.read_text() for path in sorted((ROOT / "tests").rglob("*.py")))
    whole = {"sh": f'shown("{page.name}")', "console": f'("{page.name}", "console")'}
    if whole[kind] not in tests:
        commands = shown(page.name, kind)
        missing = {command for command in commands if not re.search(re.escape(command) + r'["\n]', tests)}
        assert missing <= {"./run.sh test"}, "which runs this"


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", dict.fromkeys([*PAGES, *OTHERS]), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(((?!http)[^)]+)\)", page.read_text()):
        name, _, anchor = target.partition("#")
        linked = page.parent / name if name else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def test_the_map_is_the_tree() -> None:
    readme = (ROOT / "README.md").read_text()
    block = readme.partition("## The map")[2].partition("```\n")[2].partition("```")[0]
    names = re.findall(r"^(\S+?)/?  +", block, re.MULTILINE)
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))}
    assert folders <= set(names)
    for name in names:
        assert (ROOT / name).exists(), name


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 130
