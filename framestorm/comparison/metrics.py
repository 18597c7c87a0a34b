"""What can be compared: each metric's name (as in results.csv), its words, its unit, and which way is worse."""

from dataclasses import dataclass
from typing import Literal

from framestorm.report import units
from framestorm.study.answers import wording

Worse = Literal["higher", "lower"]
SERIES_WORDS = {
    "": "Round trip",
    "handler": "Handler",
    "model": "Model",
    "outside": "Outside of the handler",
    "user": "User",
    "open": "From the intended start",
}
RUN_SERIES = ("", "handler", "model", "user")
STATISTICS = ("mean", "median", "p95", "p99")
PERCENTS = {"median": "50", "p95": "95", "p99": "99"}
WORSE_LOWER = frozenset({"ok", "success", "user_success", "served_per_s"})
WORSE_HIGHER = frozenset({"failed", "timed_out", "dropped_arrivals", "total_s", "target_memory_max_bytes", "warnings"})
OF_RUNS = (
    *(f"{series}_{statistic}_ms".lstrip("_") for series in RUN_SERIES for statistic in STATISTICS),
    "success",
    "served_per_s",
)
SHORT_NAMES = {"rate": "served_per_s", "served": "served_per_s"}


@dataclass(frozen=True)
class Metric:
    """One metric; `unit` as in the catalogue of studies; `worse` None: neither way is."""

    name: str
    words: str
    unit: str
    worse: Worse | None

    @property
    def is_share(self) -> bool:
        """A share between 0 and 1: compared by its difference in points, for a ratio of shares says little."""
        return self.unit == "share"

    @property
    def is_time(self) -> bool:
        return self.unit in {"ms", "s"}

    def text(self, value: float) -> str:
        """A figure of this metric in words."""
        return wording.show(self.name, value)

    def change_text(self, change: float) -> str:
        """A difference in words, with its sign."""
        sign = "+" if change > 0 else "\N{MINUS SIGN}" if change < 0 else ""
        if self.is_share:
            return f"{sign}{units.significant(abs(change) * 100)}{units.NBSP}points"
        return sign + self.text(abs(change))


def metric(name: str) -> Metric:
    """The metric of that name; one that is not known (derived by a study) has neither unit nor direction."""
    worse: Worse | None = "lower" if name in WORSE_LOWER else "higher" if name in WORSE_HIGHER else None
    series, _, statistic = name.removesuffix("_ms").rpartition("_")
    unit = wording.unit(name)
    if unit == "ms" and series in SERIES_WORDS:
        return Metric(name, f"{SERIES_WORDS[series]}, {statistic}", unit, "higher")
    label = wording.label(name)
    return Metric(name, label[:1].upper() + label[1:], unit, "higher" if unit == "ms" else worse)


def find(words: str) -> str:
    """The metric's name for what a person writes: `p95`, `handler mean`, `success`, `rate`, or the name itself."""
    plain = "_".join(words.lower().split())
    if plain in SHORT_NAMES:
        return SHORT_NAMES[plain]
    series, _, statistic = plain.rpartition("_")
    series = {"frame": "", "rtt": ""}.get(series, series)
    if statistic in STATISTICS and series in SERIES_WORDS:
        return column(series, statistic)
    return plain


def column(series: str, statistic: str) -> str:
    """`handler`, `mean` to `handler_mean_ms`."""
    return f"{series}_{statistic}_ms" if series else f"{statistic}_ms"
