"""summary.json: every number of a run's page.

`python -m framestorm.model.summary` writes its JSON Schema, docs/summary.schema.json.
"""

import json
import math
from dataclasses import dataclass, field
from typing import Literal

from framestorm import paths
from framestorm.model.cause import FAILED_CHECK
from framestorm.model.criteria import USER, USER_SERIES
from framestorm.model.files import FORMAT, schema, write_text
from framestorm.model.function_summary import FunctionSummary
from framestorm.model.goodput import Goodput
from framestorm.model.judgement import Judgement
from framestorm.model.overload import Overload, Rates
from framestorm.model.run import Record
from framestorm.model.sample import SampleKind, noun
from framestorm.model.series import Series
from framestorm.model.traced import Traces
from framestorm.stats.estimate import Estimate

SCHEMA_FILE = paths.ROOT / "docs" / "summary.schema.json"
VerdictWord = Literal["pass", "fail", "partial", "unjudged"]
# The serious warnings by kind, so that they can be counted over many runs.
Doubt = Literal[
    "overloaded",
    "saturated",
    "not_offered",
    "stopped",
    "slave_lost",
    "replica_lost",
    "replicas_short",
    "hosts_differ",
    "clock",
    "self_check",
    "drift",
    "element_failed",
    "unreplaced",
    "buffered",
]


CheckState = Literal["passed", "failed", "undecided"]


@dataclass(frozen=True)
class Verdict:
    """The result of the run: one word, run.sh's exit status, a sentence, and how many criteria did not pass."""

    word: VerdictWord
    exit_status: int
    text: str
    failed: int = 0
    unjudged: int = 0

    @property
    def title(self) -> str:
        """The word as people read it."""
        return {"pass": "Passed", "fail": "Failed", "partial": "Partial", "unjudged": "Not judged"}[self.word]

    @property
    def line(self) -> str:
        """The verdict as one line of a terminal."""
        return f"{self.title}: {self.text}."


@dataclass(frozen=True)
class Times:
    """Statistics of one series, of times in ms; `censored` of the `n` times are lower bounds, cut off by a timeout."""

    n: int
    censored: int
    mean: Estimate | None
    min: Estimate | None
    p50: Estimate | None
    p90: Estimate | None
    p95: Estimate | None
    p99: Estimate | None
    max: Estimate | None

    @property
    def are_whole(self) -> bool:
        """Whether they were taken in whole numbers, so that their mean is no more exact than that."""
        ranks = (self.min, self.p50, self.p90, self.p95, self.p99, self.max)
        return all(figure is not None and float(figure.value).is_integer() for figure in ranks)


@dataclass(frozen=True)
class LabelSummary:
    """All samples of one label; causes are errors by cause.

    rate_per_s: samples without error per second; completed_per_s: all samples per second, errors included.
    rate_low_per_s, rate_high_per_s: ends of the interval of rate_per_s by batch means; None where the rate drifts.
    received_bytes_per_s, sent_bytes_per_s: over the same time; None where JMeter did not count them.
    further_causes: errors whose causes are too many to be shown one by one, by the first word of their causes.

    times: by the name of a series: rtt (response time), its warm and cold part, outside (of the handler), and every
        further figure in ms that samples carry.
    figures: every other figure that samples carry, by its name, which ends in its unit.
    success_low, success_high: ends of Wilson's interval.
    kind: samplers' samples count in `all`; those of a transaction are made of others, a sub-result is part of another.
    of_labels: how many labels it has together, as there are too many to show each.
    traces: samples to look up in a tracing system, None if none has a trace id.
    errors_in_bursts: the errors that the function may have answered only because the generator sent requests late, and
        then together.
    """

    label: str
    n: int
    ok: int
    failed: int
    timed_out: int
    causes: dict[str, int]
    success: float | None
    success_low: float | None
    success_high: float | None
    rate_per_s: float | None
    times: dict[str, Times]
    kind: SampleKind = "sampler"
    completed_per_s: float | None = None
    received_bytes_per_s: float | None = None
    sent_bytes_per_s: float | None = None
    further_causes: dict[str, int] = field(default_factory=dict)
    of_labels: int = 1
    figures: dict[str, Times] = field(default_factory=dict)
    rate_low_per_s: float | None = None
    rate_high_per_s: float | None = None
    traces: Traces | None = None
    errors_in_bursts: int = 0

    @property
    def checks(self) -> dict[str, int]:
        """The errors that assertions made; of a transaction, without those of its samples."""
        return {cause: n for cause, n in self.causes.items() if cause.startswith(FAILED_CHECK)}


