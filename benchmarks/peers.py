"""The same load by Framestorm, plain JMeter and other generators, in turn: what each costs and what it sees.

    .local/venv/bin/python -m benchmarks.peers [--seconds 30] [--repetitions 3] [--anyway]

vegeta and k6 are built at pinned versions by the first call (minutes); hey is measured where Debian's package is
installed. wrk and ab keep no rate, so they cannot do the same work. A round takes 15 times the seconds, and 2 minutes.
"""

import argparse
import csv
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from framestorm import paths
from framestorm.machine import LOOPBACK, listens, wait_until
from framestorm.platform.openfaas import parts
from framestorm.run import jmeter
from framestorm.setup import golang
from framestorm.setup import pieces as setup
from framestorm.setup.pieces import Piece

PLAN = paths.JMX / "request-rate.jmx"
CASES = ((0.0005, 100), (0.0005, 500), (0.02, 100))  # s that the function takes, requests/s
BUSY_SHARE = 0.1
CONNECTIONS = 500  # at most, as concurrency_limit of the plan
HEY_WORKERS = 50
K6_SCRIPT = f"""
import http from "k6/http";
export const options = {{
  scenarios: {{ rate: {{ executor: "constant-arrival-rate", rate: Number(__ENV.RATE), duration: __ENV.SECONDS + "s",
    preAllocatedVUs: 50, maxVUs: {CONNECTIONS} }} }},
  summaryTrendStats: ["med", "p(95)", "p(99)"],
}};
export default () => {{ http.post(__ENV.ADDRESS, ""); }};
export const handleSummary = (data) => ({{ [__ENV.OUT]: JSON.stringify(data.metrics) }});
"""


def _peer(name: str, after: Piece) -> Piece:
    module = Path(__file__).parent / "peers" / name
    return golang.program(f"peer-{name}", name, parts.binary(name), module, "tool", after=after)


_SLEEP = next(piece for piece in parts.GO_PIECES if piece.output == parts.binary("sleep"))
_VEGETA = _peer("vegeta", _SLEEP)
PROGRAMS = (_SLEEP, _VEGETA, _peer("k6", _VEGETA))


@dataclass(frozen=True)
class RateLoad:
    """What a generator has to do, and a folder of its own for what it writes."""

    url: str
    rate_per_s: int
    seconds: int
    folder: Path


