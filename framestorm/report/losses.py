"""Hosts that a run lost: which share of the load was missing, from when on."""

from typing import Any

import polars as pl

from framestorm.report.units import NBSP, duration

# What a total is called in a sentence; others by their own name.
TOTALS = {"rate_per_s": "requests a second", "concurrency_limit": "requests at a time"}


def read_losses(run: dict[str, Any], frames: pl.DataFrame, origin_ms: float) -> list[dict[str, Any]]:
    """The losses of run.json in order of time, with the share as part of the whole, and the last frame known.

    Times are seconds since `origin_ms`. Entries without host or time are left out.
    """
    rows = []
    for loss in run.get("losses") or []:
        if not isinstance(loss, dict) or not loss.get("host") or not isinstance(loss.get("time_ms"), (int, float)):
            continue
        own = frames.select("host", "start_ms").filter(pl.col("host").cast(pl.String) == loss["host"])
        last_ms = own.select(pl.col("start_ms").max()).item()
        rows.append(
            {
                "host": loss["host"],
                "address": loss.get("address"),
                "reason": loss.get("reason"),
                "at_s": round((loss["time_ms"] - origin_ms) / 1000, 3),
                "last_frame_s": None if last_ms is None else round((last_ms - origin_ms) / 1000, 3),
                "share": share_of(loss.get("share"), run),
            }
        )
    return sorted(rows, key=lambda row: float(row["at_s"]))


def share_of(share: Any, run: dict[str, Any]) -> dict[str, dict[str, float]]:
    """A host's part of each total that was split over the hosts, and the total; both as run.json has them."""
    totals = run.get("properties") or {}
    found = {}
    for name, part in share.items() if isinstance(share, dict) else ():
        try:
            found[name] = {"part": float(part), "of": float(totals[name])}
        except (KeyError, TypeError, ValueError):
            continue
    return found


def share_text(share: dict[str, dict[str, float]]) -> str:
    """`2 of 4 users`; empty if nothing was split."""
    return ", ".join(f"{each['part']:g} of {each['of']:g} {TOTALS.get(name, name)}" for name, each in share.items())


def sentences(losses: list[dict[str, Any]], unit: str) -> list[str]:
    """A warning for each loss: what was missing from when on, and what that does to the figures."""
    return [_sentence(loss, unit) for loss in losses]


def _sentence(loss: dict[str, Any], unit: str) -> str:
    when, why = duration(loss["at_s"] * 1000), f" ({loss['reason']})" if loss["reason"] else ""
    said = f"{loss['host']} was lost {when} after the start{why}"
    share = share_text(loss["share"])
    if not share:
        return f"{said}: what it had not handed in by then is missing."
    if loss["last_frame_s"] is None:
        last = f"Not one {unit} of{NBSP}it is known."
    else:
        last = f"Its last known {unit} started at {duration(loss['last_frame_s'] * 1000)}."
    return (
        f"{said}: its share of the load, {share}, was missing from then on. {last} Rates and times from there on are "
        "of the smaller load, and figures of the whole run mix both."
    )