@dataclass(frozen=True)
class Part:
    """A host's part of a property's total, which is split over the hosts."""

    part: float
    of: float


@dataclass(frozen=True)
class HostSummary:
    """What one host sent and what arrived; counts of users, sent, in_tree and in_samples are None if not known."""

    host: str
    share: dict[str, Part]
    clock_offset_ms: float | None
    lost_s: float | None
    users: int | None
    sent: int | None
    in_tree: int | None
    in_samples: int | None
    shown: int
    ok: int
    rate_per_s: float | None
    p50: Estimate | None
    p95: Estimate | None


@dataclass(frozen=True)
class LostHost:
    """A host that was lost: when (seconds since the start), its last known sample, its part of the load."""

    host: str
    address: str | None
    reason: str | None
    at_s: float
    last_sample_s: float | None
    share: dict[str, Part]


@dataclass(frozen=True)
class Machine:
    """CPU usage of one part of a host under load.

    busy_time: the share of the time with nearly all cores busy; only the part `host` has it, if its cores are known.
    """

    host: str
    part: str
    cores: float | None
    cores_mean: float
    cores_max: float
    rss_max_bytes: float
    load_max: float | None
    busy_time: float | None


@dataclass(frozen=True)
class Span:
    """When load was made, in epoch ms."""

    start_ms: float
    end_ms: float
    duration_ms: float


@dataclass(frozen=True)
class Stall:
    """A second in which the generator itself was held up, at_s after the start: for how long, and by Java's memory."""

    at_s: float
    longest_ms: float
    gc_ms: float


@dataclass(frozen=True)
class ElementErrors:
    """How often JMeter's log says that an element of the plan, or a function, failed; `message` is that of the first.

    consequence: what JMeter did instead, empty if that is not known.
    """

    element: str
    n: int
    message: str
    consequence: str


@dataclass(frozen=True)
class Unreplaced:
    """How many samples of a label were sent with a text that should have been replaced, such as ${user} or <EOF>."""

    label: str
    text: str
    n: int


@dataclass(frozen=True)
class Reached:
    """What was sent of the schedule of a thread group or timer, so named and of this kind.

    asked: arrivals that were due in span_s, from the first sample of the groups on; sent: samples that were started.
    is_kept: the two agree, and no second had many more than were due.
    limit: the most threads that may send at the same time, None without a limit; each_s: the mean time that the answers
        of one arrival took, failed_s that of those with an error; most_per_s: the highest rate of the schedule.
    last_s: when the last was sent. short_s: in how many seconds too few were, the last of them before short_until_s.
    burst: how many were sent in a second in which burst_due were due, 0 if none had many more.
    failed: samples of the groups with an error. dropped: arrivals for which no thread was free.
    """

    name: str
    kind: str
    groups: tuple[str, ...]
    asked: float
    sent: int
    span_s: float
    is_kept: bool
    most_per_s: float = 0.0
    limit: int | None = None
    each_s: float = 0.0
    failed_s: float = 0.0
    last_s: float = 0.0
    short_s: int = 0
    short_until_s: int = 0
    burst: int = 0
    burst_due: float = 0.0
    failed: int = 0
    dropped: int = 0


