"""Plans run by JMeter itself, without a window."""

import csv
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

SCRIPTED_CLIENT = Path(__file__).with_name("scripted_client.py")
# Shared helpers are fixtures; what they return is described in conftest.py.
RunPlan = Callable[..., Any]
StartServer = Callable[..., Any]
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


def read_rows(jtl: Path) -> list[dict[str, str]]:
    with jtl.open(newline="") as file:
        return list(csv.DictReader(file))


def wait_for(condition: Callable[[], bool], what: str, deadline_s: float = 60) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"waited {deadline_s} s for {what}"
        time.sleep(0.1)


def test_video_per_user(
    run_plan: RunPlan, stand_in: StartServer, dashboard: Callable[[], dict[str, dict[str, float]]]
) -> None:
    run = run_plan("video-per-user", url=stand_in().url, users=3, ramp_s=1, frames=37, verify_share=0)
    assert run.count("label", "success", "responseMessage") == {("user", "true", "OK"): 3, ("frame", "true", "OK"): 111}
    assert [(user.get("lb"), len(user.findall("sample"))) for user in run.tree()] == [("user", 37)] * 3
    assert run.errors() == []
    for sub_result, line in zip(run.tree().iterfind("./sample/sample"), run.lines(), strict=True):
        assert (sub_result.get("lb"), sub_result.get("rc"), sub_result.get("by")) == (
            line["label"],
            "200",
            str(line["received_bytes"]),
        )
        assert int(sub_result.get("ts", 0)) == int(line["start_ms"])
        assert int(sub_result.get("t", 0)) == pytest.approx(line["rtt_ms"], abs=0.51)
    statistics = dashboard()
    assert {label: part["sampleCount"] for label, part in statistics.items()} == {"Total": 114, "user": 3, "frame": 111}


def test_every_user_says_why_it_failed(run_plan: RunPlan, scripted: Scripted, tmp_path: Path) -> None:
    causes = {
        "good": ("0", "OK", "true"),
        "garbage": ("0", "not-json-lines", "false"),
        "not-a-frame": ("0", "not-json-lines", "false"),
        "list": ("0", "not-json-lines", "false"),
        "no-user-line": ("0", "no-user-line", "false"),
        "usage": ("2", "exit-2", "false"),
        "killed": ("137", "exit-137", "false"),
        "timeout": ("1", "timeout", "false"),
        "hang": ("137", "user-timeout", "false"),
    }
    run = run_plan("video-per-user", users=len(causes), ramp_s=0, user_timeout_s=4, **scripted(*causes))
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
    plan: str,
    knobs: dict[str, object],
    tmp_path: Path,
    start_plan: Callable[..., subprocess.Popen[bytes]],
    scripted: Scripted,
) -> None:
    process = start_plan(plan, **knobs, **scripted("slow"))
    log = tmp_path / "client.log"
    wait_for(lambda: log.exists() and log.read_text() != "", "the first user")
    (tmp_path / "stop").touch()
    assert process.wait(60) == 0
    users = Counter(row["success"] for row in read_rows(tmp_path / "samples.jtl") if row["label"] == "user")
    assert users == {"true": len(log.read_text().splitlines())}, "every user that started is counted as finished"
    assert "</testResults>" in (tmp_path / "tree.xml").read_text()


@pytest.mark.parametrize("how", ["stop file", "Shutdown"])
def test_a_gentle_stop_lets_http_requests_finish(
    how: str,
    tmp_path: Path,
    start_plan: Callable[..., subprocess.Popen[bytes]],
    stand_in: StartServer,
    frame_dir: Path,
) -> None:
    server = stand_in({"delay_s": 1.5})
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    ports = {"jmeterengine.nongui.port": address[1], "jmeterengine.nongui.maxport": address[1]}
    load = {"rate_per_s": 3, "hold_s": 300, "concurrency_limit": 500}
    process = start_plan("face-blur-http", url=server.url, frame_dir=frame_dir, **load, **ports)
    wait_for(lambda: len(server.requests) > 3, "the first requests")
    if how == "stop file":
        (tmp_path / "stop").touch()
    else:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"Shutdown", address)
    # Idle threads, of which there are hundreds, do not wait for an arrival each.
    assert process.wait(60) == 0
    frames = Counter(row["success"] for row in read_rows(tmp_path / "samples.jtl"))
    assert frames == {"true": len(server.requests)}, "every frame that was sent is counted as answered"


def test_http_sends_frames_in_turn_at_the_rate(run_plan: RunPlan, stand_in: StartServer, frame_dir: Path) -> None:
    server = stand_in(
        {
            "content_type": "image/jpeg",
            "body": b"\xff\xd8",
            "headers": (("X-Faces", "[[1,1,2,2,0.9]]"), ("X-Cold", "1"), ("Server-Timing", "total;dur=3.5")),
        }
    )
    run = run_plan(
        "face-blur-http",
        url=server.url,
        frame_dir=frame_dir,
        encoding="jpeg",
        rate_per_s=12.5,
        hold_s=2,
    )
    assert run.count("label", "success", "handler_ms", "model_ms", "cold", "faces") == {
        ("frame", "true", "3.5", "", "true", "1"): 25
    }
    assert Counter(server.requests) == {
        ("image/jpeg", b"\xff\xd8\x00%d" % index): count for index, count in enumerate((9, 8, 8))
    }
    assert run.errors() == []
    lines = run.lines()
    assert {(line["label"], line["handler_ms"], line["faces"], line["verified"]) for line in lines} == {
        ("frame", 3.5, 1, False)
    }
    assert Counter(line["index"] for line in lines) == {0: 9, 1: 8, 2: 8}
    assert '{"type":"arrivals","due":25,"dropped":0}' in run.log()
    due_ms = sorted(line["intended_ms"] for line in lines)
    assert due_ms[-1] - due_ms[0] == pytest.approx(24 * 80, abs=50)
    assert all(line["start_ms"] - line["intended_ms"] >= -50 for line in lines)


def test_http_says_why_a_frame_failed(run_plan: RunPlan, stand_in: StartServer, frame_dir: Path) -> None:
    server = stand_in(
        {},
        {"status": 500},
        {"status": 429},
        {"body": b"<html>"},
        {"body": b'{"faces": [{}]}'},
        {"body": b'{"image": "aGk=", "faces": []}'},
        {"sent_bytes": 10},
        {"delay_s": 30},
    )
    run = run_plan(
        "face-blur-http",
        url=server.url,
        frame_dir=frame_dir,
        rate_per_s=8,
        hold_s=1,
        timeout_s=3,
    )
    assert run.count("responseCode", "responseMessage", "success") == {
        ("200", "OK", "true"): 1,
        ("500", "status-500", "false"): 1,
        ("429", "status-429", "false"): 1,
        ("200", "not-json", "false"): 1,
        ("200", "not-image", "false"): 1,
        ("200", "too-few-faces", "false"): 1,
        ("reset", "reset", "false"): 1,
        ("timeout", "timeout", "false"): 1,
    }
    assert run.errors() == []


def test_http_without_frames_sends_nothing_and_ends(run_plan: RunPlan, stand_in: StartServer, tmp_path: Path) -> None:
    server = stand_in()
    run = run_plan("face-blur-http", url=server.url, frame_dir=tmp_path / "none", hold_s=300)
    assert (server.requests, run.rows()) == ([], [])
    assert "cut the video first" in run.log()
