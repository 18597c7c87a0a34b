import csv
import json
import subprocess
import threading
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from framestorm import paths
from framestorm.model import plan as plans
from framestorm.model.sample import COMMON, SCHEMA
from framestorm.run.jmeter import make_dashboard

ROOT = Path(__file__).resolve().parents[2]
JMX = ROOT / "jmx"
JMETER_TIMEOUT_S = 120
FACE = {"x": 1, "y": 1, "width": 9, "height": 9, "score": 0.9}


@dataclass(frozen=True)
class Run:
    """What a JMeter run left in its folder."""

    folder: Path

    def rows(self) -> list[dict[str, str]]:
        with (self.folder / "samples.jtl").open(newline="") as file:
            return list(csv.DictReader(file))

    def count(self, *columns: str) -> Counter[tuple[str, ...]]:
        return Counter(tuple(row[column] for column in columns) for row in self.rows())

    def tree(self) -> ET.Element:
        return ET.parse(self.folder / "tree.xml").getroot()  # noqa: S314 - see import

    def lines(self) -> list[dict[str, Any]]:
        """The lines of all samples in the tree but users, each as client/sample.json declares it."""
        elements = [element for element in self.tree().iter() if element.tag in ("sample", "httpSample")]
        lines = [json.loads(e.findtext("responseData") or "") for e in elements if e.get("lb") != "user"]
        schema = Draft202012Validator(SCHEMA)
        for line in lines:
            schema.validate(line)
            assert COMMON.keys() <= line.keys()
        return lines

    def log(self) -> str:
        return (self.folder / "jmeter.log").read_text()

    def errors(self) -> list[str]:
        return [line for line in self.log().splitlines() if " ERROR " in line]


RunPlan = Callable[..., Run]


@pytest.fixture
def jmeter() -> list[str]:
    """Return the beginning of a JMeter command."""
    jar = ROOT / ".local" / "jmeter" / "bin" / "ApacheJMeter.jar"
    assert jar.exists(), f"{jar} is missing; ./run.sh makes it"
    # One compiler level: these runs are over before the second one pays.
    return [str(paths.JAVA_HOME / "bin" / "java"), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-jar", str(jar)]


@pytest.fixture
def start_plan(tmp_path: Path, jmeter: list[str]) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a plan without a window, its files in tmp_path, properties as keywords."""
    started: list[subprocess.Popen[bytes]] = []

    def start(plan: str, **knobs: object) -> subprocess.Popen[bytes]:
        properties = {
            "python": ROOT / ".local" / "client-venv" / "bin" / "python",
            "client_dir": ROOT / "client",
            "video": ROOT / ".local" / "sample.mp4",
            "cache": tmp_path / "frames",
            "journal": tmp_path / "journal.jsonl",
            "client_log": tmp_path / "client.log",
            "tree": tmp_path / "tree.xml",
            "stop": tmp_path / "stop",
            "sample_variables": ",".join(plans.read(JMX / f"{plan}.jmx").sample_variables),
            "jmeterengine.nongui.port": 0,  # nobody sends messages, and several tests may run at a time
            # JMeter sets the clock of its samples anew at this interval, by some milliseconds on a busy machine.
            "sampleresult.nanoThreadSleep": 600_000,
            **knobs,
        }
        command = [*jmeter, "-n", "-t", str(JMX / f"{plan}.jmx"), "-q", str(JMX / "user.properties")]
        command += ["-l", str(tmp_path / "samples.jtl"), "-j", str(tmp_path / "jmeter.log")]
        command += [f"-J{name}={value}" for name, value in properties.items()]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=tmp_path)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def run_plan(tmp_path: Path, start_plan: Callable[..., subprocess.Popen[bytes]]) -> RunPlan:
    def run(plan: str, **knobs: object) -> Run:
        assert start_plan(plan, **knobs).wait(JMETER_TIMEOUT_S) == 0
        return Run(tmp_path)

    return run


@pytest.fixture
def dashboard(tmp_path: Path) -> Callable[[], dict[str, dict[str, float]]]:
    """Return a function that makes JMeter's dashboard of samples.jtl and returns its statistics by label."""

    def make() -> dict[str, dict[str, float]]:
        make_dashboard(tmp_path)
        statistics: dict[str, dict[str, float]] = json.loads((tmp_path / "jmeter" / "statistics.json").read_text())
        return statistics

    return make


@dataclass(frozen=True)
class Answer:
    status: int = 200
    content_type: str = "application/json"
    body: bytes | None = None  # None: the image as it came, with one face
    headers: tuple[tuple[str, str], ...] = (("Server-Timing", "model;dur=9.5, total;dur=11.5"),)
    delay_s: float = 0
    sent_bytes: int | None = None  # of the body, then the connection is closed


class StandIn(ThreadingHTTPServer):
    """A function that gives the answers listed, in turn."""

    request_queue_size = 64

    def __init__(self, answers: list[Answer]) -> None:
        super().__init__(("127.0.0.1", 0), StandInHandler)
        self.answers = answers
        self.requests: list[tuple[str | None, bytes]] = []
        self.lock = threading.Lock()
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/function/face-blur"

    def next_answer(self, content_type: str | None, body: bytes) -> Answer:
        with self.lock:
            self.requests.append((content_type, body))
            return self.answers[(len(self.requests) - 1) % len(self.answers)]


class StandInHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = self.server.next_answer(self.headers["Content-Type"], body)
        answered = answer.body
        if answered is None:
            answered = json.dumps({"image": body.decode(), "faces": [FACE], "cold": False}).encode()
        self.server.released.wait(answer.delay_s)
        try:
            self.send_response(answer.status)
            for name, value in (*answer.headers, ("Content-Type", answer.content_type)):
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answered)))
            self.end_headers()
            self.wfile.write(answered[: answer.sent_bytes])
        except OSError:  # the other side has given up
            self.close_connection = True
        if answer.sent_bytes is not None:
            self.close_connection = True


@pytest.fixture
def stand_in() -> Iterator[Callable[..., StandIn]]:
    """Return a function that starts a server with the answers given, each the fields of an Answer that differ."""
    servers: list[StandIn] = []

    def start(*answers: dict[str, Any]) -> StandIn:
        server = StandIn([Answer(**answer) for answer in answers or ({},)])
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
        return server

    yield start
    for server in servers:
        server.released.set()
        server.shutdown()
        server.server_close()