@dataclass(frozen=True)
class SelfCheck:
    """What JMeter counted by itself, apart from the results of its samplers, and what the rows of these say.

    counted, rows: samples of samplers. in_progress: how many of them were in progress on average, by its own clock.
    of_rows: the same by Little's law, their rate times their mean response time. None if the times are not known.
    span_ms: for how long JMeter counted, the mean over its hosts.
    """

    counted: int
    rows: int
    in_progress: float | None = None
    of_rows: float | None = None
    span_ms: float | None = None

    @property
    def residual(self) -> float | None:
        """What the rows lack of what was in progress, as a share of that; below 0 if they have more."""
        if self.in_progress is None or self.of_rows is None or not self.in_progress:
            return None
        return 1 - self.of_rows / self.in_progress

    @property
    def apart_ms(self) -> float | None:
        """By how much a sample took longer than its row says, on average."""
        if self.residual is None or self.in_progress is None or self.span_ms is None:
            return None
        return self.residual * self.in_progress * self.span_ms / self.counted


@dataclass(frozen=True)
class PathPart:
    """What a part of a platform's path adds to a no-op.

    route: the path to the no-op on which it is; without: the same path but for it, empty for the first part.
    n, failed: requests by the route; median_ms: of those that did not fail. adds: the difference of the two routes'
    medians, in ms, its mean over rounds. why: what went wrong first.
    """

    name: str
    route: str
    without: str
    n: int
    failed: int
    median_ms: float | None
    adds: Estimate | None
    why: str = ""


@dataclass(frozen=True)
class Calibration:
    """What the parts of a platform's path add, measured by a no-op before the load, in rounds of all routes."""

    rounds: int
    parts: list[PathPart]


@dataclass(frozen=True)
class SteadyState:
    """Since when response times are steady, in the part of the load that asks for most; seconds since the run's start.

    since_s: None if they never are.
    change: by what share they are longer before that than after it; if they never are steady, in the last third than in
        the first. n: the samples that were looked at; before: those of them that started before since_s.
    """

    from_s: float
    to_s: float
    since_s: float | None
    change: float
    n: int
    before: int

    @property
    def is_from_begin(self) -> bool:
        """Whether nothing has to be left out."""
        return self.since_s is not None and not self.before


@dataclass(frozen=True)
class Facts:
    """What the warnings are made of.

    videos: how many users sent each input, by how its SHA-256 begins.
    arrivals: how many requests were due by the schedule, None if there was no schedule.
    stopped_by: which thread or element of the plan stopped the test, None if it ran to its end.
    out_of_memory: what JMeter's logs say of memory or threads that it did not get.
    during_stalls: the samples in progress while the generator was held up.
    dropped: the arrivals that found no free thread, and were never sent.
    unreplaced: samples that were sent with a text in place of a value, the most frequent first.
    element_errors: failures of elements that JMeter only logs, the most frequent first.
    absent_columns: of JMeter's columns those that samples.jtl was saved without; assumed: what it does not say itself.
    cut_off: how many samples the end of a schedule cut off, which are neither successes nor failures.
    cut_transactions: how many of each label the end of their threads cut off; they are no samples.
    untimed: the samples whose times a script or plug-in set so that they cannot be true, or that never began.
    overload: whether the function kept up, None if the load comes by no schedule, or is too short to tell.
    requests_by_address: how many requests of JMeter each address of a name got, by name (host:port) and address.
    accepted: how many samples of each label got status 202, which says that the work is still to be done.
    self_check: what JMeter counted by itself, None if it does not say.
    steady: since when response times are steady, None if there is too little to tell.
    left_out: the main samples that figures leave out, because only the steady part is judged.
    """

    unverified: int
    from_killed_users: int
    arrivals: int | None
    stopped_by: str | None = None
    out_of_memory: str | None = None
    stalls: list[Stall] = field(default_factory=list)
    during_stalls: int = 0
    element_errors: list[ElementErrors] = field(default_factory=list)
    unreplaced: list[Unreplaced] = field(default_factory=list)
    absent_columns: list[str] = field(default_factory=list)
    dropped: int = 0
    videos: dict[str, int] = field(default_factory=dict)
    rates: Rates = field(default_factory=Rates)
    assumed: list[str] = field(default_factory=list)
    untimed: int = 0
    cut_transactions: dict[str, int] = field(default_factory=dict)
    requests_by_address: dict[str, dict[str, int]] = field(default_factory=dict)
    cut_off: int = 0
    overload: Overload | None = None
    accepted: dict[str, int] = field(default_factory=dict)
    self_check: SelfCheck | None = None
    steady: SteadyState | None = None
    left_out: int = 0


