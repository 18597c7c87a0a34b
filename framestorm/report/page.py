"""The summary as a page, index.html, and as lines for the terminal; both are made of the summary and nothing else."""

import re
from collections import Counter
from collections.abc import Sequence

from rich.cells import cell_len

from framestorm.model import cause, units
from framestorm.model.criteria import ALL, USER, USER_SERIES, Judgement
from framestorm.model.metric import Metric, unit
from framestorm.model.run import Target
from framestorm.model.summary import LabelSummary, Range, Summary, Times
from framestorm.plain import as_label, visible
from framestorm.report.charts import charts
from framestorm.report.document import render
from framestorm.results.hosts import share_text
from framestorm.stats.estimate import Estimate

COLUMNS = {"mean": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99", "min": "min", "max": "max"}
WITH_INTERVAL = ("p50", "p95", "p99")
# What a target is; one that is just a URL needs no word, other platforms have their name.
TARGET_WORDS = {
    "url": "",
    "embedded": "embedded: the function's own server, started on the generator",
    "none": "what the plan itself calls or runs",
}
SERIES_NAMES = {
    "rtt": "response time",
    "warm": "response time, warm",
    "cold": "response time, cold",
    "outside": "outside the handler",
    "latency": "time to the first byte",
    "connect": "time to connect",
}
MAX_GROUPS = 3  # labels with a group of rows for each, and not a row in each group
MAX_REPLICAS = 20  # with a row of their own
# Of the terminal.
MAX_CRITERIA = 12
MAX_LABELS = 12
MAX_CAUSES = 5
MAX_WARNINGS = 8
LONGEST_LABEL, LONGEST_CAUSE, LONGEST_CRITERION = 40, 100, 200
TIMES = ("mean", "p50", "p95", "p99")
COLUMN_GAP = "  "


def page_html(summary: Summary) -> str:
    """The page, made of the summary and nothing else."""
    return render(
        "run.html.j2",
        charts(summary),
        filters={
            "share": share_text,
            "figure": figure_text,
            "interval": _interval,
            "success_interval": _success_interval,
            "of_figure": _of_figure,
            "cause": cause.describe,
            "as_label": as_label,
            "range": _range,
        },
        s=summary,
        run=summary.run,
        main=summary.main,
        users=summary.users,
        target_kind=_target_kind(summary.run.target, summary.run.url),
        max_replicas=MAX_REPLICAS,
        all_label=ALL,
        times=_times(summary),
        verdict_word=summary.verdict.title,
        columns=COLUMNS,
        with_interval=WITH_INTERVAL,
        command=summary.run.command,
    )


def _times(summary: Summary) -> list[tuple[str, list[tuple[str, Times]]]]:
    """The rows of the table of times: by label the series, or of several labels by series the labels, to compare them.

    Times that are all 0 have no row: a label whose connections are kept alive has no time to connect.
    """
    labels = list(summary.labels.values())
    shown = [
        (as_label(each.label), "whole process" if each.label == USER else SERIES_NAMES.get(name, name), times)
        for each in labels
        for name, times in each.times.items()
        if times.max is None or times.max.value > 0
    ]
    groups: dict[str, list[tuple[str, Times]]] = {}
    for label, name, times in shown:
        group, row = (label, name) if len(labels) <= MAX_GROUPS else (name, label)
        groups.setdefault(group, []).append((row, times))
    return list(groups.items())


def figure_text(figure: Estimate | None, *, is_whole: bool = False) -> str:
    """A statistic of times; `is_whole`: these were taken in whole ms, as JMeter's Latency and Connect."""
    if figure is None:
        return units.NONE
    text = units.duration(round(figure.value) if is_whole else figure.value)
    return ("> " if figure.bound == "lower" else "") + text + ("†" if figure.few else "")


def _of_figure(figure: Estimate | None, name: str) -> str:
    """A statistic of a further figure that is not a time, in the unit that its name ends in."""
    text = Metric(name, unit(name), name).text(figure.value if figure else None)
    return text + ("†" if figure and figure.few else "")


def _interval(figure: Estimate | None) -> str:
    """A percentile's interval; an open end where the sample is too small or cut off there."""
    if figure is None or figure.few:
        return ""
    return units.ends(*(None if end is None else units.duration(end) for end in (figure.low, figure.high)))


def _success_interval(label: LabelSummary) -> str:
    if label.success_low is None or label.success_high is None:
        return ""
    return units.ends(units.percent(label.success_low), units.percent(label.success_high))


def _target_kind(target: Target | None, url: str | None) -> str:
    if target is None or (target.kind == "none" and url):
        return ""
    settings = [f"{name} {text}" for name, text in target.settings.items()]
    words = [word for word in (TARGET_WORDS.get(target.kind, target.kind), *settings) if word]
    return f"({', '.join(words)})" if words and url else ", ".join(words)


def _range(ends: Range | None) -> str:
    if ends is None:
        return units.NONE
    return str(ends.min) if ends.min == ends.max else f"{ends.min} {units.NONE} {ends.max}"


def terminal_text(summary: Summary) -> str:
    """The outcome of a run as lines of text; control characters from the function or the plan are written out."""
    not_passed = [_criterion(each) for each in summary.criteria if each.state != "passed"]
    warnings = [_line(f"warning: {_first_sentence(text)}") for text in summary.warnings]
    blocks = (
        [_line(summary.verdict.line), *_some(not_passed, MAX_CRITERIA, "criterion", "criteria")],
        _table(summary),
        _some(warnings, MAX_WARNINGS, "warning"),
    )
    return "\n\n".join("\n".join(lines) for lines in blocks if lines)


def aligned(rows: Sequence[Sequence[str]], texts: Sequence[int] = (0,)) -> list[str]:
    """Rows as lines of aligned columns: those of `texts` to the left, the others, which have figures, to the right."""
    # In the terminal's own unit: a Chinese character takes two columns.
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]

    def padded(column: int, cell: str) -> str:
        gap = " " * (widths[column] - cell_len(cell))
        return cell + gap if column in texts else gap + cell

    return [COLUMN_GAP.join(padded(*each) for each in enumerate(row)).rstrip() for row in rows]


