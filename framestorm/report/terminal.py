"""What the terminal says after a run: the verdict, the criteria, a table by label, and warnings."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from rich.cells import cell_len

from framestorm.model import units
from framestorm.model.criteria import ALL, USER, USER_SERIES
from framestorm.model.judgement import Judgement
from framestorm.model.metric import quoted
from framestorm.model.summary import LabelSummary, Summary
from framestorm.plain import as_label, visible
from framestorm.report.page import COLUMNS, figure_text

MAX_CRITERIA = 12
MAX_LABELS = 12
MAX_CAUSES = 5
MAX_NAMED = 3  # of the labels whose criteria have the same outcome
MAX_WARNINGS = 8
LONGEST_LABEL, LONGEST_CAUSE, LONGEST_CRITERION = 40, 100, 200
TIMES = ("mean", "p50", "p95", "p99")
COLUMN_GAP = "  "


def terminal_text(summary: Summary) -> str:
    """The outcome of a run as lines of text; control characters from the function or the plan are written out."""
    # Of default criteria, one a label, only those that did not pass.
    shown = [each for each in summary.criteria if each.state != "passed" or not summary.has_default_criteria]
    criteria = _criteria(sorted(shown, key=lambda each: each.state == "passed"))
    foreign = _foreign_texts(summary)
    warnings = [_line(f"warning: {_first_sentence(text, foreign)}") for text in summary.warnings]
    notes = [_line(f"note: {_first_sentence(text, foreign)}") for text in summary.notes]
    blocks = (
        [_line(summary.verdict.line), *_some(criteria, MAX_CRITERIA, "criterion", "criteria")],
        _table(summary),
        _against(summary),
        [*_some(warnings, MAX_WARNINGS, "warning"), *_some(notes, MAX_WARNINGS, "note")],
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


def _criteria(judgements: Sequence[Judgement]) -> list[str]:
    """Return a line for each criterion; those of several labels with the same outcome have one together."""
    equal: dict[tuple[str, str, str], dict[str, Judgement]] = {}
    for each in judgements:
        condition = each.text.removeprefix(quoted(each.label)).strip()
        equal.setdefault((condition, each.state, each.measured), {})[each.label] = each
    return [
        _of_labels(condition, [*of.values()]) if len(of) > 1 else _criterion(next(iter(of.values())))
        for (condition, _, _), of in equal.items()
    ]


def _of_labels(condition: str, judgements: Sequence[Judgement]) -> str:
    names = [_short(as_label(each.label), LONGEST_LABEL) for each in judgements[:MAX_NAMED]]
    more = ", …" if len(judgements) > MAX_NAMED else ""
    text = f"{condition} of {len(judgements)} labels ({', '.join(names)}{more})"
    first = judgements[0]
    if first.state == "unjudged":
        return _line(f"not judged: {text}: {first.why.replace(f' of {quoted(first.label)}', ' of these')}")
    return _line(f"{first.state}: {text}: measured {first.measured}")


def _criterion(judgement: Judgement) -> str:
    text = _short(_line(judgement.text), LONGEST_CRITERION)
    if judgement.state == "unjudged":
        return _line(f"not judged: {text}: {judgement.why}")
    return _line(f"{judgement.state}: {text}: measured {judgement.measured}")


def _table(summary: Summary) -> list[str]:
    """Return a row for each label, as in JMeter's Aggregate Report, and the most frequent causes of all errors."""
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


def _against(summary: Summary) -> list[str]:
    """Return the figures beside those of the baseline, and the thresholds that were not kept or not decided."""
    against = summary.against
    if against is None or not against.figures:
        return []
    head = ["", "baseline", "this run", "change", "95 % interval", ""]
    rows = [
        [each.title, each.baseline, each.candidate, each.change, each.interval, each.claim] for each in against.figures
    ]
    shown = [each for each in against.checks if each.state != "passed"]
    checks = [_line(f"{each.state}: {each.name}: {each.text}") for each in shown]
    table = aligned([head, *([_line(cell) for cell in row] for row in rows)], texts=(0, 5))
    return [*table, *_some(checks, MAX_CRITERIA, "check")]


def _row(label: LabelSummary) -> list[str]:
    """Return a label's row; the columns are those of the page."""
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


def _foreign_texts(summary: Summary) -> list[str]:
    """Return the texts in warnings and notes that are not the kit's own: names of the plan, and messages of errors."""
    facts, run = summary.facts, summary.run
    errors = [text for each in facts.element_errors for text in (each.element, each.message)]
    others = [facts.out_of_memory, facts.stopped_by, *(loss.reason for loss in summary.losses)]
    names = [*summary.labels, *(load.name for load in run.loads), *(each.text for each in facts.unreplaced)]
    return [text for text in (*names, *errors, *others) if text]


def _first_sentence(text: str, foreign: Iterable[str]) -> str:
    """Return what a warning says first; the rest explains it. No sentence ends within one of the foreign texts."""
    masked = text
    for each in foreign:
        masked = masked.replace(each, "x" * len(each))
    # Nor after a number: 01. Login.
    end = re.search(r"(?<=[^\d]\.) (?=[A-Z])", masked)
    return text[: end.start()] if end else text


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _line(text: str) -> str:
    """Return a text as one line, without line ends and control characters."""
    return " ".join(visible(text).split())