@dataclass(frozen=True)
class ComparedFigure:
    """A figure of a run beside that of its baseline, in words; claim: whether it differs."""

    title: str
    baseline: str
    candidate: str
    change: str
    interval: str
    claim: str


@dataclass(frozen=True)
class BaselineCheck:
    """One check of a run against its baseline, by its threshold, such as `p95 10 %`; text: why, in words."""

    name: str
    state: CheckState
    text: str


@dataclass(frozen=True)
class Against:
    """A run compared with its baseline.

    asked: which it was to be: last, best, main or a run; baseline: its name, None if there is none to compare with.
    text: the result as a sentence without a full stop. page: the path of the comparison's page.
    """

    asked: str
    baseline: str | None
    text: str
    figures: list[ComparedFigure] = field(default_factory=list)
    checks: list[BaselineCheck] = field(default_factory=list)
    page: str | None = None


@dataclass(frozen=True)
class RunFile:
    """A file in the run's folder and what it contains."""

    path: str
    what: str


@dataclass(frozen=True)
class Summary:
    """The content of summary.json.

    label: the label of the plan's main samples, `all` where these are of all samplers; labels: users, those, and then
        each further label; of more labels than can be shown, the rest together by kind.
    has_default_criteria: criteria were given neither for the run nor for this report.
    missing: what the run lost, each a reason why its verdict is partial.
    reached: what was sent of each schedule of the plan.
    against: how it compares with its baseline, None if it has none.
    goodput: of the main samples, None if the plan has no objectives for each of them.
    calibration: what the platform's path adds, None if it was not measured.
    warnings: sentences on why figures cannot be trusted, the most serious first; doubts: the serious ones by kind.
    notes: sentences on what the figures are of, which are no reason to doubt them.
    """

    name: str
    label: str
    verdict: Verdict
    criteria: list[Judgement]
    missing: list[str]
    warnings: list[str]
    doubts: list[Doubt]
    run: Record
    load: Span | None
    labels: dict[str, LabelSummary]
    hosts: list[HostSummary]
    losses: list[LostHost]
    machines: list[Machine]
    functions: list[FunctionSummary]
    facts: Facts
    files: list[RunFile]
    series: Series
    reached: list[Reached] = field(default_factory=list)
    goodput: Goodput | None = None
    calibration: Calibration | None = None
    against: Against | None = None
    has_default_criteria: bool = False
    notes: list[str] = field(default_factory=list)
    format: int = field(default=FORMAT, kw_only=True)

    @property
    def unit(self) -> str:
        """What one of the main samples is called."""
        return noun(self.label)

    @property
    def load_start_s(self) -> float:
        """When the load began, in seconds since the run's start, which series and facts count from.

        People read times since the start of the load: JMeter takes seconds until it sends anything.
        """
        if self.load is None or self.run.started_ms is None:
            return 0.0
        return (self.load.start_ms - self.run.started_ms) / 1000

    @property
    def judged_from_ms(self) -> float:
        """When the part of the run begins that figures are of, in epoch ms: the steady part, or all of it."""
        if not self.run.judges_steady:
            return -math.inf
        steady = self.facts.steady
        if steady is None or steady.since_s is None:
            return math.inf
        return (self.run.started_ms or (self.load.start_ms if self.load else 0.0)) + 1000 * steady.since_s

    @property
    def main(self) -> LabelSummary:
        """The plan's main samples."""
        return self.labels[self.label]

    @property
    def is_at_rate(self) -> bool:
        """Whether samples started at the rate of a schedule, of which it is known that no arrival was dropped."""
        return self.run.is_open_model and self.facts.arrivals is not None and not self.facts.dropped

    @property
    def users(self) -> LabelSummary | None:
        """The virtual users, where each is a process."""
        each = self.labels.get(USER)
        return each if each is not None and USER_SERIES[0] in each.times else None


def schema_text() -> str:
    """Return the content of docs/summary.schema.json."""
    return json.dumps(schema(Summary), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    write_text(SCHEMA_FILE, schema_text())
