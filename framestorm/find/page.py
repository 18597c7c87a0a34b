"""index.html and junit.xml of a search, and its lines for the terminal, made of find.json and nothing else."""

import re
from collections.abc import Sequence
from pathlib import Path

from framestorm.errors import FramestormError
from framestorm.model import units
from framestorm.model.criteria import CriteriaError, metric_name, parse
from framestorm.model.files import write_text
from framestorm.model.metric import metric
from framestorm.model.search import OF_TARGET, Highest, LoadRange, Probe, SearchRecord, Smallest
from framestorm.report.document import render
from framestorm.report.figure import BAD, MAIN, QUIET, Chart, Lengths, axis_title, dots, line
from framestorm.report.junit import Case, suite_xml
from framestorm.stats.estimate import Estimate

GOOD = "var(--good)"
MAX_TICKS = 16  # of whole numbers, each with its own


def probe_line(number: int, probe: Probe, over: LoadRange) -> str:
    """Return one probe as a line of a terminal."""
    if not probe.outcomes:
        return f"[{number}] {over.amount(probe.load)}: {_rate_of(probe)}"
    result = "passed" if probe.passed else "generator" if probe.generator else "failed"
    measured = "; ".join(f"{each.objective}: {each.measured}" for each in probe.outcomes)
    return f"[{number}] {over.amount(probe.load)}: {result}, {probe.generator or measured}"


def _rate_of(probe: Probe) -> str:
    """Return the rate of answers of a probe without objectives, and what may have limited it."""
    rate = f"{units.rate(probe.answered_per_s or 0)} answered"
    return f"{rate}; {probe.generator}" if probe.generator else rate


def is_shown(record: SearchRecord) -> bool:
    """Whether the load that --at-least asks for was shown to pass."""
    answer = record.answer
    if isinstance(answer, Smallest):
        return answer.word == "found"
    if answer is None or answer.highest is None:
        return False
    surely = answer.interval[0] if answer.interval else answer.highest
    return record.at_least is None or surely >= record.at_least


def exit_status(record: SearchRecord) -> int:
    """Return the exit status of run.sh."""
    if record.answer is None:
        return FramestormError.exit_status if record.state == "failed" else 4
    return 0 if is_shown(record) else 3


def sentence(record: SearchRecord) -> str:
    """Return the answer in a sentence or two."""
    answer, over = record.answer, record.over
    if answer is None:
        return _sentence_without_answer(record)
    if isinstance(answer, Smallest):
        return _sentence_of_smallest(answer, over)
    if answer.highest is None and answer.why:
        return f"No answer: already {over.at(over.low)}, {answer.why}. Use another machine for the load."
    if answer.highest is None:
        advice = "Begin the range at a lower load."
        if over.is_whole and over.low == 1:
            advice = "No load is lower: see why in its probes, or give another objective."
        return f"Below the range: {over.at(over.low)} it misses '{answer.binding}' already. {advice}"
    highest = over.amount(answer.highest)
    if answer.capacity is not None:
        text = _sentence_of_ladder(answer, answer.capacity, over)
    elif answer.word == "at_least":
        text = f"At least {highest}: {answer.why}."
    else:
        first_fail = over.at(answer.first_fail or 0)
        clear = [f"{over.at(answer.low)} it surely passes"] if answer.low is not None else []
        clear += [f"{over.at(answer.high)} it surely fails"] if answer.high is not None else []
        between = ""
        if answer.interval is not None:
            low, high = (over.amount(end) for end in answer.interval)
            between = f" (95 % confidence interval {low} to {high})"
        text = f"It carries {highest}{between}; {first_fail} it misses '{answer.binding}'"
        text += f" ({', '.join(clear)})." if clear else "."
        if answer.is_cliff is not None:
            text += _change_there(answer.binding, is_cliff=answer.is_cliff)
    if record.at_least is not None and not is_shown(record):
        text += f" It is not shown that it carries {over.amount(record.at_least)}."
    return text


