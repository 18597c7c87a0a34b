"""The page of a history, and its lines for the terminal."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from framestorm.history.trends import LevelChange, Trend
from framestorm.model import units
from framestorm.model.headline import FIGURES, Headline
from framestorm.model.metric import metric
from framestorm.plain import as_label
from framestorm.report.document import moment, render, utc
from framestorm.report.figure import (
    BAD,
    LINE_COLOURS,
    QUIET,
    Chart,
    Lengths,
    Panel,
    Trace,
    arranged,
    axis_title,
    line,
    scaled,
)
from framestorm.report.terminal import aligned
from framestorm.stats.change_points import LEAST, LEVEL

GOOD = "var(--good)"
VERDICTS = {"pass": "passed", "fail": "failed", "partial": "partial", "unjudged": "not judged"}
COLUMNS = {
    "success": "success rate", "median_ms": "median", "p95_ms": "p95", "p99_ms": "p99", "served_per_s": "throughput",
}  # fmt: skip
COLOURS = dict(zip(COLUMNS, LINE_COLOURS, strict=False))
TITLE = "History"
MAX_TICKS, MAX_OPEN, MAX_TOLD = 6, 20, 12


def page_html(trends: Sequence[Trend], folder: Path, ignored: Sequence[str] = ()) -> str:
    """Render the page that lies in `folder`, from which the pages of runs are linked.

    ignored: the settings that keep no runs apart.
    """
    names = Counter(run.run for trend in trends for run in trend.runs)

    def name_of(run: Headline) -> str:
        """Return the name of a run; of several runs with one name, where each is."""
        return run.run if names[run.run] == 1 else os.path.relpath(run.folder, folder)

    def link_of(run: Headline) -> str:
        page = Path(run.folder) / "index.html"
        return quote(os.path.relpath(page, folder)) if page.exists() else ""

    shown = [trend for trend in trends if len(trend.runs) > 1]
    return render(
        "history.html.j2",
        [chart for number, trend in enumerate(shown) if (chart := _chart(trend, number))],
        filters={"name_of": name_of, "link_of": link_of, "figure_of": figure_text, "ends_of": _ends,
                 "verdict_of": lambda word: VERDICTS.get(word, "not known"), "change_of": change_text,
                 "as_label": as_label},
        trends=shown,
        single=[run for trend in trends if len(trend.runs) == 1 for run in trend.runs],
        columns=COLUMNS,
        ignored=", ".join(ignored),
        n=sum(names.values()),
        max_open=MAX_OPEN,
        level=LEVEL,
        least=LEAST,
    )  # fmt: skip


def figure_text(run: Headline, name: str) -> str:
    """Return a figure of a run in words."""
    figure = run.figures.get(name)
    if figure is None:
        return units.NONE
    return ("> " if figure.bound == "lower" else "") + metric(name).text(figure.value)


def _ends(run: Headline, name: str) -> str:
    figure = run.figures.get(name)
    return metric(name).ends_text(figure.value, figure.low, figure.high) if figure else ""


def change_text(change: LevelChange) -> str:
    """Return a change in words, such as `p95 +5.1 %, from 28.2 ms to 29.6 ms`."""
    about = change.about
    return f"{COLUMNS[change.metric]} {change.text}, from {about.text(change.before)} to {about.text(change.after)}"


def _chart(trend: Trend, number: int) -> Chart | None:
    """Return the figures of a trend over its runs, each in a panel; None if no run has any."""
    # A success rate that is always the same is in the table.
    drawn = [name for name in FIGURES if len(_values(name, trend)) > (name == "success")]
    if not drawn:
        return None
    caption = (
        "Runs in the order of their starts; vertical bars: the 95 % confidence intervals within a run. Dotted lines: "
        "where the level of the figure changed, red for the worse and green for the better; dashed lines: the level "
        "of the runs before and after. Hollow: runs that are partial, which do not count."
    )
    chart = arranged("Figures over time", caption, [_panel(name, trend) for name in drawn], columns=2)
    places = {name: place for place, name in enumerate(drawn, 1)}
    shapes = [_mark(change, places[change.metric]) for change in trend.changes if change.metric in places]
    chart.layout = chart.layout | {"shapes": shapes}
    chart.name = f"trend-{number}"
    return chart


def _values(name: str, trend: Trend) -> set[float]:
    """Return the values that a figure has in the runs of a trend."""
    return {run.figures[name].value for run in trend.runs if name in run.figures}


def _mark(change: LevelChange, place: int) -> Trace:
    """Return the line before the first run after a change."""
    axis, at = str(place) if place > 1 else "", change.first + 0.5
    stroke = {"color": BAD if change.is_worse else GOOD, "width": 1.4, "dash": "dot"}
    return {"type": "line", "xref": f"x{axis}", "yref": f"y{axis} domain", "y0": 0, "y1": 1, "x0": at, "x1": at,
            "line": stroke}  # fmt: skip


def _panel(name: str, trend: Trend) -> Panel:
    unit = metric(name).unit
    lengths = Lengths.of([*_values(name, trend)]) if unit == "ms" else Lengths.plain()
    scale, words = {"share": (0.01, "%"), "1/s": (1.0, "per second")}.get(unit, (lengths.scale, lengths.unit))
    title = f"{COLUMNS[name]} ({words})"
    return Panel(title, _traces(name, trend, scale), _runs_axis(trend), axis_title("") | {"rangemode": "normal"})


def _traces(name: str, trend: Trend, scale: float) -> list[Trace]:
    """Return a figure's points with their intervals, and its levels."""
    runs = [(number, run, run.figures.get(name)) for number, run in enumerate(trend.runs, 1)]
    values = scaled([figure.value if figure else None for _, _, figure in runs], scale)
    over = [(figure.high - figure.value) / scale if figure and figure.high is not None else 0 for _, _, figure in runs]
    under = [(figure.value - figure.low) / scale if figure and figure.low is not None else 0 for _, _, figure in runs]
    colour = COLOURS[name]
    trace = line([number for number, _, _ in runs], values, COLUMNS[name], colour, 1.2)
    symbols = ["circle" if run.is_whole else "circle-open" for _, run, _ in runs]
    trace |= {"mode": "lines+markers", "marker": {"size": 6, "color": colour, "symbol": symbols}}
    trace |= {"error_y": {"type": "data", "symmetric": False, "array": over, "arrayminus": under, "color": colour,
                          "thickness": 1, "width": 0}}  # fmt: skip
    trace |= {"text": [_hover(run, name) for _, run, _ in runs], "hoverinfo": "text"}
    return [trace, *_levels(name, trend, scale)]


