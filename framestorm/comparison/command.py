"""`./run.sh compare`: find the sides, compare them, leave the page, and say in a few lines how it came out."""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from framestorm import paths
from framestorm.errors import FramestormError, UsageError

if TYPE_CHECKING:
    from framestorm.comparison.judgement import Threshold
    from framestorm.comparison.sides import RunSide, StudySide

EXIT_STATUS = (
    "exit status: 0 no regression shown, 1 they cannot be compared, or not in all that is judged, 2 wrong usage, "
    "3 regression beyond a threshold"
)


def main(words: Sequence[str]) -> int:
    """Do the verb.

    Raises:
        UsageError: names, factor or thresholds are wrong, or the output is there already; nothing was written.
        FramestormError: what is named cannot be compared.
    """
    from framestorm.comparison import judgement

    parser = argparse.ArgumentParser(
        prog="./run.sh compare",
        description=(
            "Compare runs with runs, studies with studies, or two levels of one study. The first is the baseline. "
            "Several runs with commas between them are repetitions of one side, and say how far runs of the same thing "
            "vary, which one run a side cannot."
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
        f"repeated (default: {', '.join(judgement.DEFAULTS).replace('%', '%%')}; success is always judged)",
    )  # fmt: skip
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write comparison.json to this new file")
    parser.add_argument(
        "-o",
        metavar="DIR",
        dest="out_dir",
        type=Path,
        help="the folder, made new (default: dashboards/compare-<UTC time>)",
    )
    asked = parser.parse_args(list(words))
    name = f"compare-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    out_dir: Path = (asked.out_dir or paths.DASHBOARDS / name).absolute()
    for path in (out_dir, asked.json):
        if path is not None and path.exists():
            raise UsageError(f"{path} exists; a comparison is written anew, choose another by -o or --json")
    if asked.json is not None and not asked.json.absolute().parent.is_dir():
        raise UsageError(f"--json {asked.json}: there is no folder {asked.json.parent}")
    thresholds = judgement.parse_all(asked.thresholds)
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
    from framestorm.comparison.page import page_html
    from framestorm.comparison.summary import summarise
    from framestorm.comparison.words import terminal
    from framestorm.report.files import write_text

    sides = _sides(names, factor)
    _check(thresholds, sides)
    summary = summarise(sides, thresholds, output.folder, output.command, factor.partition("=")[0] if factor else None)
    text = json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        output.folder.mkdir(parents=True)
        write_text(output.folder / "comparison.json", text)
        write_text(output.folder / "index.html", page_html(summary))
        if output.json_file is not None:
            write_text(output.json_file.absolute(), text)
    except OSError as error:
        raise FramestormError(f"the comparison cannot be written: {error}") from error
    print(terminal(summary))
    print(f"comparison: {paths.shown(output.folder / 'index.html')}")
    return int(summary["verdict"]["exit_status"])


def _sides(names: Sequence[str], factor: str | None) -> "Sequence[RunSide] | Sequence[StudySide]":
    from framestorm.comparison.sides import StudySide, factors_text, levels, read_sides

    sides = read_sides(names)
    if factor is not None:
        name, equals, wanted = factor.partition("=")
        if len(sides) != 1 or not isinstance(sides[0], StudySide):
            raise UsageError("--factor takes one study apart: name one study and nothing else")
        if not equals:
            raise UsageError(f"--factor {factor}: NAME=LEVEL,LEVEL is wanted; there are {factors_text(sides[0])}")
        return levels(sides[0], name, wanted.split(","))
    if len(sides) < 2:
        hint = (
            f"; or two levels of this one by --factor: {factors_text(sides[0])}"
            if isinstance(sides[0], StudySide)
            else ""
        )
        raise UsageError(f"{names[0]} alone: two sides are wanted, the first of them the baseline{hint}")
    return sides


def _check(thresholds: Sequence["Threshold"], sides: "Sequence[RunSide] | Sequence[StudySide]") -> None:
    """See that what is to be judged is measured at all."""
    from framestorm.comparison.metrics import OF_RUNS
    from framestorm.comparison.sides import StudySide

    for threshold in thresholds:
        known = {name for side in sides if isinstance(side, StudySide) for name in side.results.columns} or set(OF_RUNS)
        if threshold.metric not in known:
            there = ", ".join(sorted(name for name in known if metric_is_judged(name)))
            raise UsageError(f"--threshold {threshold.text!r}: there is no {threshold.metric}; there are {there}")


def metric_is_judged(name: str) -> bool:
    """Whether it is known which way a metric gets worse."""
    from framestorm.comparison.metrics import metric

    return metric(name).worse is not None
