"""index.html of a comparison, its charts, and its lines for the terminal, made of comparison.json and nothing else."""

import math
from collections.abc import Sequence

from framestorm.judge import wording
from framestorm.model import units
from framestorm.model.comparison import (
    NOT_COMPARED,
    NOT_SIGNIFICANT,
    Comparison,
    Contrast,
    Curve,
    JudgedThreshold,
)
from framestorm.model.run import Undecided
from framestorm.model.units import count
from framestorm.report.document import render
from framestorm.report.figure import BAD, INK, QUIET, SECOND, Chart, Lengths, Trace, axis_title, colour_of, line
from framestorm.report.junit import Case, suite_xml
from framestorm.report.terminal import aligned

GOOD = "var(--good)"
VERDICT_WORDS = {
    "regression": "Regression", "missing": "Cannot be compared", "none": "No regression shown",
    "inconclusive": "Inconclusive",
}  # fmt: skip
LOOKS = {"regression": "fail", "missing": "fail", "none": "pass", "inconclusive": "partial"}
STATE_LOOKS = {
    "regression": "failed", "missing": "failed", "within": "passed", "inconclusive": "open", "not compared": "open",
}  # fmt: skip
KINDS = {
    "for the worse": BAD, "for the better": GOOD, "different": SECOND, NOT_SIGNIFICANT: INK, "no interval": QUIET,
}  # fmt: skip
MAX_CHECKS = 12
ROW_REM, FRAME_REM = 1.5, 5.5
MARGIN = 0.04
LabelledContrast = tuple[str, Contrast]


def page_html(comparison: Comparison) -> str:
    """Render the page."""
    word = comparison.verdict.word
    # Green only where each threshold over all points was decided, and no side was overloaded.
    is_open = any(STATE_LOOKS[each.state] == "open" for each in comparison.thresholds if each.point is None)
    is_open |= any(side.is_overloaded for side in comparison.sides)
    return render(
        "comparison.html.j2",
        charts(comparison),
        filters={
            "change": wording.change, "claim_of": wording.contrast_claim, "ends": wording.change_ends,
            "figure_of": wording.side_figure,
        },
        s=comparison,
        verdict_word=VERDICT_WORDS[word],
        look=LOOKS["inconclusive" if word == "none" and is_open else word],
        state_looks=STATE_LOOKS,
        command=comparison.command,
    )  # fmt: skip


def charts(comparison: Comparison) -> list[Chart]:
    """Return the charts that there is something to draw of."""
    drawn = []
    for each in comparison.comparisons:
        what = "over all points" if len(each.shared) > 1 else ""
        by = f"{each.label} against {each.against}"
        suffix = f", {by}" if len(comparison.comparisons) > 1 else ""
        overall = [(contrast.about.title, contrast) for contrast in each.overall]
        drawn.append(_forest(f"Ratios {what}".strip() + suffix, f"ratios-{each.label}", overall, by))
        if each.points:
            main = each.points[0]
            of_main = [(str(contrast.point), contrast) for contrast in each.points if contrast.metric == main.metric]
            drawn.append(_forest(f"{main.about.title} by point{suffix}", f"points-{each.label}", of_main, by))
    if any(curve.x_ms for curve in comparison.curves):
        drawn.append(_spread(comparison.curves))
    return [chart for chart in drawn if chart]


def _forest(title: str, name: str, rows: Sequence[LabelledContrast], by: str) -> Chart | None:
    """Return a row a metric or point: the ratio and its interval."""
    drawn = [
        (label, contrast, contrast.ratio)
        for label, contrast in rows
        if contrast.scale == "ratio" and contrast.bound != "unknown" and contrast.ratio
    ]
    if not drawn:
        return None
    ends = [end for _, _, ratio in drawn for end in (ratio.value, ratio.low, ratio.high) if end]
    low, high = math.log10(min([1.0, *ends])), math.log10(max([1.0, *ends]))
    margin = max(0.003, (high - low) * MARGIN)
    reach = (low - margin, high + margin)
    traces = []
    for kind, colour in KINDS.items():
        chosen = [(words, contrast) for words, contrast, _ in drawn if _kind(contrast) == kind]
        if chosen:
            traces.append(_marks(chosen, kind, colour, reach))
    labels = [label for label, _, _ in drawn]
    return Chart(
        name=name,
        title=title,
        caption=(
            f"{by}: the ratio and its 95 % confidence interval; to the right of the line it is higher. Coloured: "
            "significant after correction for multiple comparisons. An interval that leaves the chart is open: a "
            "timeout hides its end."
        ),
        traces=traces,
        xaxis=axis_title(f"ratio, {by}")
        | {"type": "log", "range": list(reach), "showgrid": True},
        yaxis=axis_title("")
        | {"type": "category", "categoryorder": "array", "categoryarray": labels[::-1], "showgrid": False, "ticks": "",
           "range": [-0.6, len(labels) - 0.4]},
        layout={
            "shapes": [
                {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "layer": "below",
                 "line": {"color": "var(--soft)", "width": 1, "dash": "dash"}}
            ]
        },
        height_rem=FRAME_REM + ROW_REM * len(labels),
    )  # fmt: skip


def _kind(contrast: Contrast) -> str:
    if contrast.is_worse is not None:
        return "for the worse" if contrast.is_worse else "for the better"
    return {NOT_SIGNIFICANT: NOT_SIGNIFICANT, NOT_COMPARED: "no interval"}.get(contrast.claim, "different")


