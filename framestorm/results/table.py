"""samples.csv and the users as typed columns, with what every later step asks of a sample worked out once."""

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from framestorm.model import metric
from framestorm.model.criteria import ALL, USER, Group
from framestorm.model.sample import SUB_RESULT, TRANSACTION, Kind, is_figure_name, is_measured
from framestorm.model.series import Values
from framestorm.results.clients import UserHistory
from framestorm.stats.checks import Floats
from framestorm.stats.percentiles import Sample

Schema = dict[str, type[pl.DataType]]
# The common columns that later steps ask for, and further figures that they ask for by name: null where no sample has
# them, for not every plan knows who answered, or whether it was a cold start.
COLUMNS: Schema = {
    "label": pl.Categorical, "user": pl.Categorical, "index": pl.Int32, "intended_ms": pl.Float64,
    "start_ms": pl.Float64, "rtt_ms": pl.Float64, "ok": pl.Boolean, "cause": pl.Categorical, "censored": pl.Boolean,
    "host": pl.Categorical, "source": pl.Categorical, "received_bytes": pl.Int64, "sent_bytes": pl.Int64,
}  # fmt: skip
FIGURES: Schema = {
    "handler_ms": pl.Float64, "model_ms": pl.Float64, "cold": pl.Boolean, "verified": pl.Boolean,
    "worker": pl.Categorical,
}  # fmt: skip
USER_SCHEMA: Schema = {"user": pl.String, "host": pl.String, "start_ms": pl.Float64, "elapsed_ms": pl.Float64}
USER_SCHEMA |= {"ok": pl.Boolean, "cause": pl.String, "censored": pl.Boolean, "ended": pl.Boolean}


def scan_rows(path: Path, schema: Schema, optional: str) -> pl.LazyFrame:
    """The columns of a CSV file, without broken rows; nothing if the file or a column is missing.

    optional: the column that may be missing, and whose values may be; a text is empty then. A row without another
        value is broken.
    """
    if not path.exists() or not path.stat().st_size:
        return pl.LazyFrame(schema=schema)
    raw = pl.scan_csv(path, infer_schema=False, truncate_ragged_lines=True, ignore_errors=True)
    names = raw.collect_schema().names()
    needed = [name for name in schema if name != optional]
    if not set(needed) <= set(names):
        return pl.LazyFrame(schema=schema)
    columns = [
        (pl.col(name) if name in names else pl.lit(None)).cast(dtype, strict=False).alias(name)
        for name, dtype in schema.items()
    ]
    return raw.select(columns).drop_nulls(needed).with_columns(pl.col(pl.String).fill_null(""))


def read_table(path: Path) -> pl.DataFrame:
    """The columns of samples.csv that the report needs, and every further figure whose values are numbers >= 0.

    `timed_out`: the response time is only a lower bound. A sample cut off by the run's stop did not fail by its own
    slowness: it is a failure, but no time of it is used. A 504 is the platform's timeout and as much a lower bound as
    the client's.
    """
    names = pl.scan_csv(path, infer_schema=False).collect_schema().names()
    columns = COLUMNS | FIGURES
    further = [name for name in names if name not in columns and is_figure_name(name) and is_measured(name)]
    columns |= dict.fromkeys(further, pl.String)
    raw = pl.scan_csv(path, schema_overrides={name: columns.get(name, pl.String) for name in names}, ignore_errors=True)
    samples = raw.select(
        pl.col(name) if name in names else pl.lit(None, dtype).alias(name) for name, dtype in columns.items()
    )
    timed_out = (pl.col("censored") & pl.col("cause").ne_missing("stopped")) | pl.col("cause").eq_missing("status-504")
    table = (
        samples.with_columns(pl.col("ok", "censored").fill_null(value=False))
        .with_columns((timed_out & ~pl.col("ok") & pl.col("rtt_ms").is_not_null()).alias("timed_out"))
        .collect(engine="streaming")
    )
    numbers = {name: table[name].cast(pl.Float64, strict=False) for name in further}
    others = [
        name
        for name, values in numbers.items()
        if not values.count()
        or values.null_count() != table[name].null_count()
        or not (values.is_finite() & (values >= 0)).all()
    ]
    return table.with_columns(**numbers).drop(others)


IS_OWN = ~pl.col("source").is_in([TRANSACTION, SUB_RESULT])
MAX_CAUSES = 20


class Label(NamedTuple):
    """What the samples of one label are, and how many."""

    kind: Kind
    n: int


def labels_of(samples: pl.DataFrame) -> dict[str, Label]:
    """The labels in the order in which they appear; one that a sampler has counts the samples of samplers only."""
    found: dict[str, Label] = {}
    counted = samples.group_by("label", "source", maintain_order=True).len().drop_nulls("label")
    for label, source, n in counted.cast({"label": pl.String, "source": pl.String}).iter_rows():
        kind: Kind = source if source in (TRANSACTION, SUB_RESULT) else "sampler"
        before = found.get(label, Label(kind, 0))
        if before.kind == kind:
            found[label] = Label(kind, before.n + n)
        elif kind == "sampler":
            found[label] = Label(kind, n)
    return found


def of_label(samples: pl.DataFrame, label: str) -> pl.DataFrame:
    """The samples of one label; `ALL` are those of all samplers.

    Transactions, which are made of samples, and sub-results, which are parts of them, are not among those of a sampler.
    """
    is_of_label = pl.lit(value=True) if label == ALL else pl.col("label") == label
    own, every = samples.select((is_of_label & IS_OWN).any(), (is_of_label & IS_OWN).all().alias("every")).row(0)
    if every:
        return samples
    return samples.filter(is_of_label & IS_OWN if own or label == ALL else is_of_label)


