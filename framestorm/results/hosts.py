"""The hosts of a run: resource usage of each (resources.csv), its share of the load, and which hosts were lost."""

from pathlib import Path

import polars as pl

from framestorm.model.run import Record
from framestorm.model.summary import LostHost, Machine, Part
from framestorm.results.table import scan_rows

BUSY_SHARE = 0.9  # of all cores: past this, work waits for a core
SCHEMA = {
    "time_ms": pl.Float64, "host": pl.String, "part": pl.String, "cpu_percent": pl.Float64, "rss_bytes": pl.Float64,
    "load": pl.Float64,
}  # fmt: skip
ORDER = {"host": 0, "generator": 1, "target": 2}
# What a total is called in a sentence; others by their own name.
TOTALS = {"rate_per_s": "requests per second", "concurrency_limit": "concurrent requests"}


def read_machines(path: Path, problems: list[str]) -> pl.DataFrame:
    """Return the rows of resources.csv by time, with `cores` (kept busy); load is null where it is not known.

    problems: gets a sentence if the file is not whole.
    """
    rows = scan_rows(path, SCHEMA, ("load",), problems)
    return rows.with_columns((pl.col("cpu_percent") / 100).alias("cores")).sort("time_ms").collect()


def summarise_machines(machines: pl.DataFrame, record: Record, span: tuple[float, float] | None) -> list[Machine]:
    """Return how busy each part of each host was, under load where anything was measured then."""
    if span is not None:
        under_load = machines.filter(pl.col("time_ms").is_between(span[0], span[1] + 1000))
        machines = under_load if under_load.height else machines
    parts = []
    for (name, part), rows in machines.group_by("host", "part"):
        host, cores = record.host(str(name)), rows["cores"].to_numpy()
        n_cores = host.cores if host else None
        parts.append(
            Machine(
                host=str(name),
                part=str(part),
                cores=n_cores,
                cores_mean=float(cores.mean()),
                cores_max=float(cores.max()),
                rss_max_bytes=rows.select(pl.col("rss_bytes").max()).item(),
                load_max=rows.select(pl.col("load").max()).item(),
                busy_time=float((cores >= BUSY_SHARE * n_cores).mean()) if part == "host" and n_cores else None,
            )
        )
    return sorted(parts, key=lambda part: (part.host, ORDER.get(part.part, 3), part.part))


def read_losses(record: Record, samples: pl.LazyFrame, origin_ms: float) -> list[LostHost]:
    """Return the hosts that a run lost, in order of time; times are seconds since `origin_ms`."""
    losses = []
    for loss in record.losses:
        last_ms = samples.filter(pl.col("host") == loss.host).select(pl.col("start_ms").max()).collect().item()
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
    """A host's part of each total that was split over the hosts, with the total; without parts that are not numbers.

    `share` and the totals are texts, as run.json has them.
    """
    parts = {}
    for name, part in share.items():
        try:
            # Of a plan that declares no totals they are known by their parts.
            total = record.properties.get(name) or sum(float(host.share.get(name, 0)) for host in record.hosts)
            parts[name] = Part(float(part), float(total))
        except (KeyError, ValueError):
            continue
    return parts


def share_text(share: dict[str, Part]) -> str:
    """`2 of 4 users`; empty if nothing was split."""
    return ", ".join(f"{each.part:g} of {each.of:g} {TOTALS.get(name, name)}" for name, each in share.items())
