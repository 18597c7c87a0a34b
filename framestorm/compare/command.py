"""`./run.sh compare`: find the sides, compare them, write the page, and print the result in a few lines."""

import re
from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.compare.comparing import compare
from framestorm.compare.page import junit_xml, page_html, terminal_text
from framestorm.compare.sides import Sides, StudySide, factors_text, levels, read_sides
from framestorm.errors import FramestormError, UsageError
from framestorm.judge.contrasts import Threshold
from framestorm.model.files import dump, write_text
from framestorm.model.metric import Worse, metric, quoted, split_label
from framestorm.model.study import catalogue_name
from framestorm.parser import Parser
from framestorm.plain import say, visible

EXIT_STATUS = (
    "exit status: 0 no regression shown, 1 the sides cannot be compared, or a judged figure is missing, 2 wrong usage, "
    "3 regression beyond a threshold, 5 checks could not be decided (with --undecided fail)"
)
# Separate runs on a quiet machine may differ by a tenth; a percentage point of success is one error in a hundred.
ALWAYS = "success 1 point"
DEFAULTS = ("mean 10 %", "median 10 %", "p95 10 %", ALWAYS)
EXAMPLES = "'mean 5 %', 'handler p95 10 %', 'login p95 10 %', 'success 1 point', 'chat tokens mean -5 %'"
SIGNS: dict[str, Worse] = {"+": "higher", "-": "lower"}
_FORM = re.compile(
    r"\s*(?P<metric>\S.*?)\s+(?P<sign>[+-]?)(?P<limit>\d+(?:\.\d+)?)\s*(?P<unit>%|points?)\s*", re.IGNORECASE
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
    sides = _sides(asked.sides, asked.factor)
    thresholds = _thresholds(asked.thresholds, sides)
    judged = [threshold.metric for threshold in thresholds]
    sides = [side.with_metrics(judged) if isinstance(side, StudySide) else side for side in sides]  # type: ignore[assignment]
    _check(thresholds, sides)
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
    sides = read_sides(names)
    if factor is not None:
        return levels(sides, factor)
    if len(sides) < 2:
        (side,) = sides
        hint = f"; or two levels of this one by --factor: {factors_text(side)}" if isinstance(side, StudySide) else ""
        raise UsageError(f"{names[0]} is only one side: two are needed, the baseline first{hint}")
    return sides


def _check(thresholds: Sequence[Threshold], sides: Sides) -> None:
    """Check that the metrics to be judged were measured."""
    for threshold in thresholds:
        if any(side.has(threshold.metric) for side in sides):
            continue
        label, name = split_label(threshold.metric)
        names = {each for side in sides for each in side.metrics_of(label)}
        what = f"there is no {name}" + (f" of {quoted(label)}" if label is not None else "")
        there = sorted(each for each in names if (about := metric(each)).worse is not None or about.series is not None)
        if label is not None and not names:
            what = f"there is no label {quoted(label)}"
            there = sorted(quoted(each) for each in {each for side in sides for each in side.labels()})
        raise UsageError(f"--threshold: {what}; there are {', '.join(there) or 'none'}")


def _thresholds(texts: Sequence[str], sides: Sides) -> list[Threshold]:
    """The thresholds of a comparison; success is always one, because times alone look better the more samples fail."""
    mains = {side.main_label for side in sides}
    chosen = [
        each for text in texts or DEFAULTS for each in parse_threshold(text, min(mains) if len(mains) == 1 else "")
    ]
    success = parse_threshold(ALWAYS)
    return chosen if any(each.metric == success[0].metric for each in chosen) else [*chosen, *success]


def parse_threshold(text: str, main_label: str = "") -> tuple[Threshold, ...]:
    """Read `metric [sign]limit unit`: by how much a metric of the candidate may differ before it is a regression.

    Without a sign it is by how much it may be worse; of a metric that is not known to be worse in one direction, two
    thresholds: it may neither rise nor fall by more.

    Raises:
        UsageError: it is not valid; the message says what is allowed.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"--threshold {text!r}: expected a metric, a number and % or points, e.g. {EXAMPLES}")
    about = metric(catalogue_name(match["metric"], main_label=main_label))
    if about.is_share == (match["unit"] == "%"):
        unit = "points, e.g. 'success 1 point'" if about.is_share else "%, e.g. 'mean 5 %'"
        raise UsageError(f"--threshold {text!r}: {match['metric']} is compared in {unit}")
    limit = float(match["limit"]) / 100
    worse = SIGNS.get(match["sign"], about.worse)
    if worse == "lower" and limit >= 1:
        raise UsageError(
            f"--threshold {text!r}: {match['metric']} cannot fall by 100 % or more, so it would never be a regression"
        )
    words = " ".join(text.split())
    if worse is not None:
        return (Threshold(words, about.name, limit, worse),)
    return tuple(
        Threshold(f"{match['metric']} {sign}{match['limit']} {match['unit']}", about.name, limit, worse)
        for sign, worse in SIGNS.items()
        if worse == "higher" or limit < 1
    )
