"""What the charts draw, as plain numbers: binned here, so that the page stays small whatever the run's size."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from framestorm.model import series as model
from framestorm.model.summary import LostHost
from framestorm.report.time_bins import TimeBins
from framestorm.results.jtl_samples import JMETER_TIMES
from framestorm.results.table import figures, height, span_ms, spread
from framestorm.stats.checks import Floats

MAX_LINES = 12  # users with a line of their own, as long as there are no more of them
MAX_SHOWN = 6  # of more users, as examples beside median and band
MAX_INDEX_BINS = 400
MAX_POINTS = 2000
COARSE = 8  # of a label among many: an eighth of these points
MAX_STEPS = 600
MAX_BINNED = 5000  # samples that decide how wide bins are, where times are counted by value
BAND_ENDS = {"low": 0.05, "mid": 0.5, "high": 0.95}  # by index, of all users
# Samples of JMeter's HTTP sampler have no user: their threads mean nothing.
IS_OF_USERS = pl.col("source").is_in(["tree", "journal"])
IS_COLD = pl.col("cold").fill_null(value=False)


def sample_series(samples: pl.LazyFrame, origin_ms: float, coarse: int = 1) -> model.SampleSeries:
    """Return every series that is made of the samples; times are seconds since `origin_ms`, lengths ms.

    coarse: the number of points is divided by it.
    """
    t_s = (pl.col("start_ms") - origin_ms) / 1000
    n, low_s, high_s = samples.select(pl.len(), t_s.min().alias("low"), t_s.max().alias("high")).collect().row(0)
    if low_s is None:  # nothing has a start
        return model.SampleSeries(histogram=histogram(samples))
    bins = TimeBins.of(n, low_s, high_s)
    timed = samples.with_columns(t_s.alias("t_s"), bins.number(t_s).alias("bin"))
    further = [name for name in figures(samples) if name not in JMETER_TIMES]
    indexed = {name: by_index(samples, name, coarse) for name in ("rtt_ms", *further)}
    return model.SampleSeries(
        by_index={name: lines for name, lines in indexed.items() if lines},
        over_time=over_time(timed, bins, coarse),
        success_over_time=success_over_time(timed, bins),
        rates=rates_over_time(samples, origin_ms),
        histogram=histogram(samples),
    )


def by_index(samples: pl.LazyFrame, name: str, coarse: int) -> model.ByIndex | None:
    """A figure by the sample's index: a line per user, or for many users median, 5 % and 95 %, and some examples."""
    has_value = pl.col("ok") & pl.col(name).is_not_null() & pl.col("index").is_not_null()
    measured = samples.filter(has_value)
    highest = measured.select(pl.col("index").max()).collect(engine="streaming").item()
    if not highest:  # one sample of each user has no course
        return None
    step = highest // (MAX_INDEX_BINS // coarse) + 1
    n_bins = highest // step + 1
    # The figure may have any name, that of a column of this too.
    number = (pl.col("index") // step).alias("bin")
    measured = measured.select("user", "source", "start_ms", number, pl.col(name).alias("value"))
    of_users = measured.filter(IS_OF_USERS & pl.col("user").is_not_null())
    first = of_users.group_by("user").agg(pl.col("start_ms").min()).sort("start_ms", "user").collect(engine="streaming")
    n_users = first.height
    is_many = n_users > MAX_LINES
    names = {first["user"][n]: n + 1 for n in range(0, n_users, -(-n_users // MAX_SHOWN) if is_many else 1)}
    lines = (
        of_users.filter(pl.col("user").is_in(list(names)))
        .group_by("user", "bin")
        .agg(_quantile("value", 0.5))
        .collect()
        .partition_by("user", as_dict=True)
    )
    band = None
    if is_many or not n_users:
        binned = measured.group_by("bin").agg(band_of("value")).collect()
        band = {end: spread(binned, end, n_bins) for end in BAND_ENDS}
    timed_out: model.Curves = {"x": [], "y": []}
    if name == "rtt_ms":
        is_cut = pl.col("timed_out") & pl.col("index").is_not_null()
        cut = _thinned(samples.filter(is_cut), ("index", name), MAX_POINTS // 4 // coarse)
        timed_out = {"x": _rounded(cut["index"]), "y": _rounded(cut[name])}
    return model.ByIndex(
        step=step,
        users=n_users,
        x=[bin_ * step for bin_ in range(n_bins)],
        lines=[model.UserLine(number, spread(lines[(user,)], "value", n_bins)) for user, number in names.items()],
        band=band,
        timed_out=timed_out,
    )


def over_time(samples: pl.LazyFrame, bins: TimeBins, coarse: int) -> model.OverTime | None:
    """Response times by their start: points (every n-th if there are many), median and 95th percentile of each bin."""
    timed = samples.filter((pl.col("ok") | pl.col("timed_out")) & pl.col("rtt_ms").is_not_null())
    n = height(timed)
    if not n:
        return None
    places = ("t_s", "rtt_ms")
    warm = _thinned(timed.filter(pl.col("ok") & ~IS_COLD), places, MAX_POINTS // coarse)
    cold, cut = (
        _thinned(timed.filter(of), places, MAX_POINTS // 4 // coarse)
        for of in (pl.col("ok") & IS_COLD, pl.col("timed_out"))
    )
    quantiles = (_quantile("rtt_ms", 0.5).alias("mid"), _quantile("rtt_ms", 0.95).alias("high"))
    binned = timed.group_by("bin").agg(quantiles).collect()
    return model.OverTime(
        width_s=bins.width_s,
        shown=warm.height + cold.height + cut.height,
        of=n,
        warm=_points(warm),
        cold=_points(cold),
        timed_out=_points(cut),
        x=bins.x,
        mid=spread(binned, "mid", bins.n),
        high=spread(binned, "high", bins.n),
    )


def success_over_time(samples: pl.LazyFrame, bins: TimeBins) -> model.SuccessOverTime:
    """By bin of the start: the success rate in percent, and each host's successful and failed samples per second."""
    n_ok = pl.col("ok").sum()
    ratio = samples.group_by("bin").agg((100 * n_ok / pl.len()).alias("ratio")).collect(engine="streaming")
    counts = samples.group_by("host", "bin").agg(n_ok, (pl.len() - n_ok).alias("failed")).collect(engine="streaming")
    # Nothing says over which time a single sample would have to be spread.
    has_rate = counts.select((pl.col("ok") + pl.col("failed")).sum()).item() > 1
    rates = counts.with_columns(bins.per_s(pl.col("ok", "failed")), pl.col("host").cast(pl.String).fill_null(""))
    return model.SuccessOverTime(
        width_s=bins.width_s,
        closed_model=bool(samples.select(IS_OF_USERS.any()).collect().item()),
        x=bins.x,
        ratio=spread(ratio, "ratio", bins.n),
        hosts={
            str(host): {name: spread(part, name, bins.n, empty=0.0) for name in ("ok", "failed")}
            for (host,), part in sorted(rates.partition_by("host", as_dict=True).items())
            if has_rate
        },
        last_width_s=round(bins.last_s, 6),
    )


def rates_over_time(samples: pl.LazyFrame, origin_ms: float) -> model.RatesOverTime | None:
    """Return starts and ends per second on all hosts together, from first start to last end; None for one sample."""
    start_s = (pl.col("start_ms") - origin_ms) / 1000
    end_s = start_s + pl.col("rtt_ms").fill_null(0) / 1000
    known = samples.filter(pl.col("start_ms").is_not_null())
    n, low_s, high_s = known.select(pl.len(), start_s.min(), end_s.max().alias("end")).collect().row(0)
    if n < 2:
        return None
    bins = TimeBins.of(n, low_s, high_s)
    events = {
        "started": known.select(at=start_s),
        "answered": known.filter("ok").select(at=end_s),
        "failed": known.filter(~pl.col("ok")).select(at=end_s),
    }
    curves: dict[str, model.Values] = {}
    for name, table in events.items():
        numbered = table.select(bins.number(pl.col("at")).alias("bin"))
        counted = numbered.group_by("bin").agg(pl.len()).with_columns(bins.per_s(pl.col("len")))
        curves[name] = spread(counted.collect(engine="streaming"), "len", bins.n, empty=0.0)
    return model.RatesOverTime(bins.width_s, bins.x, **curves)


def histogram(samples: pl.LazyFrame) -> model.Histogram | None:
    """Return counts of successful response times on a linear axis (cut above far outliers) and on a logarithmic one."""
    ok = samples.filter(pl.col("ok"), pl.col("rtt_ms").is_not_null())
    warm, cold = (
        ok.filter(which).select("rtt_ms").collect(engine="streaming")["rtt_ms"].to_numpy()
        for which in (~IS_COLD, IS_COLD)
    )
    return histogram_of(warm, cold, timed_out=height(samples.filter("timed_out"))) if warm.size or cold.size else None


def histogram_of(
    warm: Floats, cold: Floats, *, timed_out: int, numbers: npt.NDArray[np.int64] | None = None
) -> model.Histogram:
    """Return the histogram of times, of which there are some.

    numbers: how many samples each time of `warm` stands for, where they are counted by value; None: one each.
    """
    both = np.concatenate([warm, cold]) if cold.size else warm
    if numbers is not None:
        both = np.repeat(warm, np.maximum(1, numbers * MAX_BINNED // max(MAX_BINNED, int(numbers.sum()))))
    top = min(float(both.max()), 2 * float(np.quantile(both, 0.99)))
    linear = _edges(both[both <= top])
    positive = max(float(both.min()), 1e-3)
    # Up to 1 ms where all are 0, for an axis of one place has no ends.
    log = np.geomspace(positive * 0.999, max(float(both.max()) or 1.0, positive) * 1.001, 41)

    def bins(edges: Floats) -> model.Bins:
        # What took no whole millisecond has no place on a logarithmic axis: it counts where that begins.
        parts = [(np.maximum(part, edges[0]), of_part) for part, of_part in ((warm, numbers), (cold, None))]
        counts = [
            [int(n) for n in np.histogram(part, edges, weights=of_part)[0]] if part.size else None
            for part, of_part in parts
        ]
        # So that no two are the same.
        return model.Bins(_list(edges, 4 if edges[1] - edges[0] > 2e-4 else 8), *counts)

    is_above = warm > linear[-1]
    above = int(np.count_nonzero(is_above) if numbers is None else numbers[is_above].sum())
    return model.Histogram(bins(linear), bins(log), above + int(np.count_nonzero(cold > linear[-1])), timed_out)


def asked(properties: Mapping[str, str], name: str, start_s: float) -> model.Curves:
    """The line that a plan's settings ask for: `name` users, or requests per second, after ramp_s and for hold_s."""
    try:
        most, ramp_s, hold_s = (float(properties[each]) for each in (name, "ramp_s", "hold_s"))
    except (KeyError, ValueError):
        return {}
    return {"x": [round(start_s + each, 3) for each in (0, ramp_s, ramp_s + hold_s)], "y": [0, most, most]}


def threads_over_time(
    threads: pl.DataFrame, losses: list[LostHost], origin_ms: float, asked: model.Curves
) -> model.InFlight | None:
    """How many threads were users at each moment, on all hosts together; a host that is lost has none any more."""
    if not threads.height:
        return None
    hosts = threads.pivot(on="host", index="time_s", values="threads").sort("time_s")
    hosts = hosts.with_columns((pl.col("time_s") - origin_ms / 1000).alias("t_s"), pl.exclude("time_s").forward_fill())
    for loss in (loss for loss in losses if loss.host in hosts.columns):
        left = pl.when(pl.col("t_s") > loss.at_s).then(0).otherwise(pl.col(loss.host))
        hosts = hosts.with_columns(left.alias(loss.host))
    running = hosts.select(pl.sum_horizontal(pl.exclude("time_s", "t_s")).cast(pl.Int64))[:, 0]
    shown = slice(None, None, hosts.height // MAX_STEPS + 1)
    most = int(running.max())  # type: ignore[arg-type]
    return model.InFlight("users", _list(hosts["t_s"].to_numpy()[shown], 3), running.to_list()[shown], most, asked)


def in_flight(
    samples: pl.LazyFrame,
    users: pl.LazyFrame,
    losses: list[LostHost],
    origin_ms: float,
    label: str,
    asked: model.Curves,
) -> model.InFlight | None:
    """Return the users in progress at each moment, or samples if the plan has no users; `asked` is of users."""
    is_of_users = height(users) > 0
    what, table, length = ("users", users, "elapsed_ms") if is_of_users else (f"{label}s", samples, "rtt_ms")
    starts = table.filter(pl.col("start_ms").is_not_null())
    begin = np.sort(starts.select("start_ms").collect()["start_ms"].to_numpy())
    if not begin.size:
        return None
    spans = [span for span in (span_ms(users, "elapsed_ms"), span_ms(samples, "rtt_ms")) if span]
    last = max(end for _, end in spans)
    # A user that never ended counts until its host was lost, or until the last sign of life of the run.
    end_ms = pl.col("start_ms") + pl.col(length)
    for loss in losses:
        lost = pl.max_horizontal("start_ms", pl.lit(loss.at_s * 1000 + origin_ms))
        end_ms = pl.when(end_ms.is_null() & (pl.col("host") == loss.host)).then(lost).otherwise(end_ms)
    end = np.sort(starts.select(end_ms.fill_null(last).clip(upper_bound=last)).collect().to_series().to_numpy())
    if 2 * begin.size <= MAX_STEPS:
        at = np.unique(np.concatenate([begin, end]))
    else:
        at = np.linspace(begin[0], last, MAX_STEPS)
    running, of_all = (
        np.searchsorted(begin, moments, side="right") - np.searchsorted(end, moments, side="right")
        for moments in (at, begin)
    )
    x, y = _list((at - origin_ms) / 1000, 3), [int(n) for n in running]
    return model.InFlight(what, x, y, int(of_all.max()), asked if is_of_users else {})


def machines_over_time(machines: pl.DataFrame, origin_ms: float) -> list[model.MachineLine]:
    """Cores kept busy by host and part."""
    if not machines.height:
        return []
    t_s = (pl.col("time_ms") - origin_ms) / 1000
    first_ms, last_ms = machines["time_ms"][0], machines["time_ms"][-1]
    width_s = max(1.0, (last_ms - first_ms) / 1000 / MAX_STEPS)
    binned = (
        machines.with_columns(t_s.alias("t_s"), (t_s / width_s).floor().alias("bin"))
        .group_by("host", "part", "bin")
        .agg(pl.col("cores").mean(), pl.col("t_s").mean())
        .sort("bin")
    )
    return [
        model.MachineLine(str(host), str(part), _rounded(rows["t_s"], 1), _rounded(rows["cores"], 3))
        for (host, part), rows in sorted(binned.partition_by("host", "part", as_dict=True).items())
    ]


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


def _points(samples: pl.DataFrame) -> model.Curves:
    return {"x": _rounded(samples["t_s"], 3), "y": _rounded(samples["rtt_ms"])}


def band_of(column: str) -> list[pl.Expr]:
    """Return the quantiles of BAND_ENDS."""
    return [_quantile(column, quantile).alias(name) for name, quantile in BAND_ENDS.items()]


def _quantile(column: str, quantile: float) -> pl.Expr:
    # "equiprobable" is the nearest rank, as in the tables.
    return pl.col(column).quantile(quantile, "equiprobable")


def _thinned(samples: pl.LazyFrame, columns: Sequence[str], most: int) -> pl.DataFrame:
    """Return these columns of every n-th sample, with the smallest n that leaves at most `most`."""
    # Chosen first: polars would read all columns of all samples otherwise.
    chosen = samples.select(columns).collect(engine="streaming")
    return chosen.gather_every(max(1, -(-chosen.height // most)))


def _rounded(column: pl.Series, digits: int = 2) -> model.Values:
    return [None if value is None else round(float(value), digits) for value in column.to_list()]


def _list(values: Floats, digits: int = 4) -> list[float]:
    return [round(float(value), digits) for value in values]
