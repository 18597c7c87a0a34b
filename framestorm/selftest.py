"""`./run.sh selftest`: what the kit reports, against what a recording server of the kit's own saw of the same load."""

import hashlib
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

from framestorm import conductor, paths
from framestorm.errors import FramestormError
from framestorm.machine import LOOPBACK
from framestorm.model.files import read
from framestorm.model.summary import Summary
from framestorm.model.units import count, duration
from framestorm.parser import Parser
from framestorm.plain import say
from framestorm.report import build
from framestorm.results.samples import read_samples
from framestorm.run import pieces
from framestorm.run.options import Output, RunOptions, What
from framestorm.setup import pieces as setup

RATE_PER_S, USERS, LENGTH_S, ANSWER_S = 50, 4, 6, 0.02
BODY = '{"of": "selftest"}'
# Of arrivals against their schedule, and of response times against the server's own, where the machine has free cores.
LATE_MS, LONGER_MS = 10.0, 3.0


@dataclass(frozen=True)
class Recorded:
    """One request as the server saw it: when it came (ns of its clock), for how long, and how many were there then."""

    came_ns: int
    took_ns: int
    in_flight: int
    body: str


@dataclass
class Recorder:
    """What a server saw; each answer takes `ANSWER_S`."""

    requests: list[Recorded] = field(default_factory=list)
    in_flight: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, body: bytes, came_ns: int) -> None:
        """Record a request, and wait as long as an answer takes."""
        with self.lock:
            self.in_flight += 1
            in_flight = self.in_flight
        time.sleep(ANSWER_S)
        with self.lock:
            self.in_flight -= 1
            took_ns = time.monotonic_ns() - came_ns
            self.requests.append(Recorded(came_ns, took_ns, in_flight, hashlib.sha256(body).hexdigest()))


@contextmanager
def recording() -> Iterator[tuple[str, Recorder]]:
    """Serve on a free port of this machine's loopback during the block; gives the URL, and what was seen."""
    recorder = Recorder()

    class RecordingHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # an answer is one packet

        def do_POST(self) -> None:
            came_ns = time.monotonic_ns()
            recorder.take(self.rfile.read(int(self.headers.get("Content-Length", 0))), came_ns)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Write no log of requests."""

    server = ThreadingHTTPServer((LOOPBACK, 0), RecordingHandler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_address[1]}/", recorder
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(frozen=True)
class Agreement:
    """One thing that kit and server have to agree on; `is_equal` is None if a saturated machine cannot tell."""

    what: str
    is_equal: bool | None
    words: str

    def __str__(self) -> str:
        state = {True: "ok", False: "DIFFERS", None: "unsure"}[self.is_equal]
        return f"{state:<9}{self.what}: {self.words}"


def compare(summary: Summary, run_dir: Path, recorder: Recorder, users: int | None) -> Iterator[Agreement]:
    """Compare a run's report with what the server saw of it; `users` of a closed load, None for one at a rate."""
    seen = sorted(recorder.requests, key=lambda each: each.came_ns)
    main = summary.main
    yield Agreement("requests", main.n == len(seen), f"{count(main.n)} reported, {count(len(seen))} seen")
    bodies = {each.body for each in seen}
    is_sent = bodies == {hashlib.sha256(BODY.encode()).hexdigest()}
    yield Agreement("bodies", is_sent, "each is the one that was asked for" if is_sent else f"{len(bodies)} different")
    samples = read_samples(run_dir).loaded

    def of_times(what: str, is_equal: bool, words: str) -> Agreement:
        if is_equal or "saturated" not in summary.doubts:
            return Agreement(what, is_equal, words)
        return Agreement(what, None, f"{words}; the machine was saturated, so repeat it with free cores")

    if users is None:
        came_ms = np.array([each.came_ns for each in seen]) / 1e6
        due_ms = np.arange(len(seen)) * 1000 / RATE_PER_S
        apart_ms = np.abs((came_ms - due_ms) - np.median(came_ms - due_ms))
        late_ms = float(np.quantile(apart_ms, 0.95)) if seen else 0.0
        words = f"95 % of the requests came within {duration(late_ms)} of their schedule"
        yield of_times("schedule", late_ms <= LATE_MS, words)
    else:
        most = max((each.in_flight for each in seen), default=0)
        yield of_times("users", most == users, f"{users} asked for, {most} requests in flight at most")
    if samples.height and seen:
        reported_ms = float(np.median(samples["rtt_ms"].to_numpy()))
        served_ms = float(np.median([each.took_ns for each in seen])) / 1e6
        longer_ms = reported_ms - served_ms
        words = f"{duration(reported_ms)} reported (median), {duration(served_ms)} at the server"
        yield of_times("response time", 0 <= longer_ms <= LONGER_MS, words)
    self_check = summary.facts.self_check
    if self_check is not None:
        words = f"JMeter counted {count(self_check.counted)}, {count(self_check.rows)} have a row"
        yield Agreement("self-check", self_check.counted == self_check.rows, words)
        if self_check.residual is not None:
            words = f"{self_check.in_progress:.3g} in progress on average, {self_check.of_rows:.3g} by Little's law"
            yield of_times("self-check of times", "self_check" not in summary.doubts, words)


def main(words: Sequence[str]) -> int:
    """Run both kinds of load against the recording server; returns 1 unless all of it is equal."""
    parser = Parser(
        prog="./run.sh selftest",
        description="Send a load at a rate, and then one of users, to a recording server on this machine's loopback, "
        f"and compare what the kit reports with what the server saw, in about {2 * LENGTH_S + 15} s.",
    )
    parser.parse_args(list(words))
    shared = {"method": "POST", "body": BODY, "ramp_s": "0", "hold_s": str(LENGTH_S)}
    loads = {
        f"{RATE_PER_S} requests per second": ("request-rate.jmx", {"rate_per_s": str(RATE_PER_S)}, None),
        f"{USERS} users": ("requests.jmx", {"users": str(USERS)}, USERS),
    }
    is_equal, stop = True, conductor.StopSignals()
    with tempfile.TemporaryDirectory() as folder, stop.caught():
        for name, (plan, properties, users) in loads.items():
            with recording() as (url, recorder):
                what = What(plan=paths.JMX / plan, given={"url": url, **shared, **properties})
                options = RunOptions(what=what, output=Output(Path(folder, plan)))
                setup.ensure(pieces.of_run(options.what, options.where))
                run_dir = conductor.run(options, stop)
            if stop.count:
                raise FramestormError(f"stopped by {stop.name}: nothing is compared")
            build(run_dir)
            summary = read(run_dir / "summary.json", Summary)
            say(name)
            for comparison in compare(summary, run_dir, recorder, users):
                say(f"  {comparison}")
                is_equal &= comparison.is_equal is True
    return 0 if is_equal else 1
