"""Rates of a load, and whether the function kept up with it, as summary.json has them."""

from dataclasses import dataclass
from typing import Literal

MOSTLY = 0.5
# How it shows that a function did not keep up.
Sign = Literal["backlog", "timed_out", "refused", "unsent", "queued"]


@dataclass(frozen=True)
class Rates:
    """Rates of the main samples over the span of the load, and how many of them were in flight at once at most.

    asked_per_s: the mean rate of the schedule, asked_most_per_s its highest; None if no schedule is known.
    sent_per_s: starts; answered_per_s: answers without an error, in a span of the same length that begins one median
        response time later; answered_low_per_s and answered_high_per_s the ends of its interval by batch means.
    """

    asked_per_s: float | None = None
    asked_most_per_s: float | None = None
    sent_per_s: float | None = None
    answered_per_s: float | None = None
    in_flight: int | None = None
    answered_low_per_s: float | None = None
    answered_high_per_s: float | None = None


@dataclass(frozen=True)
class Queue:
    """What a function accepted (status 202) and what it did of it, by the platform's metrics of the same time.

    grew: how many more accepted requests waited at the end than at the start.
    """

    accepted_per_s: float
    done_per_s: float
    grew: float


@dataclass(frozen=True)
class Overload:
    """Whether the function kept up with its load; without signs it did.

    signs: backlog: more and more requests were in flight, and response times grew; timed_out: most waited until they
        timed out; refused: the function answered 429 or 503; unsent: all threads waited for an answer, so arrivals were
        dropped, or (is_paced: users are paced by a timer) requests were late; queued: more was accepted than done.
    from_s, to_s: the part of the load that was judged, in seconds since the run's start; unless it says otherwise, a
        figure is of that.
    asked_per_s: by the schedule, or what was sent if that is not known; answered_per_s: without an error. Of the whole
        load if the schedule asks for the same all the time.
    in_flight: the most in the whole load; limit: the most that were possible, None if that is not known.
    grew, grew_at_least: how many more were in flight at the end of the last two thirds, and the lower end of the
        one-sided 95 % interval.
    before_ms, after_ms: mean response times in the first and in the second half, None if there are none.
    least_ms, typical_ms: the 5th percentile and the median.
    failed_share: of the time that was waited, the share in requests that failed; failed_ms: their mean.
    timed_out, refused: how many did, or were; unsent: how many requests, of arrivals those of the whole load.
    generator: why the load generator may be to blame, empty if it is not.
    queue: that of the function, if it grew; the only sign of a load without a schedule.
    name: of the one thread group or timer that it is about, where a plan has several schedules; empty for all of them.
    """

    signs: list[Sign]
    from_s: float
    to_s: float
    asked_per_s: float
    answered_per_s: float
    in_flight: int
    limit: int | None = None
    is_paced: bool = False
    grew: float = 0.0
    grew_at_least: float = 0.0
    before_ms: float | None = None
    after_ms: float | None = None
    least_ms: float | None = None
    typical_ms: float | None = None
    failed_share: float = 0.0
    failed_ms: float | None = None
    timed_out: int = 0
    refused: int = 0
    unsent: int = 0
    generator: str = ""
    queue: Queue | None = None
    name: str = ""

    @property
    def is_held_by_failures(self) -> bool:
        """Whether arrivals found no free thread mostly because others waited for requests that failed."""
        return self.signs == ["unsent"] and self.failed_share >= MOSTLY
