"""What the charts draw, as plain numbers: binned here, so that the page stays small whatever the run's size."""

from typing import Any

import numpy as np
import polars as pl

from framestorm.report.stats import Floats

MAX_LINES = 12  # users with a line of their own, as long as there are no more of them
MAX_SHOWN = 6  # of more users, as examples beside median and band
MAX_INDEX_BINS = 400
MAX_POINTS = 2000
MAX_TIME_BINS = 120
FRAMES_A_BIN = 10
MAX_STEPS = 600
BIN_WIDTHS_S = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400)
Series = dict[str, Any]


def all_series(
    frames: pl.DataFrame,
    users: pl.DataFrame,
    machines: pl.DataFrame,
    losses: list[dict[str, Any]],
    origin_ms: float,
    unit: str,
) -> dict[str, Series]:
    """Series by chart; only those that have something to show. Times are seconds since `origin_ms`, lengths ms."""
    found: dict[str, Series | None] = {}
    if frames.height:
        timed = frames.with_columns(((pl.col("start_ms") - origin_ms) / 1000).alias("t_s"))
        width_s = bin_width_s(timed)
        for column in ("rtt_ms", "handler_ms", "model_ms"):
            found[f"by_index_{column}"] = by_index(timed, column)
        found["over_time"] = over_time(timed, width_s)
        found["success_over_time"] = success_over_time(timed, width_s)
        found["histogram"] = histogram(timed)
    found["in_flight"] = in_flight(frames, users, losses, origin_ms, unit)
    found["machines"] = machines_over_time(machines, origin_ms)
    return {name: series for name, series in found.items() if series}


