"""What a schema cannot say of a study.yml: names to be known, levels to be there, points that can be run."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from framestorm.study.design import expectation, expressions, folder, matrix, metrics
from framestorm.study.design.definition import Study, Value
from framestorm.study.design.expressions import ExpressionError
from framestorm.study.design.lines import YAML_TRAP, Place, PointError, Problems
from framestorm.study.design.schema import said

Levels = Mapping[str, Sequence[Value]]


def check(study: Study, levels: Levels, problems: Problems) -> None:
    """Note what is wrong with a study that its schema accepts.

    Args:
        study: the study as it would run.
        levels: of each factor the levels that claims and charts may name.
        problems: where to note it.
    """
    _Checks(study, levels, problems).all()


class _Checks:
    def __init__(self, study: Study, levels: Levels, problems: Problems) -> None:
        self.study = study
        self.levels = levels
        self.problems = problems
        self.metrics = [*metrics.METRICS, *study.derived]

    def all(self) -> None:
        self._factors()
        self._blocks()
        self._metrics()
        self._derived()
        for number, hypothesis in enumerate(self.study.hypotheses):
            for index, claim in enumerate(hypothesis["claims"]):
                self._claim(claim, ("hypotheses", number, "claims", index))
        for number, chart in enumerate(self.study.charts):
            self._chart(chart, ("charts", number))
        self._published()
        if not self.problems:
            self._points()

    def _factors(self) -> None:
        for name, factor in self.study.factors.items():
            self._no_column("factor", name, ("factors", name))
            if factor.named:
                continue
            seen: dict[str, Value] = {}
            for number, value in enumerate(factor.values):
                other = seen.setdefault(matrix.as_text(value), value)
                if other is not value:
                    what = f"{json.dumps(other)} and {json.dumps(value)} are the same level of {name}; leave one out"
                    self.problems.add(("factors", name, number), what)
                if isinstance(value, bool) and name != "target.autoscale":
                    what = f"{value} is no level of {name}: {YAML_TRAP}; quote it"
                    self.problems.add(("factors", name, number), what)
            if name in self.study.properties:
                what = f"{name} is a factor, and a fixed property too; take it out of one of them"
                self.problems.add(("properties", name), what)

    def _blocks(self) -> None:
        for number, block in enumerate(self.study.blocks):
            for name, values in block.items():
                place = ("blocks", number, name)
                if self._factor(name, place):
                    for index, value in enumerate(values):
                        self._level(name, value, (*place, index))

    def _metrics(self) -> None:
        for number, name in enumerate(self.study.metrics):
            self._metric(name, ("metrics", number))
        for name in self.study.derived:
            if name in metrics.BY_NAME or name in self.study.factors:
                what = f"derived metric {name!r} has the name of a metric or of a factor; choose another"
                self.problems.add(("derived", name), what)
            self._no_column("derived metric", name, ("derived", name))
        stop = self.study.stop
        if stop is None:
            return
        if stop.metric not in metrics.BY_NAME:
            what = f"unknown metric {stop.metric!r} in stop.metric"
            self.problems.add(("stop", "metric"), what, metrics.METRICS, stop.metric)
        if self.study.repetitions < 2:
            what = "repetitions is 1: stop goes by how far runs vary, which takes 2 of them at least"
            self.problems.add(("repetitions",), what)
        if stop.at_most < self.study.repetitions:
            what = f"stop.at_most is {stop.at_most}, below the study's {self.study.repetitions} repetitions"
            self.problems.add(("stop", "at_most"), what)

    def _no_column(self, kind: str, name: str, place: Place) -> None:
        if name in metrics.OF_A_ROW:
            self.problems.add(place, f"{kind} {name!r} has the name of a column of results.csv; choose another")

    def _derived(self) -> None:
        before: list[str] = []
        for name, how in self.study.derived.items():
            place = ("derived", name)
            known = [*metrics.METRICS, *before]
            if isinstance(how, str):
                self._expression(how, [*known, *self._numbers()], place)
            else:
                self._one_of(known, how["metric"], "metric", (*place, "metric"))
                for factor, value in how["against"].items():
                    if self._factor(factor, (*place, "against", factor)):
                        self._level(factor, value, (*place, "against", factor))
            before.append(name)

    def _numbers(self) -> list[str]:
        """Names of properties and of factors with numbers."""
        names = {name for name, factor in self.study.factors.items() if _has_number(factor.values)}
        names |= set(self.study.properties)
        for factor in self.study.factors.values():
            names |= {name for level in factor.levels for name in level.properties}
        return sorted(names)

    def _claim(self, claim: Mapping[str, Any], place: Place) -> None:
        self._metric(claim["metric"], (*place, "metric"))
        self._where(claim.get("where", {}), (*place, "where"))
        for name, pair in claim.get("compare", {}).items():
            where = (*place, "compare", name)
            if self._factor(name, where):
                for index, value in enumerate(pair):
                    self._level(name, value, (*where, index))
        for key, name in (("trend", claim.get("trend")), ("knee", claim.get("knee", {}).get("over"))):
            where = (*place, key, "over") if key == "knee" else (*place, key)
            if name is not None and self._factor(name, where) and not _has_number(self.levels[name], all):
                self.problems.add(where, f"{said(where)} is {name}, whose levels are no numbers")
        if "trend" in claim and "knee" in claim:
            self.problems.add(place, f"{said(place)} has a trend and a knee; make two claims of it")
        try:
            expectation.parse(claim["expect"])
        except ValueError:
            what = f"{said((*place, 'expect'))} is {claim['expect']!r}, in which no number can be read"
            self.problems.add((*place, "expect"), what)
        if "as" in claim and "compare" not in claim:
            self.problems.add((*place, "as"), f"{said((*place, 'as'))} without compare: say what is compared")

    def _chart(self, chart: Mapping[str, Any], place: Place) -> None:
        kind = chart.get("kind", "lines")
        for key in ("x", "lines", "panels", "rows"):
            if key in chart:
                self._factor(chart[key], (*place, key))
        self._where(chart.get("where", {}), (*place, "where"))
        if "metric" in chart:
            self._metric(chart["metric"], (*place, "metric"))
        for number, name in enumerate(chart.get("metrics", ())):
            self._metric(name, (*place, "metrics", number))
        wanted = ("rows",) if kind == "per-frame" else ("x",)
        for key in wanted:
            if key not in chart:
                self.problems.add(place, f"{key} is missing in {said(place)}, a chart of kind {kind}")
        if kind != "per-frame" and ("metric" in chart) == ("metrics" in chart):
            self.problems.add(place, f"{said(place)} needs metric or metrics, one of them")
        if "lines" in chart and len(chart.get("metrics", ())) > 1:
            self.problems.add((*place, "lines"), f"{said(place)} has a line for each metric; it cannot have lines too")

    def _published(self) -> None:
        name = self.study.published
        if self.study.published_from and not name:
            self.problems.add(("published_from",), "published_from without published: name the CSV with the results")
        if name and Path(name).name != name:
            self.problems.add(("published",), f"published is {name!r}, but has to be a file beside study.yml")
        if name in folder.OWN_FILES:
            self.problems.add(("published",), f"published is {name!r}, a file of the study's folder itself; rename it")

    def _points(self) -> None:
        try:
            points = matrix.points(self.study)
            if not points:
                self.problems.add(("blocks",), "no point is left: the blocks name no level that the factors have")
            for point in points:
                matrix.estimate_s(self.study, point)
        except PointError as error:
            self.problems.add(error.place, error.what, error.allowed, error.seen)

    def _where(self, where: Mapping[str, Any], place: Place) -> None:
        for name, wanted in where.items():
            if self._factor(name, (*place, name)):
                for index, value in enumerate(wanted if isinstance(wanted, list) else [wanted]):
                    self._level(name, value, (*place, name, index) if isinstance(wanted, list) else (*place, name))

    def _metric(self, name: str, place: Place) -> None:
        self._one_of(self.metrics, name, "metric", place)

    def _factor(self, name: str, place: Place) -> bool:
        return self._one_of(list(self.study.factors), name, "factor", place)

    def _level(self, factor: str, value: Value, place: Place) -> None:
        known = [level for level in self.levels[factor] if isinstance(level, bool) == isinstance(value, bool)]
        if value not in known:
            trap = f" ({YAML_TRAP})" if isinstance(value, bool) else ""
            what = f"unknown level {matrix.as_text(value)!r}{trap} of {factor} in {said(place)}"
            self.problems.add(place, *unknown_level(what, value, self.levels[factor]))

    def _one_of(self, known: Sequence[str], name: str, kind: str, place: Place) -> bool:
        if name not in known:
            # The place without the name itself: where[users] says no more than where does.
            inside = place[:-1] if place and place[-1] == name else place
            self.problems.add(place, f"unknown {kind} {name!r} in {said(inside)}", known, name)
        return name in known

    def _expression(self, text: str, known: Iterable[str], place: Place) -> None:
        try:
            parsed = expressions.parse(text)
        except ExpressionError as error:
            self.problems.add(place, str(error))
            return
        allowed = list(known)
        for name in sorted(parsed.names - set(allowed)):
            self.problems.add(place, f"unknown name {name!r} in {said(place)}: {text}", allowed, name)


def unknown_level(what: str, value: Value, levels: Sequence[Value]) -> tuple[str, list[str], Value | None]:
    """What to note of a level that there is not: one that differs in its quotes alone is not seen by its text."""
    allowed = [matrix.as_text(level) for level in levels]
    if matrix.as_text(value) not in allowed:
        return what, allowed, value
    return f"{what}; write it as {json.dumps(levels[allowed.index(matrix.as_text(value))])}", allowed, None


def _has_number(values: Iterable[Value], how: Any = any) -> bool:
    return bool(how(matrix.as_number(value) is not None for value in values))
