"""The client as a process: its lines, its causes, its exit status."""

import json
import signal
import socket
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from client import parse_options

USER_KEYS = [
    *("type", "user", "start_ms", "duration_ms", "samples", "samples_ok", "ok", "cause", "causes", "sleep_s"),
    *("encoding", "video", "setup_ms"),
]


@pytest.mark.parametrize("encoding", ["png-base64", "png", "jpeg"])
def test_right_answers(client: Any, requests_seen: list[Any], encoding: str) -> None:
    done = client.run("right", "--encoding", encoding)
    assert (done.status, done.stderr) == (0, "")
    assert [frame["label"] for frame in done.samples] == ["frame"] * 5
    assert list(done.user) == USER_KEYS
    assert [frame["index"] for frame in done.samples] == list(range(5))
    for frame, (_, _, body) in zip(done.samples, requests_seen, strict=True):
        assert frame["ok"] and frame["verified"] and frame["status"] == 200 and frame["cause"] is None
        assert frame["worker"] == ("replica-1" if encoding == "png-base64" else None)
        assert (frame["handler_ms"], frame["model_ms"], frame["faces"], frame["cold"]) == (25.5, 22.125, 1, False)
        assert frame["sent_bytes"] == len(body) and frame["received_bytes"] > 0 and not frame["censored"]
        assert frame["user"] == done.user["user"] and 0 < frame["rtt_ms"] < 20_000
    assert (done.user["samples"], done.user["samples_ok"], done.user["ok"], done.user["causes"]) == (5, 5, True, {})
    assert done.user["setup_ms"] <= done.user["duration_ms"] and done.user["encoding"] == encoding
    assert len({port for _, port, _ in requests_seen}) == 1  # one connection for all frames


@pytest.mark.parametrize(
    ("behaviour", "encoding", "cause", "status"),
    [
        ("garbage", "png-base64", "not-json", 200),
        ("garbage", "png", "not-image", 200),
        ("no-image", "png-base64", "not-image", 200),
        ("cut-image", "png-base64", "not-image", 200),
        ("wrong-size", "png", "wrong-size", 200),
        ("unblurred", "png-base64", "not-blurred", 200),
        ("unblurred", "jpeg", "not-blurred", 200),
        ("changed-outside", "png-base64", "changed-outside", 200),
        ("changed-outside", "jpeg", "changed-outside", 200),
        ("no-faces", "png-base64", "too-few-faces", 200),
        ("500", "png-base64", "status-500", 500),
        ("429", "png", "status-429", 429),
        ("moved", "png", "status-302", 302),
        ("reset", "png-base64", "reset", None),
        ("closed", "png-base64", "reset", None),
        ("truncated", "png-base64", "reset", 200),
    ],
)
def test_wrong_answers(client: Any, behaviour: str, encoding: str, cause: str, status: int | None) -> None:
    done = client.run(behaviour, "--encoding", encoding, "--frames", "2")
    assert (done.status, done.stderr) == (1, "")
    assert [(frame["cause"], frame["status"], frame["ok"]) for frame in done.samples] == [(cause, status, False)] * 2
    assert not any(frame["censored"] for frame in done.samples)
    assert (done.user["ok"], done.user["cause"], done.user["causes"]) == (False, cause, {cause: 2})
    assert (done.user["samples"], done.user["samples_ok"]) == (2, 0)


@pytest.mark.parametrize("behaviour", ["hang", "drip", "drip-headers"])
def test_total_time_out(client: Any, behaviour: str) -> None:
    done = client.run(behaviour, "--frames", "1", "--timeout-s", "0.3")
    (frame,) = done.samples
    assert (done.status, frame["cause"], frame["censored"]) == (1, "timeout", True)
    assert 300 <= frame["rtt_ms"] < 5_000  # far below what dripping would take


def test_refused_connection(client: Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        done = client.run(f"http://127.0.0.1:{unused.getsockname()[1]}/", "--frames", "1")
    (frame,) = done.samples
    assert (done.status, frame["cause"], frame["status"], frame["sent_bytes"]) == (1, "connect", None, 0)


def test_connect_time_out(client: Any) -> None:
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)  # takes one connection in; the next ones get no answer
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/"
        done = client.run(url, "--frames", "1", "--connect-timeout-s", "0.2")
    (frame,) = done.samples
    assert (frame["cause"], frame["censored"], frame["sent_bytes"]) == ("connect-timeout", True, 0)


def test_a_failed_frame_keeps_its_place(client: Any, requests_seen: list[Any]) -> None:
    done = client.run("once-wrong", "--frames", "7")
    assert requests_seen and done.status == 1
    assert [frame["cause"] for frame in done.samples] == [None, None, "status-500", None, None, None, None]
    assert (done.user["samples_ok"], done.user["causes"]) == (6, {"status-500": 1})


def test_more_frames_than_the_video_start_it_again(client: Any, requests_seen: list[Any]) -> None:
    client.run("right", "--frames", "6")
    bodies = [body for _, _, body in requests_seen]
    assert bodies[5] == bodies[0] != bodies[1]


