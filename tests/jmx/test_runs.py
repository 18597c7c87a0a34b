"""Plans run by JMeter itself, without a window."""

import math
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import mean, variance
from typing import Any

import psutil
import pytest
from scipy.stats import kstest

from framestorm import paths
from framestorm.load import kit_load, trace
from framestorm.load.kit_load import KitLoad
from framestorm.machine import wait_until
from framestorm.results.jmeter_log import read_log
from tests.jmx.conftest import JMeterRun, RunPlan, StartPlan, groovy
from tests.stand_in import EARLY, StandIn, StartServer

SCRIPTED_CLIENT = Path(__file__).with_name("scripted_client.py")
Scripted = Callable[..., dict[str, object]]


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, object]]:
    """Return a function that lays out scripts, one a user, and returns the properties that make users follow them."""

    def lay_out(*scripts: str) -> dict[str, object]:
        folder = tmp_path / "scripts"
        folder.mkdir()
        for script in scripts:
            (folder / script).touch()
        monkeypatch.setenv("SCRIPT_DIR", str(folder))
        (folder.parent / "client.py").symlink_to(SCRIPTED_CLIENT)
        (folder.parent / "launch.pl").symlink_to(paths.CLIENT / "launch.pl")
        return {"python": sys.executable, "client_dir": folder.parent}

    return lay_out


@pytest.fixture
def frame_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "encoded"
    folder.mkdir()
    (folder / "meta.json").write_text("{}")
    for index in range(3):
        (folder / f"{index:06}.b64").write_text(f"frame{index}")
        (folder / f"{index:06}.jpg").write_bytes(b"\xff\xd8\x00%d" % index)
    return folder


def received_headers(server: StandIn) -> set[tuple[str | None, ...]]:
    """The host, the key and the type that requests came with."""
    return {tuple(each.headers[name] for name in ("Host", "X-Key", "Content-Type")) for each in server.received}


@pytest.fixture
def headers(monkeypatch: pytest.MonkeyPatch) -> str:
    """Headers that a user adds, with a secret of the environment."""
    monkeypatch.setenv("RUN_KEY", "s3cr3t-of-runs")
    return r"Host: blur.example.com\nX-Key: ${env:RUN_KEY}"


def test_video_per_user(run_plan: RunPlan, stand_in: StartServer, headers: str, tmp_path: Path) -> None:
    server = stand_in()
    run = run_plan("video-per-user", url=server.url, users=3, ramp_s=1, frames=37, verify_share=0, headers=headers)
    assert received_headers(server) == {("blur.example.com", "s3cr3t-of-runs", "text/plain")}
    assert b"s3cr3t" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file())
    assert run.count("label", "success", "responseMessage") == {("user", "true", "OK"): 3, ("frame", "true", "OK"): 111}
    assert [(user.get("lb"), len(user.findall("sample"))) for user in run.tree()] == [("user", 37)] * 3
    assert run.errors() == []
    for sub_result, line in zip(run.tree().iterfind("./sample/sample"), run.sample_lines(), strict=True):
        assert (sub_result.get("lb"), sub_result.get("rc"), sub_result.get("by")) == (
            line["label"],
            "200",
            str(line["received_bytes"]),
        )
        assert int(sub_result.get("ts", 0)) == int(line["start_ms"])
        assert int(sub_result.get("t", 0)) == pytest.approx(line["rtt_ms"], abs=0.51)
    assert {label: part["sampleCount"] for label, part in run.dashboard().items()} == {
        "Total": 114,
        "user": 3,
        "frame": 111,
    }


