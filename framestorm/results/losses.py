"""Hosts that a run lost: which share of the load was missing, from when on."""

import polars as pl

from framestorm.model.run import Record
from framestorm.model.summary import LostHost, Part

# What a total is called in a sentence; others by their own name.
TOTALS = {"rate_per_s": "requests per second", "concurrency_limit": "concurrent requests"}


def read_losses(record: Record, samples: pl.DataFrame, origin_ms: float) -> list[LostHost]:
    """The hosts that a run lost, in order of time; times are seconds since `origin_ms`."""
    losses = []
    for loss in record.losses:
        of_host = samples.select("host", "start_ms").filter(pl.col("host").cast(pl.String) == loss.host)
        last_ms = of_host.select(pl.col("start_ms").max()).item()
        losses.append(
            LostHost(
                host=loss.host,
                address=loss.address,
                reason=loss.reason,
                at_s=round((loss.time_ms - origin_ms) / 1000, 3),
                last_sample_s=None if last_ms is None else round((last_ms - origin_ms) / 1000, 3),
                share=share_of(loss.share, record),
            )
        )
    return sorted(losses, key=lambda loss: loss.at_s)


def share_of(share: dict[str, str], record: Record) -> dict[str, Part]:
    """A host's part of each total that was split over the hosts, with the total; parts that are no number are left out.

    `share` and the totals are texts, as run.json has them.
    """
    parts = {}
    for name, part in share.items():
        try:
            parts[name] = Part(float(part), float(record.properties[name]))
        except (KeyError, ValueError):
            continue
    return parts


def share_text(share: dict[str, Part]) -> str:
    """`2 of 4 users`; empty if nothing was split."""
    return ", ".join(f"{each.part:g} of {each.of:g} {TOTALS.get(name, name)}" for name, each in share.items())
