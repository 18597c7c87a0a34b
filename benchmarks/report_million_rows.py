"""Report on 1,000,000 rows: `.local/venv/bin/python benchmarks/report_million_rows.py [rows]`.

Makes a run with that many rows in samples.csv, one with that many in samples.jtl, and one with 20 labels and a
Transaction Controller in samples.jtl, and prints for each the wall
time, CPU time and peak memory of a fresh process that builds the whole report (start of Python, summary, junit.xml and
page included), and its ratio to the plain reading of the same file's lines.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from framestorm.model.files import read  # noqa: E402
from framestorm.model.summary import Summary  # noqa: E402
from framestorm.model.units import plural  # noqa: E402

START_MS = 1_790_000_000_000
FRAMES_A_USER = 37
LABELS = 20
BUILD = "import sys; from pathlib import Path; from framestorm.report import build; build(Path(sys.argv[1]))"
READ = "import sys, pathlib; print(sum(1 for _ in open(sys.argv[1], 'rb')))"


def columns(rows: int) -> dict[str, np.ndarray]:
    """Start and response time of frames that users send one after the other, as an hour of load has them."""
    noise = np.random.default_rng(1)
    rtt_ms = np.round(38 + noise.gamma(2, 4, rows), 3)
    rtt_ms[noise.random(rows) < 0.001] = 25_000.0
    start_ms = np.round(START_MS + np.sort(noise.random(rows)) * 3_600_000.0, 3)
    return {"start_ms": start_ms, "rtt_ms": rtt_ms}


def frames_run(folder: Path, rows: int) -> Path:
    """A folder that keeps samples.csv only."""
    made = columns(rows)
    number = np.arange(rows)
    frames = pl.DataFrame(made).with_columns(
        (pl.col("rtt_ms") < 25_000).alias("ok"),
        pl.Series("index", number % FRAMES_A_USER),
        pl.Series("user", number // FRAMES_A_USER).map_elements(
            lambda n: f"host-{n}-{START_MS}", return_dtype=pl.String
        ),
    )
    path = folder / "samples.csv"
    ok = pl.col("ok")
    frames.select(
        pl.lit("frame").alias("label"), "user", "index", pl.col("start_ms").alias("intended_ms"), "start_ms", "rtt_ms",
        pl.when(ok).then((pl.col("rtt_ms") * 0.8).round(3)).alias("handler_ms"),
        pl.when(ok).then((pl.col("rtt_ms") * 0.5).round(3)).alias("model_ms"),
        pl.when(ok).then(200).alias("status"), "ok",
        pl.when(~ok).then(pl.lit("timeout")).alias("cause"), (~ok).alias("censored"),
        pl.lit(300_000).alias("sent_bytes"), pl.lit(310_000).alias("received_bytes"), pl.lit(1).alias("faces"),
        pl.lit(value=False).alias("cold"), ok.alias("verified"), pl.lit("host").alias("host"),
        pl.lit("user 1-1").alias("thread"), pl.lit("tree").alias("source"),
    ).write_csv(path)  # fmt: skip
    return path


def samples_run(folder: Path, rows: int) -> Path:
    """A folder as a plan with JMeter's HTTP sampler leaves it."""
    ok = pl.col("rtt_ms") < 25_000
    path = folder / "samples.jtl"
    pl.DataFrame(columns(rows)).select(
        pl.col("start_ms").cast(pl.Int64).alias("timeStamp"), pl.col("rtt_ms").cast(pl.Int64).alias("elapsed"),
        pl.lit("frame").alias("label"), pl.when(ok).then(pl.lit("200")).otherwise(pl.lit(
            "Non HTTP response code: java.net.SocketTimeoutException")).alias("responseCode"),
        pl.when(ok).then(pl.lit("OK")).otherwise(pl.lit("Non HTTP response message: Read timed out"))
        .alias("responseMessage"), pl.lit("arrivals 1-1").alias("threadName"), pl.lit("text").alias("dataType"),
        ok.alias("success"), pl.lit("").alias("failureMessage"), pl.lit(310_000).alias("bytes"),
        pl.lit(300_000).alias("sentBytes"), pl.lit(8).alias("grpThreads"), pl.lit(8).alias("allThreads"),
        pl.lit("http://127.0.0.1:8080/function/face-blur").alias("URL"), pl.lit(40).alias("Latency"),
        pl.lit(0).alias("IdleTime"), pl.lit(1).alias("Connect"), pl.lit("host").alias("Hostname"),
        (pl.int_range(pl.len()) % FRAMES_A_USER).alias("index"), (pl.col("rtt_ms") * 0.8).round(3).alias("handler_ms"),
        (pl.col("rtt_ms") * 0.5).round(3).alias("model_ms"), pl.lit("false").alias("cold"), pl.lit(1).alias("faces"),
    ).write_csv(path)  # fmt: skip
    return path