def by_index(frames: pl.DataFrame, column: str) -> Series | None:
    """A length by the frame's index: a line a user, or for many users median, 5 % and 95 % of all and some examples."""
    known = pl.col("ok") & pl.col(column).is_not_null() & pl.col("index").is_not_null()
    measured = frames.select("user", "index", "start_ms", "ok", "source", column).filter(known)
    if not measured.height:
        return None
    step = int(measured.select(pl.col("index").max()).item()) // MAX_INDEX_BINS + 1
    measured = measured.with_columns((pl.col("index") // step).alias("bin"))
    n_bins = int(measured.select(pl.col("bin").max()).item()) + 1
    # Frames of JMeter's HTTP sampler have no user: their threads say nothing.
    with_users = measured.filter(pl.col("source") != "jtl")
    first = with_users.group_by("user").agg(pl.col("start_ms").min()).sort("start_ms", "user")
    n_users = first.height
    shown = range(n_users)
    if n_users > MAX_LINES:
        shown = range(0, n_users, -(-n_users // MAX_SHOWN))
    names = {first["user"][number]: number + 1 for number in shown}
    lines = (
        with_users.filter(pl.col("user").is_in(list(names)))
        .group_by("user", "bin")
        .agg(_quantile(column, 0.5))
        .sort("bin")
        .partition_by("user", as_dict=True)
    )
    series: Series = {
        "step": step,
        "users": n_users,
        "x": [bin_ * step for bin_ in range(n_bins)],
        "lines": [{"user": number, "y": _spread(lines[(user,)], column, n_bins)} for user, number in names.items()],
    }
    if n_users > MAX_LINES or not n_users:
        band = measured.group_by("bin").agg(
            _quantile(column, 0.05).alias("low"),
            _quantile(column, 0.5).alias("mid"),
            _quantile(column, 0.95).alias("high"),
        )
        series["band"] = {name: _spread(band, name, n_bins) for name in ("low", "mid", "high")}
    if column == "rtt_ms":
        cut = _thinned(frames.filter(pl.col("timed_out") & pl.col("index").is_not_null()), MAX_POINTS // 4)
        series["timed_out"] = {"x": cut["index"].to_list(), "y": _rounded(cut[column])}
    return series


def bin_width_s(frames: pl.DataFrame) -> float:
    """A round bin width that leaves enough frames in a bin and not too many bins."""
    length_s = float(frames.select(pl.col("t_s").max() - pl.col("t_s").min()).item())
    bins = min(MAX_TIME_BINS, max(5, frames.height // FRAMES_A_BIN))
    return float(next((width for width in BIN_WIDTHS_S if width * bins >= length_s), BIN_WIDTHS_S[-1]))


def over_time(frames: pl.DataFrame, width_s: float) -> Series | None:
    """Round trips by their start: points (a regular choice if there are many), and median and 95th percentile a bin."""
    seen = frames.select("t_s", "rtt_ms", "ok", "cold", "timed_out").filter(
        (pl.col("ok") | pl.col("timed_out")) & pl.col("rtt_ms").is_not_null()
    )
    if not seen.height:
        return None
    kinds = {
        "warm": seen.filter(pl.col("ok") & ~pl.col("cold").fill_null(value=False)),
        "cold": seen.filter(pl.col("ok") & pl.col("cold").fill_null(value=False)),
        "timed_out": seen.filter("timed_out"),
    }
    points = {name: _thinned(part, MAX_POINTS if name == "warm" else MAX_POINTS // 4) for name, part in kinds.items()}
    bins = _bins(seen, width_s)
    binned = bins.agg(_quantile("rtt_ms", 0.5).alias("mid"), _quantile("rtt_ms", 0.95).alias("high"))
    first, n_bins = _bin_range(frames, width_s)
    binned = binned.with_columns(pl.col("bin") - first)
    return {
        "width_s": width_s,
        "shown": sum(part.height for part in points.values()),
        "of": seen.height,
        "points": {
            name: {"x": _rounded(part["t_s"], 3), "y": _rounded(part["rtt_ms"])} for name, part in points.items()
        },
        "x": _middles(first, n_bins, width_s),
        "mid": _spread(binned, "mid", n_bins),
        "high": _spread(binned, "high", n_bins),
    }


def success_over_time(frames: pl.DataFrame, width_s: float) -> Series:
    """By bin of the start: percent answered rightly, and for each host frames answered rightly and failed a second."""
    first, n_bins = _bin_range(frames, width_s)
    n_ok = pl.col("ok").sum()
    counted = _bins(frames, width_s, "host").agg(n_ok, (pl.len() - n_ok).alias("failed"))
    counted = counted.with_columns(pl.col("bin") - first, pl.col("host").cast(pl.String).fill_null(""))
    whole = counted.group_by("bin").agg(pl.col("ok").sum(), pl.col("failed").sum())
    ratio = whole.with_columns((100 * pl.col("ok") / (pl.col("ok") + pl.col("failed"))).alias("ratio"))
    rates = counted.with_columns(pl.col("ok", "failed") / width_s)
    hosts = {
        host: {name: _spread(part, name, n_bins, empty=0.0) for name in ("ok", "failed")}
        for (host,), part in sorted(rates.partition_by("host", as_dict=True).items())
    }
    return {
        "width_s": width_s,
        "closed_loop": bool((frames["source"] != "jtl").any()),
        "x": _middles(first, n_bins, width_s),
        "ratio": _spread(ratio, "ratio", n_bins),
        "hosts": hosts,
    }


def histogram(frames: pl.DataFrame) -> Series | None:
    """Counts of the answered frames' round trips on a linear axis (cut above far outliers) and on a logarithmic one."""
    ok = frames.select("ok", "cold", "rtt_ms").filter(pl.col("ok") & pl.col("rtt_ms").is_not_null())
    parts = {
        "warm": ok.filter(~pl.col("cold").fill_null(value=False)),
        "cold": ok.filter(pl.col("cold").fill_null(value=False)),
    }
    values = {name: part["rtt_ms"].to_numpy() for name, part in parts.items() if part.height}
    if not values:
        return None
    both = np.concatenate(list(values.values()))
    top = min(float(both.max()), 2 * float(np.quantile(both, 0.99)))
    low = float(both.min())
    linear = _edges(both[both <= top])
    positive = max(low, 1e-3)
    log = np.geomspace(positive * 0.999, max(float(both.max()), positive) * 1.001, 41)
    return {
        "linear": {"edges": _list(linear), **{name: _counts(part, linear) for name, part in values.items()}},
        "log": {"edges": _list(log), **{name: _counts(part, log) for name, part in values.items()}},
        "above": int(np.count_nonzero(both > linear[-1])),
        "timed_out": int(frames["timed_out"].sum()),
    }


def in_flight(
    frames: pl.DataFrame, users: pl.DataFrame, losses: list[dict[str, Any]], origin_ms: float, unit: str
) -> Series | None:
    """How many users (or, in a plan without, frames or requests) were under way at each moment."""
    what, table, length = ("users", users, "elapsed_ms") if users.height else (f"{unit}s", frames, "rtt_ms")
    starts = table.filter(pl.col("start_ms").is_not_null())
    if not starts.height:
        return None
    last = max(_last_ms(users, "elapsed_ms"), _last_ms(frames, "rtt_ms"))
    begin = np.sort(starts["start_ms"].to_numpy())
    # A user that never ended is taken as there until its host was lost, or until the last sign of life of the run.
    end_ms = pl.col("start_ms") + pl.col(length)
    for loss in losses:
        lost = pl.max_horizontal("start_ms", pl.lit(loss["at_s"] * 1000 + origin_ms))
        end_ms = pl.when(end_ms.is_null() & (pl.col("host") == loss["host"])).then(lost).otherwise(end_ms)
    end = np.sort(starts.select(end_ms.fill_null(last).clip(upper_bound=last))[:, 0].to_numpy())
    if 2 * begin.size <= MAX_STEPS:
        at = np.unique(np.concatenate([begin, end]))
    else:
        at = np.linspace(begin[0], last, MAX_STEPS)
    there = np.searchsorted(begin, at, side="right") - np.searchsorted(end, at, side="right")
    return {"what": what, "x": _list((at - origin_ms) / 1000, 3), "y": [int(n) for n in there]}


def machines_over_time(machines: pl.DataFrame, origin_ms: float) -> Series | None:
    """Cores kept busy by host and part."""
    if not machines.height:
        return None
    timed = machines.with_columns(((pl.col("time_ms") - origin_ms) / 1000).alias("t_s"))
    length_s = float(timed.select(pl.col("t_s").max() - pl.col("t_s").min()).item())
    width_s = max(1.0, length_s / MAX_STEPS)
    lines = []
    for (host, part), group in timed.group_by("host", "part", maintain_order=True):
        binned = _bins(group, width_s).agg(pl.col("cores").mean(), pl.col("t_s").mean()).sort("bin")
        lines.append({"host": host, "part": part, "x": _rounded(binned["t_s"], 1), "y": _rounded(binned["cores"], 3)})
    return {"lines": sorted(lines, key=lambda line: (str(line["host"]), str(line["part"])))}


def _edges(values: Floats) -> Floats:
    """Freedman and Diaconis' bin width, rounded to 1, 2 or 5, and no fewer than 12 nor more than 60 bins."""
    low, high = float(values.min()), float(values.max())
    if high <= low:
        return np.array([low * 0.95 - 0.5, high * 1.05 + 0.5])
    quarter, three = np.quantile(values, [0.25, 0.75])
    width = 2 * (three - quarter) / values.size ** (1 / 3)
    width = min(max(width, (high - low) / 60), (high - low) / 12)
    scale = 10.0 ** np.floor(np.log10(width))
    width = scale * min((m for m in (1, 2, 5, 10) if m * scale >= width * 0.999), default=10)
    first = np.floor(low / width)
    edges: Floats = (first + np.arange(np.floor(high / width) - first + 2)) * width
    return edges


def _counts(values: Floats, edges: Floats) -> list[int]:
    return [int(n) for n in np.histogram(values, edges)[0]]


def _bins(frames: pl.DataFrame, width_s: float, *by: str) -> Any:
    return frames.group_by(*by, (pl.col("t_s") / width_s).floor().cast(pl.Int64).alias("bin"))


def _bin_range(frames: pl.DataFrame, width_s: float) -> tuple[int, int]:
    low, high = frames.select(pl.col("t_s").min(), pl.col("t_s").max().alias("high")).row(0)
    first = int(np.floor(low / width_s))
    # A clock that went astray must not make a million bins.
    return first, min(int(np.floor(high / width_s)) - first + 1, 20 * MAX_TIME_BINS)


def _middles(first: int, n_bins: int, width_s: float) -> list[float]:
    return [round((first + bin_ + 0.5) * width_s, 3) for bin_ in range(n_bins)]


def _quantile(column: str, quantile: float) -> pl.Expr:
    # "equiprobable" is the nearest rank, as in the tables.
    return pl.col(column).quantile(quantile, "equiprobable")


def _spread(binned: pl.DataFrame, column: str, n_bins: int, empty: float | None = None) -> list[float | None]:
    """Values by bin number, `empty` (a gap) where a bin had none."""
    spread: list[float | None] = [empty] * n_bins
    for number, value in binned.select("bin", column).iter_rows():
        if 0 <= number < n_bins and value is not None:
            spread[number] = round(value, 3)
    return spread


def _thinned(frames: pl.DataFrame, most: int) -> pl.DataFrame:
    return frames.gather_every(-(-frames.height // most)) if frames.height > most else frames


def _last_ms(table: pl.DataFrame, length: str) -> float:
    last = table.select((pl.col("start_ms") + pl.col(length).fill_null(0)).max()).item()
    return float("-inf") if last is None else float(last)


def _rounded(column: pl.Series, digits: int = 2) -> list[float | None]:
    return [None if value is None else round(value, digits) for value in column.to_list()]


def _list(values: Floats, digits: int = 4) -> list[float]:
    return [round(float(value), digits) for value in values]