def test_every_user_says_why_it_failed(run_plan: RunPlan, scripted: Scripted, tmp_path: Path) -> None:
    causes = {
        "good": ("0", "OK", "true"),
        "garbage": ("0", "not-json-lines", "false"),
        "not-a-frame": ("0", "not-json-lines", "false"),
        "list": ("0", "not-json-lines", "false"),
        "no-user-line": ("0", "OK", "true"),
        "usage": ("2", "exit-2", "false"),
        "killed": ("137", "exit-137", "false"),
        "timeout": ("1", "timeout", "false"),
        "hang": ("137", "user-timeout", "false"),
    }
    run = run_plan("video-per-user", users=len(causes), ramp_s=0, user_timeout_s=12, **scripted(*causes))
    rows = [row for row in run.rows() if row["label"] == "user"]
    assert Counter((row["responseCode"], row["responseMessage"], row["success"]) for row in rows) == Counter(
        causes.values()
    )
    # Each keeps its frame, also those that were killed; a time-out keeps its place without a status.
    frames = run.count("label", "responseCode", "responseMessage", "success")
    assert frames["frame", "200", "OK", "true"] == len(causes)
    assert frames["frame", "timeout", "timeout", "false"] == 1
    assert sum(len(user.findall("sample")) for user in run.tree()) == len(causes) + 1
    assert sorted((tmp_path / "client.log").read_text().splitlines()) == sorted(f"on stderr: {name}" for name in causes)
    running = [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]
    assert ["sleep", "61"] not in running, "a child of a user that was ended"


def test_users_under_way_finish_after_the_hold(run_plan: RunPlan, scripted: Scripted) -> None:
    run = run_plan("face-blur", users=2, ramp_s=0, hold_s=1, **scripted("slow", "slow "))
    assert run.count("label", "success")["user", "true"] >= 2
    assert all(len(user.findall("sample")) == 1 for user in run.tree())
    assert run.errors() == []


@pytest.mark.parametrize(
    ("plan", "knobs"), [("face-blur", {"hold_s": 300}), ("video-per-user", {"users": 30, "ramp_s": 300})]
)
def test_stop_file_stops_gently(
    plan: str, knobs: dict[str, object], tmp_path: Path, start_plan: StartPlan, scripted: Scripted
) -> None:
    process = start_plan(plan, **knobs, **scripted("slow"))
    log = tmp_path / "client.log"
    assert wait_until(lambda: log.exists() and log.read_text(), 60), "no user has started"
    (tmp_path / "stop").touch()
    assert process.wait(60) == 0
    users = Counter(row["success"] for row in JMeterRun(tmp_path).rows() if row["label"] == "user")
    assert users == {"true": len(log.read_text().splitlines())}, "every user that started is counted as finished"
    assert "</testResults>" in (tmp_path / "tree.xml").read_text()


@pytest.mark.parametrize("how", ["stop", "Shutdown"])
def test_a_gentle_stop_lets_http_requests_finish(
    how: str, tmp_path: Path, start_plan: StartPlan, stand_in: StartServer, frame_dir: Path
) -> None:
    server = stand_in({"delay_s": 1.5})
    load = {"rate_per_s": 3, "hold_s": 300, "concurrency_limit": 500}
    process = start_plan("face-blur-http", url=server.url, frame_dir=frame_dir, **load)
    assert wait_until(lambda: len(server.requests) > 3, 60), "no requests"
    listening = {each.laddr.port for each in psutil.Process(process.pid).net_connections() if not each.raddr}
    assert listening == set(), "anybody could send JMeter stop messages"
    (tmp_path / how).touch()
    # Idle threads, of which there are hundreds, do not wait for an arrival each.
    assert process.wait(60) == 0
    frames = JMeterRun(tmp_path).count("success")
    assert frames == {("true",): len(server.requests)}, "every frame that was sent is counted as answered"


