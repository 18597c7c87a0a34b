"""Figures, claims, factors and levels in words, the same for studies and comparisons."""

import re
from collections.abc import Mapping
from typing import Any

from framestorm.model import units
from framestorm.model.comparison import NOT_COMPARED, NOT_SIGNIFICANT, Bound, Contrast, SideFigure
from framestorm.model.metric import metric
from framestorm.model.study import Claim
from framestorm.model.study_summary import EffectSize
from framestorm.model.units import NBSP
from framestorm.stats.checks import LEVEL
from framestorm.stats.estimate import Estimate

BOUND_SIGNS: dict[Bound, str] = {
    "exact": "",
    "at least": f"\N{GREATER-THAN OR EQUAL TO}{NBSP}",
    "at most": f"\N{LESS-THAN OR EQUAL TO}{NBSP}",
    "unknown": "",
}


def level(value: Any) -> str:
    """Return a level of a factor."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def speaks(text: str) -> bool:
    """Whether a level is clear without its factor; `on`, `none` and numbers need the factor's name before them."""
    return text[:1].isalpha() and text not in ("on", "off", "none", "yes", "no")


def factor(name: str) -> str:
    """A factor's name in a sentence: `sleep_s` is the same as in study.yml, `target.replicas` becomes `replicas`."""
    return name.removeprefix("target.")


def named_level(name: str, value: Any) -> str:
    """Return a level with its factor: `sleep 5 s`, `rate 50/s`, `users 9`, `way: fork`."""
    if not units.is_number(value):
        return f"{factor(name)}: {level(value)}"
    base, of = _split(factor(name))
    return f"{base} {level(value)}{of}"


def axis(name: str) -> str:
    """Return a factor as the title of an axis: `sleep (s)`."""
    base, of = _split(factor(name))
    return f"{base} ({of.strip().replace('/s', 'per second')})" if of else base


def _split(name: str) -> tuple[str, str]:
    for end, of in (("_per_s", "/s"), ("_ms", f"{NBSP}ms"), ("_s", f"{NBSP}s")):
        if name.endswith(end):
            return name.removesuffix(end).replace("_", " "), of
    return name.replace("_", " "), ""


def settings(factors: Mapping[str, Any]) -> str:
    """`users=1, sleep_s=0`; lists of levels as `users=4, 5, 6`."""
    parts = []
    for name, value in factors.items():
        many = value if isinstance(value, list | tuple) else [value]
        levels = [level(one) for one in many]
        parts.append(f"{factor(name)}={' or '.join(levels) if len(many) < 4 else f'{levels[0]} to {levels[-1]}'}")
    return ", ".join(parts)


def ratio(value: float) -> str:
    """Return a ratio with three digits after the point where it is about 1, else three significant ones."""
    return f"{value:.3f}" if 0.5 < value < 2 else units.significant(value)


def change(contrast: Contrast) -> str:
    """Return the ratio or difference of a contrast, with < or > if timeouts make it a bound."""
    if contrast.bound == "unknown" or contrast.change is None:
        return units.NONE
    value = contrast.change.value
    text = ratio(value) if contrast.scale == "ratio" else contrast.about.change_text(value)
    return BOUND_SIGNS[contrast.bound] + text


def change_ends(contrast: Contrast) -> str:
    """The 95 % confidence interval of a contrast for a table; empty without one, … for an end that is not known."""
    return units.ends(*_end_texts(contrast))


def interval(low: str | None, high: str | None) -> str:
    """Return an interval in a sentence, `[1.70, 1.95]`; empty without one, … for an end that is not known."""
    return "" if low is None and high is None else f"[{low or '…'}, {high or '…'}]"


def change_and_interval(contrast: Contrast) -> str:
    """Return a ratio with its interval, such as `1.83 times [1.70, 1.95]`."""
    times = " times" if contrast.scale == "ratio" and contrast.bound != "unknown" else ""
    return f"{change(contrast)}{times} {interval(*_end_texts(contrast))}".rstrip()


def _end_texts(contrast: Contrast) -> tuple[str | None, str | None]:
    text = ratio if contrast.scale == "ratio" else contrast.about.change_text
    low, high = (contrast.change.low, contrast.change.high) if contrast.change else (None, None)
    return None if low is None else text(low), None if high is None else text(high)


def side_figure(contrast: Contrast, side: SideFigure) -> str:
    """Return the figure of one side of a contrast, in words."""
    return ("> " if side.is_lower_bound else "") + contrast.about.text(side.value)


def contrast_claim(contrast: Contrast) -> str:
    """Return the claim in words; says so if the difference is significant only without the correction."""
    is_lost = contrast.claim == NOT_SIGNIFICANT and contrast.p_value is not None and contrast.p_value <= 1 - LEVEL
    return "not significant after correction" if is_lost else contrast.claim


