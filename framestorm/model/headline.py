"""The headline of a run: its few figures that outlive formats, one line a run in a history."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import NamedTuple, Self

from framestorm.model.summary import VerdictWord
from framestorm.stats.estimate import Estimate

# Metrics of the main samples (model/metric.py), in the order of a table.
FIGURES = ("success", "median_ms", "p95_ms", "p99_ms", "served_per_s")
NOT_KNOWN = "not known"


class LoadKey(NamedTuple):
    """What runs have in common that can be compared: a plan, its target, its load, and what else was set and read.

    plan: of JTLs their title, or else which files: others of the same name are of other services. settings: each as
    `name=value`.
    """

    plan: str
    target: str
    load: str
    settings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The plan as people see it."""
        return PurePath(self.plan).name or self.plan

    def without(self, names: Collection[str]) -> Self:
        """Return the key without the settings of these names."""
        return self._replace(settings=tuple(each for each in self.settings if each.partition("=")[0] not in names))


@dataclass(frozen=True)
class Headline:
    """One run in a line.

    run: the name of its folder, which is `folder`. label: of the main samples, n of them. started_ms: epoch time.
    figures: by metric, those that are known, each with its interval where the run has one.
    doubts: what its own page warns of, by kind, such as `saturated`.
    commit, branch: of the checkout that the run was started in. kit: the version of Framestorm.
    problem: why something of it is not known; empty if all is.
    """

    run: str
    folder: str
    key: LoadKey
    label: str | None = None
    title: str | None = None
    started_ms: float | None = None
    n: int | None = None
    figures: dict[str, Estimate] = field(default_factory=dict)
    verdict: VerdictWord | None = None
    doubts: tuple[str, ...] = ()
    commit: str | None = None
    branch: str | None = None
    kit: str | None = None
    problem: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether its figures are of a whole run, and not of what is left of one."""
        return self.verdict in ("pass", "fail")
