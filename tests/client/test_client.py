"""The client as a process: its lines, its causes, its exit status."""

import argparse
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import client as frame_client
import tasks
from tests.client.conftest import CLIENT, Client, Done, lines_of, start, wait_until

USER_KEYS = [
    *("type", "user", "start_ms", "duration_ms", "samples", "samples_ok", "ok", "cause", "causes", "sleep_s"),
    *("encoding", "video", "setup_ms"),
]


@pytest.mark.parametrize("encoding", ["png-base64", "png", "jpeg"])
def test_right_answers(client: Client, requests_seen: list[Any], encoding: str) -> None:
    done = client.run("right", "--encoding", encoding)
    assert (done.status, done.stderr) == (0, "")
    assert [frame["label"] for frame in done.samples] == ["frame"] * 5
    assert list(done.user) == USER_KEYS
    assert [frame["index"] for frame in done.samples] == list(range(5))
    for frame, request in zip(done.samples, requests_seen, strict=True):
        assert frame["ok"] and frame["verified"] and frame["status"] == 200 and frame["cause"] is None
        assert frame["worker"] == ("replica-1" if encoding == "png-base64" else None)
        assert (frame["handler_ms"], frame["model_ms"], frame["faces"], frame["cold"]) == (25.5, 22.125, 1, False)
        assert frame["sent_bytes"] == len(request.body) and frame["received_bytes"] > 0 and not frame["censored"]
        assert frame["user"] == done.user["user"] and 0 < frame["rtt_ms"] < 20_000
    assert (done.user["samples"], done.user["samples_ok"], done.user["ok"], done.user["causes"]) == (5, 5, True, {})
    assert done.user["setup_ms"] <= done.user["duration_ms"] and done.user["encoding"] == encoding
    assert len({request.port for request in requests_seen}) == 1  # one connection for all frames


def test_what_the_function_says_of_itself_is_kept_in_part(client: Client) -> None:
    (frame,) = client.run("long-name", "--frames", 1).samples
    assert frame["worker"] == "w" * 200


# Every other wrong image is in test_answer.py and test_verify.py.
@pytest.mark.parametrize(
    ("behaviour", "encoding", "cause", "status"),
    [
        ("garbage", "png-base64", "not-json", 200),
        ("garbage", "png", "not-image", 200),
        ("unblurred", "jpeg", "not-blurred", 200),
        ("no-faces", "png-base64", "too-few-faces", 200),
        ("500", "png-base64", "status-500", 500),
        ("moved", "png", "status-302", 302),
        ("reset", "png-base64", "reset", None),
        ("closed", "png-base64", "reset", None),
        ("truncated", "png-base64", "reset", 200),
        ("negative-chunk", "png-base64", "not-http", 200),
        ("no-chunk-size", "png-base64", "not-http", 200),
        ("cut-chunk", "png-base64", "reset", 200),
        ("two-lengths", "png-base64", "not-http", None),
    ],
)
def test_wrong_answers(client: Client, behaviour: str, encoding: str, cause: str, status: int | None) -> None:
    done = client.run(behaviour, "--encoding", encoding, "--frames", 2)
    assert (done.status, done.stderr) == (1, "")
    assert [(frame["cause"], frame["status"], frame["ok"], frame["censored"]) for frame in done.samples] == [
        (cause, status, False, False)
    ] * 2
    assert (done.user["ok"], done.user["cause"], done.user["causes"]) == (False, cause, {cause: 2})
    assert (done.user["samples"], done.user["samples_ok"]) == (2, 0)


@pytest.mark.parametrize("behaviour", ["hang", "drip", "drip-headers"])
def test_total_time_out(client: Client, behaviour: str) -> None:
    done = client.run(behaviour, "--frames", "1", "--timeout-s", "0.3")
    (frame,) = done.samples
    assert (done.status, frame["cause"], frame["censored"]) == (1, "timeout", True)
    assert 300 <= frame["rtt_ms"] < 5_000  # far below what dripping would take


@pytest.mark.parametrize(("is_full", "cause"), [(False, "connect"), (True, "connect-timeout")])
def test_no_connection(client: Client, is_full: bool, cause: str) -> None:
    with socket.socket() as server, socket.socket() as first, socket.socket() as second:
        server.bind(("127.0.0.1", 0))
        if is_full:
            server.listen(0)  # takes one connection in; the next ones get no answer
            for waiting in (first, second):
                waiting.setblocking(False)
                waiting.connect_ex(server.getsockname())
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        done = client.run(url, "--frames", 1, "--connect-timeout-s", 0.2)
    (frame,) = done.samples
    assert (done.status, frame["cause"], frame["status"], frame["sent_bytes"]) == (1, cause, None, 0)
    assert frame["censored"] == is_full


