"""The target's own figures (`--scrape`): criteria about them, the series that the page draws, and notes."""

from collections.abc import Sequence

from framestorm.model.criteria import OPERATORS
from framestorm.model.judgement import Judgement
from framestorm.model.scraped import ScrapedCriterion
from framestorm.model.series import ScrapedLine
from framestorm.model.units import count, plural, significant
from framestorm.results.scrapes import ScrapedSeries, Scrapes

MAX_DRAWN = 6
MAX_POINTS = 600
# What a runtime tells of itself is rarely why a function is slow: drawn after everything else.
OF_RUNTIMES = ("go_", "python_", "process_", "jvm_", "promhttp_", "scrape_")
NEVER_DRAWN = ("_bucket", "_created", "_sum")


def scraped_judgements(criteria: Sequence[ScrapedCriterion], scrapes: Scrapes) -> list[Judgement]:
    """Judge each criterion by the series that is furthest on its wrong side."""
    return [_judged(each, scrapes) for each in criteria]


def _judged(one: ScrapedCriterion, scrapes: Scrapes) -> Judgement:
    criterion = one.criterion
    figures = [
        (value, each.name)
        for each in scrapes.series
        if one.is_about(each.name) and (value := each.figure(criterion.metric)) is not None
    ]
    if not figures:
        why = "no scrape of the load has such a series, so it cannot be judged and counts as failed"
        return Judgement(
            **vars(criterion), state="unjudged", measured="no such series", value=None, bound=None, why=why
        )
    value, name = max(figures) if criterion.is_above else min(figures)
    measured = _text(value) + (f" ({name})" if len(figures) > 1 else "")
    is_held = OPERATORS[criterion.op](value, criterion.limit)
    why = f"{criterion.text} is true: measured {measured}" if is_held else ""
    state = "failed" if is_held else "passed"
    return Judgement(**vars(criterion), state=state, measured=measured, value=value, bound="exact", why=why)  # type: ignore[arg-type]


def scraped_lines(scrapes: Scrapes, criteria: Sequence[ScrapedCriterion], origin_ms: float) -> list[ScrapedLine]:
    """Return the series that the page draws: those of criteria, then those that changed most."""
    named = [each for each in scrapes.series if any(one.is_about(each.name) for one in criteria)]
    others = [each for each in scrapes.series if each not in named and not each.family.endswith(NEVER_DRAWN)]
    ranked = sorted(others, key=lambda each: (each.family.startswith(OF_RUNTIMES), -_change(each)))
    chosen = [*named, *(each for each in ranked if _change(each) > 0)][:MAX_DRAWN]
    return [_line(each, origin_ms) for each in chosen]


def _change(each: ScrapedSeries) -> float:
    """Return by how much a series changed, as a share of its mean."""
    values = each.rates_per_s if each.kind == "counter" else each.values
    mean = sum(map(abs, values)) / len(values) if values else 0.0
    return (max(values) - min(values)) / mean if mean else 0.0


def _line(each: ScrapedSeries, origin_ms: float) -> ScrapedLine:
    is_rate = each.kind == "counter" and len(each.values) > 1
    times, values = (each.times_ms[1:], each.rates_per_s) if is_rate else (each.times_ms, each.values)
    step = len(times) // MAX_POINTS + 1
    x = [round((at - origin_ms) / 1000, 2) for at in times[::step]]
    return ScrapedLine(each.url, each.name, is_rate, x, [float(f"{value:.5g}") for value in values[::step]])


def scrape_notes(scrapes: Scrapes) -> list[str]:
    """Return a note on each target: how many series are drawn, and how many scrapes got no answer."""
    notes = []
    for url, asked in scrapes.asked.items():
        n = sum(each.url == url for each in scrapes.series)
        text = f"{url} gave {plural(n, 'series', 'series')} in {plural(asked, 'scrape')} during the load"
        if failed := scrapes.failed[url]:
            text += f"; {count(failed)} of these got no answer in time, and nothing is known of that time"
        notes.append(
            f"{text}. Drawn are {MAX_DRAWN} at most, those of criteria and of the largest change; scrapes.csv has all."
        )
    return notes


def _text(value: float) -> str:
    return count(value) if float(value).is_integer() else significant(value)
