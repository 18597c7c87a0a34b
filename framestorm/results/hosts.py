"""The hosts of a run: resource usage of each (resources.csv), its share of the load, and which were lost or held up."""

from pathlib import Path

import polars as pl

from framestorm.model.run import Record
from framestorm.model.summary import LostHost, Machine, Part, Stall
from framestorm.results.jmeter_log import JMeterLog
from framestorm.results.table import scan_rows

BUSY_SHARE = 0.9  # of all cores: past this, work waits for a core
SCHEMA = {
    "time_ms": pl.Float64, "host": pl.String, "part": pl.String, "cpu_percent": pl.Float64, "rss_bytes": pl.Float64,
    "load": pl.Float64,
}  # fmt: skip
ORDER = {"host": 0, "generator": 1, "target": 2}
# Of a stall: what is shorter than this share of the median response time does not change the figures of the function.
NOTICED_MS, NOTICED_SHARE = 10.0, 0.1
# What a total is called in a sentence; others by their own name.
TOTALS = {"rate_per_s": "requests per second", "concurrency_limit": "concurrent requests"}


def read_machines(path: Path) -> pl.DataFrame:
    """The rows of resources.csv by time, with `cores` (kept busy); load is null where it is not known."""
    rows = scan_rows(path, SCHEMA, optional="load")
    return rows.with_columns((pl.col("cpu_percent") / 100).alias("cores")).sort("time_ms").collect()


def summarise_machines(machines: pl.DataFrame, record: Record, span: tuple[float, float] | None) -> list[Machine]:
    """How busy each part of each host was, under load where anything was measured then."""
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
    """The hosts that a run lost, in order of time; times are seconds since `origin_ms`."""
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


def read_stalls(
    log: JMeterLog, samples: pl.LazyFrame, load: tuple[float, float] | None, origin_ms: float, *, is_open_model: bool
) -> list[Stall]:
    """The stalls under load that are long enough to count, a second each, in order of time; none if nobody watched."""
    if load is None or not log.is_watched:
        return []
    seconds: dict[int, Stall] = {}
    for start_ms, longest_ms, gc_ms in log.stalls:
        _add(seconds, Stall((start_ms - origin_ms) // 1000, longest_ms, gc_ms))
    if is_open_model:
        # Arrivals wait for nobody: a request that starts late was held up before it was sent.
        late = (
            samples.select((pl.col("start_ms") - origin_ms) // 1000, late=pl.col("start_ms") - pl.col("intended_ms"))
            .group_by("start_ms")
            .max()
            .collect(engine="streaming")
        )
        for second, late_ms in late.drop_nulls().iter_rows():
            _add(seconds, Stall(second, late_ms, 0))
    median_ms = samples.select(pl.col("rtt_ms").filter("ok").median()).collect().item() or 0.0
    least_ms = max(NOTICED_MS, NOTICED_SHARE * float(median_ms))
    first_s, last_s = (load[0] - origin_ms) // 1000, (load[1] - origin_ms) // 1000
    long = [each for each in seconds.values() if each.longest_ms >= least_ms and first_s <= each.at_s <= last_s]
    return sorted(long, key=lambda stall: stall.at_s)


def samples_during(samples: pl.LazyFrame, stalls: list[Stall], origin_ms: float) -> int:
    """How many samples were in progress in one of these seconds, or were to start then."""
    first_s = (pl.min_horizontal("start_ms", "intended_ms") - origin_ms) // 1000
    last_s = (pl.col("start_ms") + pl.col("rtt_ms") - origin_ms) // 1000
    during = [(first_s <= stall.at_s) & (last_s >= stall.at_s) for stall in stalls]
    return int(samples.select(pl.any_horizontal(during).sum()).collect(engine="streaming").item()) if during else 0


def _add(seconds: dict[int, Stall], stall: Stall) -> None:
    """The longest of a second; hosts and ways of noticing share the seconds."""
    before = seconds.get(int(stall.at_s), stall)
    seconds[int(stall.at_s)] = Stall(
        stall.at_s, max(before.longest_ms, stall.longest_ms), max(before.gc_ms, stall.gc_ms)
    )
