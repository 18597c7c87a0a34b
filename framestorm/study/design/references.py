"""What the format of study.yml cannot say: names of factors, levels and metrics that exist, points that can be run."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from framestorm.model.metric import BY_NAME, METRICS, RESULT_COLUMNS
from framestorm.model.study import TARGET_PREFIX, Against, Chart, Claim, Study, Value, Where
from framestorm.platform import registry
from framestorm.study.design import expressions, folder, matrix
from framestorm.study.design.complaints import shown_place
from framestorm.study.design.expressions import ExpressionError
from framestorm.study.design.yaml_lines import PointError, Problems, YamlPath

Levels = Mapping[str, Sequence[Value]]


def check(study: Study, levels: Levels, problems: Problems) -> None:
    """Note what is wrong with a study that has the right format.

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
        self.metrics = [*METRICS, *study.derived]

    def all(self) -> None:
        self._factors()
        self._blocks()
        self._metrics()
        self._stop()
        self._derived()
        for number, hypothesis in enumerate(self.study.hypotheses):
            for index, claim in enumerate(hypothesis.claims):
                self._claim(claim, ("hypotheses", number, "claims", index))
        for number, chart in enumerate(self.study.charts):
            self._chart(chart, ("charts", number))
        self._published()
        if not self.problems:
            self._points()

    def _factors(self) -> None:
        for name, factor in self.study.factors.items():
            place: YamlPath = ("factors", name)
            self._is_no_column("factor", name, place)
            if factor.is_named:
                continue
            texts: dict[str, Value] = {}
            for number, value in enumerate(factor.values):
                text = matrix.as_text(value)
                if text in texts:
                    both = f"{json.dumps(texts[text])} and {json.dumps(value)}"
                    self.problems.add((*place, number), f"{both} are the same level of {name}; leave one out")
                texts.setdefault(text, value)
                if isinstance(value, bool) and not registry.is_flag(name.removeprefix(TARGET_PREFIX)):
                    what = f"{text} is not a level of {name}; quote it if the text is meant"
                    self.problems.add((*place, number), what)
            if name in self.study.properties:
                what = f"{name} is a factor, and a fixed property too; take it out of one of them"
                self.problems.add(("properties", name), what)

    def _blocks(self) -> None:
        for number, block in enumerate(self.study.blocks or ()):
            self._where(dict(block), ("blocks", number))

    def _metrics(self) -> None:
        for number, name in enumerate(self.study.metrics):
            self._metric(name, ("metrics", number))
        for name in self.study.derived:
            if name in BY_NAME or name in self.study.factors:
                what = f"derived metric {name!r} has the name of a metric or of a factor; choose another"
                self.problems.add(("derived", name), what)
            self._is_no_column("derived metric", name, ("derived", name))

    def _stop(self) -> None:
        stop = self.study.stop
        if stop is None:
            return
        if stop.metric not in BY_NAME:
            what = f"unknown metric {stop.metric!r} in stop.metric"
            self.problems.add(("stop", "metric"), what, METRICS, stop.metric)
        if self.study.repetitions < 2:
            what = "repetitions is 1: stop needs the variation between runs, so at least 2"
            self.problems.add(("repetitions",), what)
        if stop.at_most < self.study.repetitions:
            what = f"stop.at_most is {stop.at_most}, below the study's {self.study.repetitions} repetitions"
            self.problems.add(("stop", "at_most"), what)

    def _derived(self) -> None:
        before: list[str] = []
        for name, metric in self.study.derived.items():
            place = ("derived", name)
            names = [*METRICS, *before]
            if isinstance(metric, Against):
                self._one_of(names, metric.metric, "metric", (*place, "metric"))
                self._where(dict(metric.against), (*place, "against"))
            else:
                self._expression(metric, [*names, *self._numbers()], place)
            before.append(name)

    def _numbers(self) -> list[str]:
        """Names of properties and of factors with numbers."""
        names = {name for name, factor in self.study.factors.items() if _are_numbers(factor.values, any)}
        names |= set(self.study.properties)
        for name, factor in self.study.factors.items():
            names |= {property_ for value in factor.values for property_ in factor.level(name, value).properties}
        return sorted(names)

    def _claim(self, claim: Claim, place: YamlPath) -> None:
        self._metric(claim.metric, (*place, "metric"))
        self._where(claim.where, (*place, "where"))
        self._where(dict(claim.compare or {}), (*place, "compare"))
        over = {("trend",): claim.trend, ("knee", "over"): claim.knee.over if claim.knee else None}
        for key, name in over.items():
            where = (*place, *key)
            if name is not None and self._factor(name, where) and not _are_numbers(self.levels[name], all):
                self.problems.add(where, f"{shown_place(where)} is {name}, whose levels are not numbers")
        if claim.trend and claim.knee:
            self.problems.add(place, f"{shown_place(place)} has a trend and a knee; make two claims of it")
        if "as_" in claim.model_fields_set and not claim.compare:
            where = (*place, "as")
            self.problems.add(where, f"{shown_place(where)} without compare: say what is compared")

    def _chart(self, chart: Chart, place: YamlPath) -> None:
        for key, name in (("x", chart.x), ("lines", chart.lines), ("panels", chart.panels), ("rows", chart.rows)):
            if name is not None:
                self._factor(name, (*place, key))
        self._where(chart.where, (*place, "where"))
        if chart.metric:
            self._metric(chart.metric, (*place, "metric"))
        for number, name in enumerate(chart.metrics or ()):
            self._metric(name, (*place, "metrics", number))
        needed, axis = ("rows", chart.rows) if chart.kind == "per-frame" else ("x", chart.x)
        if axis is None:
            self.problems.add(place, f"{needed} is missing in {shown_place(place)}, a chart of kind {chart.kind}")
        if chart.kind != "per-frame" and bool(chart.metric) == bool(chart.metrics):
            self.problems.add(place, f"{shown_place(place)} needs either metric or metrics")
        if chart.lines and len(chart.metrics or ()) > 1:
            what = f"{shown_place(place)} has a line for each metric; it cannot have lines too"
            self.problems.add((*place, "lines"), what)

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
            self.problems.add_error(error)

    def _where(self, where: Where, place: YamlPath) -> None:
        """Check factors with one or several of their levels."""
        for name, wanted in where.items():
            if self._factor(name, (*place, name)):
                for index, value in enumerate(wanted if isinstance(wanted, tuple) else (wanted,)):
                    self._level(name, value, (*place, name, index) if isinstance(wanted, tuple) else (*place, name))

    def _metric(self, name: str, place: YamlPath) -> None:
        self._one_of(self.metrics, name, "metric", place)

    def _factor(self, name: str, place: YamlPath) -> bool:
        return self._one_of(list(self.study.factors), name, "factor", place)

    def _level(self, factor: str, value: Value, place: YamlPath) -> None:
        levels = self.levels[factor]
        if value not in [level for level in levels if isinstance(level, bool) == isinstance(value, bool)]:
            what = f"unknown level {matrix.as_text(value)!r} of {factor} in {shown_place(place)}"
            self.problems.add(place, *unknown_level(what, value, levels))

    def _is_no_column(self, kind: str, name: str, place: YamlPath) -> None:
        if name in RESULT_COLUMNS:
            self.problems.add(place, f"{kind} {name!r} has the name of a column of results.csv; choose another")

    def _one_of(self, names: Sequence[str], name: str, kind: str, place: YamlPath) -> bool:
        if name not in names:
            # The place without the name itself: where[users] says no more than where does.
            inside = place[:-1] if place and place[-1] == name else place
            self.problems.add(place, f"unknown {kind} {name!r} in {shown_place(inside)}", names, name)
        return name in names

    def _expression(self, text: str, allowed: Sequence[str], place: YamlPath) -> None:
        try:
            parsed = expressions.parse(text)
        except ExpressionError as error:
            self.problems.add(place, str(error))
            return
        for name in sorted(parsed.names - set(allowed)):
            self.problems.add(place, f"unknown name {name!r} in {shown_place(place)}: {text}", allowed, name)


def unknown_level(what: str, value: Value, levels: Sequence[Value]) -> tuple[str, list[str], Value | None]:
    """The problem, the allowed levels, and the value to propose one for: none if it differs in its quotes alone."""
    allowed = [matrix.as_text(level) for level in levels]
    if matrix.as_text(value) not in allowed:
        return what, allowed, value
    return f"{what}; write it as {json.dumps(levels[allowed.index(matrix.as_text(value))])}", allowed, None


def _are_numbers(values: Iterable[Value], how_many: Callable[[Iterable[bool]], bool]) -> bool:
    return how_many(matrix.as_number(value) is not None for value in values)
