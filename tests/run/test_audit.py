"""`./run.sh audit` for real: a planted cache, planted wrong answers under load, neither; and what it refuses."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.docs.test_pages import shown
from tests.in_thread import in_thread
from tests.runs import RunSh

INPUTS = 40
Serve = Callable[..., str]


@contextmanager
def serving(
    *, caches: bool = False, is_confused: bool = False, status: int = 200, work_s: float = 0.03
) -> Iterator[str]:
    """A function that labels texts; `is_confused`: it forgets the label while it works on another text."""
    answered = set[bytes]()
    working: list[bytes] = []

    class LabellingHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            working.append(body)
            if not (caches and body in answered):
                time.sleep(work_s)
            answered.add(body)
            answer = b'{"label": "a"}' if len(working) == 1 or not is_confused else b"{}"
            working.remove(body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with in_thread(ThreadingHTTPServer(("127.0.0.1", 0), LabellingHandler)) as server:
        yield f"http://127.0.0.1:{server.server_port}/"


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda **planted: stack.enter_context(serving(**planted))


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(f'{{"text": "input {n}"}}\n' for n in range(INPUTS)))
    return path


def test_a_planted_cache_is_seen(run_sh: RunSh, serve: Serve, texts: Path) -> None:
    command, _ = shown("auditing.md")
    words = command.replace("http://127.0.0.1:8080/", serve(caches=True)).replace("texts.jsonl", str(texts))
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
    accuracy = record["accuracy"]
    assert accuracy["n"] == accuracy["alone"]["right"] == accuracy["load"]["right"] == INPUTS
    assert not accuracy["is_worse"] and not accuracy["is_status_only"]
    assert done.text("junit.xml").count("<failure") == 1
    assert "It caches" in done.text("index.html")
    # The page again, judged from the raw files.
    folder = run_sh.folder / "audit"
    (folder / "audit.json").write_text(json.dumps(record | {"caching": None, "accuracy": None, "text": ""}))
    again = run_sh("report", str(folder), out="", status=3)
    assert record["text"] in again.stdout
    assert done.json("audit.json") == record


def test_the_prompts_of_a_language_model(run_sh: RunSh, serve: Serve, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.csv"
    prompts.write_text("prompt\n" + "".join(f'"{n} ways to say ""no"""\n' for n in range(INPUTS)))
    _, command = shown("auditing.md")
    words = command.replace("http://127.0.0.1:8000/", serve(caches=True)).replace("prompts.csv", str(prompts))
    done = run_sh(words, out="audit", status=3)
    assert done.json("audit.json")["sameness"]["n"] == INPUTS
    assert "answer_digest" not in done.stderr
    bodies = [row["sent_bytes"] for row in done.rows("load/samples.csv")]
    assert len(bodies) >= INPUTS and min(map(int, bodies)) > 90


def test_wrong_answers_under_load_are_a_loss_of_accuracy(run_sh: RunSh, serve: Serve, texts: Path) -> None:
    words = ("audit", "-t", "jmx/requests.jmx", f"-Jurl={serve(is_confused=True)}", f"-Jbody=@{texts}", "--users", "4")
    done = run_sh(*words, "-Jexpect=$.label", out="audit", status=3)
    assert "It is less accurate under load." in done.stdout
    accuracy = done.json("audit.json")["accuracy"]
    assert accuracy["alone"] == {"right": INPUTS, "wrong": {}, "missing": {}}
    assert accuracy["load"]["wrong"].keys() == {"expect-not-met"}
    wrong = [row for row in done.rows("load/samples.csv") if row["cause"] == "expect-not-met"]
    assert accuracy["load"]["wrong"]["expect-not-met"] <= len(wrong)
    assert accuracy["difference"]["high"] < 0
    assert done.json("load/run.json")["properties"]["users"] == "4"
    sameness = done.json("audit.json")["sameness"]
    assert (sameness["n"], sameness["alone"], sameness["load"]) == (INPUTS, INPUTS, accuracy["load"]["right"])
    assert "The text of answers depends on the load" in done.stdout
    assert "answer_digest" not in done.json("load/summary.json")["labels"]["request"]["times"]