def _levels(name: str, trend: Trend, scale: float) -> list[Trace]:
    """Return the levels before and after the changes of a figure, as one broken line."""
    changes = [change for change in trend.changes if change.metric == name]
    if not changes:
        return []
    x: list[float | None] = []
    y: list[float | None] = []
    begin = changes[0].begin + 1.0
    for change in changes:
        x += [begin, change.first + 0.5, None]
        y += [change.before / scale] * 2 + [None]
        begin = change.first + 0.5
    x += [begin, float(changes[-1].last + 1)]
    y += [changes[-1].after / scale] * 2
    return [line(x, y, "level", QUIET, 1.4, dash="dash")]


def _hover(run: Headline, name: str) -> str:
    ends = _ends(run, name)
    figure = f"{COLUMNS[name]} {figure_text(run, name)}" + (f" ({ends})" if ends else "")
    commit = [f"commit {run.commit[:12]}"] if run.commit else []
    return "\n".join([run.run, utc(run.started_ms), figure, *commit])


def _runs_axis(trend: Trend) -> Trace:
    n = len(trend.runs)
    shown = range(1, n + 1, -(-n // MAX_TICKS))
    times = [moment(run.started_ms) for run in trend.runs]
    form = "%H:%M" if len({time.date() for time in times if time}) == 1 else "%m-%d"
    words = [time.strftime(form) if (time := times[number - 1]) else units.NONE for number in shown]
    ticks = {"tickmode": "array", "tickvals": list(shown), "ticktext": words, "tickangle": 0}
    return axis_title("start of the run (UTC)") | {"range": [0.5, n + 0.5], "showgrid": False} | ticks


def terminal_text(trends: Sequence[Trend]) -> str:
    """Return a line for each trend, and below it what changed last."""
    several = [trend for trend in trends if len(trend.runs) > 1]
    rows = [["plan", "target", "load", "runs", *COLUMNS.values(), "last run"]]
    rows += [_row(trend) for trend in several[:MAX_TOLD]]
    left = len(several) - MAX_TOLD
    lines = aligned(rows, texts=(0, 1, 2, len(rows[0]) - 1)) if several else []
    lines += [f"… {units.plural(left, 'more group')} on the page"] if left > 0 else []
    single = len(trends) - len(several)
    others = [f"{units.plural(single, 'run')} without another of the same plan, target and load"] if single else []
    unknown = sum(bool(run.problem) for trend in trends for run in trend.runs)
    others += [f"{units.plural(unknown, 'run')} of which not all is known; the page says why"] if unknown else []
    blocks = [lines, _changes_told(several), others]
    return "\n\n".join("\n".join(block) for block in blocks if block).replace(units.NBSP, " ")


def _row(trend: Trend) -> list[str]:
    # One that is still running has no figures.
    last = next((run for run in reversed(trend.runs) if run.verdict), trend.runs[-1])
    key = trend.key
    figures = [figure_text(last, name) for name in FIGURES]
    return [
        key.name,
        key.target,
        key.load,
        units.count(len(trend.runs)),
        *figures,
        VERDICTS.get(last.verdict or "", "?"),
    ]


def _changes_told(trends: Sequence[Trend]) -> list[str]:
    told = []
    for trend in trends:
        for change in trend.last_changes().values():
            run = trend.runs[change.first]
            commit = f", commit {run.commit[:12]}" if run.commit else ""
            word = "worse" if change.is_worse else "better"
            told.append(f"{word}: {trend.key.name}: {change_text(change)}, since {run.run}{commit}")
    left = len(told) - MAX_TOLD
    more = [f"… {units.plural(left, 'more change')} on the page"] if left > 0 else []
    return [*told[:MAX_TOLD], *more] if told else ["no change of level was found"] if trends else []
