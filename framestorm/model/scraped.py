"""Figures of the target's own metrics (`--scrape`): Prometheus' text format, and criteria about its series.

Such a criterion is `metric{label="x"} max|min|mean|last|rate > N`, without a unit: `vllm:num_requests_waiting max > 8`.
It is about every series of that name which has these labels, and fails if one of them is on the wrong side.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from framestorm.model.criteria import DIGITS, OPERATORS, CriteriaError, Criterion, parse

# Rows of scrapes.csv without a value: whether the target answered, and that a series has no value any longer.
UP, GONE = "up", "gone"
STATISTICS = ("max", "min", "mean", "last", "rate")
FAMILY = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABELS = r'\{\s*(?:[a-zA-Z_]\w*\s*=\s*"(?:[^"\\]|\\.)*"\s*,?\s*)*\}'
_LABEL = re.compile(r'([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_SAMPLE = re.compile(rf"({FAMILY.pattern})\s*({_LABELS})?\s+(\S+)(?:\s+-?\d+)?(?:\s+#.*)?\s*")
_LIMIT = rf"-?{DIGITS}(?:e[+-]?[0-9]{{1,2}})?"
_CRITERION = re.compile(
    rf"\s*({FAMILY.pattern})\s*({_LABELS})?\s+({'|'.join(STATISTICS)})\s*(>=|<=|>|<)\s*({_LIMIT})\s*",
    re.IGNORECASE,
)
_KIND = re.compile(rf"#\s*TYPE\s+({FAMILY.pattern})\s+(\w+)\s*")
# Of a histogram and a summary, what its series count.
_COUNTED = ("_total", "_bucket", "_count", "_sum")


class ScrapedValue(NamedTuple):
    """One series at one time; kind: `counter` if it only grows, until it starts again at 0."""

    kind: str
    series: str
    value: float


class ScrapedCriterion(NamedTuple):
    """Which series a criterion is about, and what must not hold."""

    family: str
    labels: Mapping[str, str]
    criterion: Criterion

    @property
    def is_of_target_only(self) -> bool:
        """Whether it can be no criterion about samples."""
        return not _is_of_samples(self.criterion.text)

    def is_about(self, series: str) -> bool:
        """Return whether a series has the name and the labels."""
        family, labels = split_series(series)
        return family == self.family and self.labels.items() <= labels.items()


def read_text(text: str) -> list[ScrapedValue]:
    """Read Prometheus' text format; a quantile of nothing is NaN.

    Raises:
        ValueError: a line is not of that format; the message quotes it.
    """
    kinds: dict[str, str] = {}
    readings = []
    for line in text.split("\n"):  # a label may have other ends of lines
        if not line.strip():
            continue
        if line.lstrip().startswith("#"):
            if match := _KIND.fullmatch(line.strip()):
                kinds[match[1]] = match[2]
            continue
        sample = _SAMPLE.fullmatch(line.strip())
        try:
            value = float(sample[3]) if sample else None
        except ValueError:
            value = None
        if sample is None or value is None:
            raise ValueError(line.strip()[:80])
        readings.append(ScrapedValue(_kind(sample[1], kinds), sample[1] + (sample[2] or ""), value))
    return readings


def _kind(name: str, kinds: Mapping[str, str]) -> str:
    if name in kinds:
        return kinds[name]
    stem = next((name.removesuffix(end) for end in _COUNTED if name.endswith(end)), name)
    # Of what has no type, only such a name says it.
    kind = kinds.get(stem, "counter" if name.endswith("_total") else "gauge")
    return "counter" if kind in ("counter", "histogram", "summary") else "gauge"


def split_series(series: str) -> tuple[str, dict[str, str]]:
    """Return the name of a series and its labels."""
    family, _, labels = series.partition("{")
    return family.strip(), dict(_LABEL.findall(labels))


def divided(texts: Iterable[str], families: Collection[str]) -> tuple[list[ScrapedCriterion], list[str]]:
    """Return which criteria are about scraped series, and the texts of the others.

    Of a form that both may have, those with the name of such a series, and those that are no other criterion.
    """
    scraped, others = [], []
    for text in texts:
        one = scraped_criterion(text)
        if one is not None and (one.family in families or not _is_of_samples(text)):
            scraped.append(one)
        else:
            others.append(text)
    return scraped, others


def _is_of_samples(text: str) -> bool:
    try:
        parse(text)
    except CriteriaError:
        return False
    return True


def scraped_criterion(text: str) -> ScrapedCriterion | None:
    """Return a text as a criterion about scraped series; None if it has another form."""
    match = _CRITERION.fullmatch(text)
    if match is None:
        return None
    family, labels, statistic, op, limit = match.groups()
    assert op in OPERATORS  # noqa: S101 - the pattern has these
    criterion = Criterion(" ".join(text.split()), family, "", statistic.lower(), op, float(limit), "")
    return ScrapedCriterion(family, dict(_LABEL.findall(labels or "")), criterion)
