"""Report on what a run leaves: `.local/venv/bin/python benchmarks/report_million_rows.py [samples] [kind ...]`.

Makes what a run of face-blur users leaves (tree.xml, journal.jsonl and samples.jtl: users) with that many samples, what
a run of a plan with JMeter's HTTP sampler leaves (samples.jtl: requests), and one with 20 labels and a Transaction
Controller (labels). Prints for each the wall time, CPU time and peak memory of a fresh process that builds the whole
report (start of Python, summary, junit.xml and page included), the sizes of page and summary, and the ratio of the time
to the plain reading of the same files' lines; and of a samples.jtl the time to make it a run first.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from framestorm.model.files import read  # noqa: E402
from framestorm.model.summary import Summary  # noqa: E402
from framestorm.model.units import plural  # noqa: E402

START_MS = 1_790_000_000_000
FRAMES_A_USER = 37
USERS_AT_A_TIME = 50
LABELS = 20
TIMEOUT_MS = 25_000
BUILD = "import sys; from pathlib import Path; from framestorm.report import build; build(Path(sys.argv[1]))"
IMPORT = (
    "import sys; from pathlib import Path; from framestorm.report import build; "
    "from framestorm.results.imported import import_jtl; "
    "import_jtl([Path(sys.argv[1])], Path(sys.argv[2])); build(Path(sys.argv[2]))"
)
READ = "import sys; sum(1 for path in sys.argv[1:] for _ in open(path, 'rb'))"
# Polars has set the first for this process, where it was imported before framestorm. With the second, every process
# would compile all that it imports, as only the first does.
NOT_PASSED_ON = ("_RJEM_MALLOC_CONF", "PYTHONDONTWRITEBYTECODE")
# Not that of wait4, which is at least the peak of the process that started it.
PEAK = "; print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"


def columns(rows: int) -> dict[str, np.ndarray]:
    """Start and response time of frames that users send one after the other, as an hour of load has them."""
    noise = np.random.default_rng(1)
    rtt_ms = np.round(38 + noise.gamma(2, 4, rows), 3)
    rtt_ms[noise.random(rows) < 0.001] = 25_000.0
    start_ms = np.round(START_MS + np.sort(noise.random(rows)) * 3_600_000.0, 3)
    return {"start_ms": start_ms, "rtt_ms": rtt_ms}


def users_run(folder: Path, rows: int) -> list[Path]:
    """A folder as a run of face-blur users leaves it: each hands in its frames as it ends, and all share a journal."""
    paths = [folder / name for name in ("tree.xml", "journal.jsonl", "samples.jtl")]
    with paths[0].open("w") as tree, paths[1].open("w") as journal, paths[2].open("w") as jtl:
        tree.write('<?xml version="1.0" encoding="UTF-8"?>\n<testResults version="1.2">\n')
        jtl.write(
            "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,"
            "sentBytes,grpThreads,allThreads,URL,Latency,Hostname,IdleTime,Connect\n"
        )
        made = columns(rows)
        for first in range(0, rows, USERS_AT_A_TIME * FRAMES_A_USER):
            lines: list[tuple[float, str]] = []
            for number in range(first, min(first + USERS_AT_A_TIME, rows)):
                part = slice(number, first + USERS_AT_A_TIME * FRAMES_A_USER, USERS_AT_A_TIME)
                starts_ms, rtts_ms = made["start_ms"][part].tolist(), made["rtt_ms"][part].tolist()
                lines += user_files(number, starts_ms, rtts_ms, tree, jtl)
            journal.writelines(line for _, line in sorted(lines))
        tree.write("</testResults>\n")
    return paths


def user_files(
    number: int, starts_ms: list[float], rtts_ms: list[float], tree: IO[str], jtl: IO[str]
) -> list[tuple[float, str]]:
    """Write one user to the tree and the rows, as JMeter does; returns the user's journal lines, each with its time."""
    thread, end_ms = f"users-ThreadStarter 1-{number}", max(map(sum, zip(starts_ms, rtts_ms, strict=True)))
    name, ok = f"host-{number}-{starts_ms[0]:.0f}", max(rtts_ms) < TIMEOUT_MS
    lines, samples, rows = [], [], []
    # A client writes a line as the answer comes.
    for index in sorted(range(len(starts_ms)), key=lambda each: starts_ms[each] + rtts_ms[each]):
        start_ms, rtt_ms = starts_ms[index], rtts_ms[index]
        is_ok = rtt_ms < TIMEOUT_MS
        status, cause, handler_ms = (200, None, round(rtt_ms * 0.8, 3)) if is_ok else (None, "timeout", None)
        line = json.dumps(
            {"type": "sample", "label": "frame", "user": name, "index": index, "intended_ms": start_ms,
             "start_ms": start_ms, "rtt_ms": rtt_ms, "status": status, "ok": is_ok, "cause": cause,
             "censored": not is_ok, "sent_bytes": 300_000, "received_bytes": 310_000 if is_ok else 0,
             "handler_ms": handler_ms, "model_ms": handler_ms and round(handler_ms / 2, 3),
             "faces": 1 if is_ok else None, "cold": False if is_ok else None, "verified": is_ok, "worker": None},
            separators=(",", ":"),
        )  # fmt: skip
        lines.append(f"{line}\n")
        success, code, message = str(is_ok).lower(), status or "timeout", cause or "OK"
        samples.append(
            f'  <sample t="{rtt_ms:.0f}" it="0" lt="0" ct="0" ts="{start_ms:.0f}" s="{success}" lb="frame" '
            f'rc="{code}" rm="{message}" tn="{thread}" dt="text" by="310000" sby="300000" ng="8" na="8" hn="host">\n'
            f'    <responseData class="java.lang.String">{line}</responseData>\n  </sample>\n'
        )
        rows.append(
            f"{start_ms:.0f},{rtt_ms:.0f},frame,{code},{message},{thread},text,{success},,310000,300000,8,8,null,0,host,0,0\n"
        )
    user = {"user": name, "start_ms": starts_ms[0]}
    end = {"type": "user", **user, "duration_ms": end_ms - starts_ms[0], "samples": len(lines), "ok": ok,
           "cause": None if ok else "timeout", "causes": {} if ok else {"timeout": 1}}  # fmt: skip
    first, last = (f"{json.dumps(each)}\n" for each in ({"type": "start", **user, "samples": len(lines)}, end))
    status, message, elapsed_ms = (0, "OK", end_ms - starts_ms[0]) if ok else (1, "timeout", end_ms - starts_ms[0])
    tree.write(
        f'<sample t="{elapsed_ms:.0f}" it="0" lt="0" ct="0" ts="{starts_ms[0]:.0f}" s="{str(ok).lower()}" lb="user" '
        f'rc="{status}" rm="{message}" tn="{thread}" dt="text" by="9999" sby="0" ng="8" na="8" hn="host">\n'
    )
    tree.writelines(samples)
    tree.write(f'  <responseData class="java.lang.String">{"".join(lines)}{last}</responseData>\n')
    tree.write('  <samplerData class="java.lang.String">launch.pl client.py</samplerData>\n</sample>\n')
    jtl.write(
        f"{starts_ms[0]:.0f},{elapsed_ms:.0f},user,{status},{message},{thread},text,{str(ok).lower()},,9999,0,8,8,"
        "null,0,host,0,0\n"
    )
    jtl.writelines(rows)
    answered_ms = sorted(start_ms + rtt_ms for start_ms, rtt_ms in zip(starts_ms, rtts_ms, strict=True))
    return list(zip([starts_ms[0], *answered_ms, end_ms + 1], [first, *lines, last], strict=True))


