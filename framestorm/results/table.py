"""samples.csv and the users as typed columns, with what every later step asks of a sample worked out once.

Each step reads only the columns that it needs: the samples of a long run are never all in memory.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from framestorm.model import metric
from framestorm.model.cause import CAUSES, is_known
from framestorm.model.criteria import ALL, USER
from framestorm.model.judgement import Group
from framestorm.model.sample import DECLARED, SUB_RESULT, TRACE_ID, TRANSACTION, SampleKind, is_figure_name, is_measured
from framestorm.model.series import Values
from framestorm.model.units import plural
from framestorm.results.times import LAST_MS
from framestorm.results.users import UserHistory
from framestorm.stats.batches import rate_ends
from framestorm.stats.checks import Floats
from framestorm.stats.estimate import Ends
from framestorm.stats.percentiles import Sample

Schema = dict[str, type[pl.DataType]]
LARGEST = 1e100  # the sums of greater numbers, or of their squares, are none
# The common columns that later steps ask for, and the figures that clients declare: null where no sample has
# them, for not every plan knows who answered, or whether it was a cold start.
COLUMNS: Schema = {
    "label": pl.Categorical, "user": pl.Categorical, "index": pl.Int32, "intended_ms": pl.Float64,
    "start_ms": pl.Float64, "rtt_ms": pl.Float64, "ok": pl.Boolean, "cause": pl.Categorical, "censored": pl.Boolean,
    "host": pl.Categorical, "source": pl.Categorical, "status": pl.Int32,
    "received_bytes": pl.Int64, "sent_bytes": pl.Int64, TRACE_ID: pl.String,
}  # fmt: skip
_TYPES: Schema = {"number": pl.Float64, "boolean": pl.Boolean, "string": pl.Categorical}
FIGURES = {name: _TYPES[field["type"]] for name, field in DECLARED.items()}
USER_SCHEMA: Schema = {"user": pl.String, "host": pl.String, "start_ms": pl.Float64, "elapsed_ms": pl.Float64}
USER_SCHEMA |= {"ok": pl.Boolean, "cause": pl.String, "censored": pl.Boolean, "ended": pl.Boolean}


def scan_rows(path: Path, schema: Schema, optional: Collection[str], problems: list[str] | None = None) -> pl.LazyFrame:
    """Return the columns of a CSV file without its broken rows; no rows if the file or a column is missing.

    A row is broken if it lacks a value of a column that is not `optional`, or is the last one and has no line end.

    optional: columns that may be missing or lack values; their texts are empty then.
    problems: gets a sentence if the file is not whole.
    """
    problems = [] if problems is None else problems
    if not path.exists() or not path.stat().st_size:
        return pl.LazyFrame(schema=schema)
    # A quotation mark that is not closed spoils the rest of a file, unless it is read as a sign like others.
    for quote in ('"', None):
        with suppress(pl.exceptions.PolarsError):
            rows, broken = _rows(path, schema, optional, quote)
            if broken:
                problems.append(f"{path.name} is damaged: {plural(broken, 'row')} of it cannot be read.")
            return rows.lazy()
    problems.append(f"{path.name} is damaged: nothing of it can be read.")
    return pl.LazyFrame(schema=schema)


def _rows(path: Path, schema: Schema, optional: Collection[str], quote: str | None) -> tuple[pl.DataFrame, int]:
    """Return the complete rows, and the number of incomplete ones.

    Raises:
        ColumnNotFoundError: a required column is missing.
    """
    raw = pl.scan_csv(
        path,
        infer_schema=False,
        truncate_ragged_lines=True,
        ignore_errors=True,
        encoding="utf8-lossy",
        quote_char=quote,
    )
    names = raw.collect_schema().names()
    needed = [name for name in schema if name not in optional]
    columns = [
        (pl.col(name) if name in {*names, *needed} else pl.lit(None)).cast(dtype, strict=False).alias(name)
        for name, dtype in schema.items()
    ]
    read = raw.select(columns).collect(engine="streaming")
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        # A number at the end may have lost digits.
        whole = (read if file.read() == b"\n" else read.head(-1)).drop_nulls(needed)
    rows = whole.with_columns(_measured(schema)).drop_nulls(needed)
    return rows.with_columns(pl.col(pl.String).fill_null("")), read.height - whole.height


def _measured(columns: Schema) -> Iterator[pl.Expr]:
    """Yield the columns of numbers, without those that nothing measured can be."""
    for name, dtype in columns.items():
        if dtype == pl.Float64:
            yield pl.when(pl.col(name).abs() < LARGEST).then(pl.col(name))


def read_table(path: Path) -> pl.LazyFrame:
    """Return the columns of samples.csv that the report needs, and every further figure whose values are numbers >= 0.

    They are kept by column in a temporary file without a name, which is gone when the table is.

    `timed_out`: the response time is only a lower bound. A sample cut off by the run's stop did not fail by its own
    slowness: it is a failure, but no time of it is used. A 504 is the platform's timeout and as much a lower bound as
    the client's.

    Raises:
        OSError: the temporary file cannot be written.
    """
    lossy = partial(pl.scan_csv, path, encoding="utf8-lossy", raise_if_empty=False)
    names = lossy(infer_schema=False).collect_schema().names()
    columns = COLUMNS | FIGURES
    further = [name for name in names if name not in columns and is_figure_name(name) and is_measured(name)]
    columns |= dict.fromkeys(further, pl.String)
    raw = lossy(schema_overrides={name: columns.get(name, pl.String) for name in names}, ignore_errors=True)
    if columns.keys().isdisjoint(names):  # it is empty, or something else
        names, raw = [*columns], pl.LazyFrame(schema=columns)
    samples = raw.select(
        pl.col(name) if name in names else pl.lit(None, dtype).alias(name) for name, dtype in columns.items()
    ).with_columns(_measured(columns))
    # A start that is not a date is not known; a label without a character is one.
    samples = samples.with_columns(
        pl.when(pl.col("start_ms").is_between(0, LAST_MS)).then("start_ms").alias("start_ms"),
        pl.col("label").fill_null(""),
    )
    timed_out = (pl.col("censored") & pl.col("cause").ne_missing("stopped")) | pl.col("cause").eq_missing("status-504")
    marked = samples.with_columns(pl.col("ok", "censored").fill_null(value=False)).with_columns(
        (timed_out & ~pl.col("ok") & pl.col("rtt_ms").is_not_null()).alias("timed_out")
    )
    with tempfile.TemporaryFile() as file:
        try:
            marked.sink_parquet(file, compression="lz4", statistics=False)
        except pl.exceptions.ComputeError as error:
            raise OSError(f"a temporary file in {tempfile.gettempdir()}: {error}") from error
        file.seek(0)
        table = pl.scan_parquet(file)
    numbers = {name: pl.col(name).cast(pl.Float64, strict=False) for name in further}
    is_number = {name: (value >= 0) & (value < LARGEST) for name, value in numbers.items()}
    are_numbers = table.select(
        # Every text is a number, and there is one.
        ((of.fill_null(value=False) == pl.col(name).is_not_null()).all() & of.any()).alias(name)
        for name, of in is_number.items()
    ).collect(engine="streaming")
    others = [name for name in further if not are_numbers[name].item()]
    return table.with_columns(**numbers).drop(others)


def height(samples: pl.LazyFrame) -> int:
    """Return how many samples a table has."""
    return int(samples.select(pl.len()).collect().item())


IS_OWN = ~pl.col("source").is_in([TRANSACTION, SUB_RESULT])
MAX_CAUSES = 20
OTHER_CAUSES = "other causes"


class Label(NamedTuple):
    """What the samples of one label are, and how many."""

    kind: SampleKind
    n: int


def labels_of(samples: pl.LazyFrame) -> dict[str, Label]:
    """The labels in the order in which they appear; one that a sampler has counts the samples of samplers only."""
    found: dict[str, Label] = {}
    counted = samples.group_by("label", "source", maintain_order=True).len()
    for label, source, n in counted.cast({"label": pl.String, "source": pl.String}).collect().iter_rows():
        kind: SampleKind = source if source in (TRANSACTION, SUB_RESULT) else "sampler"
        before = found.get(label, Label(kind, 0))
        if before.kind == kind:
            found[label] = Label(kind, before.n + n)
        elif kind == "sampler":
            found[label] = Label(kind, n)
    return found


def of_label(samples: pl.LazyFrame, label: str) -> pl.LazyFrame:
    """Return the samples of one label; `ALL` are those of all samplers.

    Transactions, which are made of samples, and sub-results, which are parts of them, are not among those of a sampler.
    """
    is_of_label = pl.lit(value=True) if label == ALL else pl.col("label") == label
    is_sampler = is_of_label & IS_OWN
    own, every = samples.select(is_sampler.any(), is_sampler.all().alias("every")).collect(engine="streaming").row(0)
    if every:
        return samples
    return samples.filter(is_of_label & IS_OWN if own or label == ALL else is_of_label)


def of_labels(samples: pl.LazyFrame, labels: Collection[str], kind: SampleKind) -> pl.LazyFrame:
    """Return the samples of several labels of one kind together."""
    is_of_kind = IS_OWN if kind == "sampler" else pl.col("source") == kind
    return samples.filter(is_of_kind & pl.col("label").cast(pl.String).is_in(list(labels)))


def figures(samples: pl.LazyFrame) -> list[str]:
    """Return the columns of a table of samples that are further figures and numbers, such as handler_ms."""
    return [name for name, dtype in samples.collect_schema().items() if dtype == pl.Float64 and is_measured(name)]


def users_table(users: Iterable[UserHistory]) -> pl.DataFrame:
    """Return the users found in tree and journal as columns."""
    rows = list(users)
    columns = {name: [getattr(user, name) for user in rows] for name in USER_SCHEMA}
    columns["cause"] = [user.cause if user.ended else "never-ended" for user in rows]
    return pl.DataFrame(columns, schema=USER_SCHEMA).with_columns(pl.col("ok").fill_null(value=False))


def sample_group(samples: pl.LazyFrame, label: str, *, at_rate: bool = False) -> Group:
    """Return times of the samples of one label that are without error, and of those that timed out as lower bounds.

    at_rate: see `serving_ms`.
    """
    ok = samples.filter("ok")
    n, n_ok = samples.select(pl.len(), pl.col("ok").sum().alias("ok")).collect().row(0)
    times = {"rtt": Sample(_floats(ok, "rtt_ms"), _floats(samples.filter("timed_out"), "rtt_ms"))}
    # What timed out never said whether it was cold: it belongs to neither.
    warm, cold = (_floats(ok.filter(is_of), "rtt_ms") for is_of in (~pl.col("cold"), pl.col("cold")))
    times |= {"warm": Sample(warm)} if warm.size or cold.size else {}
    times |= {"cold": Sample(cold)} if cold.size else {}
    units: dict[str, str] = {}
    # Of figures whose names differ by _ms only, that in ms comes first.
    further = {"outside_ms": pl.col("rtt_ms") - pl.col("handler_ms")}
    further |= {name: pl.col(name) for name in sorted(figures(samples), key=lambda name: not name.endswith("_ms"))}
    for name, figure in further.items():
        series = name.removesuffix("_ms")
        if series not in times and (values := _floats(ok, figure)).size:
            times[series], units[series] = Sample(values), metric.unit(name)
    rate = rate_per_s(n_ok, serving_ms(samples, at_rate=at_rate))
    return Group(label, n, n_ok, rate, times, units, _rate_ends(ok, "rtt_ms", rate))


def user_group(users: pl.DataFrame) -> Group:
    """Samples of the users: durations of those that ended well, and as lower bounds of those that ran out of time."""
    every = users.lazy()
    ok = every.filter("ok")
    sample = Sample(_floats(ok, "elapsed_ms"), _floats(every.filter("censored"), "elapsed_ms"))
    rate = rate_per_s(height(ok), span_ms(every, "elapsed_ms"))
    ends = _rate_ends(ok, "elapsed_ms", rate)
    return Group(USER, users.height, height(ok), rate, {"duration": sample}, rate_ends=ends)


def _rate_ends(ok: pl.LazyFrame, length: str, rate: float | None) -> Ends:
    """Return the ends of the interval of the rate of what ended without an error."""
    ended_ms = _floats(ok, pl.col("start_ms") + pl.col(length))
    return rate_ends(ended_ms, rate) if rate and ended_ms.size else (None, None)


def span_ms(table: pl.LazyFrame, length: str) -> tuple[float, float] | None:
    """Return the first start and the last end, in epoch ms; None if no start is known."""
    end_ms = pl.col("start_ms") + pl.col(length).fill_null(0)
    first, last = table.select(pl.col("start_ms").min(), end_ms.max().alias("end_ms")).collect().row(0)
    return None if first is None or last is None else (float(first), float(last))


def serving_ms(samples: pl.LazyFrame, *, at_rate: bool) -> tuple[float, float] | None:
    """When answers could come, in epoch ms: from the first start to the last end.

    at_rate: samples start at a fixed rate, with a pause from each to the next; the span then starts one pause before
    the first answer can come. n answers span n - 1 pauses, and the first takes a response time, so that a rate that
    the function keeps up with would seem to be missed. Not where arrivals were dropped: ten at once that are answered
    together after 5 s are 2/s, not ten in the moment in which they are answered.
    """
    span = span_ms(samples, "rtt_ms")
    soonest_ms, last_ms, n = (
        samples.select(pl.col("rtt_ms").filter("ok").min(), pl.col("start_ms").max(), pl.len()).collect().row(0)
    )
    if span is None or not at_rate or n < 2 or soonest_ms is None:
        return span
    pause_ms = (last_ms - span[0]) / (n - 1)
    return span[0] + soonest_ms - pause_ms, span[1]


def rate_per_s(n: int, span: tuple[float, float] | None) -> float | None:
    """Return the rate of `n` events over a span (start and end in ms); None if the span is unknown or empty."""
    if span is None or span[1] <= span[0]:
        return None
    return n / (span[1] - span[0]) * 1000


def known(values: Iterable[float | None]) -> list[float]:
    """Return the known figures."""
    return [float(value) for value in values if value is not None]


def sum_known(values: Iterable[float | None]) -> float | None:
    """Return the sum of the known figures; None if none is known."""
    figures = known(values)
    return sum(figures) if figures else None


def spread(binned: pl.DataFrame, column: str, n_bins: int, empty: float | None = None, digits: int = 3) -> Values:
    """Return values by bin number, `empty` (a gap) where a bin had none."""
    values: Values = [empty] * n_bins
    for number, value in binned.select("bin", column).iter_rows():
        if number is not None and 0 <= number < n_bins and value is not None:
            values[number] = round(value, digits)
    return values


def causes(table: pl.LazyFrame) -> tuple[dict[str, int], dict[str, int]]:
    """Return the number of failures of each cause, most frequent first; rarer causes are counted by their first word.

    The kit's own causes are always in the first table. Of causes with a detail and of a client's own causes, it has
    the most frequent.
    """
    counted = (
        table.filter(~pl.col("ok"))
        .select(pl.col("cause").cast(pl.String).fill_null("unknown"))
        .group_by("cause")
        .len()
        .sort(["len", "cause"], descending=[True, False])
        .collect()
    )
    shown: dict[str, int] = {}
    rest = Counter[str]()
    for cause, n in counted.iter_rows():
        if len(shown) < MAX_CAUSES or is_known(cause):
            shown[cause] = n
        else:
            word = cause.partition(": ")[0]
            rest[word if word in CAUSES else OTHER_CAUSES] += n
    return shown, dict(rest)


def _floats(samples: pl.LazyFrame, figure: str | pl.Expr) -> Floats:
    column = samples.select(figure).drop_nulls().collect(engine="streaming").to_series()
    values: Floats = column.to_numpy().astype(np.float64, copy=False)
    return values