def test_http_sends_frames_in_turn_at_the_rate(
    run_plan: RunPlan, stand_in: StartServer, frame_dir: Path, headers: str
) -> None:
    figures = (("X-Faces", "[[1,1,2,2,0.9]]"), ("X-Cold", "1"), ("Server-Timing", "total;dur=3.5"))
    server = stand_in({"content_type": "image/jpeg", "body": b"\xff\xd8", "headers": figures})
    load = {"encoding": "jpeg", "rate_per_s": 12.5, "hold_s": 2, "headers": headers}
    run = run_plan("face-blur-http", url=server.url, frame_dir=frame_dir, **load)
    columns = ("label", "success", "handler_ms", "model_ms", "cold", "faces")
    assert run.count(*columns) == {("frame", "true", "3.5", "", "true", "1"): 25}
    assert Counter(server.requests) == {
        ("image/jpeg", b"\xff\xd8\x00%d" % index): count for index, count in enumerate((9, 8, 8))
    }
    assert received_headers(server) == {("blur.example.com", "s3cr3t-of-runs", "image/jpeg")}
    assert {each.headers["Accept"] for each in server.received} == {"image/jpeg"}
    assert run.errors() == []
    lines = run.sample_lines()
    assert {(line["label"], line["handler_ms"], line["faces"], line["verified"]) for line in lines} == {
        ("frame", 3.5, 1, False)
    }
    assert Counter(line["index"] for line in lines) == {0: 9, 1: 8, 2: 8}
    assert '{"type":"arrivals","due":25,"dropped":0}' in run.text("jmeter.log")
    due_ms = sorted(line["intended_ms"] for line in lines)
    assert due_ms[-1] - due_ms[0] == pytest.approx(24 * 80, abs=50)
    assert all(line["start_ms"] - line["intended_ms"] >= -50 for line in lines)


def test_jmeter_alone_refuses_a_load_in_words(run_plan: RunPlan, stand_in: StartServer) -> None:
    run = run_plan("request-rate", url=stand_in().url, load="10/s for 2 s", concurrency_limit=3)
    refusal = "load: ./run.sh reads the words; JMeter alone takes rate_per_s, ramp_s and hold_s"
    assert read_log(run.folder).refusal == refusal
    assert run.rows() == []


def test_a_schedule_of_several_rates_is_kept_and_shared(run_plan: RunPlan, stand_in: StartServer) -> None:
    """20/s for 1 s, a pause of 1 s, then up from 0 to 20/s: of its arrivals every third, from the second on."""
    load = {"framestorm.load": "arrivals 0.0:20.0 1.0:20.0 1.0:0.0 2.0:0.0 2.0:0.0 3.0:20.0 1/3"}
    run = run_plan("request-rate", url=stand_in().url, rate_per_s=1000, hold_s=1000, **load)
    assert '{"type":"arrivals","due":10,"dropped":0}' in run.text("jmeter.log")
    due_ms = sorted(int(row["intended_ms"]) for row in run.rows())
    own = range(1, 30, 3)
    expected_ms = [50 * number if number < 20 else 2000 + 1000 * math.sqrt((number - 20) / 10) for number in own]
    first_ms = due_ms[0] - expected_ms[0]
    assert due_ms == pytest.approx([first_ms + each for each in expected_ms], abs=5)


DRAWN = """
import framestorm.DueTimes
import framestorm.Load
args.each { text ->
    def due = new DueTimes(new Load(text))
    println((0..<due.all).collect { due.nextNs() }.join(' '))
}
"""


