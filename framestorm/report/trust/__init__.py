"""Warnings that figures may not describe the function alone: each says why, by how much, and what to do.

What the figures are of (errors are counted apart, labels together) is no reason to doubt them: these are notes.
"""

from dataclasses import replace
from typing import get_args

import polars as pl

from framestorm.model.summary import Doubt, Summary
from framestorm.report.stopping import stop_notes
from framestorm.report.trust import buffering, elements, figures, limits, load, machines, pauses, self_check, steady
from framestorm.report.trust.names import names
from framestorm.report.trust.overload import accepted, overload


def warned(summary: Summary, samples: pl.LazyFrame) -> Summary:
    """The summary with the warnings of its run, the most serious first, the kinds of the serious ones, and notes."""
    by_kind: list[tuple[Doubt | None, list[str]]] = [
        (None, overload(summary)),
        ("slave_lost", machines.losses(summary)),
        (None, machines.replicas(summary)),
        ("stopped", load.stopped(summary)),
        ("element_failed", elements.errors(summary)),
        ("unreplaced", elements.unreplaced(summary)),
        (None, figures.inputs(summary)),
        (None, pauses.between_parts(summary, samples)),
        ("not_offered", [*load.arrivals(summary), *load.schedules(summary), *load.users(summary)]),
        (None, machines.saturation(summary)),
        (None, machines.stalls(summary)),
        ("hosts_differ", machines.hosts_differ(summary)),
        ("clock", machines.clocks(summary, samples)),
        ("self_check", self_check.disagreement(summary)),
        ("drift", steady.drift(summary)),
        ("buffered", buffering.kept_back(summary, samples)),
        (None, limits.between(summary, samples)),
        (None, [*figures.few_samples(summary), *figures.facts(summary)]),
    ]
    found = summary.facts.overload
    holds = {
        "overloaded": bool(found and found.signs and not found.generator),
        "saturated": any(machines.is_saturated(machine) for machine in summary.machines),
        "replica_lost": any(function.lost or function.node_outages for function in summary.functions),
        "replicas_short": any(function.short_s for function in summary.functions),
        **{kind: bool(sentences) for kind, sentences in by_kind if kind},
    }
    return replace(
        summary,
        warnings=[sentence for _, sentences in by_kind for sentence in sentences],
        notes=[
            *stop_notes(summary.run),
            *accepted(summary),
            *figures.unpatched(summary),
            *steady.since(summary),
            *self_check.agreement(summary),
            *figures.times(summary),
            *names(summary),
            *figures.counted_together(summary),
        ],
        doubts=[kind for kind in get_args(Doubt) if holds.get(kind)],
    )
