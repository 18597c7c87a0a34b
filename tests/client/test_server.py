"""Users started by the client server through its launcher: as those that are started by themselves, and as mortal."""

import json
import os
import pwd
import resource
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from framestorm import client_server
from headers import VARIABLE
from tests.client.conftest import CLIENT, Client, Done, Forked, wait_until
from warm import TIMES, warm_up

SERVER_ENDED, NOT_STARTED = 113, 126  # exit statuses of the launcher


@pytest.mark.parametrize(
    ("behaviour", "words", "status", "named"),
    [
        ("right", [], 0, ""),
        ("500", [], 1, ""),
        ("right", ["--frames", "-3"], 2, "-3"),
        ("right", ["--video", "/nowhere/clip.mp4"], 2, "/nowhere/clip.mp4"),
        ("right", ["--url", "http://"], 2, "http://"),
    ],
)
def test_a_user_is_as_one_that_starts_by_itself(
    client: Client, forked: Forked, behaviour: str, words: list[str], status: int, named: str
) -> None:
    with forked.start(behaviour, *words) as launcher:
        user = Done(launcher)
    plain = client.run(behaviour, *words)
    assert (user.status, user.stderr) == (plain.status, plain.stderr)
    assert user.status == status and named in user.stderr
    assert [list(line) for line in user.lines] == [list(line) for line in plain.lines]
    assert [sample["cause"] for sample in user.samples] == [sample["cause"] for sample in plain.samples]


def test_users_are_processes_of_their_own(forked: Forked, tmp_path: Path) -> None:
    """Each has its own id, group and start, the launcher's folder and environment, and nothing of the server's."""
    launchers = []
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        environment = {"PATH": os.environ["PATH"], "REQUESTS_CA_BUNDLE": "/nowhere"}
        words = ("--journal", "journal.jsonl", "--frames", 1)
        launchers.append(forked.start("hang", *words, cwd=folder, env=environment))
    wait_until(lambda: len(forked.users()) == 3)
    for user in forked.users():
        wait_until(lambda user=user: Path(user.cwd(), "journal.jsonl").exists())
        assert os.getpgid(user.pid) == user.pid
        assert Path(f"/proc/{user.pid}/fd/0").readlink() == Path(os.devnull)
        assert int(Path(f"/proc/{user.pid}/oom_score_adj").read_text()) > 0
    # Two outputs, the input, the journal, the function, the frame, and nothing of the other users.
    wait_until(lambda: {user.num_fds() for user in forked.users()} == {6})
    for launcher in launchers:
        launcher.terminate()
    names = set()
    for launcher in launchers:
        with launcher:
            done = Done(launcher)
        assert (done.status, done.user["cause"]) == (1, "stopped")
        names.add(done.user["user"])
    assert len(names) == 3


def test_the_time_out_of_the_sampler(forked: Forked, requests_seen: list[Any]) -> None:
    launcher = forked.start("hang")
    wait_until(lambda: requests_seen)
    (user,) = forked.users()
    # What `timeout --kill-after` does at last; JMeter's own time-out kills `timeout`, whose end is not the launcher's.
    launcher.kill()
    with launcher:
        user.wait(15)
        assert Done(launcher).samples == []
    words = ["timeout", "1", "perl", CLIENT / "launch.pl", forked.name, sys.executable, CLIENT / "client.py"]
    words += ["--url", f"{forked._words[0]}/hang", *forked._words[1:]]
    done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 124 and '"cause":"stopped"' in done.stdout
    assert forked.users() == []