def _sentence_without_answer(record: SearchRecord) -> str:
    """Return why a search has no answer, how far it came, and what to do."""
    over, best = record.over, ""
    passed = [] if over.is_of_target else [each for each in record.probes if each.passed]
    if passed and record.is_ladder:
        most = max(passed, key=lambda each: each.answered_per_s or 0.0)
        best = f" The highest rate so far is {units.rate(most.answered_per_s or 0.0)}, with {over.amount(most.load)}."
    elif passed:
        best = f" The highest that passed so far is {over.amount(max(each.load for each in passed))}."
    if record.state == "failed":
        return (
            f"The search failed: {record.reason}.{best} Its probes are kept: --resume goes on once the cause is "
            "gone, with longer probes if --probe-s is given too; for other options, begin a new search."
        )
    if record.state == "stopped":
        return f"The search was stopped.{best} Continue it with --resume."
    return f"The search is not over.{best} If nothing runs it any more, continue it with --resume."


def _change_there(binding: str, *, is_cliff: bool) -> str:
    """Return how the figure of an objective changes where it is missed; empty of one without a figure."""
    try:
        objective = parse(binding)
    except CriteriaError:
        return ""
    word = "cliff" if is_cliff else "slope"
    if objective.is_share_of_samples:
        return f" A {word}: {'more than' if is_cliff else 'at most'} twice as many samples miss it there as it allows."
    if objective.is_above:
        return f" A {word}: the figure falls {'to' if is_cliff else 'by'} less than half there."
    return f" A {word}: the figure {'more' if is_cliff else 'less'} than doubles there."


def _sentence_of_smallest(answer: Smallest, over: LoadRange) -> str:
    if answer.word == "not_known":
        return f"No answer: {answer.why}. Use another machine for the load."
    if answer.least is None:
        return (
            f"Above the range: with {over.amount(over.high)} it still misses '{answer.binding}'. End the range higher."
        )
    least = over.amount(answer.least)
    if answer.last_fail is None:
        return f"It needs no more than {least}, where the range begins."
    return f"It needs {least}; with {over.amount(answer.last_fail)} it misses '{answer.binding}'."


def _sentence_of_ladder(answer: Highest, capacity: Estimate, over: LoadRange) -> str:
    rate, between = units.rate(capacity.value), ""
    if capacity.low is not None and capacity.high is not None:
        between = f" (95 % confidence interval {units.rate(capacity.low)} to {units.rate(capacity.high)})"
    if answer.word == "at_least":
        return f"It answers at least {rate}, with {over.amount(answer.highest or 0)}: {answer.why}."
    reached = f"already with {over.amount(over.low)}, where the range begins"
    if answer.highest != over.low:
        ends = "" if answer.interval is None else " ({:g} to {:g})".format(*answer.interval)
        reached = f"from about {over.amount(answer.highest or 0)}{ends} on"
    text = f"It answers at most {rate}{between}, {reached}: "
    if answer.falls_to is not None:
        return f"{text}with the most users that were tried, the rate falls to {units.rate(answer.falls_to)}."
    return f"{text}more users wait longer, and get no more answers."


def write(folder: Path, record: SearchRecord) -> None:
    """Write the page and junit.xml of a search."""
    write_text(folder / "junit.xml", junit_xml(record))
    write_text(folder / "index.html", page_html(record))


def page_html(record: SearchRecord) -> str:
    """Render the page."""
    looks = {0: "pass", 1: "fail", 3: "fail", 4: "partial"}
    states = {"searching": "Not finished", "stopped": "Stopped", "failed": "Failed"}
    words = {"found": "Found", "at_least": "At least", "below_range": "Below the range"}
    words |= {"above_range": "Above the range", "not_known": "Not known"}
    return render(
        "find.html.j2",
        _charts(record),
        filters={"amount": record.over.amount},
        s=record,
        text=sentence(record).rstrip("."),
        look=looks[exit_status(record)],
        verdict_word=words[record.answer.word] if record.answer else states[record.state],
    )


