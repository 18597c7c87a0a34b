"""resources.csv: how busy each host and part was."""

from pathlib import Path
from typing import Any

import polars as pl

from framestorm.report.trust import BUSY_SHARE

NUMBERS = ("time_ms", "cpu_percent", "rss_bytes")


def read_machines(path: Path) -> pl.DataFrame:
    """time_ms, host, part, cores (kept busy), rss_bytes, load (average, of whole machines; null where not known).

    Empty if there is no such file. Broken rows are left out.
    """
    empty = pl.DataFrame(
        schema={
            "time_ms": pl.Float64,
            "host": pl.String,
            "part": pl.String,
            "cores": pl.Float64,
            "rss_bytes": pl.Float64,
            "load": pl.Float64,
        }
    )
    if not path.exists() or not path.stat().st_size:
        return empty
    raw = pl.scan_csv(path, infer_schema=False, truncate_ragged_lines=True, ignore_errors=True)
    columns = set(raw.collect_schema().names())
    if not {*NUMBERS, "host", "part"} <= columns:
        return empty
    load = pl.col("load") if "load" in columns else pl.lit(None)
    return (
        raw.with_columns(load.alias("load"))
        .select("host", "part", *(pl.col(name).cast(pl.Float64, strict=False) for name in (*NUMBERS, "load")))
        .drop_nulls(["host", "part", *NUMBERS])
        .select("time_ms", "host", "part", (pl.col("cpu_percent") / 100).alias("cores"), "rss_bytes", "load")
        .sort("time_ms")
        .collect()
    )


def summarise_machines(
    machines: pl.DataFrame, run: dict[str, Any], span: tuple[float, float] | None
) -> list[dict[str, Any]]:
    """A row a host and part; busy_time is the share of the load's time with nearly all cores of the host busy."""
    if span is not None:
        under_load = machines.filter(pl.col("time_ms").is_between(span[0], span[1] + 1000))
        machines = under_load if under_load.height else machines
    cores = {host.get("name"): host.get("cores") for host in run.get("hosts") or []}
    rows = []
    for (host, part), group in machines.group_by("host", "part", maintain_order=True):
        n_cores = cores.get(host)
        busy = None
        if part == "host" and n_cores:
            busy = float((group["cores"] >= BUSY_SHARE * n_cores).cast(pl.Float64).to_numpy().mean())
        rows.append(
            {
                "host": host,
                "part": part,
                "cores": n_cores,
                "cores_mean": float(group["cores"].to_numpy().mean()),
                "cores_max": float(group["cores"].to_numpy().max()),
                "rss_max_bytes": float(group["rss_bytes"].to_numpy().max()),
                "load_max": group.select(pl.col("load").max()).item(),
                "busy_time": busy,
            }
        )
    order = {"host": 0, "generator": 1, "target": 2}
    return sorted(rows, key=lambda row: (str(row["host"]), order.get(str(row["part"]), 3), str(row["part"])))
