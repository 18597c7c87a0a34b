"""`./run.sh compare`: find the sides, compare them, write the page, and print the result in a few lines."""

import argparse
import re
import time
from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.compare.comparing import compare
from framestorm.compare.page import page_html, terminal_text
from framestorm.compare.sides import RunSide, Sides, StudySide, factors_text, levels, read_sides
from framestorm.errors import FramestormError, UsageError
from framestorm.inference.contrasts import Threshold
from framestorm.model.files import dump, write_text
from framestorm.model.metric import PERCENTILES, SERIES, column, metric, of_label, split_label

EXIT_STATUS = (
    "exit status: 0 no regression shown, 1 the sides cannot be compared, or a judged figure is missing, 2 wrong usage, "
    "3 regression beyond a threshold"
)
# Separate runs on a quiet machine may differ by a tenth; a percentage point of success is one error in a hundred.
ALWAYS = "success 1 point"
DEFAULTS = ("mean 10 %", "median 10 %", "p95 10 %", ALWAYS)
EXAMPLES = "'mean 5 %', 'handler p95 10 %', 'success 1 point', 'rate 5 %'"
SHORT_NAMES = {"rate": "served_per_s", "served": "served_per_s", "errors": "failed"}
_FORM = re.compile(r"\s*(?P<metric>\S.*?)\s+(?P<limit>\d+(?:\.\d+)?)\s*(?P<unit>%|points?)\s*", re.IGNORECASE)


def main(words: Sequence[str]) -> int:
    """Compare the runs or studies named by the words, and return the exit status.

    Raises:
        UsageError: names, factor or thresholds are wrong, or the output exists already; nothing was written.
        FramestormError: the sides cannot be compared.
    """
    asked = _parser().parse_args(list(words))
    name = f"compare-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    out_dir: Path = (asked.out_dir or paths.DASHBOARDS / name).absolute()
    for path in (out_dir, asked.json):
        if path is not None and path.exists():
            raise UsageError(f"{path} exists; a comparison overwrites nothing; choose another by -o or --json")
    if asked.json is not None and not asked.json.absolute().parent.is_dir():
        raise UsageError(f"--json {asked.json}: there is no folder {asked.json.parent}")
    thresholds = _thresholds(asked.thresholds)
    sides = _sides(asked.sides, asked.factor)
    _check(thresholds, sides)
    # The command to repeat, without -o and --json: their outputs would exist already.
    command = ["./run.sh", "compare", *asked.sides, *(("--factor", asked.factor) if asked.factor else ())]
    command += [word for text in asked.thresholds for word in ("--threshold", text)]
    factor = asked.factor.partition("=")[0] if asked.factor else None
    comparison = compare(sides, thresholds, out_dir, command, factor)
    text = dump(comparison, indent=1) + "\n"
    try:
        out_dir.mkdir(parents=True)
        write_text(out_dir / "comparison.json", text)
        write_text(out_dir / "index.html", page_html(comparison))
        if asked.json is not None:
            write_text(asked.json.absolute(), text)
    except OSError as error:
        raise FramestormError(f"the comparison cannot be written: {error}") from error
    print(terminal_text(comparison))
    print(f"comparison: {paths.shown(out_dir / 'index.html')}")
    return comparison.verdict.exit_status


def _parser() -> argparse.ArgumentParser:
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
        f"repeated (default: {', '.join(DEFAULTS).replace('%', '%%')}; success is always judged)",
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
        raise UsageError(f"{names[0]} alone: two sides are needed, the first of them the baseline{hint}")
    return sides


def _check(thresholds: Sequence[Threshold], sides: Sides) -> None:
    """Check that the metrics to be judged were measured."""
    names = {"success", "served_per_s"}
    for side in sides:
        names |= {*side.runs[0].series()} if isinstance(side, RunSide) else {*side.columns}
    for threshold in thresholds:
        is_of_label = split_label(threshold.metric)[0] is not None
        if is_of_label and any(isinstance(side, RunSide) and side.has(threshold.metric) for side in sides):
            continue
        if threshold.metric not in names:
            judged = ", ".join(sorted(name for name in names if metric(name).worse is not None))
            raise UsageError(f"--threshold {threshold.text!r}: there is no {threshold.metric}; there are {judged}")


def _thresholds(texts: Sequence[str]) -> list[Threshold]:
    """The thresholds of a comparison; success is always one, because times alone look better the more samples fail."""
    chosen = [parse_threshold(text) for text in texts or DEFAULTS]
    success = parse_threshold(ALWAYS)
    return chosen if any(each.metric == success.metric for each in chosen) else [*chosen, success]


def parse_threshold(text: str) -> Threshold:
    """Read `metric limit unit`: how much worse a metric of the candidate may be before it is a regression.

    Raises:
        UsageError: it is not valid; the message says what is allowed.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"--threshold {text!r}: expected a metric, a number and % or points, e.g. {EXAMPLES}")
    about = metric(_metric_name(match["metric"]))
    if about.worse is None:
        raise UsageError(
            f"--threshold {text!r}: it is not known which way {match['metric']!r} gets worse; give a time (mean, "
            "median, p95, p99, also of handler, model or user), success or rate, or a study metric with a direction"
        )
    if about.is_share == (match["unit"] == "%"):
        unit = "points, e.g. 'success 1 point'" if about.is_share else "%, e.g. 'mean 5 %'"
        raise UsageError(f"--threshold {text!r}: {match['metric']} is compared in {unit}")
    limit = float(match["limit"]) / 100
    if about.worse == "lower" and limit >= 1:
        raise UsageError(
            f"--threshold {text!r}: {match['metric']} cannot fall by 100 % or more, so it would never be a regression"
        )
    return Threshold(" ".join(text.split()), about.name, limit)


def _metric_name(words: str) -> str:
    """The name of the metric that a user means by `p95`, `handler mean`, `success`, `rate`, or by the name itself."""
    first, _, rest = words.partition(" ") if words[0] not in "\"'" else words[1:].partition(f"{words[0]} ")
    name = "_".join(words.lower().split())
    series, _, statistic = name.rpartition("_")
    series = {"frame": "", "rtt": ""}.get(series, series)
    if statistic in {"mean", *PERCENTILES}:
        for known in (series, f"{series}_ms"):
            if known in SERIES:
                return column(known, statistic)
    if metric(SHORT_NAMES.get(name, name)).worse is None and rest.strip():
        return of_label(first, _metric_name(rest.strip()))
    return SHORT_NAMES.get(name, name)