@dataclass(frozen=True)
class Seen:
    """What a generator tells: its percentiles, how many requests it sent, and when the first was, if it says so."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    sent: int
    failed: int
    first_s: float | None = None


@dataclass(frozen=True)
class Generator:
    """The command of a generator, how its process is recognised, and how its results are read from what it printed."""

    command: Callable[[RateLoad], Sequence[str | Path]]
    is_process: Callable[[list[str]], bool]
    read: Callable[[RateLoad, str], Seen]


@dataclass(frozen=True)
class GeneratorRun:
    """One run of a generator; cpu_us: of a request in the last two thirds of the load."""

    seen: Seen
    cpu_us: float
    beyond_load_s: float


def _nearest_rank(times_ms: Sequence[float], share: float) -> float:
    return sorted(times_ms)[max(0, -(-len(times_ms) * int(share * 100) // 100) - 1)]


def _seen(times_ms: Sequence[float], failed: int, first_s: float | None = None) -> Seen:
    figures = (_nearest_rank(times_ms, share) for share in (0.5, 0.95, 0.99))
    return Seen(*figures, sent=len(times_ms) + failed, failed=failed, first_s=first_s)


def _vegeta(load: RateLoad) -> list[str | Path]:
    program, results = parts.binary("vegeta"), load.folder / "results.bin"
    (load.folder / "targets").write_text(f"POST {load.url}\n")
    rate = ["-rate", str(load.rate_per_s), "-duration", f"{load.seconds}s", "-output", results]
    return [program, "attack", "-targets", load.folder / "targets", *rate]


def _read_vegeta(load: RateLoad, output: str) -> Seen:
    command = [parts.binary("vegeta"), "report", "-type=json", load.folder / "results.bin"]
    report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    times = (report["latencies"][name] / 1e6 for name in ("50th", "95th", "99th"))
    ok = sum(count for status, count in report["status_codes"].items() if status.startswith("2"))
    return Seen(*times, sent=report["requests"], failed=report["requests"] - ok)


def _k6(load: RateLoad) -> list[str | Path]:
    script = load.folder / "script.js"
    script.write_text(K6_SCRIPT)
    values = {"RATE": load.rate_per_s, "SECONDS": load.seconds, "ADDRESS": load.url, "OUT": load.folder / "k6.json"}
    variables = [word for name, value in values.items() for word in ("-e", f"{name}={value}")]
    return [parts.binary("k6"), "run", "--quiet", "--no-usage-report", "--address", "", *variables, script]


def _read_k6(load: RateLoad, output: str) -> Seen:
    metrics = json.loads((load.folder / "k6.json").read_text())
    times = metrics["http_req_duration"]["values"]
    # Its counter of this rate is of requests that failed.
    failed = metrics["http_req_failed"]["values"]["passes"]
    return Seen(times["med"], times["p(95)"], times["p(99)"], metrics["http_reqs"]["values"]["count"], failed)


def _hey(load: RateLoad) -> list[str | Path]:
    workers = ["-c", str(HEY_WORKERS), "-q", f"{load.rate_per_s / HEY_WORKERS:g}"]
    return ["hey", "-z", f"{load.seconds}s", *workers, "-m", "POST", "-o", "csv", load.url]


def _read_hey(load: RateLoad, output: str) -> Seen:
    rows = list(csv.DictReader(output.splitlines()))
    times_ms = [float(row["response-time"]) * 1000 for row in rows if row["status-code"].startswith("2")]
    return _seen(times_ms, len(rows) - len(times_ms))


def _assignments(load: RateLoad) -> list[str]:
    return [f"-Jurl={load.url}", f"-Jrate_per_s={load.rate_per_s}", f"-Jhold_s={load.seconds}"]


def _plain_jmeter(load: RateLoad) -> list[str | Path]:
    java = [paths.JAVA_HOME / "bin" / "java", "-server", "-Xms1g", "-Xmx1g", "-Djava.awt.headless=true"]
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in jmeter.BASE_PACKAGES]
    files = ["-l", load.folder / "samples.jtl", "-j", load.folder / "jmeter.log", f"-Jstop={load.folder}/stop"]
    plan = ["-jar", paths.JMETER_HOME / "bin" / "ApacheJMeter.jar", "-n", "-t", PLAN, *files, *_assignments(load)]
    return [*java, *opens, *plan, "-Jframestorm.warm_up=false"]


def _kit(load: RateLoad) -> list[str | Path]:
    return [paths.ROOT / "run.sh", "-t", PLAN, *_assignments(load), "-o", load.folder / "run"]


def _read_jmeter(load: RateLoad, output: str) -> Seen:
    with next(load.folder.rglob("samples.jtl")).open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["label"] == "request"]
    right = [row for row in rows if row["success"] == "true"]
    times_ms = [float(row["elapsed_us"]) / 1000 if "elapsed_us" in row else float(row["elapsed"]) for row in right]
    return _seen(times_ms, len(rows) - len(right), min(int(row["timeStamp"]) for row in rows) / 1000)


def _runs_a_plan(words: list[str]) -> bool:
    return words[0].endswith("/java") and "-t" in words


GENERATORS = {
    "vegeta": Generator(_vegeta, lambda words: words[0].endswith("vegeta"), _read_vegeta),
    "k6": Generator(_k6, lambda words: words[0].endswith("k6"), _read_k6),
    "hey": Generator(_hey, lambda words: words[0] == "hey", _read_hey),
    "plain JMeter": Generator(_plain_jmeter, _runs_a_plan, _read_jmeter),
    "Framestorm": Generator(_kit, _runs_a_plan, _read_jmeter),
}


@contextmanager
def function(service_s: float) -> Iterator[str]:
    """A function in Go that takes so long for each request; yields its address."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "host": LOOPBACK, "seconds": str(service_s)}
    command = [parts.binary("sleep"), "serve", str(port)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            if not wait_until(lambda: listens(port), 10):
                sys.exit(f"the function does not listen on port {port}")
            yield f"http://{LOOPBACK}:{port}/"
        finally:
            server.terminate()


def measure(generator: Generator, load: RateLoad) -> GeneratorRun:
    """Let a generator do its work, and follow its CPU time meanwhile."""
    used: list[tuple[float, float]] = []  # epoch s, CPU s of the process that makes the load
    started_s = time.time()
    with subprocess.Popen(
        generator.command(load), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=load.folder
    ) as process:
        is_over = threading.Event()
        watch = threading.Thread(target=_follow, args=(process.pid, generator.is_process, used, is_over))
        watch.start()
        output, errors = process.communicate()
        is_over.set()
        watch.join()
    wall_s = time.time() - started_s
    if process.returncode != 0:
        sys.exit(f"{process.args}: status {process.returncode}\n{output[-2000:]}{errors[-2000:]}")
    seen = generator.read(load, output)
    # Those that do not say when they began end with their load.
    end_s = used[-1][0] if seen.first_s is None else seen.first_s + load.seconds
    window = [(at_s, cpu_s) for at_s, cpu_s in used if end_s - load.seconds * 2 / 3 <= at_s <= end_s]
    (first_s, first_cpu_s), (last_s, last_cpu_s) = window[0], window[-1]
    requests = seen.sent / load.seconds * (last_s - first_s)
    return GeneratorRun(seen, (last_cpu_s - first_cpu_s) / requests * 1e6, wall_s - load.seconds)


def _follow(
    top: int, is_process: Callable[[list[str]], bool], used: list[tuple[float, float]], is_over: threading.Event
) -> None:
    maker = None
    while not is_over.wait(0.2):
        with suppress(psutil.Error, IndexError):
            if maker is None:
                below = psutil.Process(top)
                of_run = (below, *below.children(recursive=True))
                maker = next((each for each in of_run if is_process(each.cmdline())), None)
            if maker is not None:
                times = maker.cpu_times()
                used.append((time.time(), times.user + times.system))


def median_of(runs: Sequence[GeneratorRun], figure: Callable[[GeneratorRun], float]) -> float:
    """The median of a figure over the repetitions."""
    return statistics.median(figure(run) for run in runs)


FIGURES: dict[str, Callable[[GeneratorRun], float]] = {
    "CPU a request, us": lambda run: run.cpu_us,
    "p50, ms": lambda run: run.seen.p50_ms,
    "p95, ms": lambda run: run.seen.p95_ms,
    "p99, ms": lambda run: run.seen.p99_ms,
    "beyond the load, s": lambda run: run.beyond_load_s,
}


def show(case: str, due: int, runs: dict[str, list[GeneratorRun]]) -> None:
    """Print the medians of a case, with their ratios to vegeta's and k6's."""
    print(f"\n{case}: medians (times those of vegeta, of k6)\n")
    print(f"| generator | {' | '.join(FIGURES)} | sent of due | failed |\n|{'---|' * (len(FIGURES) + 3)}")
    for name, own in runs.items():
        cells = []
        for title, figure in FIGURES.items():
            value = median_of(own, figure)
            ratios = ", ".join(f"{value / median_of(runs[peer], figure):.2f}" for peer in ("vegeta", "k6"))
            cells.append(
                f"{value:.{0 if title.endswith('us') else 2}f}" + (f" ({ratios})" if "load" not in title else "")
            )
        sent, failed = (sum(getattr(run.seen, field) for run in own) for field in ("sent", "failed"))
        print(f"| {name} | {' | '.join(cells)} | {sent} of {due * len(own)} | {failed} |", flush=True)


def misses(service_s: float, rate_per_s: int, due: int, runs: dict[str, list[GeneratorRun]]) -> list[str]:
    """The targets that Framestorm missed in one case, a sentence each."""
    own, vegeta, k6 = ({title: median_of(runs[name], FIGURES[title]) for title in FIGURES} for name in
                       ("Framestorm", "vegeta", "k6"))  # fmt: skip
    wanted = [
        ("CPU a request", own["CPU a request, us"], 1.2 * k6["CPU a request, us"], "1.2 times k6's"),
        ("beyond the load", own["beyond the load, s"], 8.0, "8 s"),
        ("arrivals dropped", due * len(runs["Framestorm"]) - sum(run.seen.sent for run in runs["Framestorm"]), 0, "0"),
    ]
    if rate_per_s == max(rate for _, rate in CASES):
        wanted.append(("p99", own["p99, ms"], 1.5 * vegeta["p99, ms"] + 0.5, "1.5 times vegeta's + 0.5 ms"))
    if service_s == max(service for service, _ in CASES):
        wanted.append(("p50", own["p50, ms"], 1.02 * vegeta["p50, ms"], "1.02 times vegeta's"))
    return [f"{what} {value:.2f}, at most {most:.2f} ({why})" for what, value, most, why in wanted if value > most]


def main() -> int:
    """Measure and print; 1 when a target was missed, 2 when the machine is busy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=30, help="of each load (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=3, help="of each load (default: %(default)s)")
    parser.add_argument("--anyway", action="store_true", help="measure although the machine is busy")
    asked = parser.parse_args()
    setup.ensure([*setup.FOR_A_RUN, *PROGRAMS])
    busy = psutil.cpu_percent(interval=3) / 100
    state = f"{busy:.0%} of {psutil.cpu_count()} cores busy, load average {os.getloadavg()[0]:.2f}"
    print(f"the machine before: {state}; {asked.seconds} s each, {asked.repetitions} repetitions")
    if busy > BUSY_SHARE:
        print(f"it should be idle (at most {BUSY_SHARE:.0%}): times and their ratios hold for an idle machine only")
        if not asked.anyway:
            return 2
    present = {name: each for name, each in GENERATORS.items() if name != "hey" or shutil.which("hey")}
    if "hey" not in present:
        print("hey is missing: apt-get install hey")
    missed = []
    with tempfile.TemporaryDirectory() as scratch:
        for service_s, rate_per_s in CASES:
            runs: dict[str, list[GeneratorRun]] = {name: [] for name in present}
            for repetition in range(asked.repetitions):
                for name, generator in present.items():
                    folder = Path(scratch) / f"{service_s}-{rate_per_s}-{repetition}-{name.replace(' ', '-')}"
                    folder.mkdir()
                    # A function of its own for each: none finds one that another has warmed.
                    with function(service_s) as url:
                        runs[name].append(measure(generator, RateLoad(url, rate_per_s, asked.seconds, folder)))
            case, due = f"{rate_per_s}/s at {service_s * 1000:g} ms", rate_per_s * asked.seconds
            show(case, due, runs)
            missed += [f"{case}: {each}" for each in misses(service_s, rate_per_s, due, runs)]
    print("\n" + "\n".join(f"missed: {each}" for each in missed) if missed else "\nall targets reached")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
