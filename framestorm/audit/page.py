"""index.html and junit.xml of an audit, and its sentence for the terminal, made of audit.json and nothing else."""

from pathlib import Path

from framestorm.model.files import write_text
from framestorm.model.function_audit import Caching, FunctionAudit
from framestorm.model.units import percent, plural
from framestorm.report.document import render
from framestorm.report.figure import MAIN, QUIET, SECOND, Chart, Lengths, dots, line
from framestorm.report.junit import Case, suite_xml


def exit_status(record: FunctionAudit) -> int:
    """Return the exit status of run.sh."""
    return 4 if record.caching is None else 3 if record.caching.is_found else 0


def sentence(record: FunctionAudit) -> str:
    """Return what the audit found in a sentence or two."""
    caching = record.caching
    if caching is None:
        return "The audit was stopped early, and says nothing. Make it again."
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
        filters={"ends": ends, "probability": probability},
        a=record,
        text=sentence(record).rstrip("."),
        look={0: "pass", 3: "fail", 4: "partial"}[status],
        verdict_word={0: "No cache seen", 3: "Caches", 4: "Not finished"}[status],
    )


def junit_xml(record: FunctionAudit) -> str:
    """Return the verdict of an audit as JUnit's XML."""
    text, caching = sentence(record), record.caching
    cases = [
        Case("the audit is complete", None if caching else ("partial", text)),
        Case("no cache is seen", ("failed", text) if caching and caching.is_found else None, output=text),
    ]
    took_ms = (record.ended_ms or record.started_ms) - record.started_ms
    return suite_xml(f"audit {Path(record.plan).stem}", cases, {"plan": record.plan}, record.started_ms, took_ms)


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
    log = {
        "type": "log",
        "tickmode": "array",
        "tickvals": axis.ticks,
        "ticktext": [f"{each:,g}" for each in axis.ticks],
    }
    first_axis, second_axis = (axis.axis(f"{which} answer") | log for which in ("first", "second"))
    return Chart("repeats", "Second answer against first", caption, traces, first_axis, second_axis)
