"""index.html and junit.xml of an audit, and its sentence for the terminal, made of audit.json and nothing else."""

from pathlib import Path

from framestorm.model.files import write_text
from framestorm.model.function_audit import Accuracy, Caching, FunctionAudit, Sameness
from framestorm.model.units import NONE, percent, plural
from framestorm.report.document import render
from framestorm.report.figure import MAIN, QUIET, SECOND, Chart, Json, Lengths, axis_title, dots, line
from framestorm.report.junit import Case, suite_xml


def exit_status(record: FunctionAudit) -> int:
    """Return the exit status of run.sh."""
    caching, accuracy = record.caching, record.accuracy
    if caching is None or accuracy is None:
        return 4
    return 3 if caching.is_found or accuracy.is_worse else 4 if accuracy.difference is None else 0


def sentence(record: FunctionAudit) -> str:
    """Return what the audit found in a few sentences."""
    if record.caching is None or record.accuracy is None:
        return "The audit was stopped early, and says nothing. Make it again."
    return " ".join(
        [of_caching(record.caching), of_accuracy(record.accuracy, record.users), *of_sameness(record.sameness)]
    )


def of_sameness(sameness: Sameness | None) -> list[str]:
    """Return that the texts of answers depend on the load, if they do."""
    if sameness is None or not sameness.depends_on_load:
        return []
    return [
        f"The text of answers depends on the load: {sameness.load} of {sameness.n} inputs got the text of their first "
        f"answer again, and {sameness.alone} when they were repeated alone."
    ]


def of_accuracy(accuracy: Accuracy, users: int) -> str:
    """Return in words how right the answers are under load."""
    if accuracy.difference is None:
        lost = ", ".join(f"{cause}: {n}" for cause, n in accuracy.load.missing.items()) or "the run was too short"
        return (
            f"Accuracy under load was not judged: with {users} users only {accuracy.n} inputs were answered that were "
            f"also answered alone ({lost})."
        )
    change = round(accuracy.difference.value * accuracy.n)
    compared = f"{abs(change)} {'fewer' if change < 0 else 'more'} are right with {users} users than with one"
    text = (
        f"Of {accuracy.n} inputs that were answered in both runs, "
        f"{compared if change else f'as many are right with {users} users as with one'}: a difference of "
        f"{points(accuracy.difference.value)} percentage points (95 % confidence interval "
        f"[{points(accuracy.difference.low)}, {points(accuracy.difference.high)}])."
    )
    text = f"It is less accurate under load. {text}" if accuracy.is_worse else f"No loss of accuracy was seen. {text}"
    if accuracy.is_status_only:
        text += " Only the status was checked: -Jexpect says what a right answer is."
    return text


def points(share: float | None) -> str:
    """Return a difference of shares in percentage points."""
    return NONE if share is None else f"{100 * share:+.1f}" if round(100 * share, 1) else "0"


def of_caching(caching: Caching) -> str:
    """Return in words whether the function caches."""
    if not caching.is_found:
        return (
            f"No cache was seen: {plural(caching.ratio.n, 'repeated input')} were {between(caching)} the second time "
            "(95 % confidence interval)."
        )
    clearly = (
        f"{caching.hits} of {caching.ratio.n} inputs were answered more than {caching.clear:.2g} times as fast the "
        f"second time, {caching.reverse} the first time"
    )
    if caching.is_faster:
        text = (
            f"It caches: the second answer to the same input takes {percent(caching.ratio.value)} of the time of the "
            f"first (95 % confidence interval {ends(caching)})"
        )
        text += f"; {clearly}." if caching.is_often_hit else "."
    else:
        text = f"It caches some answers: {clearly}."
    return f"{text} Under a load whose inputs repeat, its response times are those of the cache."


def between(caching: Caching) -> str:
    """Return the interval of the ratio as how much slower or faster repeated inputs are."""
    low, high = caching.ratio.ends
    words = [
        f"{percent(abs(1 - each))} {'slower' if each > 1 else 'faster'}" for each in (high, low) if each is not None
    ]
    return f"between {' and '.join(words)}"


def ends(caching: Caching) -> str:
    """Return the interval of the ratio."""
    low, high = caching.ratio.ends
    return "" if low is None or high is None else f"[{percent(low)}, {percent(high)}]"


def probability(p: float) -> str:
    """Return a p-value."""
    return "< 0.0001" if p < 0.0001 else f"{p:.2g}"


def write(folder: Path, record: FunctionAudit) -> None:
    """Write the page and junit.xml of an audit."""
    write_text(folder / "junit.xml", junit_xml(record))
    write_text(folder / "index.html", page_html(record))


def page_html(record: FunctionAudit) -> str:
    """Render the page."""
    status = exit_status(record)
    return render(
        "audit.html.j2",
        [_chart(record.caching)] if record.caching else [],
        filters={"ends": ends, "probability": probability, "points": points},
        a=record,
        text=sentence(record).rstrip("."),
        look={0: "pass", 3: "fail", 4: "partial"}[status],
        verdict_word=_verdict_word(record),
    )


def _verdict_word(record: FunctionAudit) -> str:
    caching, accuracy = record.caching, record.accuracy
    if caching is None or accuracy is None:
        return "Not finished"
    words = ["caches"] * caching.is_found + ["less accurate under load"] * accuracy.is_worse
    return " and ".join(words).capitalize() or ("No cache seen" if accuracy.difference is None else "Passed")


def junit_xml(record: FunctionAudit) -> str:
    """Return the verdict of an audit as JUnit's XML."""
    text, caching, accuracy = sentence(record), record.caching, record.accuracy
    is_complete = accuracy is not None and accuracy.difference is not None
    cases = [
        Case("the audit is complete", None if is_complete else ("partial", text)),
        Case(
            "no cache is seen",
            ("failed", text) if caching and caching.is_found else None,
            skipped=None if caching else text,
            output=text,
        ),
        Case(
            "no loss of accuracy under load",
            ("failed", text) if accuracy and accuracy.is_worse else None,
            skipped=None if is_complete else text,
        ),
    ]
    took_ms = (record.ended_ms or record.started_ms) - record.started_ms
    return suite_xml([f"audit {Path(record.plan).stem}"], cases, {"plan": record.plan}, record.started_ms, took_ms)


def _chart(caching: Caching) -> Chart:
    times = [ms for each in caching.pairs for ms in (each.first_ms, each.second_ms)]
    axis = Lengths.of(times)
    least, most = min(times), max(times)
    traces = []
    for is_at_once, name, colour in ((True, "again at once", MAIN), (False, "again after others", SECOND)):
        of = [each for each in caching.pairs if (each.others == 0) == is_at_once]
        first, second = axis.y([each.first_ms for each in of]), axis.y([each.second_ms for each in of])
        traces.append(dots(first, second, name, colour, size=6))
    traces.append(line(axis.y([least, most]), axis.y([least, most]), "equal", QUIET, dash="dot"))
    caption = "Each input by the time of its first and its second answer; below the dotted line, the second was faster."
    log: Json = {"type": "log"}
    # Times that hardly differ lie between two of the usual ticks: then the library chooses.
    if sum(least <= each * axis.scale <= most for each in axis.ticks) > 1:
        log |= {"tickmode": "array", "tickvals": axis.ticks, "ticktext": [f"{each:,g}" for each in axis.ticks]}
    first_axis, second_axis = (axis_title(f"{which} answer ({axis.unit})") | log for which in ("first", "second"))
    return Chart("repeats", "Second answer against first", caption, traces, first_axis, second_axis)