def test_a_failed_frame_keeps_its_place(client: Client, requests_seen: list[Any]) -> None:
    done = client.run("once-wrong", "--frames", "7")
    assert requests_seen and done.status == 1
    assert [frame["cause"] for frame in done.samples] == [None, None, "status-500", None, None, None, None]
    assert (done.user["samples_ok"], done.user["causes"]) == (6, {"status-500": 1})


def test_more_frames_than_the_video_start_it_again(client: Client, requests_seen: list[Any]) -> None:
    client.run("right", "--frames", "6")
    bodies = [request.body for request in requests_seen]
    assert bodies[5] == bodies[0] != bodies[1]


def test_sleep_is_before_each_frame(client: Client) -> None:
    done = client.run("right", "0.2", "--frames", "3")
    intended = [frame["intended_ms"] for frame in done.samples]
    assert [round(later - sooner) for sooner, later in pairwise(intended)] == [200, 200]
    assert intended[0] - done.user["start_ms"] >= 200
    for before, after in pairwise(done.samples):
        assert after["start_ms"] - before["start_ms"] >= 199 + before["rtt_ms"] * 0.9
    assert done.user["sleep_s"] == 0.2


@pytest.mark.parametrize(("share", "least", "most"), [("0", 0, 0), ("0.5", 3, 37), ("1", 40, 40)])
def test_share_of_verified_answers(client: Client, share: str, least: int, most: int) -> None:
    done = client.run("unblurred", "--frames", "40", "--verify-share", share)
    verified = [frame for frame in done.samples if frame["verified"]]
    assert least <= len(verified) <= most
    assert all(frame["ok"] != frame["verified"] for frame in done.samples)


def test_faces_are_counted_even_where_nothing_is_verified(client: Client) -> None:
    assert client.run("no-faces", "--verify-share", "0").user["causes"] == {"too-few-faces": 5}
    assert client.run("no-faces", "--min-faces", "0").status == 0
    assert client.run("right", "--min-faces", "2").user["cause"] == "too-few-faces"


def test_save_keeps_each_users_images_apart(client: Client, tmp_path: Path) -> None:
    users = [client.run("right", "--save", tmp_path, "--encoding", "jpeg").user["user"] for _ in range(2)]
    assert sorted(folder.name for folder in tmp_path.iterdir()) == sorted(users)
    for user in users:
        assert sorted(image.name for image in (tmp_path / user).iterdir()) == [f"{i:06}.jpg" for i in range(5)]


