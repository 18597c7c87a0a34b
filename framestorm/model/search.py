"""find.json: a search for the highest load within its objectives, or the smallest setting, as its page shows it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from framestorm.model import units
from framestorm.model.aliases import ours
from framestorm.model.files import FORMAT
from framestorm.stats.estimate import Estimate

# searching: also if it was killed.
SearchState = Literal["searching", "stopped", "failed", "complete"]
# found: between `highest` and `first_fail`; at_least: the range ended, or the load generator was the bottleneck.
AnswerWord = Literal["found", "at_least", "below_range"]
# not_known: the load generator was the bottleneck.
SmallestWord = Literal["found", "above_range", "not_known"]
OF_TARGET = "target."  # settings of the function's platform, as in study.yml


@dataclass(frozen=True)
class LoadRange:
    """The values of a property between which a load is sought; resolution: how close the answer has to be, as a share.

    name: of a setting of the platform it begins with `target.`; the load then stays. is_whole: only whole numbers are
        tried.
    """

    name: str
    low: float
    high: float
    is_whole: bool = False
    resolution: float = 0.05

    @property
    def is_of_target(self) -> bool:
        """Whether it is a setting of the function's platform, of which the smallest is sought that is enough."""
        return self.name.startswith(OF_TARGET)

    @property
    def is_of_users(self) -> bool:
        """Whether it is a number of users who wait for their answers, by whatever word a plan has for them."""
        return ours(self.name, ("users",)) is not None

    def amount(self, load: float) -> str:
        """Return a load with its unit."""
        number = f"{load:.0f}" if load == round(load) else f"{load:g}"
        if self.name.endswith("_per_s"):
            return f"{number}/s"
        if self.name == "users":
            return units.plural(round(load), "user")
        if self.name == f"{OF_TARGET}replicas":
            return units.plural(round(load), "replica")
        return f"{self.name.removeprefix(OF_TARGET)}={number}"

    def at(self, load: float) -> str:
        """Return a load as a sentence names it: `at 40/s`, `with 4 users`."""
        return f"{'at' if self.name.endswith('_per_s') else 'with'} {self.amount(load)}"


@dataclass(frozen=True)
class Outcome:
    """One objective at one probe: what was measured in words and as a number, and whether it was met.

    is_sure: the whole 95 % confidence interval of the figure is on this side of the limit.
    margin: the logarithm of the figure against its limit, above 0 where it is missed; None if that says nothing.
    """

    objective: str
    is_met: bool
    measured: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    is_sure: bool = True
    margin: float | None = None


@dataclass(frozen=True)
class Probe:
    """One run of a search, in the folder `run`.

    asked_per_s, answered_per_s: None if they are not known; answered_low, answered_high: the ends of the 95 % interval
        of the latter, where it was asked for.
    generator: why the load generator did not make this load, empty if it did.
    """

    load: float
    run: str
    outcomes: list[Outcome]
    length_s: float | None = None
    asked_per_s: float | None = None
    answered_per_s: float | None = None
    in_flight: int | None = None
    generator: str = ""
    answered_low: float | None = None
    answered_high: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the load was made and every objective was met."""
        return not self.generator and all(each.is_met for each in self.outcomes)

    @property
    def is_silent(self) -> bool:
        """Whether every request failed, and the load generator was not the cause."""
        return self.answered_per_s == 0 and not self.generator

    @property
    def margin(self) -> float | None:
        """The margin of the objective that is nearest to being missed; None if one without a margin decided."""
        margin = max((each.margin for each in self.outcomes if each.margin is not None), default=None)
        if margin is None or self.generator:
            return None
        return margin if (margin <= 0 if self.passed else margin >= 0) else None

    @property
    def is_sure(self) -> bool:
        """Whether more samples would hardly change whether it passed."""
        if self.passed:
            return all(each.is_sure for each in self.outcomes)
        return bool(self.generator) or any(each.is_sure for each in self.outcomes if not each.is_met)


def has_recovered(probes: Sequence[Probe]) -> bool:
    """Return whether the function has answered after the first load at which it answered nothing; True without one."""
    first = next((number for number, each in enumerate(probes) if each.is_silent), None)
    return first is None or not all(each.is_silent for each in probes[first:])


@dataclass(frozen=True)
class Highest:
    """The answer of a search.

    highest: where the fitted figure crosses its limit; without a fit the highest load that passed, below the first that
        failed; None if the lowest of the range failed. interval: of that crossing, 95 %; None without a fit.
    low, high: the loads nearest to it, outside of its interval, that surely passed and surely failed; None where there
        is none.
    binding: the objective that the first failing load missed.
    is_cliff: whether its figure more than doubles, or falls to less than half, from `highest` to `first_fail`; with a
        fit, within the resolution of the range. Of a share of samples: whether more than twice as many miss it as it
        allows. None if the objective has no figure.
    why: why the answer is only a lower bound, empty if it is none.
    capacity: without objectives, the highest rate of answers; `highest` is then the number of users from which on it is
        reached, and `falls_to` the lower rate of the most users that were tried, None if it stays.
    """

    word: AnswerWord
    highest: float | None
    low: float | None
    high: float | None
    first_fail: float | None
    binding: str = ""
    is_cliff: bool | None = None
    why: str = ""
    interval: tuple[float, float] | None = None
    capacity: Estimate | None = None
    falls_to: float | None = None


@dataclass(frozen=True)
class Smallest:
    """The answer of a search over a setting of the platform.

    least: the smallest value with which every objective was met; None if the largest of the range was too small.
    last_fail: the largest below it that was too small; None if the range begins with `least`.
    binding: the objective that it missed. why: why the answer is not known.
    """

    word: SmallestWord
    least: float | None
    last_fail: float | None
    binding: str = ""
    why: str = ""


@dataclass(frozen=True)
class SearchRecord:
    """The content of find.json; answer: None as long as it goes on.

    at_least: what --at-least asks for; text: the answer in a sentence. target: the words of --target.
    reason: why it failed, empty if it did not. working_dir: where it began, which files of properties are relative to.
    """

    over: LoadRange
    objectives: list[str]
    plan: str
    command: tuple[str, ...]
    started_ms: float
    state: SearchState = "searching"
    probes: list[Probe] = field(default_factory=list)
    answer: Highest | Smallest | None = None
    at_least: float | None = None
    ended_ms: float | None = None
    text: str = ""
    target: tuple[str, ...] = ()
    reason: str = ""
    working_dir: str = ""
    format: int = field(default=FORMAT, kw_only=True)

    @property
    def is_ladder(self) -> bool:
        """Whether the capacity itself is sought, by users who wait for their answers."""
        return self.over.is_of_users and not self.objectives

    @property
    def up_to_death(self) -> list[Probe]:
        """The probes up to the one that the function did not survive: later ones say nothing of their own loads."""
        kept = list(self.probes)
        while len(kept) > 1 and kept[-1].is_silent and not kept[-2].passed:
            kept.pop()
        return kept
