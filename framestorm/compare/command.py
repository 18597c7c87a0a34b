"""`./run.sh compare`: find the sides, compare them, write the page, and print the result in a few lines."""

from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.compare.comparing import compare
from framestorm.compare.page import junit_xml, page_html, terminal_text
from framestorm.compare.sides import Sides, StudySide, factors_text, levels, read_sides
from framestorm.compare.thresholds import DEFAULTS, check_measured, parse_threshold, thresholds_of
from framestorm.errors import FramestormError, UsageError
from framestorm.model.files import dump, write_text
from framestorm.parser import Parser
from framestorm.plain import say, visible

EXIT_STATUS = (
    "exit status: 0 no regression shown, 1 the sides cannot be compared, or a judged figure is missing, 2 wrong usage, "
    "3 regression beyond a threshold, 5 checks could not be decided (with --undecided fail)"
)


def main(words: Sequence[str]) -> int:
    """Compare the runs or studies named by the words, and return the exit status.

    Raises:
        UsageError: names, factor or thresholds are wrong, or the output exists already; nothing was written.
        FramestormError: the sides cannot be compared.
    """
    asked = _parser().parse_args(list(words))
    out_dir: Path = (asked.out_dir or paths.new_dashboard("compare")).absolute()
    for path in (out_dir, asked.json):
        if path is not None and path.exists():
            raise UsageError(f"{path} exists; a comparison overwrites nothing; choose another by -o or --json")
    if asked.json is not None and not asked.json.absolute().parent.is_dir():
        raise UsageError(f"--json {asked.json}: there is no folder {asked.json.parent}")
    # Before the report of a JTL is made for it.
    for text in asked.thresholds:
        parse_threshold(text)
    sides = _sides(asked.sides, asked.factor)
    thresholds = thresholds_of(asked.thresholds, sides)
    judged = [threshold.metric for threshold in thresholds]
    sides = [side.with_metrics(judged) if isinstance(side, StudySide) else side for side in sides]  # type: ignore[assignment]
    if asked.thresholds:  # the usual ones may have nothing to judge
        check_measured(thresholds, sides)
    # The command to repeat, without -o and --json: their outputs would exist already.
    command = ["./run.sh", "compare", *asked.sides, *(("--factor", asked.factor) if asked.factor else ())]
    command += [word for text in asked.thresholds for word in ("--threshold", text)]
    command += ["--undecided", asked.undecided] if asked.undecided != "pass" else []
    factor = asked.factor.partition("=")[0] if asked.factor else None
    comparison = compare(sides, thresholds, out_dir, command, factor, asked.undecided)
    text = dump(comparison, indent=1) + "\n"
    try:
        out_dir.mkdir(parents=True)
        write_text(out_dir / "comparison.json", text)
        write_text(out_dir / "junit.xml", junit_xml(comparison))
        write_text(out_dir / "index.html", page_html(comparison))
        if asked.json is not None:
            write_text(asked.json.absolute(), text)
    except OSError as error:
        raise FramestormError(f"the comparison cannot be written: {error}") from error
    say(visible(terminal_text(comparison)))
    say(f"comparison: {paths.shown(out_dir / 'index.html')}")
    return comparison.verdict.exit_status


def _parser() -> Parser:
    parser = Parser(
        prog="./run.sh compare",
        description=(
            "Compare runs with runs, studies with studies, or two levels of one study. The first is the baseline. "
            "Several runs separated by commas are repetitions of one side, and show the run-to-run "
            "variation, which one run per side cannot."
        ),
        epilog=EXIT_STATUS,
    )
    parser.add_argument(
        "sides", metavar="A", nargs="+", help="a run or a study: a folder, or its name in dashboards/; A1,A2,A3: runs"
    )
    parser.add_argument(
        "--factor", metavar="NAME=LEVEL,LEVEL", help="compare levels of a factor of one study, e.g. way=fork,kept-alive"
    )
    parser.add_argument(
        "--threshold", metavar="LIMIT", dest="thresholds", action="append", default=[],
        help="what counts as a regression, such as 'mean 5 %%', 'login p95 10 %%' or 'success 1 point', in the words "
        "of --fail-if; +10 %% or -10 %%: only a rise or a fall; may be repeated "
        f"(default: {', '.join(DEFAULTS).replace('%', '%%')}; success is always judged)",
    )  # fmt: skip
    parser.add_argument(
        "--undecided", choices=("pass", "fail"), default="pass",
        help="whether checks that too little data could not decide fail the comparison (default: pass)",
    )  # fmt: skip
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write comparison.json to this new file")
    parser.add_argument(
        "-o", metavar="DIR", dest="out_dir", type=Path,
        help="new folder for the comparison (default: dashboards/compare-<UTC time>)",
    )  # fmt: skip
    return parser


def _sides(names: Sequence[str], factor: str | None) -> Sides:
    sides = read_sides(names, factor)
    (side, *others) = sides
    if others or not isinstance(side, StudySide):
        return sides
    if factor is not None:
        return levels(side, factor)
    raise UsageError(
        f"{names[0]} is only one side: two are needed, the baseline first; or two levels of this one by --factor: "
        f"{factors_text(side)}"
    )
