"""The data of a run's charts, as plain numbers; every list over time or index belongs to the `x` next to it.

Times on the x axis are seconds since the run's start, lengths are ms; None is a gap.
"""

from dataclasses import dataclass, field

Values = list[float | None]
# By name the values of curves over one x, or x and y of single points.
Curves = dict[str, Values]


@dataclass(frozen=True)
class UserLine:
    """The line of one user in a chart; users are numbered from 1 in the order of their starts."""

    user: int
    y: Values


@dataclass(frozen=True)
class ByIndex:
    """A length by the sample's index; `step` indices share a point, `users` had any.

    band: low, mid and high, the 5th percentile, median and 95th percentile of all users.
    """

    step: int
    users: int
    x: list[int]
    lines: list[UserLine]
    band: Curves | None
    timed_out: Curves


@dataclass(frozen=True)
class OverTime:
    """Response times by their start: `shown` of `of` points, and median and 95th percentile of each bin."""

    width_s: float
    shown: int
    of: int
    warm: Curves
    cold: Curves
    timed_out: Curves
    x: list[float]
    mid: Values
    high: Values


@dataclass(frozen=True)
class SuccessOverTime:
    """Percent of samples without error by bin of the start, and by host those started per second: ok, and failed.

    closed_model: users wait for answers. hosts: empty for a single sample, which has no rate. last_width_s: of the last
        bin, None if that is as wide as the others.
    """

    width_s: float
    closed_model: bool
    x: list[float]
    ratio: Values
    hosts: dict[str, Curves]
    last_width_s: float | None = None

    @property
    def widths_s(self) -> list[float]:
        """The width of each bin."""
        return [*[self.width_s] * (len(self.x) - 1), self.last_width_s or self.width_s]


@dataclass(frozen=True)
class RatesOverTime:
    """Samples per second by bin: started (those sent), answered (ended without an error) and failed (ended with one).

    started: empty while the run goes on, as a sample is known once it has ended.
    A function that falls behind has fewer ends than starts, and still answers when nothing starts any more.
    """

    width_s: float
    x: list[float]
    started: Values
    answered: Values
    failed: Values


@dataclass(frozen=True)
class Bins:
    """Counts between edges in ms, of warm and of cold samples; None where there are none of them."""

    edges: list[float]
    warm: list[int] | None
    cold: list[int] | None


@dataclass(frozen=True)
class Histogram:
    """Response times on a linear and on a logarithmic axis; `above` lie beyond the linear one's end."""

    linear: Bins
    log: Bins
    above: int
    timed_out: int


@dataclass(frozen=True)
class InFlight:
    """How many users, or samples of the label `what`, were in flight at each moment, and the most of them at once.

    asked: corners of the line that the plan's settings ask for; empty if they do not ask for a number at a time.
    is_estimated: while the run goes on, the mean of a bin by Little's law of those that ended in it.
    """

    what: str
    x: list[float]
    y: list[int] | list[float]
    most: int
    asked: Curves = field(default_factory=dict)
    is_estimated: bool = False


@dataclass(frozen=True)
class MachineLine:
    """Cores that one part of a host kept busy."""

    host: str
    part: str
    x: Values
    y: Values


@dataclass(frozen=True)
class ReplicaLine:
    """One replica's line; `number` is its colour in every chart."""

    number: int
    name: str
    y: Values


@dataclass(frozen=True)
class ReplicaUse:
    """One metric of replicas: of all together (`whole`), and of those that have a line."""

    replicas: int
    whole: Values
    lines: list[ReplicaLine]


@dataclass(frozen=True)
class ReplicasOverTime:
    """Replicas by function on one grid of times, and what each held, by metric.

    counts: how many were wanted and ready; short: those ready while fewer were than wanted; autoscaler: how many the
        autoscaler asked for; activator: 1 while requests went through Knative's activator.
    """

    x: list[float]
    of_functions: int
    counts: dict[str, Curves]
    use: dict[str, ReplicaUse]


@dataclass(frozen=True)
class Mark:
    """An event that charts over time mark; `is_shaded`: what follows has less load; `is_quiet`: it is no failure."""

    at_s: float
    label: str
    is_shaded: bool
    is_quiet: bool = False


@dataclass(frozen=True)
class SampleSeries:
    """The chart data of the samples of one label; by_index is by the name of a figure, such as rtt_ms.

    is_by_end: over_time and success_over_time are by the end of samples, as they are known while the run goes on.
    """

    by_index: dict[str, ByIndex] = field(default_factory=dict)
    over_time: OverTime | None = None
    success_over_time: SuccessOverTime | None = None
    rates: RatesOverTime | None = None
    histogram: Histogram | None = None
    is_by_end: bool = False

    @property
    def by(self) -> str:
        """By which moment of a sample it is counted in a bin."""
        return "end" if self.is_by_end else "start"


@dataclass(frozen=True)
class ScrapedLine:
    """A series of a target of --scrape over time; is_rate: of a counter, how fast it grew per second."""

    url: str
    name: str
    is_rate: bool
    x: list[float]
    y: Values


@dataclass(frozen=True)
class Series(SampleSeries):
    """All chart data of a run: that of its main samples, and of it as a whole.

    labels: those further labels with the most samples; threads: virtual users of plans whose users are not processes.
    asked_per_s: corners of the line of the arrival rate that the plan's settings ask for.
    """

    labels: dict[str, SampleSeries] = field(default_factory=dict)
    in_flight: InFlight | None = None
    threads: InFlight | None = None
    asked_per_s: Curves = field(default_factory=dict)
    machines: list[MachineLine] = field(default_factory=list)
    replicas: ReplicasOverTime | None = None
    marks: list[Mark] = field(default_factory=list)
    scraped: list[ScrapedLine] = field(default_factory=list)