def contrast_row(contrast: Contrast) -> tuple[str, str, str, str, str, str]:
    """Return a contrast for a table: metric, both figures, their change and its interval, and the claim.

    Where there is no claim, the reason stands beside that.
    """
    figures = side_figure(contrast, contrast.baseline), side_figure(contrast, contrast.candidate)
    claim = contrast_claim(contrast)
    if contrast.claim == NOT_COMPARED and contrast.why:
        claim = f"{claim}: {contrast.why}"
    return contrast.about.title, *figures, change(contrast), change_ends(contrast), claim


def contrast_sentence(contrast: Contrast, baseline: str, candidate: str) -> str:
    """A contrast such as `Median response time: B has 1.83 times that of A [1.70, 1.95]: slower`, with a full stop."""
    title = contrast.about.title
    if contrast.claim == NOT_COMPARED:
        return f"{title}: not compared, {contrast.why or 'its variation is not known'}."
    than = f"times that of {baseline}" if contrast.scale == "ratio" else f"against {baseline}"
    ends = interval(*_end_texts(contrast))
    return f"{title}: {candidate} has {change(contrast)} {than} {ends}: {contrast_claim(contrast)}."


def claim_kind(claim: Claim) -> str:
    """Return the kind of a claim's figure: `value`, `ratio` or `difference`, or the trend of one of them."""
    what = claim.as_ if claim.compare else "value"
    return f"trend of the {what}" if claim.trend else what


def claim_subject(claim: Claim) -> str:
    """Return the subject of a claim's figure: `fork against kept-alive at users=1, mean response time`."""
    where = f" at {settings(claim.where)}" if claim.where else ""
    label = metric(claim.metric).label
    if claim.pair:
        name, *levels = claim.pair
        first, second = map(level, levels)
        if not (speaks(first) and speaks(second)):
            first = f"{factor(name)}={first}"
        what = f"{first} against {second}{where}, {label}"
    else:
        what = f"{label[:1].upper()}{label[1:]}{where}"
    return what + (f", trend over {factor(claim.trend)}" if claim.trend else "")


def claim_sentence(claim: Claim, figure: Estimate, repetitions: int, cells: int, effect: EffectSize | None) -> str:
    """Return a claim's figure with its interval, the data behind it, and the expected value."""
    is_ratio = claim.compare is not None and claim.as_ == "ratio"
    low, high = (None if end is None else _claim_figure(claim, end) for end in (figure.low, figure.high))
    ends = interval(low, high)
    rests = ["95 % confidence interval" if ends else "no interval", units.plural(repetitions, "repetition")]
    if cells > 1:
        one, many = ("pair of points", "pairs of points") if claim.compare else ("point", "points")
        rests.append(units.plural(cells, one, many))
    unit = f" for each unit of {factor(claim.trend)}" if claim.trend else " times" if is_ratio else ""
    figure_and_ends = f"{_claim_figure(claim, figure.value)}{unit} {ends}".rstrip()
    text = f"{claim_subject(claim)}: {figure_and_ends} ({', '.join(rests)}); expected {_expected(claim)}."
    if effect:
        text += f" {effect_sentence(effect)}"
    return f"{claim.say} {text}" if claim.say else text


def effect_sentence(effect: EffectSize) -> str:
    """Return how far two settings lie apart, in words and by its statistic's name."""
    sign = "\N{MINUS SIGN}" if effect.value < 0 else ""
    size = f", {effect.size}" if effect.size else ""
    figure = f"{effect.name} {sign}{units.significant(abs(effect.value))}{size}"
    if effect.of == "samples":
        share = units.percent((1 + effect.value) / 2)
        return f"Of two samples, one of each side, that of the first is the larger in {share} of cases ({figure})."
    way = "below" if effect.value < 0 else "above"
    deviations = units.significant(abs(effect.value))
    return f"The first lies {deviations} standard deviations of the runs {way} the second ({figure})."


def _claim_figure(claim: Claim, value: float) -> str:
    if claim.compare and claim.as_ == "difference":
        return metric(claim.metric).change_text(value)
    if claim.compare is None:
        return metric(claim.metric).text(value)
    sign = "\N{MINUS SIGN}" if value < 0 else "+" if claim.trend else ""
    return f"{sign}{units.significant(abs(value))}" + (f"{NBSP}%" if claim.trend else "")


def _expected(claim: Claim) -> str:
    text = claim.expect.text.strip()
    if metric(claim.metric).is_share and not claim.trend and claim_kind(claim) != "ratio":
        # As its figure is written.
        unit = "points" if claim.compare else "%"
        limit = re.sub(r"[\d.e-]+", lambda number: f"{100 * float(number[0]):g}{NBSP}{unit}", text, count=1)
        return limit.replace("-", "\N{MINUS SIGN}")
    unit = {"ms": "ms", "s": "s", "%": "%", "1/s": "a second"}.get(metric(claim.metric).unit, "")
    is_plain = not claim.trend and claim_kind(claim) != "ratio"
    return f"{text} {unit}" if is_plain and unit and "within" not in text else text