def test_the_right_ones_end(forked: Forked, requests_seen: list[Any]) -> None:
    """Killed are one user, one launcher, and then the server with the rest."""
    launchers = [forked.start("hang") for _ in range(4)]
    wait_until(lambda: len(requests_seen) == 4)
    users = forked.users()
    users[0].kill()
    wait_until(lambda: [launcher.poll() for launcher in launchers].count(-signal.SIGKILL) == 1)
    running = [launcher for launcher in launchers if launcher.poll() is None]
    running[0].kill()
    wait_until(lambda: len(forked.users()) == 2)
    assert [launcher.poll() for launcher in running[1:]] == [None, None]
    os.kill(forked.server, signal.SIGKILL)
    for launcher in launchers:
        with launcher:
            launcher.communicate()
    assert sorted(launcher.returncode for launcher in launchers) == [-9, -9, SERVER_ENDED, SERVER_ENDED]
    psutil.wait_procs(users, 15)
    assert not any(user.is_running() for user in users)
    with forked.start("right") as launcher:  # who comes later
        assert Done(launcher).status == SERVER_ENDED


def test_a_server_that_hangs_is_ended(forked: Forked, monkeypatch: pytest.MonkeyPatch) -> None:
    server = psutil.Process(forked.server)
    watch = client_server.Heartbeat(forked.name, lambda: False)
    monkeypatch.setattr(client_server, "PING_EVERY_S", 0.05)
    monkeypatch.setattr(client_server, "SILENCE_S", 0.5)
    with forked.start("hang") as launcher:
        wait_until(forked.users)
        assert watch.trouble() is None
        server.suspend()
        wait_until(watch.trouble)
        assert "did not answer" in (watch.trouble() or "")
        assert Done(launcher).status == SERVER_ENDED
    wait_until(lambda: server.status() == psutil.STATUS_ZOMBIE)
    watch.close()


def test_a_server_without_descriptors_keeps_its_users(forked: Forked, requests_seen: list[Any]) -> None:
    """And whoever comes then waits for one."""
    with forked.start("hang") as first:
        wait_until(lambda: requests_seen)
        _, most = resource.prlimit(forked.server, resource.RLIMIT_NOFILE)
        few = psutil.Process(forked.server).num_fds() + 2
        resource.prlimit(forked.server, resource.RLIMIT_NOFILE, (few, most))
        with ExitStack() as stack:
            watchers = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(64)]
            for watcher in watchers:
                watcher.settimeout(15)
                watcher.connect(b"\0" + forked.name.encode())
            for _ in watchers:  # by then, the server has tried to accept all
                watchers[0].send(b"ping")
                assert watchers[0].recv(64) == b"pong\n"
            second = forked.start("right")
            resource.prlimit(forked.server, resource.RLIMIT_NOFILE, (most, most))
        with second:
            assert Done(second).status == 0
        first.terminate()
        assert Done(first).user["cause"] == "stopped"


CANNOT_START = """
import os, sys
import server
def fail(*_):
    raise BlockingIOError("no process is left")
setattr(os, sys.argv.pop(), fail)
server.main()
"""


@pytest.mark.parametrize("call", ["fork", "pidfd_open"])
def test_a_user_that_cannot_be_started_is_no_end_of_the_server(
    function: Any, video: Path, cache: Path, call: str
) -> None:
    name = client_server.new_name("/tests")
    command = [sys.executable, "-c", CANNOT_START, name, call]
    with subprocess.Popen(command, cwd=CLIENT) as server:
        try:
            client_server.Heartbeat(name, lambda: server.poll() is not None).close()
            forked = Forked(name, server.pid, (function.url, "--video", video, "--cache", cache))
            for _ in range(2):
                with forked.start("hang") as launcher:
                    done = Done(launcher)
                assert (done.status, done.samples) == (NOT_STARTED, [])
            assert forked.users() == []
        finally:
            server.kill()


@pytest.mark.parametrize("headers", ["A: ${env:FRAMESTORM_NO_SUCH}", "@/nowhere", "no header"])
def test_headers_of_the_shell_are_not_the_servers(function: Any, video: Path, cache: Path, headers: str) -> None:
    name = client_server.new_name("/tests")
    command = client_server.command(sys.executable, CLIENT, name)
    with subprocess.Popen(command, env={**os.environ, VARIABLE: headers}) as server:
        try:
            client_server.Heartbeat(name, lambda: server.poll() is not None).close()
            forked = Forked(name, server.pid, (function.url, "--video", video, "--cache", cache))
            with forked.start("right", env={**os.environ, VARIABLE: "A: own"}) as launcher:
                assert Done(launcher).status == 0
            assert function.received[-1].headers["A"] == "own"
        finally:
            server.kill()


