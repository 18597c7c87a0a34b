"""`./run.sh audit` for real, on a function with a planted cache and on one without; and what it refuses."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.docs.test_pages import shown
from tests.runs import RunSh

WORK_S, INPUTS = 0.03, 40
Serve = Callable[[bool], str]


@contextmanager
def serving(*, caches: bool, status: int = 200) -> Iterator[str]:
    answered = set[bytes]()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if not (caches and body in answered):
                time.sleep(WORK_S)
            answered.add(body)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda caches: stack.enter_context(serving(caches=caches))


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(f'{{"text": "input {n}"}}\n' for n in range(INPUTS)))
    return path


def test_a_planted_cache_is_seen(run_sh: RunSh, serve: Serve, texts: Path) -> None:
    (command,) = shown("auditing.md")
    words = command.replace("http://127.0.0.1:8080/", serve(True)).replace("texts.jsonl", str(texts))
    done = run_sh(words, out="audit", status=3)
    assert "It caches: the second answer to the same input takes" in done.stdout
    record = done.json("audit.json")
    caching = record["caching"]
    assert record["state"] == "complete" and caching["is_faster"] and caching["is_often_hit"]
    assert caching["ratio"]["value"] < 0.5
    assert len(caching["pairs"]) == INPUTS - 5 and record["left_out"] == {"warm-up": 5}
    assert {each["number"] for each in caching["pairs"]} == {*range(6, INPUTS + 1)}
    # By the raw file: the two times of an input.
    rows = sorted(done.rows("alone/samples.csv"), key=lambda row: float(row["start_ms"]))
    assert [int(row["index"]) for row in rows[: 2 * INPUTS]] == [*range(2 * INPUTS)]
    places = [at for at, number in enumerate(record["order"]) if number == 9]
    pair = next(each for each in caching["pairs"] if each["number"] == 10)
    times = [float(rows[at]["rtt_ms"]) for at in places]
    assert times == [pair["first_ms"], pair["second_ms"]]
    assert done.text("junit.xml").count("<failure") == 1
    assert "It caches" in done.text("index.html")
    # The page again, judged from the raw files.
    folder = run_sh.folder / "audit"
    (folder / "audit.json").write_text(json.dumps(record | {"caching": None, "text": ""}))
    again = run_sh("report", str(folder), out="", status=3)
    assert record["text"] in again.stdout
    assert done.json("audit.json") == record


def test_a_function_without_a_cache_passes(run_sh: RunSh, serve: Serve, texts: Path) -> None:
    folder = texts.parent / "scans"
    folder.mkdir()
    for n in range(INPUTS):
        (folder / f"{n}.txt").write_text(f"scan {n}")
    done = run_sh("audit", "-t", "jmx/requests.jmx", f"-Jurl={serve(False)}", f"-Jbody=@{folder}", out="audit")
    assert f"No cache was seen: {INPUTS - 5} repeated inputs were between" in done.stdout
    assert "<failure" not in done.text("junit.xml")


def test_a_function_that_fails_cannot_be_judged(run_sh: RunSh, texts: Path) -> None:
    with serving(caches=False, status=500) as url:
        done = run_sh("audit", "-t", "jmx/requests.jmx", f"-Jurl={url}", f"-Jbody=@{texts}", out="audit", status=1)
    assert f"0 inputs were answered twice, 5 were warm-up, {INPUTS - 5} were without an answer" in done.stderr


def test_a_function_that_is_not_there_leaves_nothing(run_sh: RunSh, texts: Path) -> None:
    words = ("audit", "-t", "jmx/requests.jmx", f"-Jurl=http://127.0.0.1:{run_sh.port}/", f"-Jbody=@{texts}")
    assert "nothing answers at" in run_sh(*words, out="audit", status=1).stderr
    assert not (run_sh.folder / "audit").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-t", "jmx/requests.jmx", "-Jbody=hello"], "the plan has no data set"),
        (["-t", "jmx/requests.jmx", "-Jusers=3"], "the audit sets users itself"),
        (["-t", "jmx/request-rate.jmx"], "has no property users"),
    ],
)
def test_what_cannot_be_audited_is_refused_before_anything_is_sent(run_sh: RunSh, words: list[str], why: str) -> None:
    done = run_sh("audit", *words, "-Jurl=http://127.0.0.1:9/", out="refused", status=2)
    assert not (run_sh.folder / "refused").exists()
    assert why in done.stderr
