"""`./run.sh history`: one page over all runs in some folders, and what changed in a few lines."""

from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.history.headlines import read_headlines
from framestorm.history.page import TITLE, page_html, terminal_text
from framestorm.history.trends import trends
from framestorm.model.files import write_text
from framestorm.parser import Parser
from framestorm.plain import say, visible

FILE = "history.html"


def main(words: Sequence[str]) -> int:
    """Make the page of a history, and return the exit status.

    Raises:
        UsageError: a folder or a property is not there, or the page would replace a file that is none.
        FramestormError: there is no run, or the page cannot be written.
    """
    asked = _parser().parse_args(list(words))
    folders: list[Path] = asked.folders or [paths.DASHBOARDS]
    if gone := [paths.shown(folder) for folder in folders if not folder.is_dir()]:
        raise UsageError(
            f"there is no folder {', '.join(gone)}; name the folders that have runs in them (of a JTL, "
            "./run.sh report FILE.jtl -o DIR makes a run)"
        )
    page: Path = (asked.page or folders[0] / FILE).absolute()
    if not page.parent.is_dir():
        raise UsageError(f"{page}: there is no folder {page.parent}; choose another file with -o")
    if page.is_dir():
        raise UsageError(f"{page} is a folder; name a file with -o")
    if page.exists() and not _is_history(page):
        raise UsageError(f"{page} exists and is no page of a history; choose another file with -o")
    headlines, names = read_headlines(folders), ", ".join(paths.shown(folder) for folder in folders)
    if not headlines:
        raise FramestormError(f"there is no run in {names}; name the folders that have runs in them")
    settings = sorted({setting.partition("=")[0] for each in headlines for setting in each.key.settings})
    if unknown := [name for name in asked.ignored if name not in settings]:
        raise UsageError(
            f"--ignore {unknown[0]}: no run in {names} is kept apart by it; "
            f"what keeps runs apart: {', '.join(settings) or 'no property'}"
        )
    made = trends(headlines, asked.ignored)
    try:
        write_text(page, page_html(made, page.parent.resolve(), asked.ignored))
    except OSError as error:
        raise FramestormError(f"{page} cannot be written: {error.strerror}; choose another file with -o") from error
    say(visible(terminal_text(made)))
    say(f"\nhistory: {paths.shown(page)}")
    return 0


def _is_history(page: Path) -> bool:
    """Return whether a file is a page that this command made, and may make again."""
    with page.open("rb") as file:
        return f"<title>{TITLE}".encode() in file.read(1 << 10)


def _parser() -> Parser:
    parser = Parser(
        prog="./run.sh history",
        description=(
            "Show all runs in some folders over time on one page: the figures of runs of the same plan, target and "
            "load, each with its interval, and where their level changed."
        ),
        epilog="exit status: 0 the page was made, 1 there is no run, 2 wrong usage",
    )
    parser.add_argument(
        "folders", metavar="FOLDER", nargs="*", type=Path,
        help="folders that have runs in them, however deep (default: dashboards/)",
    )  # fmt: skip
    parser.add_argument(
        "-o", metavar="FILE", dest="page", type=Path, help=f"the page (default: {FILE} in the first folder)"
    )
    parser.add_argument(
        "--ignore", metavar="NAME", dest="ignored", action="append", default=[],
        help="let this property, or setting of the platform (target.cpu), keep no runs apart, although the plan reads "
        "it, such as one that carries a commit or a date; may be repeated",
    )  # fmt: skip
    return parser
