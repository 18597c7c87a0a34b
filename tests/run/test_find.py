"""`./run.sh find` for real, on a function whose capacity is known; and what it refuses."""

import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.in_thread import in_thread
from tests.runs import RunSh
from tests.stand_in import StartServer

ONE_S = 0.1  # of one request, and no two at the same time: 10/s


@pytest.fixture
def one_at_a_time() -> Iterator[str]:
    lock = threading.Lock()

    class OneAtATimeHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with lock:
                time.sleep(ONE_S)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with in_thread(ThreadingHTTPServer(("127.0.0.1", 0), OneAtATimeHandler)) as server:
        yield f"http://127.0.0.1:{server.server_port}/"


RATE = ("-t", "jmx/request-rate.jmx", "-Jramp_s=0", "-Jmethod=GET")


@pytest.mark.long
def test_a_known_capacity_is_found(run_sh: RunSh, one_at_a_time: str) -> None:
    words = ("find", "--over", "rate_per_s=8.1..11.9", "--probe-s", "5", "--drain-s", "0.2", "--at-least", "8.2")
    done = run_sh(*words, *RATE, f"-Jurl={one_at_a_time}", "-Jhold_s=5", out="found")
    record = done.json("find.json")
    assert 8.5 <= record["answer"]["highest"] <= 11
    assert (record["state"], record["answer"]["word"]) == ("complete", "found")
    assert record["answer"]["binding"] == "it keeps up with the rate"
    assert done.text("junit.xml").count("<testcase") == 2
    assert "It carries" in done.text("index.html")
    # The page again from the files, and a search that was stopped after its first probe goes on from there.
    folder = run_sh.folder / "found"
    again = run_sh("report", str(folder), out="")
    assert record["text"] in again.stdout
    kept = record | {"probes": record["probes"][:-1], "state": "stopped", "answer": None}
    (folder / "find.json").write_text(json.dumps(kept))
    run_sh("find", "--resume", str(folder), out="", status=(0, 3))
    resumed = done.json("find.json")
    assert resumed["probes"][: len(kept["probes"])] == kept["probes"]
    assert resumed["state"] == "complete"


def test_a_capacity_is_found_with_the_users_that_reach_it(run_sh: RunSh, one_at_a_time: str) -> None:
    plan = ("-t", "jmx/requests.jmx", "-Jmethod=GET", f"-Jurl={one_at_a_time}")
    done = run_sh("find", "--over", "users=1..8", "--probe-s", "2", "--drain-s", "0", *plan, out="ladder")
    record = done.json("find.json")
    assert [probe["load"] for probe in record["probes"]][:3] == [1, 2, 4]
    assert (record["answer"]["word"], record["answer"]["highest"]) == ("found", 1)
    assert record["answer"]["capacity"]["value"] == pytest.approx(10, rel=0.15)
    assert "It answers at most" in done.text("index.html")


def test_each_probe_is_told_while_it_goes_on(run_sh: RunSh, one_at_a_time: str, stand_in: StartServer) -> None:
    influx = stand_in({"status": 204, "body": b""})
    told = ("--influxdb", f"{influx.origin}/write?db=jmeter", "--live", "0")
    plan = ("-t", "jmx/requests.jmx", "-Jmethod=GET", f"-Jurl={one_at_a_time}")
    done = run_sh("find", "--over", "users=1..2", "--probe-s", "2", "--drain-s", "0", *told, *plan, out="told")
    probes = done.json("find.json")["probes"]
    lines = b"".join(request.body for request in influx.received).decode().splitlines()
    runs = {match[1].replace("\\", "") for line in lines if (match := re.search(r",run=((?:\\.|[^,\\])+)", line))}
    assert runs == {
        f"told {probe['run']} {probe['load']:.0f} user{'s' if probe['load'] > 1 else ''}" for probe in probes
    }
    assert done.stderr.count("live page: http://127.0.0.1:") == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--over", "haste=1..5"], "no property haste"),
        (["--over", "rate_per_s=5..1"], "has to end above|end above its beginning"),
        (["--over", "rate_per_s"], "expected a property and its range"),
        ([], "find needs a property and its range"),
        (["--over", "rate_per_s=1..5", "--slo", "p99.9 < 1 s"], "need 5,000 samples"),
        (["--over", "rate_per_s=1..5", "--slo", "quick"], "--slo"),
        (["--over", "rate_per_s=1..5", "-Jrate_per_s=3"], "set the same property"),
        (["--over", "rate_per_s=1..5", "--stop-if", "quick"], "--stop-if"),
        (["--over", "target.replicas=1..4", "--target", "function=noop"], "-Jurl= and --over target.replicas"),
        (["--over", "rate_per_s=1..5", "--target", "function=noop"], "--target function=noop is for a setting"),
    ],
)
def test_what_cannot_be_sought_is_refused_before_anything_is_sent(run_sh: RunSh, words: list[str], why: str) -> None:
    done = run_sh("find", *words, *RATE, "-Jurl=http://127.0.0.1:9/", out="refused", status=2)
    assert not (run_sh.folder / "refused").exists()
    assert re.search(why, done.stderr)
