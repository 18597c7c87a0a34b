"""Reads a study.yml: checks its format and all that can be checked without runs, and finds later changes in it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model.metric import METRICS, RESULT_COLUMNS, USER, is_of_run, metric, split_label
from framestorm.model.study import (
    DEFINITION,
    ChartDefinition,
    Claim,
    DerivedMetric,
    Quick,
    RepetitionRule,
    Study,
    Value,
    catalogue_name,
    matches,
)
from framestorm.model.units import as_number, as_text, listed
from framestorm.points import expressions
from framestorm.points import folder as folders
from framestorm.points.expressions import ExpressionError
from framestorm.points.run_figures import OF_USERS
from framestorm.study.design import matrix, yaml_lines
from framestorm.study.design.yaml_lines import PointError, Problems, YamlPath, shown_place, validated

FactorLevels = Mapping[str, Sequence[Value]]
# Keys that may change after the runs: how runs are judged and shown, not how they were made.
CHANGEABLE = (
    "title", "question", "metrics", "derived", "hypotheses", "charts", "published", "published_from",
)  # fmt: skip


def load(path: Path, quick: bool = False) -> Study:
    """Read and check a study.yml, or that of a folder; `quick` gives the study in its --quick form.

    The full and the quick form are both checked in any case.

    Raises:
        UsageError: something in it is wrong; the message has one line per problem: file:line: what; allowed: ….
    """
    file = path / DEFINITION if path.is_dir() else path
    content, problems = yaml_lines.read(file)
    if not isinstance(content, dict):
        what = "empty" if content is None else "something else"
        problems.add((), f"a study is a mapping; the file is {what}", Study.keys())
        problems.check()
    if "name" in content:
        problems.add(("name",), "a study is a mapping without name, which is that of its folder", Study.keys())
        problems.check()
    whole = validated(Study, {**content, "name": file.resolve().parent.name}, problems)
    full = whole.model_copy(update={"quick": None})
    levels = {name: list(factor.values) for name, factor in full.factors.items()}
    checks = _Checks(full, levels, problems)
    checks.all()
    small = None
    if whole.quick is not None:
        small = _quick(checks, whole.quick)
        # Claims and charts of the full study stay: if --quick leaves out their levels, they are undecided.
        for name, factor in small.factors.items():
            levels[name] += [value for value in factor.values if value not in levels[name]]
        if not problems:
            _Checks(small, levels, problems).all()
    problems.check()
    if not quick:
        return full
    if small is None:
        raise UsageError(f"{file} has no part `quick`, so there is no --quick of it; run it without")
    return small


def record_now(folder: folders.StudyFolder) -> folders.StudyRecord:
    """The record of a study with the present study.yml of its folder; `rejudged` names the keys that have changed.

    Raises:
        UsageError: that file is wrong, or changes how runs are made; or published results cannot be read.
    """
    record, file = folder.record, folder.path / DEFINITION
    if file.exists() and folders.file_sha256(file) != record.file_sha256:
        changed = differing(file, record)
        if made := [key for key in changed if key not in CHANGEABLE]:
            raise UsageError(
                f"{paths.shown(file)}: the existing runs were made before changes in {', '.join(made)}. Undo them "
                f"({paths.shown(folder.path)}/study.json has it); {', '.join(CHANGEABLE)} may be changed"
            )
        record = replace(record, definition=record.definition.model_copy(update=changed), rejudged=tuple(changed))
    name = record.definition.published
    if name and ((folder.path / name).exists() or "published" in record.rejudged):
        check_published(folder.path / name)
    return record


def differing(file: Path, record: folders.StudyRecord) -> dict[str, Any]:
    """The values of a study.yml that differ from the record, by key; overrides of the command line are applied first.

    Raises:
        UsageError: the file is wrong.
    """
    now = matrix.override(load(file, record.quick), record.overrides)
    keys = sorted(key for key in Study.model_fields if getattr(now, key) != getattr(record.definition, key))
    return {key: getattr(now, key) for key in keys if key != "name"}  # which is that of the folder


def check_published(file: Path) -> None:
    """Check that published results can be read.

    Raises:
        UsageError: the file is missing, or is not UTF-8.
    """
    try:
        file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"{paths.shown(file)} is missing") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{paths.shown(file)} cannot be read: {error}; save it as CSV in UTF-8") from None


def _quick(checks: "_Checks", quick: Quick) -> Study:
    """Return the study in its --quick form; the places of changed values are those in `quick`."""
    study, problems = checks.study, checks.problems
    factors = dict(study.factors)
    for name, factor in quick.factors.items():
        is_choice = name not in factors or (factors[name].is_named and not factor.is_named)
        checks.where({name: factor.values} if is_choice else {}, ("quick", "factors"))
        if name in factors:
            factors[name] = factors[name].keep(factor.values) if is_choice else factor
    changes = {name: getattr(quick, name) for name in quick.model_fields_set}
    changes["properties"] = {**study.properties, **quick.properties}
    changes["factors"] = factors
    if "stop" in changes:
        changes["stop"] = quick.stop if isinstance(quick.stop, RepetitionRule) else None
    # A block of the full study may name levels that --quick leaves out; a block of --quick may not.
    if study.blocks and quick.blocks is None and not problems:
        changes["blocks"] = tuple(
            {name: tuple(level for level in block[name] if level in factors[name].values) for name in block}
            for block in study.blocks
        )
    problems.lines |= {place[1:]: line for place, line in problems.lines.items() if place[:1] == ("quick",)}
    return study.model_copy(update=changes)


class _Checks:
    """Checks beyond the format of study.yml: that factors, levels and metrics exist, and that points can run.

    levels: for each factor, the levels that claims and charts may name.
    """

    def __init__(self, study: Study, levels: FactorLevels, problems: Problems) -> None:
        self.study = study
        self.levels = levels
        self.problems = problems
        self.metrics = [*METRICS, *study.derived]
        self.labels: dict[YamlPath, str] = {}

    def all(self) -> None:
        """Record every problem."""
        self._factors()
        for number, block in enumerate(self.study.blocks or ()):
            self.where(block, ("blocks", number))
        for number, name in enumerate(self.study.metrics):
            self._metric(name, self.metrics, ("metrics", number))
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
            self._is_free("factor", name, RESULT_COLUMNS, place)
            if factor.is_named:
                continue
            texts: dict[str, Value] = {}
            for number, value in enumerate(factor.values):
                text = as_text(value)
                if text in texts:
                    both = f"{json.dumps(texts[text])} and {json.dumps(value)}"
                    self.problems.add((*place, number), f"{both} are the same level of {name}; leave one out")
                texts.setdefault(text, value)
            if name in self.study.properties:
                what = f"{name} is a factor, and a fixed property too; take it out of one of them"
                self.problems.add(("properties", name), what)

    def _stop(self) -> None:
        stop = self.study.stop
        if stop is None:
            return
        self._metric(stop.metric, METRICS, ("stop", "metric"))
        if self.study.repetitions < 2:
            what = "repetitions is 1: the stop rule needs at least 2, for the variation between runs"
            self.problems.add(("repetitions",), what)
        if stop.at_most < self.study.repetitions:
            what = f"stop.at_most is {stop.at_most}, below the study's {self.study.repetitions} repetitions"
            self.problems.add(("stop", "at_most"), what)

    def _derived(self) -> None:
        names = list(METRICS)
        for name, definition in self.study.derived.items():
            place = ("derived", name)
            words = () if catalogue_name(name) == name else (name,)
            self._is_free("derived metric", name, (*RESULT_COLUMNS, *METRICS, *self.study.factors, *words), place)
            if isinstance(definition, DerivedMetric):
                self._metric(definition.metric, names, (*place, "metric"))
                self.where(definition.against, (*place, "against"))
            else:
                self._expression(definition, [*names, *self._numbers()], place)
            names.append(name)

    def _numbers(self) -> list[str]:
        """Return names of properties and of factors with numbers."""
        names = set(self.study.properties)
        for name, factor in self.study.factors.items():
            names |= {name} if any(as_number(value) is not None for value in factor.values) else set()
            names |= {property_ for value in factor.values for property_ in factor.level(name, value).properties}
        return sorted(names)

    def _claim(self, claim: Claim, place: YamlPath) -> None:
        self._metric(claim.metric, self.metrics, (*place, "metric"))
        self.where(claim.where, (*place, "where"))
        self.where(claim.compare or {}, (*place, "compare"))
        over = {("trend",): claim.trend, ("knee", "over"): claim.knee.over if claim.knee else None}
        for key, name in over.items():
            where = (*place, *key)
            if name is None or not self._factor(name, where):
                continue
            if any(as_number(level) is None for level in self.levels[name]):
                self.problems.add(where, f"{shown_place(where)} is {name}, whose levels are not numbers")
        if claim.pair and claim.pair[1] == claim.pair[2]:
            where = (*place, "compare")
            self.problems.add(where, f"{shown_place(where)} compares a level with itself")
        if claim.trend and claim.knee:
            self.problems.add(place, f"{shown_place(place)} has a trend and a knee; make two claims of it")
        if claim.pair and claim.trend == claim.pair[0]:
            where = (*place, "trend")
            self.problems.add(where, f"{shown_place(where)} is {claim.trend}, which is compared too; leave one out")
        if claim.knee and claim.compare:
            where = (*place, "compare")
            self.problems.add(where, f"{shown_place(where)} does not go with a knee; choose levels by where")
        if claim.knee and metric(claim.metric).is_time:
            where = (*place, "metric")
            self.problems.add(where, f"{shown_place(where)} is {claim.metric}, a time; the knee is of a rate")
        if "as_" in claim.model_fields_set and not claim.compare:
            where = (*place, "as")
            self.problems.add(where, f"{shown_place(where)} without compare: say what is compared")

    def _chart(self, chart: ChartDefinition, place: YamlPath) -> None:
        for key, name in (("x", chart.x), ("lines", chart.lines), ("panels", chart.panels), ("rows", chart.rows)):
            if name is not None:
                self._factor(name, (*place, key))
        self.where(chart.where, (*place, "where"))
        if chart.metric:
            self._metric(chart.metric, self.metrics, (*place, "metric"))
        for number, name in enumerate(chart.metrics or ()):
            self._metric(name, self.metrics, (*place, "metrics", number))
        needed, axis = ("rows", chart.rows) if chart.is_by_index else ("x", chart.x)
        if axis is None:
            self.problems.add(place, f"{needed} is missing in {shown_place(place)}, a chart of kind {chart.kind}")
        if not chart.is_by_index and bool(chart.metric) == bool(chart.metrics):
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
        if name in folders.OWN_FILES:
            self.problems.add(("published",), f"published is {name!r}, a file of the study's folder itself; rename it")

    def _points(self) -> None:
        try:
            points = matrix.points(self.study)
            if not points:
                self.problems.add(("blocks",), "no point is left: the blocks name no level that the factors have")
            for number, chart in enumerate(self.study.charts):
                self._places(chart, points, ("charts", number))
            of_plans = [matrix.read_plan(plan).known_labels for plan in {point.plan for point in points}]
            known = frozenset[str]().union(*of_plans)
            for place, label in self.labels.items() if all(of_plans) else ():
                if label not in known:
                    what = f"no sampler has the label {label!r} of {shown_place(place)}"
                    self.problems.add(place, what, sorted(known), label)
        except PointError as error:
            self.problems.add_error(error)

    def _places(self, chart: ChartDefinition, points: Sequence[folders.Point], place: YamlPath) -> None:
        """Check that no two points have the same place in a chart, which would draw only one of them."""
        if chart.is_by_index:
            return
        axes = [name for name in (chart.x, chart.lines, chart.panels) if name is not None]
        first: dict[tuple[str, ...], dict[str, str]] = {}
        apart: set[str] = set()
        for point in points:
            if matches(point.factors, chart.where):
                levels = {name: as_text(level) for name, level in point.factors.items()}
                there = first.setdefault(tuple(levels[name] for name in axes), levels)
                apart |= {name for name, level in levels.items() if level != there[name]}
        if apart:
            names = listed([name for name in self.study.factors if name in apart])
            what = f"{shown_place(place)} has several points at one place, which differ in {names}"
            self.problems.add(place, f"{what}: choose levels by where, or add lines or panels")

    def where(self, where: Mapping[str, Value | Sequence[Value]], place: YamlPath) -> None:
        """Check factors with one or several of their levels."""
        for name, wanted in where.items():
            if not self._factor(name, (*place, name)):
                continue
            texts = {as_text(level): level for level in self.levels[name]}
            for index, value in enumerate(wanted if isinstance(wanted, tuple) else (wanted,)):
                at = (*place, name, index) if isinstance(wanted, tuple) else (*place, name)
                text = as_text(value)
                what = f"unknown level {text!r} of {name} in {shown_place(at)}"
                if text not in texts:
                    self.problems.add(at, what, texts, text)
                elif value != texts[text]:
                    self.problems.add(at, f"{what}; write it as {json.dumps(texts[text])}", texts)

    def _metric(self, name: str, known: Sequence[str], place: YamlPath) -> None:
        if name in self.study.derived and name not in known:
            which = "of one run" if place[0] == "stop" else "of one run, or derived above it"
            self.problems.add(place, f"{shown_place(place)} is the derived metric {name!r}; it has to be {which}")
        elif (about := metric(name)).series == USER and about.statistic not in OF_USERS:
            what = f"users have {listed([*OF_USERS])}, and no {about.statistic}"
            self.problems.add(place, f"{shown_place(place)} is {name!r}: {what}")
        elif not is_of_run(name):
            self._one_of(known, name, "metric", place)
        elif (label := split_label(name)[0]) is not None:
            self.labels[place] = label

    def _factor(self, name: str, place: YamlPath) -> bool:
        return self._one_of(list(self.study.factors), name, "factor", place)

    def _is_free(self, kind: str, name: str, used: Sequence[str], place: YamlPath) -> None:
        if name in used:
            what = f"{kind} {name!r} has the name of a metric, of a factor or of a column of results.csv"
            self.problems.add(place, f"{what}; choose another")

    def _one_of(self, names: Sequence[str], name: str, kind: str, place: YamlPath) -> bool:
        if name not in names:
            # The place without the name: where[users] tells no more than where.
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
            if is_of_run(name) or name in self.study.derived:
                self._metric(name, allowed, place)
                continue
            self.problems.add(place, f"unknown name {name!r} in {shown_place(place)}: {text}", allowed, name)