def junit_xml(record: SearchRecord) -> str:
    """Return the verdict of a search as JUnit's XML."""
    text, answer = sentence(record), record.answer
    asked = "the range is large enough" if record.over.is_of_target else "the lowest load passes"
    asked = asked if record.at_least is None else f"at least {record.over.amount(record.at_least)}"
    cases = [
        Case("the search is complete", None if answer else ("failed" if record.reason else "partial", text)),
        Case(asked, None if is_shown(record) else ("failed", text), output=text),
    ]
    name = Path(record.plan).stem
    took_ms = (record.ended_ms or record.started_ms) - record.started_ms
    return suite_xml([f"find {name}"], cases, {"plan": record.plan}, record.started_ms, took_ms)


def _charts(record: SearchRecord) -> list[Chart]:
    probes = sorted(record.probes, key=lambda each: each.load)
    what = "setting" if record.over.is_of_target else "load"
    most = max((each.load for each in probes), default=0.0)
    whole = {"dtick": 1} if record.over.is_whole and most <= MAX_TICKS else {}
    xaxis = axis_title(record.over.name.removeprefix(OF_TARGET)) | whole
    charts = []
    if known := [each for each in probes if each.answered_per_s is not None]:
        loads = [each.load for each in known]
        traces = [dots(loads, [each.answered_per_s for each in known], "answered", MAIN, size=8)]
        if all(each.asked_per_s is not None for each in known):
            traces.append(line(loads, [each.asked_per_s for each in known], "asked", QUIET, dash="dot"))
        caption = f"Answers without an error per second, at each {what} that was tried."
        if isinstance(record.answer, Highest) and (capacity := record.answer.capacity) is not None:
            traces.append(line(*_bound(known, capacity.value), "bound", QUIET, dash="dot"))
            caption += " The bound rises as at the lowest load, where no request waits for another, up to the capacity."
        charts.append(Chart("answered", "Answered rate", caption, traces, xaxis, axis_title("per second")))
    objectives = dict.fromkeys(o.objective for each in probes for o in each.outcomes if o.value is not None)
    for number, objective in enumerate(objectives):
        points = [(p.load, o) for p in probes for o in p.outcomes if o.objective == objective and o.value is not None]
        measured, limit_ms = _time_of(objective) or ("measured", None)
        axis = Lengths.plain() if limit_ms is None else Lengths.of([o.value for _, o in points], [limit_ms])
        traces = []
        for is_met, label, colour in ((True, "met", GOOD), (False, "missed", BAD)):
            if of := [(x, o) for x, o in points if o.is_met == is_met]:
                traces.append(dots([x for x, _ in of], axis.y([o.value for _, o in of]), label, colour, size=8))
        caption = f"Each probe by its {what}; shares are from 0 to 1."
        if limit_ms is not None:
            loads = [x for x, _ in points]
            limit = axis.y([limit_ms, limit_ms])
            traces.append(line([min(loads), max(loads)], limit, "objective", QUIET, dash="dot"))
            caption = f"Each probe by its {what}."
        charts.append(Chart(f"objective-{number}", objective, caption, traces, xaxis, axis.axis(measured)))
    return charts


def _bound(known: Sequence[Probe], capacity_per_s: float) -> tuple[list[float], list[float]]:
    """Return the corners of the bound of a rate, from the lowest load to the highest: x and y.

    The lowest load has several probes: as for the answer, their mean counts.
    """
    low, most = known[0].load, known[-1].load
    of_lowest = [each.answered_per_s or 0.0 for each in known if each.load == low]
    slope = sum(of_lowest) / len(of_lowest) / low
    knee = capacity_per_s / slope if slope else most
    ends = sorted({low, min(max(low, knee), most), most})
    return ends, [min(slope * load, capacity_per_s) for load in ends]


def _time_of(objective: str) -> tuple[str, float] | None:
    """Return in words what an objective on a time measures, and its limit in ms; None for another objective."""
    try:
        criterion = parse(objective)
        about = metric(metric_name(re.split("[<>]", objective)[0], criterion.label))
    except CriteriaError:
        return None
    return (about.label, criterion.limit) if about.unit == "ms" else None