def _criterion(judgement: Judgement) -> str:
    text = _short(_line(judgement.text), LONGEST_CRITERION)
    if judgement.state == "unjudged":
        return _line(f"not judged: {text}: {judgement.why}")
    return _line(f"failed: {text}: measured {judgement.measured}")


def _table(summary: Summary) -> list[str]:
    """A row for each label, as in JMeter's Aggregate Report, and the most frequent causes of all errors."""
    labels = [label for label in summary.labels.values() if label.n]
    if not labels:
        return []
    head = ["label", "n", "errors", *(COLUMNS[name] for name in TIMES), "successful"]
    top, *lines = aligned([head, *map(_row, labels)])
    counts = Counter[str]()
    for each in labels:
        if each.kind == "sampler" and each.label not in (ALL, USER):
            counts.update(each.causes)
        elif each.kind == "transaction":
            counts.update(each.checks)
    # A user has failed with its samples, for their cause, or for one of its own.
    counts |= Counter({} if summary.users is None else summary.users.causes)
    causes = [[f"  {units.count(n)}", _short(_line(cause), LONGEST_CAUSE)] for cause, n in counts.most_common()]
    errors = ["errors by cause:", *_some(aligned(causes, texts=(1,)), MAX_CAUSES, "cause")] if causes else []
    return [top, *_some(lines, MAX_LABELS, "label"), *errors]


def _row(label: LabelSummary) -> list[str]:
    """A row of the table, with the columns of the page."""
    times = label.times.get(USER_SERIES[0] if label.label == USER else "rtt")
    share = f" ({units.percent(label.failed / label.n)})" if label.failed else ""
    return [
        _short(_line(as_label(label.label)), LONGEST_LABEL),
        units.count(label.n),
        _line(f"{units.count(label.failed)}{share}"),
        *(_line(figure_text(getattr(times, name, None), is_whole=bool(times and times.are_whole))) for name in TIMES),
        units.NONE if label.rate_per_s is None else units.rate(label.rate_per_s),
    ]


def _some(texts: Sequence[str], most: int, noun: str, nouns: str | None = None) -> list[str]:
    """At most `most` of the texts, and a line with the number of those left out."""
    left = len(texts) - most
    more = units.plural(left, f"more {noun}", f"more {nouns or noun + 's'}")
    return [*texts[:most], *([f"… {more} on the page"] if left > 0 else [])]


def _first_sentence(text: str) -> str:
    """What a warning says first; the rest explains it."""
    return re.split(r"(?<=\.) (?=[A-Z])", text, maxsplit=1)[0]


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _line(text: str) -> str:
    """A text as one line, without line ends and control characters."""
    return " ".join(visible(text).split())