def due_times(load: KitLoad, folder: Path) -> list[list[float]]:
    """When arrivals are due, in s since the start: of one JMeter alone, then of each of three together."""
    (folder / kit_load.FILE).write_text(load.written)
    texts = [kit_load.reference(folder), *(kit_load.reference(folder, number, 3) for number in range(3))]
    done = subprocess.run(groovy("-e", DRAWN, *texts), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [[int(word) / 1e9 for word in line.split()] for line in done.stdout.splitlines()]


def test_a_trace_is_replayed_at_its_times(tmp_path: Path) -> None:
    times_s = [0.0, 0.5, 0.5, 0.5, 0.502, 3.0, 10.25, 3000.0, 3000.5]
    arrivals = trace.read(Path("trace.csv"), "\n".join(map(str, times_s)), 1.0)
    whole, *parts = due_times(KitLoad("arrivals", arrivals.points, is_trace=True), tmp_path)
    # Within the millisecond that JMeter's times are cut off to.
    assert whole == pytest.approx(times_s, abs=0.0011)
    assert [len(part) for part in parts] == [3, 3, 3]
    assert parts[1] == pytest.approx(times_s[1::3], abs=0.0011)


def test_arrivals_at_random_are_a_poisson_process_over_any_number_of_jmeters(tmp_path: Path) -> None:
    """10/s for 50 s, then up to 90/s in 50 s: some 3,000."""
    load = KitLoad("arrivals", [(0, 10), (50, 10), (50, 10), (100, 90)], 7)
    whole, *parts = due_times(load, tmp_path)
    assert len(whole) == load.total
    assert sorted(time_s for part in parts for time_s in part) == whole == sorted(whole)
    assert [len(part) for part in parts] == [len(whole[number::3]) for number in range(3)]
    # In units of expected arrivals, the gaps are exponential with a mean of 1, and counts vary as much as their mean.
    due = [10 * x if x <= 50 else 500 + (x - 50) * (10 + (10 + 1.6 * (x - 50))) / 2 for x in whole]
    gaps = [after - before for before, after in pairwise([0.0, *due])]
    assert kstest(gaps, "expon").pvalue > 0.01
    counts = [sum(at <= each < at + 10 for each in due) for at in range(0, 2990, 10)]
    dispersion = variance(counts) / mean(counts)
    assert 0.8 < dispersion < 1.25, "of 299 counts, within 3 standard errors"


def test_users_follow_a_load(run_plan: RunPlan, stand_in: StartServer) -> None:
    """6 users for 1 s, up to 12 in 1 s and on for 2 s, a pause of 2 s, then 3 for 2 s: of them every second."""
    load = {"framestorm.load": "users 0.0:6.0 1.0:6.0 1.0:6.0 2.0:12.0 4.0:12.0 4.0:0.0 6.0:0.0 6.0:3.0 8.0:3.0 1/2"}
    run = run_plan("requests", url=stand_in({"delay_s": 0.05}).url, users=100, hold_s=1000, **load)
    rows = sorted((int(row["timeStamp"]), int(row["allThreads"])) for row in run.rows())
    # Well within each part: a user that is too many ends with its request.
    parts_ms = [(500, 950), (2100, 3900), (5000, 5900), (6500, 7900)]
    most = [max((n for at, n in rows if low <= at - rows[0][0] < high), default=0) for low, high in parts_ms]
    assert most == [3, 6, 0, 1]
    assert run.errors() == []


def test_a_row_that_does_not_fit_on_the_disk_spoils_no_other(
    start_plan: StartPlan, stand_in: StartServer, tmp_path: Path
) -> None:
    """Half a row would spoil the next one, and with a quotation mark all others."""
    disk, log = tmp_path / "disk", tmp_path / "jmeter.log"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", disk], check=True)
    try:
        (disk / "other").write_bytes(bytes(120 << 10))
        server = stand_in({"body": b'{"n": 1}'})
        load = {"users": 1, "ramp_s": 0, "hold_s": 6, "sleep_s": 0.05, "framestorm.samples": disk / "samples.jtl"}
        process = start_plan("requests", url=server.url, figures="n=$.n", **load)
        assert wait_until(lambda: log.exists() and "cannot write to" in log.read_text(), 60), "it never was full"
        (disk / "other").unlink()
        assert process.wait(60) == 0
        rows = JMeterRun(disk).rows()
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)
    lost = read_log(tmp_path).unwritten
    assert lost.keys() == {"No space left on device"}
    assert len(rows) == len(server.received) - lost.total()
    assert {(len(row), row["success"], row["further_figures"]) for row in rows} == {(len(rows[0]), "true", '{"n":1}')}


OF_FRAMES = {
    ("200", "not-json"): {"body": b"<html>"},
    ("200", "not-image"): {"body": b'{"faces": [{}]}'},
    ("200", "too-few-faces"): {
        "body": b'{"image": "aGk=", "faces": [], "timings_ms": {"total": 3.5, "model": "fast"}}',
        "headers": (),
    },
}
FINAL = b"HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
OF_REQUESTS = {("204", "OK"): {"status": 204, "body": b""}, ("201", "OK"): {"raw": EARLY + FINAL}}


