"""The first screen of a run's page: the criteria, the key figures, and the run over time."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from framestorm.model import series, units
from framestorm.model.criteria import ALL, USER
from framestorm.model.judgement import JudgedState, Judgement
from framestorm.model.summary import Summary
from framestorm.plain import as_label
from framestorm.report.figure import (
    BAD,
    INK,
    LINE_COLOURS,
    MAIN,
    SECOND,
    SOFT,
    Chart,
    Charted,
    Clock,
    Lengths,
    Panel,
    Trace,
    arranged,
    axis_title,
    line,
    marked,
    scaled,
)

HEIGHT_REM = 15.0
MAX_CRITERIA = 5  # in sight; the others open
STATES: dict[JudgedState, str] = {"failed": "failed", "unjudged": "not judged", "passed": "passed"}
MAX_CAUSES = 3
MAX_WHOLE = 5  # users with a line of the grid each


class Criteria(NamedTuple):
    """The criteria that the page shows at once, and those that open; those that did not pass come first."""

    shown: Sequence[Judgement]
    folded: Sequence[Judgement]
    folded_title: str


def criteria(summary: Summary) -> Criteria:
    """The criteria in the order in which a reader needs them; default criteria that passed are not shown at once."""
    passed = [each for each in summary.criteria if each.state == "passed"]
    others = sorted((each for each in summary.criteria if each.state != "passed"), key=lambda each: each.state)
    first = others if summary.has_default_criteria else [*others, *passed]
    shown = first[:MAX_CRITERIA]
    folded = [*first[MAX_CRITERIA:], *(passed if summary.has_default_criteria else [])]
    counts = Counter(each.state for each in folded)
    parts = [f"{units.count(n)} {word}" for state, word in STATES.items() if (n := counts[state])]
    what = units.plural(len(folded), *((f"{'more ' if shown else ''}{noun}") for noun in ("criterion", "criteria")))
    title = f"{what} {parts[0].partition(' ')[2]}" if len(parts) == 1 else f"{what}: {units.listed(parts or [''])}"
    if summary.has_default_criteria and not shown:
        every = "every user and every" if summary.users else "every"
        title = f"Default criteria: {every} {summary.unit} must succeed"
    return Criteria(shown, folded, title if folded else "")


def errors_in_words(summary: Summary) -> str:
    """Return the most frequent causes of errors; empty if there are none."""
    causes = sorted(summary.main.causes.items(), key=lambda each: -each[1])
    named = [f"{cause} ({units.count(n)})" for cause, n in causes[:MAX_CAUSES]]
    left = summary.main.failed - sum(n for _, n in causes[:MAX_CAUSES])
    return ", ".join([*named, *([f"and {units.plural(left, 'other')}"] if left > 0 and named else [])])


def overview(run: Charted) -> Chart | None:
    """Return the run over time in three panels: rates, response times, and users or requests in flight."""
    data = run.series
    clock = Clock(data, run.load_start_s)
    panels = [
        *([_rates(rates, data.asked_per_s, clock, run.unit)] if (rates := data.rates) else []),
        *([_times(data.over_time, clock)] if data.over_time else []),
        *([_under_way(under_way, clock)] if (under_way := data.threads or data.in_flight) else []),
    ]
    if not panels:
        return None
    is_all = run.label == ALL or not run.labels.keys() - {USER, run.label}
    of = "" if is_all else f" Rates and response times are of {as_label(run.label)}."
    times = f" Response times by their {data.by}." if data.over_time else ""
    falls_behind = (
        " Where fewer end than start, the function falls behind." if data.rates and data.rates.started else ""
    )
    caption = f"Answered: {run.unit}s that ended without an error, by their end.{falls_behind}{times}{of}"
    chart = arranged("The run over time", caption, panels, columns=len(panels))
    chart.name, chart.height_rem = "overview", HEIGHT_REM
    marks = [mark for mark in data.marks if not mark.is_quiet]
    return marked(chart, marks, clock) if marks else chart


def _rates(rates: series.RatesOverTime, asked: series.Curves, clock: Clock, unit: str) -> Panel:
    x = clock.x(rates.x)
    traces: list[Trace] = []
    if rates.started:
        traces.append(line(x, rates.started, "started", SOFT, 2))
    traces.append(line(x, rates.answered, "answered", LINE_COLOURS[2], 2))
    if any(rates.failed):
        traces.append(line(x, rates.failed, "errors", BAD, 2))
    if asked:
        traces.append(line(clock.x(asked["x"]), asked["y"], "asked for", INK, dash="dash"))
    return Panel(f"{unit.capitalize()}s per second", traces, clock.axis(), _from_zero())


def _times(data: series.OverTime, clock: Clock) -> Panel:
    axis, x = Lengths.of(data.mid, data.high), clock.x(data.x)
    traces = [line(x, axis.y(data.mid), "median", MAIN, 2), line(x, axis.y(data.high), "p95", SECOND, 2)]
    yaxis = axis.axis("") | _from_zero() if not axis.log else axis.axis("")
    return Panel(f"Response time ({axis.unit})", traces, clock.axis(), yaxis | axis_title(""))


def _under_way(data: series.InFlight, clock: Clock) -> Panel:
    what = data.what if data.what == "users" else f"{data.what} in flight"
    traces = [line(clock.x(data.x), scaled(data.y, 1.0), what, LINE_COLOURS[3], 2, shape="hv")]
    whole = {"dtick": 1} if max(data.y) <= MAX_WHOLE else {}
    return Panel(what.capitalize(), traces, clock.axis(), _from_zero() | whole)


def _from_zero() -> Trace:
    return axis_title("") | {"rangemode": "tozero"}
