"""What it costs to tell others of a run: the live page with a viewer, and a service of each kind, at 500 requests/s.

    .local/venv/bin/python -m benchmarks.sinks [--seconds 30] [--repetitions 3]

The same load is run without and with all of them, in turn. The cost is the CPU time of the conductor, which has their
threads; JMeter, the function, the viewer and the services are processes of their own.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers import PLAN, PROGRAMS, function
from framestorm import conductor
from framestorm.model.files import read
from framestorm.model.sink import KINDS, parse_sink
from framestorm.model.summary import Summary
from framestorm.report import build
from framestorm.run import pieces
from framestorm.run.options import Output, RunOptions, What
from framestorm.setup import pieces as setup
from framestorm.sinks.live_page import LivePage

RATE_PER_S = 500
SERVICE_S = 0.0005
MOST_OF_A_CORE = 0.03
MOST_P99_RATIO = 1.1
PATHS = {"influxdb": "/write", "prometheus": "/api/v1/write", "otlp": "/v1/metrics"}
# Takes all that it is sent, and says on which port.
SERVICE = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
    def log_message(self, *words):
        pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""
# Asks for the page's state as a browser does.
VIEWER = """
import sys, time, urllib.request
while True:
    urllib.request.urlopen(sys.argv[1] + "state?viewer=benchmark").read()
    time.sleep(1)
"""


class Cost(NamedTuple):
    """One run: CPU time of the conductor, how long the run took, and what it measured."""

    cpu_s: float
    took_s: float
    p99_ms: float
    n: int


@contextmanager
def program(text: str, *words: str) -> Iterator[str]:
    """Run a program in Python; yields the first line that it prints, if it prints one."""
    command = [sys.executable, "-c", text, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process.stdout.readline().strip() if process.stdout and not words else ""
        finally:
            process.kill()


def measure(url: str, seconds: int, folder: Path, port: str | None) -> Cost:
    """Make a run that tells a viewer and the services at that port; None: nobody."""
    given = {
        "url": url,
        "method": "POST",
        "body": "x",
        "rate_per_s": str(RATE_PER_S),
        "ramp_s": "0",
        "hold_s": str(seconds),
    }
    sinks = tuple(parse_sink(f"{kind}:http://127.0.0.1:{port}{PATHS[kind]}") for kind in KINDS) if port else ()
    options = RunOptions(What(PLAN, given=given), output=Output(folder, sinks=sinks))
    setup.ensure(pieces.of_run(options.what, options.where))
    began_s, cpu_s = time.monotonic(), time.process_time()
    if port:
        with closing(LivePage(0)) as page, program(VIEWER, page.url):
            conductor.run(options, page=page)
    else:
        conductor.run(options)
    cpu_s, took_s = time.process_time() - cpu_s, time.monotonic() - began_s
    build(folder)
    summary = read(folder / "summary.json", Summary)
    p99 = summary.main.times["rtt"].p99
    assert p99 is not None
    missed = [each for each in summary.run.sinks if each.missed]
    assert not missed, missed
    return Cost(cpu_s, took_s, p99.value, summary.main.n)


def main() -> int:
    """Measure; returns 1 if the cost is above its target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--repetitions", type=int, default=3)
    asked = parser.parse_args()
    setup.ensure(PROGRAMS[:1])
    costs: dict[str, list[Cost]] = {"nobody": [], "everybody": []}
    with function(SERVICE_S) as url, program(SERVICE) as port, tempfile.TemporaryDirectory() as folder:
        for number in range(asked.repetitions):
            for who, of_who in costs.items():
                run_dir = Path(folder, f"{who}-{number}")
                of_who.append(measure(url, asked.seconds, run_dir, port if who == "everybody" else None))
                print(f"{who}: {of_who[-1]}", flush=True)
    cpu_s, p99_ms = (
        {who: statistics.median(getattr(each, name) for each in of_who) for who, of_who in costs.items()}
        for name in ("cpu_s", "p99_ms")
    )
    share = (cpu_s["everybody"] - cpu_s["nobody"]) / asked.seconds
    ratio = p99_ms["everybody"] / p99_ms["nobody"]
    print(f"all sinks: {share:.1%} of a core (target: at most {MOST_OF_A_CORE:.0%})")
    print(f"p99: {p99_ms['everybody']:.2f} ms, {ratio:.2f} times that without (target: at most {MOST_P99_RATIO})")
    return 0 if share <= MOST_OF_A_CORE and ratio <= MOST_P99_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
