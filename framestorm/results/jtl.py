"""samples.jtl, JMeter's CSV, read in columns: its rows, counted by label and host, and what is wrong with them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import polars as pl

from framestorm.model.cause import TRANSACTION_MESSAGE
from framestorm.model.criteria import ALL, OF_TRANSACTION, USER, own_label
from framestorm.model.run import Record
from framestorm.model.sample import (
    CUT_TRANSACTION,
    ELAPSED_US,
    IS_SUB_RESULT,
    SAMPLE_KIND,
    SUB_RESULT,
    TRACE_ID,
    TRANSACTION,
    is_figure_name,
)
from framestorm.results.jtl_file import DEFAULT, OTHERS_OF_JMETER, JtlFile, open_jtl
from framestorm.results.times import PossibleTimes

OPTIONAL = (
    "responseCode", "responseMessage", "failureMessage", "threadName", "bytes", "sentBytes", "Hostname",
    "index", "intended_ms", "allThreads", "URL", "Latency", "Connect", ELAPSED_US, IS_SUB_RESULT, SAMPLE_KIND,
)  # fmt: skip
# What is not known of a file that was saved without a column.
MISSING = {
    "timeStamp": "when samples started", "responseCode": "causes of errors", "responseMessage": "causes of errors",
    "failureMessage": "causes of errors",
    "bytes": "bytes received", "sentBytes": "bytes sent", "threadName": "threads", "Hostname": "slaves",
    "Latency": "times to the first byte", "Connect": "times to connect",
}  # fmt: skip
# Every other column is a variable of the plan (JMeter's sample_variables), and so a further figure.
OF_JMETER = frozenset({*OPTIONAL, *DEFAULT, *OTHERS_OF_JMETER})
# The column of those whose names only the answer has: together, as one JSON object.
PACKED = "further_figures"
MAX_PACKED = 50
NUMBER, TRACE = r"(-?[0-9][0-9.eE+-]*)", '"([0-9a-f]{32})"'
MOST_CHARACTERS = 200
# What has to be in a row, in words.
IS = {"timeStamp": "a time", "elapsed": "a number", "success": "true or false"}
MOST_SHOWN = 40
THIS_HOST = "this host"
_TEXT = ("responseCode", "responseMessage", "failureMessage")
JTL = "jtl"
# What a row is. JMeter's own files, and those of older versions of the kit, know a transaction by its message.
_NO_URL = pl.col("URL").fill_null("null") == "null"
SOURCE = (
    pl.when(pl.col(SAMPLE_KIND).is_in([TRANSACTION, CUT_TRANSACTION, SUB_RESULT]))
    .then(pl.col(SAMPLE_KIND))
    .when(pl.col(SAMPLE_KIND).is_null() & _NO_URL & pl.col("responseMessage").str.contains(TRANSACTION_MESSAGE))
    .then(pl.lit(TRANSACTION))
    .when(pl.col(IS_SUB_RESULT) == "true")
    .then(pl.lit(SUB_RESULT))
    .otherwise(pl.lit(JTL))
    .alias("source")
)


# What was sent in place of a value: a variable that nothing had defined, or the end of a CSV data set. JMeter encodes
# these in an address.
_UNREPLACED = r"(?i)(?:\$|%24)(?:\{|%7B)[^{}/?&]{1,80}?(?:\}|%7D)|(?:<|%3C)EOF(?:>|%3E)"
# What a row says about its error; without the column URL, a status is taken as that of an answer.
_FAILURE = (
    *_TEXT,
    (pl.col("URL") != "null").fill_null(value=True).alias("is_http"),
    "is_transaction",
)
FAILURE_KEY = pl.concat_str(*_FAILURE, separator="\x1f").alias("_key")  # no figure begins like this
_THREADS = {"time_s": pl.Int64, "host": pl.String, "threads": pl.Int64}


class HostRows(NamedTuple):
    """The rows of samplers of one host: how many, the sum of their times, NaN if one is not known, and their span."""

    n: int
    busy_ms: float
    span_ms: float | None


@dataclass
class Jtl:
    """The readable part of samples.jtl; `rows` is None if there is none.

    figures: the columns that are further figures; absent: the columns that it lacks; labels: how many rows have each;
        counts: of rows by label, host and source; ok, elapsed_ms: by label, how many are without error, and the sum of
        their times; assumed: sentences on what the file does not say itself.
    is_foreign: it is not by the JMeter of this kit, so that transactions may be without the rows of their samplers.
    bad_rows: how many cannot be read; why_bad: what they lack.
    cut: how many transactions of each label the end of their threads cut off, which are no samples and not in rows.
    of_hosts: the rows of samplers, by host.
    unreplaced: how many rows have a text that was sent in place of a value, by label and text.
    threads: how many threads JMeter had on each host, the most in each second: time_s, host, threads.
    failures: the distinct failures of the rows, with the columns of `_FAILURE` and their text, `_key`.
    """

    problem: str | None = None
    rows: pl.LazyFrame | None = None
    figures: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    labels: Counter[str] = field(default_factory=Counter)
    counts: dict[tuple[str, str, str], int] = field(default_factory=dict)
    ok: Counter[str] = field(default_factory=Counter)
    elapsed_ms: dict[str, float] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    is_foreign: bool = False
    bad_rows: int = 0
    why_bad: str = ""
    cut: Counter[str] = field(default_factory=Counter)
    of_hosts: list[HostRows] = field(default_factory=list)
    unreplaced: Counter[tuple[str, str]] = field(default_factory=Counter)
    threads: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_THREADS))
    failures: pl.DataFrame = field(default_factory=pl.DataFrame)


def read_jtl(run_dir: Path, record: Record) -> Jtl:
    """Open samples.jtl of a run; an incomplete last row is left out and reported in `problem`."""
    opened = open_jtl(run_dir / "samples.jtl")
    if isinstance(opened, str):
        return Jtl(opened)
    try:
        return _read(opened, record)
    except pl.exceptions.PolarsError as error:
        return Jtl(f"samples.jtl cannot be read: {' '.join(str(error).split())[:MOST_CHARACTERS]}")


def _read(opened: JtlFile, record: Record) -> Jtl:
    raw, columns, problem = opened.rows, opened.columns, opened.problem
    figures = tuple(name for name in columns if name not in {*OF_JMETER, PACKED} and is_figure_name(name))
    packed = [name for name in _packed_names(raw) if name not in columns] if PACKED in columns else []
    if len(packed) > MAX_PACKED:
        problem = f"the answers name {len(packed)} figures; the first {MAX_PACKED} are used"
        packed = packed[:MAX_PACKED]
    label = pl.col("label").fill_null("")
    # Where users are processes, the rows labelled user are theirs.
    for name in (ALL,) if record.may_have_users else (ALL, USER):
        # Not by `replace`, for which all rows would be in memory.
        label = pl.when(label == name).then(pl.lit(own_label(name))).otherwise(label)
    rows = raw.select(
        as_numbers("timeStamp").alias("start_ms"),
        _elapsed_ms(columns).alias("rtt_ms"),
        label.alias("label"),
        _flag("success").alias("ok"),
        *(pl.col(name) if name in columns else pl.lit(None, pl.String).alias(name) for name in OPTIONAL),
        # JMeter writes a variable that was never set as "null".
        *(pl.when(~pl.col(name).is_in(["null", "", name])).then(pl.col(name)).alias(name) for name in figures),
        *(
            pl.col(PACKED).str.extract(rf'"{name}":{TRACE if name == TRACE_ID else NUMBER}').alias(name)
            for name in packed
        ),
    ).with_columns(
        pl.col("Hostname").fill_null(record.hosts[0].name if record.hosts else THIS_HOST).alias("host"),
        pl.col("threadName").fill_null("").alias("thread"),
        pl.col(*_TEXT).fill_null(""),
    )
    with_start = "timeStamp" in columns
    needed = ("rtt_ms", "ok", *(("start_ms",) if with_start else ()))
    good = pl.all_horizontal(pl.col(needed).is_not_null()).alias("_good")
    possible = PossibleTimes.of(record, rows.select("start_ms"))
    rows = rows.with_columns(SOURCE, good, possible.holds(with_start=with_start).alias("_has_time"))
    rows = rows.with_columns((pl.col("source") == TRANSACTION).alias("is_transaction"))
    rows = rows.with_columns(pl.when("_has_time").then(name).alias(name) for name in ("start_ms", "rtt_ms"))
    keys = ("label", "host", "source", "_good")
    # The sum of the times is not known if one of them cannot be.
    sum_ms = pl.when(pl.col("rtt_ms").null_count() == 0).then(pl.col("rtt_ms").sum()).otherwise(float("nan"))
    end_ms = pl.col("start_ms") + pl.col("rtt_ms")
    sums = rows.group_by(*keys).agg(
        pl.len(), pl.col("ok").sum(), sum_ms.alias("ms"), pl.col("start_ms").min(), end_ms.max().alias("end_ms")
    )
    is_sample = pl.col("_good") & (pl.col("source") != CUT_TRANSACTION)
    samples = rows.filter(is_sample)
    # Together, so that the file is read twice, and not for each. By `cache` it would be read once, which takes half of
    # the time, but of 10,000,000 rows a quarter more memory.
    counted, unreplaced, threads, failures = pl.collect_all(
        [sums.sort("label"), _unreplaced(samples), _threads(samples), _failures(samples)], engine="streaming"
    )
    has_kinds = bool({SAMPLE_KIND, IS_SUB_RESULT} & {*columns})
    absent = (*(name for name in MISSING if name not in columns), *(() if has_kinds else (SAMPLE_KIND,)))
    is_foreign, assumed = record.source is not None or not has_kinds, opened.assumed
    sources = {*counted.filter("_good")["source"]}
    if is_foreign and TRANSACTION in sources and JTL not in sources:
        is_whole = pl.when(pl.col("source") == TRANSACTION).then(pl.lit(JTL)).otherwise("source").alias("source")
        rows, counted = rows.with_columns(is_whole), counted.with_columns(is_whole)
        assumed += (
            "there are only rows of transactions in samples.jtl, none of their samplers; they are taken as the samples",
        )
    # A recorder names a transaction as its first request.
    of_samplers = {label for label, _, source, *_ in counted.iter_rows() if source == JTL}
    shared = sorted({label for label, _, source, *_ in counted.iter_rows() if source == TRANSACTION} & of_samplers)
    if shared:
        is_shared = (pl.col("source") == TRANSACTION) & pl.col("label").is_in(shared)
        own_name = pl.concat_str("label", pl.lit(OF_TRANSACTION))
        rows = rows.with_columns(pl.when(is_shared).then(own_name).otherwise("label").alias("label"))
    rows = rows.filter(is_sample)
    jtl = Jtl(problem, rows, (*figures, *packed), absent, threads=threads, failures=failures)
    jtl.assumed, jtl.is_foreign = assumed, is_foreign
    of_samplers_only = counted.filter((pl.col("source") == JTL) & pl.col("_good"))
    span_ms = pl.col("end_ms").max() - pl.col("start_ms").min()
    of_hosts = of_samplers_only.group_by("host").agg(pl.col("len").sum(), pl.col("ms").sum(), span_ms)
    jtl.of_hosts = [HostRows(n, ms, length_ms) for _, n, ms, length_ms in of_hosts.sort("host").iter_rows()]

    def own(label: str, source: str) -> str:
        return label + OF_TRANSACTION if source == TRANSACTION and label in shared else label

    for label, source, text, n in unreplaced.iter_rows():
        jtl.unreplaced[own(label, source), text] += n
    for label, host, source, is_good, n, ok, ms, *_ in counted.iter_rows():
        name = own(label, source)
        if not is_good:
            jtl.bad_rows += n
        elif source == CUT_TRANSACTION:
            jtl.cut[name] += n
        else:
            jtl.counts[name, host, source] = jtl.counts.get((name, host, source), 0) + n
            jtl.labels[name] += n
            jtl.ok[name] += ok
            jtl.elapsed_ms[name] = jtl.elapsed_ms.get(name, 0) + ms
    if jtl.bad_rows:
        jtl.why_bad = _why_bad(raw, with_start=with_start)
    return jtl


def _why_bad(raw: pl.LazyFrame, *, with_start: bool) -> str:
    """Return what rows lack that cannot be read, each with the first such text."""
    values = {"timeStamp": as_numbers("timeStamp")} if with_start else {}
    values |= {"elapsed": as_numbers("elapsed"), "success": _flag("success")}
    cells = [pl.col(name).filter(value.is_null()) for name, value in values.items()]
    # The number of these cells, and the first that is not empty.
    counted = raw.select(
        *(cell.len().name.suffix(" n") for cell in cells), *(cell.drop_nulls().first() for cell in cells)
    )
    first = counted.collect(engine="streaming").row(0, named=True)
    return "; ".join(
        f"{name} is not {IS[name]}, as in {first[name][:MOST_SHOWN]!r}" if first[name] else f"{name} is empty"
        for name in values
        if first[f"{name} n"]
    )


def _unreplaced(samples: pl.LazyFrame) -> pl.LazyFrame:
    """Count the samples with a text that was sent in place of a value: label, source, text, len."""
    whole = pl.concat_str(pl.col("URL").fill_null(""), "label", separator=" ")
    texts = samples.filter(whole.str.contains(_UNREPLACED)).select(
        "label", "source", whole.str.extract_all(_UNREPLACED).alias("text")
    )
    # Once for each sample, and in one form.
    decoded = (
        pl.element().str.replace_all("(?i)%24", "$$").str.replace_all("(?i)%7B", "{").str.replace_all("(?i)%7D", "}")
    )
    decoded = decoded.str.replace_all("(?i)%3C", "<").str.replace_all("(?i)%3E", ">")
    each = texts.with_columns(pl.col("text").list.eval(decoded).list.unique()).explode("text")
    return each.group_by("label", "source", "text").len()


def _threads(samples: pl.LazyFrame) -> pl.LazyFrame:
    """Return how many threads JMeter had on each host, the most in each second."""
    # JMeter counts them when a sample ends.
    end_s = ((pl.col("start_ms") + pl.col("rtt_ms")) / 1000).floor()
    counts = samples.select(end_s.alias("time_s"), "host", pl.col("allThreads").alias("threads"))
    counted = counts.cast(_THREADS, strict=False).drop_nulls()  # type: ignore[arg-type]
    return counted.group_by("time_s", "host").agg(pl.col("threads").max())


def as_numbers(name: str) -> pl.Expr:
    """Return a column as numbers; null where the text is not a finite number."""
    value = pl.col(name).cast(pl.Float64, strict=False)
    return pl.when(value.is_finite()).then(value)


def _flag(name: str) -> pl.Expr:
    """Return a column as booleans; null where the text is none."""
    text = pl.col(name).str.strip_chars().str.to_lowercase()
    return pl.when(text.is_in(["true", "false"])).then(text == "true")


def _elapsed_ms(columns: Sequence[str]) -> pl.Expr:
    """Return the time of a row, by the microsecond where it has that.

    A sub-result has that of the sample it belongs to; pauses within a transaction are taken off by the millisecond.
    """
    elapsed_ms = as_numbers("elapsed")
    if ELAPSED_US not in columns:
        return elapsed_ms
    exact_ms = as_numbers(ELAPSED_US) / 1000
    is_exact = (exact_ms - elapsed_ms).abs() < 1
    if "IdleTime" in columns:
        is_exact &= pl.col("IdleTime") == "0"
    return pl.when(is_exact).then(exact_ms).otherwise(elapsed_ms)


def _packed_names(raw: pl.LazyFrame) -> list[str]:
    """Return the names in the column of further figures."""
    names = raw.select(pl.col(PACKED).str.extract_all(r'"[a-z][a-z0-9_]*":').explode().unique().sort())
    found = (str(name).strip('":') for name in names.collect(engine="streaming")[PACKED].drop_nulls())
    return [name for name in found if is_figure_name(name)]


def _failures(samples: pl.LazyFrame) -> pl.LazyFrame:
    """Return the distinct failures of the samples."""
    return samples.filter(~pl.col("ok")).select(*_FAILURE, FAILURE_KEY).unique("_key")
