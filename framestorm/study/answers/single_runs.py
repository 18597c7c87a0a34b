"""Figures of single runs resampled: what a claim rests on where there is one repetition only.

Figures of one run are drawn alike, so that their ratio is theirs, and those of different runs by chance.
"""

import math

import numpy as np

from framestorm.model.study import Against
from framestorm.stats.bootstrap import choose_block, draw
from framestorm.stats.checks import Floats
from framestorm.study.answers.rows import AGAINST, ResultRow, inputs, names_of, others
from framestorm.study.answers.study_results import StudyResults, sample_statistic
from framestorm.study.design.expressions import ExpressionError, parse

SUCCESS = "success"


def resample(study: StudyResults, row: ResultRow, metric: str) -> Floats | None:
    """`metric` of resamples of one run's samples; None where its samples do not give it (a rate, a user's time).

    -inf, inf or NaN where it is not known, see `framestorm.stats.bootstrap.Resamples`.
    """
    needed = [values for name in inputs(study.derived, metric) if (values := _values(study, row, name)) is not None]
    # Blocks long enough for one are for all.
    block = max((choose_block(values) for values in needed), default=1)
    return _resample(study, row, metric, block)


def _resample(study: StudyResults, row: ResultRow, metric: str, block: int) -> Floats | None:
    definition = study.derived.get(metric)
    if isinstance(definition, str):
        return _calculated(study, row, definition, block)
    if definition is not None:
        return _against(study, row, definition)
    values, statistic = _values(study, row, metric), sample_statistic(study, metric)
    if values is None:
        return None
    name = statistic[1] if statistic else "mean"
    resamples = draw(values, name, block=min(block, values.size), seed=[*row.line.run.encode()]).least
    return np.clip(resamples, 0, 1) if metric == SUCCESS else resamples


def _values(study: StudyResults, row: ResultRow, metric: str) -> Floats | None:
    """What the metric is a statistic of, in order of start."""
    if metric == SUCCESS:
        right = study.samples(row).kept["ok"].to_numpy().astype(np.float64)
        # One more of each: where all went right or wrong, as often, resamples of those alone would be sure of it
        # (Agresti and Caffo, Simple and Effective Confidence Intervals for Proportions, The American Statistician 54,
        # 2000).
        return np.append(right, [1.0, 0.0]) if right.size else None
    statistic = sample_statistic(study, metric)
    values = study.samples(row).times(statistic[0]).values_ms if statistic else np.empty(0)
    return values if values.size else None


def _calculated(study: StudyResults, row: ResultRow, text: str, block: int) -> Floats | None:
    expression, names = parse(text), names_of(row)
    resampled = {name: of for name in expression.names if (of := _resample(study, row, name, block)) is not None}
    if not resampled:
        return None

    def value(of: tuple[float, ...]) -> float:
        # What is done to it decides whether more is less: of what is not known nothing is known after that.
        if not all(map(math.isfinite, of)):
            return math.nan
        try:
            return expression.value(names | dict(zip(resampled, of, strict=True)))
        except ExpressionError:
            return math.nan

    return np.array([value(of) for of in zip(*(part.tolist() for part in resampled.values()), strict=True)])


def _against(study: StudyResults, row: ResultRow, definition: Against) -> Floats | None:
    own = resample(study, row, definition.metric)
    of_others = [resample(study, other, definition.metric) for other in others(row, study.complete, definition.against)]
    resampled = [resamples for resamples in of_others if resamples is not None]
    if own is None or not resampled:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        other = np.mean(resampled, axis=0)
        is_known = np.isfinite(own) & np.isfinite(other) & (other != 0)
        return np.where(is_known, AGAINST[definition.as_](own, other), np.nan)
