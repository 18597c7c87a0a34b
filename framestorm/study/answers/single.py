"""Figures of single runs resampled: what a claim rests on where there is one repetition only.

Figures of one run are drawn alike, so that their ratio is theirs, and those of different runs by chance.
"""

import math
from typing import Any

import numpy as np

from framestorm.report.stats import Floats
from framestorm.statistics.bootstrap import draw
from framestorm.statistics.resampling import choose_block
from framestorm.study.answers.analysis import OF_SAMPLES, Row, Study
from framestorm.study.answers.derived import AGAINST, inputs, names_of, others
from framestorm.study.design.expressions import ExpressionError, is_expression, parse

SUCCESS = "success"
STATISTICS = OF_SAMPLES | {
    "sd_ms": ("rtt", "sd"), "handler_sd_ms": ("handler", "sd"), "model_sd_ms": ("model", "sd"),
}  # fmt: skip


def draws(study: Study, row: Row, metric: str) -> Floats | None:
    """`metric` of resamples of one run's samples; None where its samples do not give it (a rate, a user's time).

    -inf, inf or NaN where it is not known, see `framestorm.statistics.bootstrap.Draws`.
    """
    needed = [values for name in inputs(study.derived, metric) if (values := _values(study, row, name)) is not None]
    # Blocks long enough for one are for all.
    block = max((choose_block(values) for values in needed), default=1)
    return _draws(study, row, metric, block)


def _draws(study: Study, row: Row, metric: str, block: int) -> Floats | None:
    definition = study.derived.get(metric)
    if definition is not None:
        return (
            _calculated(study, row, definition, block)
            if is_expression(definition)
            else _against(study, row, definition)
        )
    values = _values(study, row, metric)
    if values is None:
        return None
    found = draw(values, _statistic(metric), block=min(block, values.size), seed=[*str(row["run"]).encode()]).values
    return np.clip(found, 0, 1) if metric == SUCCESS else found


def _statistic(metric: str) -> str:
    return "mean" if metric == SUCCESS else STATISTICS[metric][1]


def _values(study: Study, row: Row, metric: str) -> Floats | None:
    """What the metric is a statistic of, in order of start."""
    if metric == SUCCESS:
        right = study.samples(row).kept["ok"].to_numpy().astype(np.float64)
        # One more of each: where all went right or wrong, as often, resamples of those alone would be sure of it
        # (Agresti and Caffo, Simple and Effective Confidence Intervals for Proportions, The American Statistician 54,
        # 2000).
        return np.append(right, [1.0, 0.0]) if right.size else None
    values = study.samples(row).in_order(STATISTICS[metric][0]) if metric in STATISTICS else np.empty(0)
    return values if values.size else None


def _calculated(study: Study, row: Row, text: str, block: int) -> Floats | None:
    expression, names = parse(text), names_of(row)
    drawn = {name: found for name in expression.names if (found := _draws(study, row, name, block)) is not None}
    if not drawn:
        return None

    def value(of: tuple[float, ...]) -> float:
        # What is done to it decides whether more is less: of what is not known nothing is known after that.
        try:
            return (
                expression.value(names | dict(zip(drawn, of, strict=True))) if all(map(math.isfinite, of)) else np.nan
            )
        except ExpressionError:
            return np.nan

    return np.array([value(of) for of in zip(*(part.tolist() for part in drawn.values()), strict=True)])


def _against(study: Study, row: Row, definition: dict[str, Any]) -> Floats | None:
    metric, how = definition["metric"], AGAINST[definition.get("as") or "ratio"]
    own = draws(study, row, metric)
    found = [draws(study, other, metric) for other in others(row, study.complete, definition["against"])]
    known = [drawn for drawn in found if drawn is not None]
    if own is None or not known:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        other = np.mean(known, axis=0)
        return np.where(np.isfinite(own) & np.isfinite(other) & (other != 0), how(own, other), np.nan)
