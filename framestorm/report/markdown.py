"""The outcome of a run as Markdown, for the job summary of a CI: verdict, criteria, a table by label, and warnings."""

import re
from collections.abc import Iterable, Sequence

from framestorm.model import units
from framestorm.model.criteria import USER, USER_SERIES
from framestorm.model.judgement import Judgement
from framestorm.model.summary import Against, LabelSummary, Summary
from framestorm.plain import as_label, visible
from framestorm.report.page import COLUMNS, figure_text, interval_text, rate_interval

TIMES = ("p50", "p95", "p99")
STATES = {"passed": "passed", "failed": "**failed**", "unjudged": "not judged"}
MAX_ROWS, MAX_WARNINGS = 20, 8
LONGEST = 200
# What Markdown or HTML would take for a sign of its own; in an address that is made a link, backslashes would be shown.
_SIGNS = re.compile(r"([\\`*_{}\[\]<>#|~$&]|:(?=//)|(?<=\bwww)\.)")


def markdown_text(summary: Summary) -> str:
    """Return the outcome as a section of Markdown; texts of the plan and the function are shown as they are."""
    title = summary.run.title or summary.name
    labels = [label for label in summary.labels.values() if label.n]
    criteria = sorted(summary.criteria, key=lambda each: each.state == "passed")
    head = ["label", "n", "errors", *(COLUMNS[name] for name in TIMES), "successful"]
    blocks = [
        [f"## {_text(title)}: {summary.verdict.title.lower()}", "", _text(summary.verdict.line)],
        _table(
            ["", "criterion", "measured"],
            ([STATES[each.state], _text(each.text), _text(_outcome(each))] for each in criteria),
        ),
        _table(head, map(_row, labels), numbers=True),
        ["In brackets: 95 % confidence intervals."] if labels else [],
        *_against(summary.against),
        _warnings(summary.warnings),
    ]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def _outcome(criterion: Judgement) -> str:
    return criterion.why if criterion.state == "unjudged" else criterion.measured


def _warnings(warnings: Sequence[str]) -> list[str]:
    left = len(warnings) - MAX_WARNINGS
    more = [f"- … {units.plural(left, 'more warning')} on the page"] if left > 0 else []
    return [*(f"- warning: {_text(text)}" for text in warnings[:MAX_WARNINGS]), *more]


def _against(against: Against | None) -> list[list[str]]:
    """Return the blocks of lines about the baseline; none without one."""
    if against is None or not against.figures:
        return []
    head = [_text(against.baseline or ""), "baseline", "this run", "change", "95 % interval", ""]
    rows = [
        [each.title, each.baseline, each.candidate, each.change, each.interval, each.claim] for each in against.figures
    ]
    shown = [each for each in against.checks if each.state != "passed"]
    return [
        ["### Against the baseline"],
        _table(head, (list(map(_text, row)) for row in rows)),
        [f"- {STATES.get(each.state, each.state)}: {_text(f'{each.name}: {each.text}')}" for each in shown],
    ]


def _row(label: LabelSummary) -> list[str]:
    times = label.times.get(USER_SERIES[0] if label.label == USER else "rtt")
    figures = [getattr(times, name, None) for name in TIMES]
    is_whole = bool(times and times.are_whole)
    share = f" ({units.percent(label.failed / label.n)})" if label.failed else ""
    cells = []
    for figure in figures:
        ends = interval_text(figure)
        cells.append(figure_text(figure, is_whole=is_whole) + (f" [{ends}]" if ends else ""))
    rate = units.NONE if label.rate_per_s is None else units.rate(label.rate_per_s)
    rate += f" [{ends}]" if (ends := rate_interval(label)) else ""
    return [
        _text(as_label(label.label)),
        units.count(label.n),
        f"{units.count(label.failed)}{share}",
        *map(_text, cells),
        _text(rate),
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = False) -> list[str]:
    """Return the lines of a table; none if it has no rows. numbers: all columns but the first have figures."""
    every = list(rows)
    if not every:
        return []
    left = len(every) - MAX_ROWS
    if left > 0:
        more = [f"… {units.plural(left, 'more row')} on the page", *[""] * (len(head) - 1)]
        every = [*every[:MAX_ROWS], more]
    rule = ["---", *("--:" if numbers else "---" for _ in head[1:])]
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *every)]


def _text(text: str) -> str:
    """Return a text as one line of Markdown that shows just its characters."""
    line = " ".join(visible(text).split())
    return _SIGNS.sub(r"\\\1", line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…")
