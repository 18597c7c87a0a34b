"""samples.jtl: JMeter's CSV, read in columns; rows by label, users, what a plan without a client sent."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from framestorm.report.files import whole_lines
from framestorm.report.frames import FRAME_FIELDS, TIME_CAUSES
from framestorm.report.unit import FRAME

NEEDED = ("timeStamp", "elapsed", "label", "success")
OPTIONAL = (
    "responseCode", "responseMessage", "failureMessage", "threadName", "bytes", "sentBytes", "Hostname",
    "index", "intended_ms", "handler_ms", "model_ms", "cold", "faces", "worker",
)  # fmt: skip
CAUSES = (
    "connect", "connect-timeout", "timeout", "reset", "not-json", "not-image", "wrong-size", "not-blurred",
    "changed-outside", "too-few-faces", "stopped", "redirected-as-get",
)  # fmt: skip


@dataclass
class Jtl:
    """samples.jtl as far as it can be read; `rows` is None if not at all. Counts are of rows, by label and host.

    `unit` is the label of those that the report is made of, beside users.
    """

    problem: str | None = None
    rows: pl.LazyFrame | None = None
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    bad_rows: int = 0
    unit: str = FRAME

    def count(self, label: str) -> int:
        return sum(n for (name, _), n in self.counts.items() if name == label)

    def other_labels(self) -> dict[str, int]:
        labels = sorted({label for label, _ in self.counts} - {"user", self.unit})
        return {label: self.count(label) for label in labels}

    def labels(self) -> list[str]:
        """The labels, most frequent first."""
        return sorted({label for label, _ in self.counts}, key=lambda label: (-self.count(label), label))


@contextmanager
def read_jtl(run_dir: Path, default_host: str) -> Iterator[Jtl]:
    """Open `run_dir`/samples.jtl; a half last row is left out and told in `problem`."""
    path = run_dir / "samples.jtl"
    if not path.exists():
        yield Jtl("samples.jtl is missing")
        return
    whole = whole_lines(path, quote=b'"')
    if not whole.kept_bytes:
        yield Jtl("samples.jtl is empty")
        return
    copy = run_dir / ".samples.jtl.whole.tmp"
    problem = None
    try:
        if whole.cut_bytes:
            problem = "samples.jtl ends in the middle of a row; the row was left out"
            _copy(path, copy, whole.kept_bytes)
        yield _scan(copy if whole.cut_bytes else path, default_host, problem)
    finally:
        copy.unlink(missing_ok=True)


def _copy(path: Path, copy: Path, n_bytes: int) -> None:
    shutil.copyfile(path, copy)
    with copy.open("r+b") as file:
        file.truncate(n_bytes)


def _scan(path: Path, default_host: str, problem: str | None) -> Jtl:
    raw = pl.scan_csv(path, infer_schema=False, truncate_ragged_lines=True, ignore_errors=True, encoding="utf8-lossy")
    columns = raw.collect_schema().names()
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        return Jtl(f"samples.jtl has no header line with {', '.join(missing)}; it cannot be read")
    rows = raw.select(
        pl.col("timeStamp").cast(pl.Float64, strict=False).alias("start_ms"),
        pl.col("elapsed").cast(pl.Float64, strict=False).alias("rtt_ms"),
        pl.col("label").fill_null(""),
        (pl.col("success") == "true").alias("ok"),
        *(pl.col(name) if name in columns else pl.lit(None, pl.String).alias(name) for name in OPTIONAL),
    ).with_columns(pl.col("Hostname").fill_null(default_host).alias("host"))
    good = pl.col("start_ms").is_not_null() & pl.col("rtt_ms").is_not_null() & pl.col("ok").is_not_null()
    counted = (
        rows.select("label", "host", good.alias("good"))
        .group_by("label", "host", "good")
        .len()
        .collect(engine="streaming")
    )
    jtl = Jtl(problem, rows.filter(good))
    for label, host, is_good, n in counted.iter_rows():
        if is_good:
            jtl.counts[label, host] = n
        else:
            jtl.bad_rows += n
    return jtl


def write_frames(jtl: Jtl, table: Path) -> int:
    """Write the rows labelled as the unit to the CSV file `table` in the form of frames.csv; returns how many."""
    assert jtl.rows is not None  # noqa: S101 - the caller has seen such rows
    # A plan's own variable is written empty or as its name where it was never set.
    number = {
        name: pl.col(name).cast(pl.Float64, strict=False)
        for name in ("index", "intended_ms", "handler_ms", "model_ms", "faces")
    }
    cause = _cause()
    flags = {name: pl.when(value).then(pl.lit("true")).otherwise(pl.lit("false")) for name, value in (
        ("ok", pl.col("ok")), ("censored", cause.is_in(["timeout", "stopped"]).fill_null(value=False)),
    )}  # fmt: skip
    cold = pl.col("cold").str.to_lowercase()
    frames = jtl.rows.filter(pl.col("label") == jtl.unit).select(
        pl.col("threadName").fill_null("").alias("user"),
        number["index"].cast(pl.Int64),
        number["intended_ms"],
        "start_ms",
        "rtt_ms",
        number["handler_ms"],
        number["model_ms"],
        pl.col("responseCode").cast(pl.Int64, strict=False).alias("status"),
        flags["ok"].alias("ok"),
        cause.alias("cause"),
        flags["censored"].alias("censored"),
        pl.col("sentBytes").cast(pl.Int64, strict=False).alias("sent_bytes"),
        pl.col("bytes").cast(pl.Int64, strict=False).alias("received_bytes"),
        number["faces"].cast(pl.Int64),
        pl.when(cold.is_in(["true", "1"])).then(pl.lit("true")).when(cold.is_in(["false", "0"])).then(pl.lit("false"))
        .alias("cold"),
        pl.lit("false").alias("verified"),
        pl.when(~pl.col("worker").is_in(["", "null", "worker"])).then(pl.col("worker")).alias("worker"),
        "host",
        pl.col("threadName").fill_null("").alias("thread"),
        pl.lit("jtl").alias("source"),
    )  # fmt: skip
    frames.select(FRAME_FIELDS).sink_csv(table, float_precision=3)
    return jtl.count(jtl.unit)


def read_users(jtl: Jtl) -> pl.DataFrame:
    """The rows labelled user as the table that the summary is made of."""
    assert jtl.rows is not None  # noqa: S101
    code, message = pl.col("responseCode").fill_null(""), pl.col("responseMessage").fill_null("").str.to_lowercase()
    cause = (
        pl.when(pl.col("ok"))
        .then(None)
        .when(pl.col("responseMessage").str.contains(r"^[a-z][a-z0-9-]*$"))
        .then(pl.col("responseMessage"))
        .when(message.str.contains("process timeout|timed out"))
        .then(pl.lit("user-timeout"))
        .when(message.str.contains("interrupted"))
        .then(pl.lit("stopped"))
        .when(code == "500")
        .then(pl.lit("not-started"))
        .otherwise(pl.lit("exit-") + code)
    )
    return (
        jtl.rows.filter(pl.col("label") == "user")
        .select(
            pl.col("threadName").fill_null("").alias("user"),
            "host",
            "start_ms",
            pl.col("rtt_ms").alias("elapsed_ms"),
            "ok",
            cause.alias("cause"),
            cause.is_in(["user-timeout", *TIME_CAUSES]).fill_null(value=False).alias("censored"),
            pl.lit(value=True).alias("ended"),
        )
        .collect(engine="streaming")
    )


def _cause() -> pl.Expr:
    """Why a sample of JMeter's HTTP sampler failed, in the client's words; null if it did not."""
    code, message = pl.col("responseCode").fill_null(""), pl.col("responseMessage").fill_null("")
    failure = pl.col("failureMessage").fill_null("")
    seen = pl.concat_str(code, pl.lit(" "), message).str.to_lowercase()
    known = list(CAUSES)
    return (
        pl.when(pl.col("ok"))
        .then(None)
        .when(message.is_in(known))
        .then(message)
        .when(failure.is_in(known))
        .then(failure)
        .when(seen.str.contains("connecttimeout|connect timed out"))
        .then(pl.lit("connect-timeout"))
        .when(seen.str.contains("sockettimeout|read timed out"))
        .then(pl.lit("timeout"))
        .when(seen.str.contains("connectexception|connection refused|unknownhost|noroutetohost"))
        .then(pl.lit("connect"))
        .when(seen.str.contains("nohttpresponse|socketexception|connection reset|connectionclosed|premature"))
        .then(pl.lit("reset"))
        .when(code.str.contains(r"^[1345]\d\d$"))
        .then(pl.lit("status-") + code)
        .when(failure != "")
        .then(pl.lit("failed-check"))
        .otherwise(pl.lit("unknown"))
    )