def test_a_function_with_neither_passes(run_sh: RunSh, serve: Serve, texts: Path) -> None:
    """Its answers take long against what a busy machine adds: that could look like a cache."""
    folder = texts.parent / "scans"
    folder.mkdir()
    for n in range(INPUTS):
        (folder / f"{n}.txt").write_text(f"scan {n}")
    done = run_sh("audit", "-t", "jmx/requests.jmx", f"-Jurl={serve(work_s=0.1)}", f"-Jbody=@{folder}", out="audit")
    assert f"No cache was seen: {INPUTS - 5} repeated inputs were between" in done.stdout
    assert "No loss of accuracy was seen" in done.stdout and "Only the status was checked" in done.stdout
    assert "<failure" not in done.text("junit.xml")


def test_a_function_that_fails_cannot_be_judged(run_sh: RunSh, texts: Path) -> None:
    with serving(status=500) as url:
        done = run_sh("audit", "-t", "jmx/requests.jmx", f"-Jurl={url}", f"-Jbody=@{texts}", out="audit", status=1)
    assert f"0 inputs were answered twice, 5 were warm-up, {INPUTS - 5} were without an answer" in done.stderr


def test_a_function_that_is_not_there_leaves_nothing(run_sh: RunSh, texts: Path) -> None:
    words = ("audit", "-t", "jmx/requests.jmx", f"-Jurl=http://127.0.0.1:{run_sh.port}/", f"-Jbody=@{texts}")
    assert "nothing answers at" in run_sh(*words, out="audit", status=1).stderr
    assert not (run_sh.folder / "audit").exists()


def test_a_run_that_was_too_short_or_stopped_says_so(run_sh: RunSh, serve: Serve, texts: Path) -> None:
    words = ("audit", "-t", "jmx/requests.jmx", f"-Jurl={serve(work_s=0.2)}", f"-Jbody=@{texts}")
    short = run_sh(*words, "-Jhold_s=2", out="short", status=1)
    assert "a judgement needs 25 beside the warm-up: give the run more time by -Jhold_s" in short.stderr
    running = run_sh.start(*words, out="stopped")
    running.until(lambda: running.lines("alone/samples.jtl") > 5)
    running.interrupt()
    stopped = running.ended(4)
    assert "The audit was stopped early" in stopped.stdout
    assert stopped.json("audit.json")["state"] == "stopped"
    assert not (stopped.folder / "load").exists()
    assert "Not finished" in stopped.text("index.html")
    assert "The audit was stopped early" in run_sh("report", str(stopped.folder), out="", status=4).stdout


def test_rows_of_a_table_fill_the_request_and_what_is_expected(run_sh: RunSh, serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,label\n" + "".join(f'"say ""{n}"", twice",{"ab"[n < 4]}\n' for n in range(INPUTS)))
    rows = (f"-Jrows=@{path}", "-Jbody={text}", "-Jexpect=$.label == {label}")
    done = run_sh("audit", "-t", "jmx/requests.jmx", f"-Jurl={serve(caches=True)}", *rows, out="audit", status=3)
    accuracy = done.json("audit.json")["accuracy"]
    assert accuracy["alone"]["wrong"] == accuracy["load"]["wrong"] == {"expect-not-met": 4}
    assert not accuracy["is_worse"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-t", "jmx/requests.jmx", "-Jbody=hello"], "the plan has no data set"),
        (["-t", "jmx/requests.jmx", "-Jusers=3"], "the audit sets users itself"),
        (["-t", "jmx/request-rate.jmx"], "has no property users"),
        (["-t", "jmx/chat.jmx"], "ask the model by jmx/requests.jmx"),
        (["-t", "jmx/requests.jmx", "--users", "1"], "'1' is not a whole number from 2"),
    ],
)
def test_what_cannot_be_audited_is_refused_before_anything_is_sent(run_sh: RunSh, words: list[str], why: str) -> None:
    done = run_sh("audit", *words, "-Jurl=http://127.0.0.1:9/", out="refused", status=2)
    assert not (run_sh.folder / "refused").exists()
    assert why in done.stderr