def test_users_end_with_who_started_the_server(function: Any, video: Path, cache: Path) -> None:
    name = client_server.new_name("/tests")
    script = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:]).pid, flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", script, *client_server.command(sys.executable, CLIENT, name)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        server = psutil.Process(int(parent.stdout.readline()))
        client_server.Heartbeat(name, lambda: False).close()
        forked = Forked(name, server.pid, (function.url, "--video", video, "--cache", cache))
        with forked.start("hang") as launcher:
            wait_until(forked.users)
            (user,) = forked.users()
            parent.kill()
            assert Done(launcher).status == SERVER_ENDED
    gone, left = psutil.wait_procs([server, user], 15)
    assert len(gone) == 2 and left == []


def test_what_is_not_the_servers_runs_by_itself(forked: Forked, tmp_path: Path) -> None:
    """A plan in JMeter alone has no server; a plan's own client and another Python are not what it has imported."""
    print_id = tmp_path / "client.py"
    print_id.write_text("import os; print(os.getpid())")
    other_python = tmp_path / "python"
    other_python.write_text("#!/bin/sh\necho $$\n")
    other_python.chmod(0o755)
    for name, *command in (
        ("", sys.executable, print_id),
        (forked.name, sys.executable, print_id),
        (forked.name, other_python, CLIENT / "client.py"),
    ):
        forked.name = name
        with forked.launch(*command) as launcher:
            assert launcher.communicate(timeout=15) == (f"{launcher.pid}\n", "")


# Listens by a server's name, and tells whoever comes that process 1 is its user, and that it ended well.
IMPOSTOR = r"""
import contextlib, os, socket, sys
os.setuid(65534)
listener = socket.socket(socket.AF_UNIX)
listener.bind(b"\0" + sys.argv[1].encode())
listener.listen()
print("ready", flush=True)
while True:
    connection = listener.accept()[0]
    with contextlib.suppress(OSError):  # who came may be gone
        connection.send(b"pong\npid 1\nexit 0\n")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_account_that_took_the_servers_name_is_not_believed() -> None:
    name = client_server.new_name("/tests")
    command = [sys.executable, "-c", IMPOSTOR, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as impostor:
        try:
            assert impostor.stdout is not None and impostor.stdout.readline() == "ready\n"
            with pytest.raises(PermissionError, match="another account"):
                client_server.Heartbeat(name, lambda: True)
            with Forked(name, impostor.pid, ("http://127.0.0.1:9",)).start("right") as launcher:
                assert Done(launcher).status == SERVER_ENDED
            client_server.Heartbeat(name, lambda: True, account=65534).close()
        finally:
            impostor.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_no_other_account_is_served(forked: Forked) -> None:
    words = ["perl", "-", forked.name, sys.executable, CLIENT / "client.py", "--help"]
    source = (CLIENT / "launch.pl").read_text()
    account = pwd.getpwnam("nobody").pw_uid
    done = subprocess.run([*map(str, words)], input=source, user=account, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (SERVER_ENDED, "")


def test_the_warm_up_runs_all_that_a_user_runs(tmp_path: Path) -> None:
    warm_up(tmp_path / "journal.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert Counter(line["type"] for line in lines) == {"start": 2 * TIMES, "sample": 2 * TIMES, "user": 2 * TIMES}
    samples = [line for line in lines if line["type"] == "sample"]
    assert [line["cause"] for line in samples] == [None] * len(samples)
    assert sum(line.get("verified", False) for line in samples) == TIMES
    assert sum(line.get("tokens", 0) for line in samples) == 4 * TIMES


def test_a_warm_up_that_fails_ends_and_says_why() -> None:
    script = "import warm; warm.ASKED_WITHIN_S = 0.5; warm.warm_up(warm.Path('/proc/framestorm/journal'))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=CLIENT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "client: /proc/framestorm/journal cannot be written" in done.stderr and "warm-up" in done.stderr
