"""resources.csv: how busy each host and part was."""

from pathlib import Path

import polars as pl

from framestorm.model.run import Record
from framestorm.model.summary import Machine

NUMBERS = ("time_ms", "cpu_percent", "rss_bytes")
BUSY_SHARE = 0.9  # of all cores: past this, work waits for a core
SCHEMA = {
    "time_ms": pl.Float64, "host": pl.String, "part": pl.String, "cores": pl.Float64, "rss_bytes": pl.Float64,
    "load": pl.Float64,
}  # fmt: skip
ORDER = {"host": 0, "generator": 1, "target": 2}


def read_machines(path: Path) -> pl.DataFrame:
    """time_ms, host, part, cores (kept busy), rss_bytes, load (average, of whole machines; null where not known).

    Empty if there is no such file. Broken rows are left out.
    """
    empty = pl.DataFrame(schema=SCHEMA)
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
        .with_columns((pl.col("cpu_percent") / 100).alias("cores"))
        .select(*SCHEMA)
        .sort("time_ms")
        .collect()
    )


def summarise_machines(machines: pl.DataFrame, record: Record, span: tuple[float, float] | None) -> list[Machine]:
    """How busy each part of each host was, under load where anything was measured then."""
    if span is not None:
        under_load = machines.filter(pl.col("time_ms").is_between(span[0], span[1] + 1000))
        machines = under_load if under_load.height else machines
    cores = {host.name: host.cores for host in record.hosts}
    parts = [
        _machine(host, part, rows, cores.get(host))
        for (host, part), rows in machines.group_by("host", "part", maintain_order=True)
    ]
    return sorted(parts, key=lambda part: (part.host, ORDER.get(part.part, 3), part.part))


def _machine(host: str, part: str, rows: pl.DataFrame, n_cores: int | None) -> Machine:
    cores = rows["cores"].to_numpy()
    busy_time = float((cores >= BUSY_SHARE * n_cores).mean()) if part == "host" and n_cores else None
    return Machine(
        host=host,
        part=part,
        cores=n_cores,
        cores_mean=float(cores.mean()),
        cores_max=float(cores.max()),
        rss_max_bytes=float(rows["rss_bytes"].to_numpy().max()),
        load_max=rows.select(pl.col("load").max()).item(),
        busy_time=busy_time,
    )
