"""The rows of samples.jtl as samples and users, each with the cause of its error."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from framestorm.model.cause import (
    AS_IF_NOT_STOPPED,
    FAILED_SAMPLE,
    TIMEOUTS,
    TRANSACTION_MESSAGE,
    request_cause,
    transaction_cause,
    user_cause,
)
from framestorm.model.criteria import USER
from framestorm.model.run import Host
from framestorm.model.sample import COMMON, IMPLIED, ORIGIN, SUB_RESULT, is_length
from framestorm.results.cells import inert
from framestorm.results.groups import is_of_groups
from framestorm.results.growing import shown
from framestorm.results.jmeter_log import LoadEnd
from framestorm.results.jtl import FAILURE_KEY, JTL, Jtl, as_numbers

# JMeter's own times within a response time, as figures of samples.
JMETER_TIMES = {"latency_ms": "Latency", "connect_ms": "Connect"}
# By which a sample may seem to end before it was told to: JMeter sets the clock of its samples to whole ms, every 5 s.
CLOCK_MS = 10.0
# The part of a URL that is of its server.
OF_SERVER = r"^(\w+://[^/?#]+)"


def write_samples(
    jtl: Jtl,
    table: Path,
    *,
    without: str | None = None,
    stopping_ms: float | None = None,
    ends: Sequence[LoadEnd] = (),
    slaves: Sequence[Host] = (),
    http2_only: Sequence[str] = (),
) -> None:
    """Write the rows, except those with the label `without`, to the CSV file `table` in the form of samples.csv.

    stopping_ms: when the run was told to stop, if it was; ends: when some of its threads were told to.
    http2_only: servers to which requests failed because they speak HTTP/2 only, as OF_SERVER finds them.
    """
    assert jtl.rows is not None  # noqa: S101 - the caller has seen such rows
    rows = jtl.rows if without is None else jtl.rows.filter(pl.col("label") != without)
    further: dict[str, pl.Expr] = {}
    for figure in jtl.figures:
        for name, value in IMPLIED.get(figure, {}).items():
            further[name] = pl.when(pl.col(figure).is_not_null()).then(pl.lit(value))
    further |= {name: as_numbers(name) if is_length(name) else pl.col(name) for name in jtl.figures}
    for name, column in JMETER_TIMES.items():
        if column not in jtl.absent and name not in further:
            # Samplers that do not measure it say 0; on a connection that is kept alive, 0 is a true time to connect.
            time, is_http = as_numbers(column), pl.col("URL").fill_null("null") != "null"
            further[name] = pl.when(is_http | (time > 0)).then(time)
    # The samples of users that are processes are sub-results of these, and samples nevertheless.
    source = pl.col("source")
    own = source if without is None else pl.when(source == SUB_RESULT).then(pl.lit(JTL)).otherwise(source)
    rows = _with_cause(rows, jtl.failures)
    if http2_only:
        is_to_one = pl.col("URL").str.extract(OF_SERVER).is_in(list(http2_only))
        is_refused = (pl.col("cause") == "reset") & is_to_one.fill_null(value=False)
        rows = rows.with_columns(cause=pl.when(is_refused).then(pl.lit("http2-only")).otherwise("cause"))
    ended_ms = pl.lit(stopping_ms, pl.Float64)
    for end in ends:
        # Those of its own slave: each has a clock of its own, and ends its groups and itself when it is ready.
        of_slave = [slave.name for slave in slaves if shown(slave) == end.slave]
        is_of_end = pl.col("host").is_in(of_slave) if end.slave else pl.lit(value=True)
        if end.group is not None:
            is_of_end &= is_of_groups("thread", [end.group], slaves, () if end.number is None else [end.number])
        ended_ms = pl.when(is_of_end).then(pl.min_horizontal(ended_ms, pl.lit(end.at_ms))).otherwise(ended_ms)
    is_cut = stopping_ms is not None or ends
    samples = (_with_stopped(rows, ended_ms) if is_cut else rows).select(
        "label",
        pl.col("thread").alias("user"),
        as_numbers("index").cast(pl.Int64, strict=False),
        as_numbers("intended_ms"),
        "start_ms",
        "rtt_ms",
        pl.col("responseCode").cast(pl.Int64, strict=False).alias("status"),
        "ok",
        "cause",
        pl.col("cause").is_in(["timeout", "stopped"]).fill_null(value=False).alias("censored"),
        pl.col("sentBytes").cast(pl.Int64, strict=False).alias("sent_bytes"),
        pl.col("bytes").cast(pl.Int64, strict=False).alias("received_bytes"),
        "host",
        "thread",
        own.alias("source"),
        **further,
    )
    samples.select(*COMMON, *ORIGIN, *further).with_columns(inert()).sink_csv(table, float_precision=3)


def read_users(jtl: Jtl) -> pl.DataFrame:
    """Return the rows labelled user, as a table for the summary."""
    assert jtl.rows is not None  # noqa: S101
    users = _with_cause(jtl.rows.filter(pl.col("label") == USER), jtl.failures, of_users=True)
    return users.select(
        pl.col("thread").alias("user"),
        "host",
        "start_ms",
        pl.col("rtt_ms").alias("elapsed_ms"),
        "ok",
        "cause",
        pl.col("cause").is_in(list(TIMEOUTS)).fill_null(value=False).alias("censored"),
        pl.lit(value=True).alias("ended"),
    ).collect(engine="streaming")


def _with_cause(rows: pl.LazyFrame, failures: pl.DataFrame, *, of_users: bool = False) -> pl.LazyFrame:
    """Return the rows with the cause of their error, null if none; each distinct failure is classified once."""

    def cause(code: str, message: str, failure: str, is_http: bool, is_transaction: bool) -> str:
        if of_users:
            return user_cause(code, message)
        if is_transaction:
            return transaction_cause(message, failure)
        return request_cause(code, message, failure, is_http)

    causes = [(cause(*of_row), key) for *of_row, key in failures.iter_rows()]
    # Not by `replace_strict`, for which all rows would be in memory.
    table = pl.LazyFrame(causes, schema={"cause": pl.String, "_key": pl.String}, orient="row")
    rows = rows.with_columns(pl.when(~pl.col("ok")).then(FAILURE_KEY).alias("_key"))
    return rows.join(table, on="_key", how="left", maintain_order="left").drop("_key")


def _with_stopped(rows: pl.LazyFrame, ended_ms: pl.Expr) -> pl.LazyFrame:
    """The rows of threads that were told to stop at ended_ms, null if never, with the cause of samples cut off then.

    These are the ones that ended after it with an error of the network, an exception, or without any cause: JMeter
    closes their connections. A transaction is cut off if its only failed sample is, whose row stands before its own.
    """
    is_after = (pl.col("start_ms") + pl.col("rtt_ms") >= ended_ms - CLOCK_MS).fill_null(value=False)
    is_stopped = is_after & pl.col("cause").str.extract(r"^([^:]*)").is_in(list(AS_IF_NOT_STOPPED))
    rows = rows.with_columns(is_stopped.fill_null(value=False).alias("_is_stopped"))
    has_stopped = pl.col("_is_stopped").cast(pl.Int8).cum_max().over("host", "thread") == 1
    is_one = pl.col("responseMessage").str.extract(TRANSACTION_MESSAGE) == "1"
    of_one = (pl.col("cause") == FAILED_SAMPLE) & is_one & has_stopped
    cause = pl.when(pl.col("_is_stopped") | of_one).then(pl.lit("stopped")).otherwise("cause")
    return rows.with_columns(cause.alias("cause"))