def of_labels(samples: pl.DataFrame, labels: Collection[str], kind: Kind) -> pl.DataFrame:
    """The samples of several labels of one kind together."""
    is_of_kind = IS_OWN if kind == "sampler" else pl.col("source") == kind
    return samples.filter(is_of_kind & pl.col("label").cast(pl.String).is_in(list(labels)))


def figures(samples: pl.DataFrame) -> list[str]:
    """The columns of a table of samples that are further figures and numbers, such as handler_ms."""
    return [name for name, dtype in samples.schema.items() if dtype == pl.Float64 and is_measured(name)]


def users_table(users: Iterable[UserHistory]) -> pl.DataFrame:
    """The users found in tree and journal as columns."""
    rows = list(users)
    columns = {name: [getattr(user, name) for user in rows] for name in USER_SCHEMA}
    columns["cause"] = [user.cause if user.ended else "never-ended" for user in rows]
    return pl.DataFrame(columns, schema=USER_SCHEMA).with_columns(pl.col("ok").fill_null(value=False))


def sample_group(samples: pl.DataFrame, label: str, *, at_rate: bool = False) -> Group:
    """Times of the samples of one label that are without error, and of those that timed out as lower bounds.

    at_rate: see `serving_ms`.
    """
    # Of a million samples each column is 8 MB.
    ok = samples.lazy().filter("ok").select("rtt_ms", "cold", *figures(samples)).collect()
    cut = samples.filter("timed_out")
    times = {"rtt": Sample(_floats(ok["rtt_ms"]), _floats(cut["rtt_ms"]))}
    if ok["cold"].sum():
        # What timed out never said whether it was cold: it belongs to neither.
        times["warm"] = Sample(_floats(ok.filter(~pl.col("cold"))["rtt_ms"]))
        times["cold"] = Sample(_floats(ok.filter("cold")["rtt_ms"]))
    units: dict[str, str] = {}
    # Of figures whose names differ by _ms only, that in ms comes first.
    further = {"outside_ms": ok["rtt_ms"] - ok["handler_ms"]}
    further |= {name: ok[name] for name in sorted(figures(samples), key=lambda name: not name.endswith("_ms"))}
    for name, column in further.items():
        values, series = _floats(column), name.removesuffix("_ms")
        if values.size and series not in times:
            times[series], units[series] = Sample(values), metric.unit(name)
    rate = rate_per_s(ok.height, serving_ms(samples, at_rate=at_rate))
    return Group(label, samples.height, ok.height, rate, times, units)


def user_group(users: pl.DataFrame) -> Group:
    """Samples of the users: durations of those that ended well, and as lower bounds of those that ran out of time."""
    ok = users.filter("ok")
    sample = Sample(_floats(ok["elapsed_ms"]), _floats(users.filter("censored")["elapsed_ms"]))
    rate = rate_per_s(ok.height, span_ms(users, "elapsed_ms"))
    return Group(USER, users.height, ok.height, rate, {"duration": sample})


def span_ms(table: pl.DataFrame, length: str) -> tuple[float, float] | None:
    """First start and last end, in epoch ms."""
    if not table.height:
        return None
    first = table.select(pl.col("start_ms").min()).item()
    last = table.select((pl.col("start_ms") + pl.col(length).fill_null(0)).max()).item()
    return None if first is None or last is None else (float(first), float(last))


def serving_ms(samples: pl.DataFrame, *, at_rate: bool) -> tuple[float, float] | None:
    """When answers could come, in epoch ms: from the first start to the last end.

    at_rate: samples start at a fixed rate, with a pause from each to the next; the span then starts one pause before
    the first answer can come. n answers span n - 1 pauses, and the first takes a response time, so that a rate that
    the function keeps up with would seem to be missed.
    """
    span = span_ms(samples, "rtt_ms")
    soonest_ms = samples.select(pl.col("rtt_ms").filter("ok").min()).item()
    if span is None or not at_rate or samples.height < 2 or soonest_ms is None:
        return span
    starts = samples["start_ms"]
    pause_ms = (float(starts.max()) - float(starts.min())) / (samples.height - 1)  # type: ignore[arg-type]
    return span[0] + float(soonest_ms) - pause_ms, span[1]


def rate_per_s(n: int, span: tuple[float, float] | None) -> float | None:
    """The rate of `n` events over a span (start and end in ms); None if the span is unknown or empty."""
    if span is None or span[1] <= span[0]:
        return None
    return n / (span[1] - span[0]) * 1000


def spread(binned: pl.DataFrame, column: str, n_bins: int, empty: float | None = None, digits: int = 3) -> Values:
    """Values by bin number, `empty` (a gap) where a bin had none."""
    values: Values = [empty] * n_bins
    for number, value in binned.select("bin", column).iter_rows():
        if 0 <= number < n_bins and value is not None:
            values[number] = round(value, digits)
    return values


def causes(table: pl.DataFrame) -> tuple[dict[str, int], dict[str, int]]:
    """Failures by cause, most frequent first; and those by causes that are too many to be shown, by their first word.

    Causes of one word are always among the first, and of those with a detail the most frequent.
    """
    counted = (
        table.filter(~pl.col("ok"))
        .select(pl.col("cause").cast(pl.String).fill_null("unknown"))
        .group_by("cause")
        .len()
        .sort(["len", "cause"], descending=[True, False])
    )
    shown: dict[str, int] = {}
    rest = Counter[str]()
    for cause, n in counted.iter_rows():
        word, _, detail = cause.partition(": ")
        if detail and len(shown) >= MAX_CAUSES:
            rest[word] += n
        else:
            shown[cause] = n
    return shown, dict(rest)


def _floats(column: pl.Series) -> Floats:
    values: Floats = column.drop_nulls().to_numpy().astype(np.float64, copy=False)
    return values