def test_journal_of_many_users_at_once(client: Client, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    words = ("--frames", 20, "--verify-share", 0, "--journal", journal)
    users = []
    for process in [client.start("right", *words) for _ in range(8)]:
        with process:
            users.append(Done(process))
    lines = lines_of(journal)
    for done in users:
        assert (done.status, done.stderr) == (0, "")
        start, *others = [line for line in lines if line["user"] == done.user["user"]]
        assert (start["type"], start["samples"], list(start)) == ("start", 20, ["type", "user", "start_ms", "samples"])
        assert others == done.lines and len(others) == 21
    assert len(lines) == 8 * 22


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_in_a_frame(each_client: Client, requests_seen: list[Any], number: int) -> None:
    with each_client.start("hang") as process:
        wait_until(lambda: requests_seen)
        process.send_signal(number)
        done = Done(process)
    (frame,) = done.samples
    assert (done.status, done.stderr) == (1, "")
    assert (frame["cause"], frame["censored"], frame["status"]) == ("stopped", True, None)
    assert (done.user["cause"], done.user["ok"], done.user["causes"]) == ("stopped", False, {"stopped": 1})


def test_stopped_in_a_pause(client: Client, requests_seen: list[Any], tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    with client.start("right", 60, "--journal", journal) as process:
        wait_until(lambda: journal.exists() and journal.stat().st_size)
        process.terminate()
        done = Done(process)
    assert requests_seen == []
    assert (done.status, done.samples, done.user["cause"], done.user["samples"]) == (1, [], "stopped", 0)


def test_what_a_killed_user_sent_is_in_the_journal(client: Client, requests_seen: list[Any], tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    with client.start("right", 0.1, "--journal", journal) as process:
        wait_until(lambda: len(requests_seen) >= 3)
        process.kill()
        process.communicate()
    types = [line["type"] for line in lines_of(journal)]
    assert types[:3] == ["start", "sample", "sample"] and "user" not in types


def test_a_reader_that_is_gone_ends_the_user(each_client: Client, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    with each_client.start("right", 0.05, "--frames", 100, "--journal", journal) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.wait(timeout=20) == 1
        assert "stdout" in process.stderr.read()
    assert [line["type"] for line in lines_of(journal)] == ["start", "sample", "user"]


FRAMES, TASKS = "client.py", "tasks.py"


@pytest.mark.parametrize(
    ("program", "words", "named"),
    [
        (FRAMES, ["--sleep", "3"], "unrecognized"),
        (FRAMES, ["-1"], "-1"),
        (FRAMES, ["nan"], "nan"),
        (FRAMES, ["--frames", "-3"], "-3"),
        (FRAMES, ["--timeout-s", "0"], "above 0"),
        (FRAMES, ["--verify-share", "1.5"], "at most 1"),
        (FRAMES, ["--encoding", "gif"], "gif"),
        (FRAMES, ["--url", "ftp://127.0.0.1/"], "ftp:"),
        (FRAMES, ["--url", "http://"], "http://"),
        (FRAMES, ["--journal", "/proc/framestorm/journal"], "/proc/framestorm"),
        (FRAMES, ["--save", "/proc/framestorm"], "/proc/framestorm"),
        (TASKS, ["--mode", "sideways"], "sideways"),
        (TASKS, ["--workers", "0"], "below 1"),
        (TASKS, ["--task-s", "-1"], "at least 0"),
        (TASKS, ["--mode", "push"], "http://"),
        (TASKS, ["--mode", "push", "--url", "http:///f"], "no host"),
        (TASKS, ["--mode", "push", "--url", "http://h:x/f"], "URL 'http://h:x/f' cannot be used: Port"),
        (TASKS, ["--mode", "pull", "--url", "http://h:x/function/f"], "'http://h:x/function/f' cannot be received"),
        (TASKS, ["--mode", "pull", "--url", "http://127.0.0.1:9/f"], "/function/NAME"),
        (TASKS, ["--journal", "/proc/framestorm/journal"], "/proc/framestorm"),
    ],
)
def test_bad_use_is_named_and_leaves_no_line(client: Client, program: str, words: list[str], named: str) -> None:
    usual = ("--mode", "local", "--tasks", 6)
    with client.start("right", *words) if program == FRAMES else start(program, *usual, *words) as process:
        done = Done(process)
    assert (done.status, done.lines) == (2, [])
    assert named in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("program", "words", "said"),
    [
        (FRAMES, ["--url", "http://127.0.0.1:9/f", "--video", "/nowhere/clip.mp4"], b"client: "),
        (TASKS, ["--mode", "pull", "--tasks", 1, "--url", "http://127.0.0.1:9/f"], b"tasks: "),
    ],
)
def test_what_users_say_on_a_shared_stderr_never_mixes(program: str, words: list[object], said: bytes) -> None:
    """On a datagram socket each write arrives as a message of its own."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        command = [sys.executable, str(CLIENT / program), *map(str, words)]
        status = subprocess.call(command, stderr=theirs, timeout=30, env={**os.environ, "PYTHONUNBUFFERED": "1"})
        line = ours.recv(10_000)
    assert status == 2
    assert line.startswith(said) and line.endswith(b"\n"), line


@pytest.mark.parametrize(
    ("words", "named"),
    [(["--video", "/nowhere/clip.mp4"], "/nowhere/clip.mp4"), (["--cache", "/proc/framestorm"], "/proc/framestorm")],
)
def test_a_user_without_frames_says_so(each_client: Client, words: list[str], named: str, tmp_path: Path) -> None:
    """As one that starts after the video was removed."""
    journal = tmp_path / "journal.jsonl"
    with each_client.start("right", *words, "--journal", journal) as process:
        done = Done(process)
    assert [line["type"] for line in lines_of(journal)] == ["start", "user"]
    assert (done.status, done.samples) == (2, [])
    assert (done.user["ok"], done.user["cause"]) == (False, "no-frames")
    assert named in done.stderr and "Traceback" not in done.stderr


def test_a_cached_frame_that_is_gone_ends_its_user(client: Client, tmp_path: Path) -> None:
    words = ("--cache", tmp_path, "--encoding", "jpeg")
    client.run("right", *words)
    (last,) = tmp_path.glob("*/000004.jpg")
    last.unlink()
    done = client.run("right", *words)
    assert (done.status, len(done.samples), done.user["cause"]) == (1, 4, "no-frames")
    assert str(last) in done.stderr


@pytest.mark.parametrize(
    ("parse_options", "defaults"),
    [
        (frame_client.parse_options, {"25.0", "5.0", "1.0", "png-base64", ".local/frames"}),
        (tasks.parse_options, {"120.0", "local: a pool"}),
    ],
)
def test_help_names_the_defaults(
    parse_options: Callable[[list[str]], argparse.Namespace], defaults: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        parse_options(["--help"])
    text = capsys.readouterr().out
    assert {default for default in defaults if default not in text} == set()