def test_sleep_is_before_each_frame(client: Any) -> None:
    done = client.run("right", "0.2", "--frames", "3")
    intended = [frame["intended_ms"] for frame in done.samples]
    assert [round(later - sooner) for sooner, later in pairwise(intended)] == [200, 200]
    assert intended[0] - done.user["start_ms"] >= 200
    for before, after in pairwise(done.samples):
        assert after["start_ms"] - before["start_ms"] >= 199 + before["rtt_ms"] * 0.9
    assert done.user["sleep_s"] == 0.2


@pytest.mark.parametrize(("share", "least", "most"), [("0", 0, 0), ("0.5", 3, 37), ("1", 40, 40)])
def test_share_of_verified_answers(client: Any, share: str, least: int, most: int) -> None:
    done = client.run("unblurred", "--frames", "40", "--verify-share", share)
    verified = [frame for frame in done.samples if frame["verified"]]
    assert least <= len(verified) <= most
    assert all(frame["ok"] != frame["verified"] for frame in done.samples)


def test_faces_are_counted_even_where_nothing_is_verified(client: Any) -> None:
    assert client.run("no-faces", "--verify-share", "0").user["causes"] == {"too-few-faces": 5}
    assert client.run("no-faces", "--min-faces", "0").status == 0
    assert client.run("right", "--min-faces", "2").user["cause"] == "too-few-faces"


def test_save_keeps_each_users_images_apart(client: Any, tmp_path: Path) -> None:
    users = [client.run("right", "--save", tmp_path, "--encoding", "jpeg").user["user"] for _ in range(2)]
    assert sorted(folder.name for folder in tmp_path.iterdir()) == sorted(users)
    for user in users:
        assert sorted(image.name for image in (tmp_path / user).iterdir()) == [f"{i:06}.jpg" for i in range(5)]


def test_journal_of_many_users_at_once(client: Any, finished: Any, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    users = [client.start("right", "--frames", "20", "--verify-share", "0", "--journal", journal) for _ in range(8)]
    said = []
    for process in users:
        with process:
            done = finished(process)
            assert (done.status, done.stderr) == (0, "")
            said += done.lines
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    starts = [line for line in lines if line["type"] == "start"]
    assert len({start["user"] for start in starts}) == 8
    assert all(list(start) == ["type", "user", "start_ms", "samples"] and start["samples"] == 20 for start in starts)
    for user in {start["user"] for start in starts}:
        mine = [line for line in lines if line["user"] == user]
        assert mine[0]["type"] == "start" and mine[1:] == [line for line in said if line["user"] == user]
        assert len(mine) == 22


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_in_a_frame(client: Any, finished: Any, until: Any, requests_seen: list[Any], number: int) -> None:
    with client.start("hang") as process:
        until(lambda: requests_seen)
        process.send_signal(number)
        done = finished(process)
    (frame,) = done.samples
    assert (done.status, done.stderr) == (1, "")
    assert (frame["cause"], frame["censored"], frame["status"]) == ("stopped", True, None)
    assert (done.user["cause"], done.user["ok"], done.user["causes"]) == ("stopped", False, {"stopped": 1})


def test_stopped_in_a_pause(client: Any, finished: Any, until: Any, requests_seen: list[Any], tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    with client.start("right", "60", "--journal", journal) as process:
        until(lambda: journal.exists() and journal.stat().st_size)
        process.terminate()
        done = finished(process)
    assert requests_seen == []
    assert (done.status, done.samples, done.user["cause"], done.user["samples"]) == (1, [], "stopped", 0)


def test_what_a_killed_user_sent_is_in_the_journal(
    client: Any, until: Any, requests_seen: list[Any], tmp_path: Path
) -> None:
    journal = tmp_path / "journal.jsonl"
    with client.start("right", "0.1", "--journal", journal) as process:
        until(lambda: len(requests_seen) >= 3)
        process.kill()
        process.communicate()
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [line["type"] for line in lines[:3]] == ["start", "sample", "sample"]
    assert "user" not in [line["type"] for line in lines]


def test_a_reader_that_is_gone_ends_the_user(client: Any, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    with client.start("right", "0.05", "--frames", "100", "--journal", journal) as process:
        process.stdout.close()
        assert process.wait(timeout=20) == 1
        assert "stdout" in process.stderr.read()
    types = [json.loads(line)["type"] for line in journal.read_text().splitlines()]
    assert types == ["start", "sample", "user"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--sleep", "3"], "unrecognized"),
        (["-1"], "-1"),
        (["nan"], "nan"),
        (["--frames", "-3"], "-3"),
        (["--timeout-s", "0"], "above 0"),
        (["--verify-share", "1.5"], "at most 1"),
        (["--encoding", "gif"], "gif"),
        (["--url", "ftp://127.0.0.1/"], "ftp:"),
        (["--url", "http://"], "http://"),
        (["--video", "/nowhere/clip.mp4"], "/nowhere/clip.mp4"),
        (["--cache", "/proc/framestorm"], "/proc/framestorm"),
        (["--journal", "/proc/framestorm/journal"], "/proc/framestorm"),
        (["--save", "/proc/framestorm"], "/proc/framestorm"),
    ],
)
def test_bad_use_is_named_and_leaves_no_line(client: Any, arguments: list[str], named: str) -> None:
    done = client.run("right", after=arguments)
    assert (done.status, done.lines) == (2, [])
    assert named in done.stderr and "Traceback" not in done.stderr


def test_help_names_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_options(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for default in ("25.0", "5.0", "1.0", "png-base64", ".local/frames"):
        assert default in text