@pytest.mark.parametrize(("plan", "more"), [("face-blur-http", OF_FRAMES), ("request-rate", OF_REQUESTS)])
def test_a_plan_says_why_a_request_failed(
    plan: str, more: dict[tuple[str, str], Any], run_plan: RunPlan, stand_in: StartServer, frame_dir: Path
) -> None:
    answers: dict[tuple[str, str], dict[str, Any]] = {
        ("200", "OK"): {},
        ("500", "status-500"): {"status": 500, "body": b"\x00broken" * 100},
        ("429", "status-429"): {"status": 429},
        ("reset", "reset"): {"sent_bytes": 3},
        ("timeout", "timeout"): {"delay_s": 30},
        **more,
    }
    load = {"rate_per_s": len(answers), "hold_s": 1, "timeout_s": 3, "concurrency_limit": 20}
    server = stand_in(*answers.values())
    run = run_plan(plan, url=server.url, frame_dir=frame_dir, **load)
    assert run.count("responseCode", "responseMessage", "success") == {
        (*answer, str(answer[1] == "OK").lower()): 1 for answer in answers
    }
    assert run.errors() == []
    if plan == "face-blur-http":
        assert run.count("responseMessage", "handler_ms", "model_ms")["too-few-faces", "3.5", ""] == 1
    if plan == "request-rate":
        assert {body for _, body in server.requests} == {b""}
        # Of a long answer only how it begins is kept.
        assert run.tree().find("httpSample[@rc='500']").findtext("responseData") == ("?broken" * 29)[:200]


def test_http_without_frames_sends_nothing_and_ends(run_plan: RunPlan, stand_in: StartServer, tmp_path: Path) -> None:
    server = stand_in()
    run = run_plan("face-blur-http", url=server.url, frame_dir=tmp_path / "none", hold_s=300)
    assert (server.requests, run.rows()) == ([], [])
    assert "cut the video first" in run.text("jmeter.log")


def test_tasks_of_one_user(run_plan: RunPlan, stand_in: StartServer, headers: str) -> None:
    server = stand_in({"body": b"ok", "headers": (("X-Worker", "replica-1"),)})
    run = run_plan("tasks", mode="push", url=server.url, workers=2, tasks=8, task_s=0.01, headers=headers)
    assert received_headers(server) == {("blur.example.com", "s3cr3t-of-runs", "text/plain")}
    assert run.count("label", "success", "responseMessage") == {("user", "true", "OK"): 1, ("task", "true", "OK"): 8}
    assert {body for _, body in server.requests} == {b"0.01"}
    assert sorted((line["label"], line["index"]) for line in run.sample_lines()) == [("task", n) for n in range(8)]
    assert run.lines("journal.jsonl") == 10
    assert run.errors() == []


def test_tasks_that_take_too_long_are_ended(run_plan: RunPlan, tmp_path: Path) -> None:
    # On a busy machine the client alone takes seconds to start, and one that has not is ended without a task.
    run = run_plan("tasks", mode="local", workers=2, tasks=4, task_s=60, user_timeout_s=25)
    assert run.count("label", "responseMessage") == {("user", "user-timeout"): 1, ("task", "stopped"): 4}
    running = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert not [line for line in running if "tasks.py" in line and str(tmp_path) in line]


def test_median_is_over_all_rows(tmp_path: Path) -> None:
    # JMeter's own setting looks at the last 20,000 rows and says 10 ms.
    header = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage"
    elapsed_ms = [1000] * 80_000 + [10] * 20_000
    rows = (
        f"{1_700_000_000_000 + index},{ms},frame,200,OK,t 1-1,text,true,,9,9,1,1,null,0,host,0,0"
        for index, ms in enumerate(elapsed_ms)
    )
    columns = f"{header},bytes,sentBytes,grpThreads,allThreads,URL,Latency,Hostname,IdleTime,Connect"
    (tmp_path / "samples.jtl").write_text("\n".join([columns, *rows]) + "\n")
    statistics = JMeterRun(tmp_path).dashboard()["frame"]
    assert (statistics["sampleCount"], statistics["medianResTime"]) == (100_000, 1000)
