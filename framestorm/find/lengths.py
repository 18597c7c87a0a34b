"""How long the probes of a search are."""

import math
from collections.abc import Mapping

from framestorm.errors import UsageError
from framestorm.find.objectives import needed_samples
from framestorm.model.plan import Plan
from framestorm.model.search import LoadRange
from framestorm.model.units import as_number

LONGEST_S = 600.0


class ProbeLengths:
    """How long probes are: until each objective has the samples that it needs; None: as the plan says.

    least_s: of each; given: the properties that the command line sets.

    Raises:
        UsageError: the samples of a probe take too long.
    """

    def __init__(
        self, plan: Plan, over: LoadRange, objectives: list[str], least_s: float, given: Mapping[str, str]
    ) -> None:
        self._is_set = "hold_s" in plan.settable and "hold_s" not in (*given, over.name)
        self._least_s = least_s
        # Of a load that stays.
        of_plan = as_number({**plan.defaults, **given}.get("rate_per_s")) if over.is_of_target else None
        self._per_s = float(of_plan) if of_plan else None
        self._samples = needed_samples(objectives) if over.name.endswith("_per_s") or self._per_s else 0
        longest_s = self.at(over.low)
        if longest_s is not None and longest_s > LONGEST_S:
            more = "give a rate_per_s of" if self._per_s else "begin the range at"
            raise UsageError(
                f"the objectives need {self._samples:,} samples, which take {longest_s:,.0f} s at "
                f"{self._per_s or over.low:g}/s, and a probe has at most {LONGEST_S:g} s: {more} "
                f"{self._samples / LONGEST_S:.3g} or above, or give a lower percentile"
            )

    def at(self, load: float, times: float = 1.0) -> float | None:
        if not self._is_set:
            return None
        return float(math.ceil(max(times * self._least_s, self._samples / (self._per_s or load))))