def _marks(rows: Sequence[LabelledContrast], name: str, colour: str, reach: tuple[float, float]) -> Trace:
    least, most = 10 ** reach[0], 10 ** reach[1]
    x, plus, minus = [], [], []
    for ratio in (contrast.ratio for _, contrast in rows if contrast.ratio):
        has_any = ratio.low is not None or ratio.high is not None
        x.append(ratio.value)
        minus.append(max(0.0, ratio.value - (ratio.low if ratio.low is not None else least)) if has_any else 0.0)
        plus.append(max(0.0, (ratio.high if ratio.high is not None else most) - ratio.value) if has_any else 0.0)
    labels = [label for label, _ in rows]
    texts = [f"{label}: {wording.ratio(value)}" for label, value in zip(labels, x, strict=True)]
    return {
        "type": "scatter", "mode": "markers", "x": x, "y": labels, "name": name,
        "marker": {"color": colour, "size": 8, "symbol": "circle"},
        "error_x": {"type": "data", "symmetric": False, "array": plus, "arrayminus": minus, "color": colour,
                    "thickness": 1.6, "width": 0},
        "text": texts, "hoverinfo": "text",
    }  # fmt: skip


def _spread(curves: Sequence[Curve]) -> Chart:
    axis = Lengths.of([x for curve in curves for x in curve.x_ms])
    traces = [
        line(axis.y(list(each.x_ms)), [100 * n for n in each.share], each.label, colour_of(number), 2, shape="hv")
        for number, each in enumerate(curves)
    ]
    caption = (
        "Share of all samples that ended without error within a time: the further left, the faster; where curves "
        "cross, one side is faster for some samples only."
    )
    for words, name in (("Timed out", "timed_out"), ("Failed otherwise", "failed"), ("Without a time", "untimed")):
        never = [f"{count(n)} of {curve.label}" for curve in curves if (n := getattr(curve, name))]
        caption += f" {words} (counted in the total only): {', '.join(never)}." if never else ""
    x = axis.axis("response time")
    return Chart(
        name="response-times",
        title="Response times, cumulative",
        caption=caption,
        traces=traces,
        xaxis=x,
        yaxis=axis_title("samples without error") | {"range": [0, 102], "ticksuffix": " %"},
        choices={
            f"{name} time": [{}, {"xaxis.type": name, "xaxis.tickmode": "auto", "xaxis.autorange": True}]
            for name in ("linear", "log")
        },
        chosen="log time" if axis.log else "linear time",
    )


def terminal_text(comparison: Comparison) -> str:
    """What the terminal shows: the sides, a table for each comparison, the different settings, and the verdict."""
    parts = ["\n".join(f"{side.label}  {side.name}: {side.extent}" for side in comparison.sides)]
    for each in comparison.comparisons:
        parts.append(table(each.overall, each.against, each.label))
        names = ", ".join(setting.name for setting in each.changes)
        parts.append(f"Different settings in {each.label}: {names or 'none that is recorded'}.")
        parts.append("\n".join(f"Note: {sentence}" for sentence in each.warnings))
    parts.append(f"{VERDICT_WORDS[comparison.verdict.word]}: {comparison.verdict.text}.")
    checks = comparison.thresholds
    parts.append(_named("regression", "regression", [each for each in checks if each.state == "regression"]))
    parts.append(_named("undecided", "undecided check", [each for each in checks if each.is_undecided]))
    return "\n\n".join(part for part in parts if part).replace(units.NBSP, " ")


def _named(word: str, noun: str, checks: Sequence[JudgedThreshold]) -> str:
    """Return the checks, a line each, after a word for what became of them."""
    lines = [f"{word}: {check_text(each)}" for each in checks[:MAX_CHECKS]]
    left = len(checks) - MAX_CHECKS
    return "\n".join([*lines, *([f"… {units.plural(left, f'more {noun}')} on the page"] if left > 0 else [])])


def check_text(judged: JudgedThreshold) -> str:
    """Return a check: its threshold and the figure, and of an undecided one why, and how much data would decide it."""
    reasons = [text for text in (judged.why, judged.needed) if text]
    return "; ".join([f"{judged.threshold}: {judged.text}", *reasons])


def junit_xml(comparison: Comparison) -> str:
    """Return the comparison as JUnit XML: a test case for each check; undecided checks are skipped or failed."""
    names = {side.label: side.name for side in comparison.sides}
    return suite_xml(
        ["compare", comparison.subject],
        [_case(each, comparison.undecided) for each in comparison.thresholds],
        {f"side {label}": name for label, name in names.items()} | {"verdict": comparison.verdict.word},
        comparison.made_ms,
        0,
    )


def _case(judged: JudgedThreshold, undecided: Undecided) -> Case:
    name = judged.threshold + (f" at {judged.point}" if judged.point else "")
    if judged.is_undecided:
        why = f"undecided: {check_text(judged)}"
        if undecided == "fail":
            return Case(name, (judged.state, why), label=judged.side or None)
        return Case(name, skipped=why, label=judged.side or None)
    failure = None if judged.state == "within" else (judged.state, "; ".join(filter(None, (judged.text, judged.why))))
    return Case(name, failure, output=judged.text, label=judged.side or None)


def table(contrasts: Sequence[Contrast], baseline: str, candidate: str) -> str:
    """Return the contrasts as aligned columns."""
    lines = [["", baseline, candidate, f"{candidate} against {baseline}", "95 % interval", ""]]
    lines += [[*wording.contrast_row(contrast)] for contrast in contrasts]
    return "\n".join(aligned(lines, texts=(0, 5))).replace(units.NBSP, " ")
