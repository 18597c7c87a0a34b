"""`./run.sh compare`: find the sides, compare them, leave the page, and say in a few lines how it came out."""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from framestorm import paths
from framestorm.errors import FramestormError, UsageError

if TYPE_CHECKING:
    from framestorm.compare.sides import RunSide, StudySide
    from framestorm.inference.contrasts import Threshold

EXIT_STATUS = (
    "exit status: 0 no regression shown, 1 the sides cannot be compared, or a judged figure is missing, 2 wrong usage, "
    "3 regression beyond a threshold"
)


def main(words: Sequence[str]) -> int:
    """Compare what the words name, and return the exit status.

    Raises:
        UsageError: names, factor or thresholds are wrong, or the output is there already; nothing was written.
        FramestormError: what is named cannot be compared.
    """
    from framestorm.compare import thresholds as limits

    parser = argparse.ArgumentParser(
        prog="./run.sh compare",
        description=(
            "Compare runs with runs, studies with studies, or two levels of one study. The first is the baseline. "
            "Several runs with commas between them are repetitions of one side, and show the run-to-run "
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
        help="what counts as a regression, such as 'mean 5 %%', 'handler p95 10 %%' or 'success 1 point'; may be "
        f"repeated (default: {', '.join(limits.DEFAULTS).replace('%', '%%')}; success is always judged)",
    )  # fmt: skip
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write comparison.json to this new file")
    parser.add_argument(
        "-o",
        metavar="DIR",
        dest="out_dir",
        type=Path,
        help="new folder for the comparison (default: dashboards/compare-<UTC time>)",
    )
    asked = parser.parse_args(list(words))
    name = f"compare-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    out_dir: Path = (asked.out_dir or paths.DASHBOARDS / name).absolute()
    for path in (out_dir, asked.json):
        if path is not None and path.exists():
            raise UsageError(f"{path} exists; a comparison overwrites nothing; choose another by -o or --json")
    if asked.json is not None and not asked.json.absolute().parent.is_dir():
        raise UsageError(f"--json {asked.json}: there is no folder {asked.json.parent}")
    thresholds = limits.parse_all(asked.thresholds)
    # Without -o and --json: done again as it stands, it finds those that it made.
    command = ["./run.sh", "compare", *asked.sides, *(("--factor", asked.factor) if asked.factor else ())]
    command += [word for text in asked.thresholds for word in ("--threshold", text)]
    return _compare(asked.sides, asked.factor, thresholds, Output(out_dir, asked.json, tuple(command)))


@dataclass(frozen=True)
class Output:
    """Where the comparison goes, and the command that makes it."""

    folder: Path
    json_file: Path | None
    command: tuple[str, ...]


def _compare(names: Sequence[str], factor: str | None, thresholds: Sequence["Threshold"], output: Output) -> int:
    from framestorm.compare.comparing import compare
    from framestorm.compare.page import page_html, terminal_text
    from framestorm.model.files import dump, write_text

    sides = _sides(names, factor)
    _check(thresholds, sides)
    factor_name = factor.partition("=")[0] if factor else None
    comparison = compare(sides, thresholds, output.folder, output.command, factor_name)
    text = dump(comparison, indent=1) + "\n"
    try:
        output.folder.mkdir(parents=True)
        write_text(output.folder / "comparison.json", text)
        write_text(output.folder / "index.html", page_html(comparison))
        if output.json_file is not None:
            write_text(output.json_file.absolute(), text)
    except OSError as error:
        raise FramestormError(f"the comparison cannot be written: {error}") from error
    print(terminal_text(comparison))
    print(f"comparison: {paths.shown(output.folder / 'index.html')}")
    return comparison.verdict.exit_status


def _sides(names: Sequence[str], factor: str | None) -> "Sequence[RunSide] | Sequence[StudySide]":
    from framestorm.compare.sides import StudySide, factors_text, levels, read_sides

    sides = read_sides(names)
    if factor is not None:
        name, equals, chosen = factor.partition("=")
        if len(sides) != 1 or not isinstance(sides[0], StudySide):
            raise UsageError("--factor compares levels of one study: name one study and nothing else")
        if not equals:
            raise UsageError(f"--factor {factor}: expected NAME=LEVEL,LEVEL; the factors are {factors_text(sides[0])}")
        return levels(sides[0], name, chosen.split(","))
    if len(sides) < 2:
        hint = (
            f"; or two levels of this one by --factor: {factors_text(sides[0])}"
            if isinstance(sides[0], StudySide)
            else ""
        )
        raise UsageError(f"{names[0]} alone: two sides are needed, the first of them the baseline{hint}")
    return sides


def _check(thresholds: Sequence["Threshold"], sides: "Sequence[RunSide] | Sequence[StudySide]") -> None:
    """See that what is to be judged is measured at all."""
    from framestorm.compare.runs import metrics_of
    from framestorm.compare.sides import StudySide
    from framestorm.model.metric import metric

    names: dict[str, None] = {}
    for side in sides:
        names |= dict.fromkeys(side.results.columns if isinstance(side, StudySide) else metrics_of(side))
    for threshold in thresholds:
        if threshold.metric not in names:
            judged = ", ".join(sorted(name for name in names if metric(name).worse is not None))
            raise UsageError(f"--threshold {threshold.text!r}: there is no {threshold.metric}; there are {judged}")