def labels_run(folder: Path, rows: int) -> Path:
    """A folder as a plan of many labels leaves it: visits of 19 requests with a Transaction Controller around them."""
    visits, noise = rows // LABELS, np.random.default_rng(2)
    rtt_ms = (2 + noise.gamma(2, 4, (visits, LABELS - 1))).astype(np.int64)
    failed = noise.random((visits, LABELS - 1)) < 0.002
    start_ms = START_MS + np.sort(noise.random(visits) * 3_600_000).astype(np.int64)
    starts = start_ms[:, None] + np.cumsum(rtt_ms, axis=1) - rtt_ms

    def whole(of_samples: np.ndarray, of_visit: np.ndarray) -> np.ndarray:
        return np.column_stack([of_samples, of_visit]).ravel()

    number = np.tile(np.arange(LABELS), visits)
    is_visit, ok = pl.col("number") == LABELS - 1, ~pl.col("failed")
    path = folder / "samples.jtl"
    pl.DataFrame({
        "number": number, "timeStamp": whole(starts, start_ms), "elapsed": whole(rtt_ms, rtt_ms.sum(axis=1)),
        "failed": whole(failed, failed.any(axis=1)), "thread": np.repeat(np.arange(visits) % 50, LABELS),
    }).select(
        "timeStamp", "elapsed",
        pl.when(is_visit).then(pl.lit("whole visit")).otherwise(pl.format("step {}", "number")).alias("label"),
        pl.when(is_visit).then(pl.lit("")).otherwise(pl.lit("200")).alias("responseCode"),
        pl.when(is_visit).then(pl.lit("Number of samples in transaction : 19, number of failing samples : 0"))
        .otherwise(pl.lit("OK")).alias("responseMessage"),
        pl.format("visitors 1-{}", "thread").alias("threadName"), pl.lit("text").alias("dataType"),
        ok.alias("success"),
        pl.when(ok | is_visit).then(pl.lit("")).otherwise(pl.lit("Test failed: text expected to contain /results/"))
        .alias("failureMessage"), (pl.col("elapsed") * 1000).alias("bytes"), pl.lit(300).alias("sentBytes"),
        pl.lit(50).alias("grpThreads"), pl.lit(50).alias("allThreads"),
        pl.when(is_visit).then(pl.lit("null")).otherwise(pl.format("http://127.0.0.1:8080/step/{}", "number"))
        .alias("URL"), (pl.col("elapsed") - 1).alias("Latency"), pl.lit(0).alias("IdleTime"),
        pl.lit(0).alias("Connect"), pl.lit("host").alias("Hostname"),
    ).write_csv(path)  # fmt: skip
    return path


def fresh(*words: str | Path) -> tuple[float, resource.struct_rusage]:
    """Wall seconds of a fresh Python process, and what it used."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", *words], cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"the process ended with status {status}")
    return time.perf_counter() - began, usage


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as temporary:
        for make in (frames_run, samples_run, labels_run):
            folder = Path(temporary) / make.__name__
            folder.mkdir()
            path = make(folder, rows)
            size_mb = path.stat().st_size / 1e6
            read_s, _ = fresh(READ, path)
            build_s, used = fresh(BUILD, folder)
            labels = read(folder / "summary.json", Summary).labels
            assert sum(label.n for name, label in labels.items() if name != "all") == rows
            page_mb = (folder / "index.html").stat().st_size / 1e6
            print(
                f"{path.name}: {rows:,} rows, {plural(len(labels), 'label')}, {size_mb:.0f} MB: "
                f"whole report {build_s:.2f} s "
                f"({used.ru_utime + used.ru_stime:.2f} s of CPU), peak {used.ru_maxrss / 1000:.0f} MB, "
                f"page {page_mb:.1f} MB; {build_s / read_s:.1f} times the plain reading of its lines ({read_s:.2f} s)"
            )


if __name__ == "__main__":
    main()