def requests_run(folder: Path, rows: int) -> list[Path]:
    """A folder as a plan with JMeter's HTTP sampler leaves it."""
    ok = pl.col("rtt_ms") < TIMEOUT_MS
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
    return [path]


def labels_run(folder: Path, rows: int) -> list[Path]:
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
    return [path]


def fresh(program: str, *arguments: Path) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak memory in MB of a Python process of its own."""
    began = time.perf_counter()
    command = [sys.executable, "-c", program + PEAK, *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        peak_kib = process.stdout.read().split()[-1:]  # type: ignore[union-attr]
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the process ended with status {process.returncode}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, int(peak_kib[0]) * 1024 / 1e6


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    fresh("from framestorm.report import page, summary")
    makers = {"users": users_run, "requests": requests_run, "labels": labels_run}
    with tempfile.TemporaryDirectory() as temporary:
        for name in sys.argv[2:] or makers:
            folder = Path(temporary) / name
            folder.mkdir()
            raw = makers[name](folder, rows)
            raw_mb = sum(path.stat().st_size for path in raw) / 1e6
            read_s, _, _ = fresh(READ, *raw)
            build_s, cpu_s, peak_mb = fresh(BUILD, folder)
            labels = read(folder / "summary.json", Summary).labels
            assert sum(label.n for name, label in labels.items() if name not in ("all", "user")) == rows
            sizes = {path: (folder / path).stat().st_size / 1e6 for path in ("index.html", "summary.json")}
            print(
                f"{name}: {rows:,} samples, {plural(len(labels), 'label')}, {raw_mb:,.0f} MB: "
                f"whole report {build_s:.2f} s ({cpu_s:.2f} s of CPU), peak {peak_mb:.0f} MB, "
                + ", ".join(f"{path} {size_mb:.1f} MB" for path, size_mb in sizes.items())
                + f"; {build_s / read_s:.1f} times the plain reading of its lines ({read_s:.2f} s)"
            )
            if len(raw) == 1:
                import_s, cpu_s, _ = fresh(IMPORT, raw[0], folder / "imported")
                print(f"{name}: the same as a JTL that is made a run: {import_s:.2f} s ({cpu_s:.2f} s of CPU)")
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
