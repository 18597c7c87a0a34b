"""What a virtual user costs its machine besides requests: CPU until the first frame is sent, CPU for each frame.

    .local/client-venv/bin/python benchmarks/client_cost.py [--video .local/sample.mp4]

A user's process runs against a tiny server in this process that gives one canned answer. Attribution:
- start: /proc/<pid>/schedstat of the user (ns on a CPU, its interpreter's start included) when its first connection
  is accepted, with the frames cached before; the least of the runs, as other work of the machine only adds.
- frame: user + system time of the ended process (wait4) over many frames minus one over a single frame, per frame
  between; from it is taken the same of a bare loop over requests' Session.send that sends the same bodies and reads
  the same answers. No answer is verified. The median of the runs.

Then the two ways to start a user, in turn: an interpreter of its own, and client/server.py's fork. For each:
- one user: CPU of all processes that a user with one frame takes: interpreter, or launcher, fork and server.
- memory: private memory (smaps_rollup) of a user that pauses after its first, verified frame, and of its launcher.
- held: how many of the users that were started send a frame every 2 s; none is verified.
"""

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

CLIENT = Path(__file__).resolve().parents[1] / "client"
START_LIMIT_MS, FRAME_LIMIT_MS = 150.0, 0.5
FORKS = 20  # at a time: the kernel counts the server's time in ticks
FORK_LIMIT_MS, FORK_LIMIT_MB = 15.0, 5.0
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")

BARE_LOOP = """
import json, sys
from pathlib import Path
import requests
url, folder, suffix, frames = sys.argv[1:]
bodies = [path.read_bytes() for path in sorted(Path(folder).glob("*" + suffix))]
session = requests.Session()
session.trust_env = False
request = requests.Request("POST", url, headers={"Accept-Encoding": "identity"}).prepare()
for index in range(int(frames)):
    request.body = bodies[index % len(bodies)]
    request.headers["Content-Length"] = str(len(request.body))
    with session.send(request, stream=True, timeout=(5, 25), allow_redirects=False) as response:
        b"".join(response.iter_content(65536))
"""


class Server:
    """Gives every request the same answer; notes the CPU time of the user under test when it connects."""

    def __init__(self) -> None:
        self.answer = b""
        self.connections = 0
        self.watched: int | None = None
        self.cpu_at_connect_ms: float | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            self.connections += 1
            if self.watched is not None:
                on_cpu_ns = Path(f"/proc/{self.watched}/schedstat").read_text().split()[0]
                self.cpu_at_connect_ms, self.watched = int(on_cpu_ns) / 1e6, None
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, connection.makefile("rb", 1 << 20) as received:
            while line := received.readline():
                length = 0
                while line.strip():
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                    line = received.readline()
                received.read(length)
                connection.sendall(self.answer)


def canned_answer(frame: bytes, encoding: str) -> bytes:
    """An answer as large as the function's: the frame itself, one face, times."""
    if encoding == "png-base64":
        face = {"x": 1, "y": 1, "width": 9, "height": 9, "score": 0.9}
        body = json.dumps({"image": frame.decode(), "faces": [face], "timings_ms": {"model": 22.1, "total": 25.1}})
        headers, content = "", body.encode()
    else:
        headers = "Server-Timing: model;dur=22.1, total;dur=25.1\r\nX-Faces: [[1,1,9,9,0.9]]\r\nX-Cold: 0\r\n"
        content = frame
    return f"HTTP/1.1 200 OK\r\n{headers}Content-Length: {len(content)}\r\n\r\n".encode() + content


def cpu_ms(command: list[str], server: Server | None = None, any_status: bool = False) -> float:
    """Run the command and return its user and system time."""
    with tempfile.TemporaryFile() as lines:
        process = subprocess.Popen(command, stdout=lines)
        if server is not None:
            server.watched = process.pid
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert any_status or process.returncode == 0, f"{command} ended with {process.returncode}"
    return (usage.ru_utime + usage.ru_stime) * 1000


def measure(server: Server, given: argparse.Namespace, cache: str, encoding: str) -> tuple[float, float, float]:
    """Return CPU in ms: until the first frame, for a frame outside of requests, for a frame within requests."""
    which = ["--video", str(given.video), "--cache", cache, "--encoding", encoding]
    prepare = [sys.executable, str(CLIENT / "frames.py"), *which]
    cached = json.loads(subprocess.run(prepare, check=True, stdout=subprocess.PIPE).stdout)
    server.answer = canned_answer((Path(cached["folder"]) / f"000000{cached['suffix']}").read_bytes(), encoding)
    user = [sys.executable, str(CLIENT / "client.py"), "--url", server.url, *which, "--verify-share", "0", "--frames"]
    bare = [sys.executable, "-c", BARE_LOOP, server.url, cached["folder"], cached["suffix"]]
    starts, outside, within = [], [], []
    for _ in range(given.runs):
        once = cpu_ms([*user, "1"], server)
        assert server.cpu_at_connect_ms is not None
        starts.append(server.cpu_at_connect_ms)
        of_user = (cpu_ms([*user, str(given.frames)]) - once) / (given.frames - 1)
        of_requests = (cpu_ms([*bare, str(given.frames)]) - cpu_ms([*bare, "1"])) / (given.frames - 1)
        outside.append(of_user - of_requests)
        within.append(of_requests)
    return min(starts), statistics.median(outside), statistics.median(within)


@contextlib.contextmanager
def client_server() -> Iterator[tuple[list[str], int]]:
    """Run a client server; gives the words before a user's command, and the server's process id."""
    name = f"client-cost-{os.getpid()}"
    with subprocess.Popen([sys.executable, str(CLIENT / "server.py"), name]) as process:
        probe = socket.socket(socket.AF_UNIX)
        while probe.connect_ex(b"\0" + name.encode()) != 0:
            time.sleep(0.01)
        probe.send(b"ping")
        probe.recv(64)
        probe.close()
        try:
            yield ["perl", str(CLIENT / "launch.pl"), name], process.pid
        finally:
            process.kill()


def used_ms(pid: int) -> float:
    """CPU time of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) * TICK_MS


def private_mb(pid: int) -> float:
    """Private memory of a process and of all that came of it."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    own = sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_")) / 1024
    return own + sum(private_mb(child) for child in children(pid))


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def hold(server: Server, user: list[str], count: int, frames: int, sleep_s: float) -> list[subprocess.Popen[bytes]]:
    """Start users one after the other, and wait until as many have connected."""
    server.connections = 0
    words = [*user, str(frames), str(sleep_s)]
    users = [subprocess.Popen(words, stdout=subprocess.DEVNULL) for _ in range(count)]
    deadline_s = time.monotonic() + 60
    while server.connections < count and time.monotonic() < deadline_s:
        time.sleep(0.1)
    time.sleep(1)  # the answers are verified, and the pause begins
    return users


def compare_starts(server: Server, given: argparse.Namespace, cache: str) -> bool:
    """Print what a user costs that starts by itself, and by a fork; whether the fork is within its limits."""
    which = ["--video", str(given.video.absolute()), "--cache", cache]
    cached = json.loads(subprocess.run([sys.executable, str(CLIENT / "frames.py"), *which], check=True,
                                       stdout=subprocess.PIPE).stdout)  # fmt: skip
    server.answer = canned_answer((Path(cached["folder"]) / f"000000{cached['suffix']}").read_bytes(), "png-base64")
    plain = [sys.executable, str(CLIENT / "client.py"), "--url", server.url, *which, "--min-faces", "0", "--frames"]
    with client_server() as (launcher, pid):
        forked = [*launcher, *plain]
        once = ["1", "--verify-share", "0"]
        plain_ms, forked_ms = [], []
        for _ in range(given.runs):
            plain_ms.append(cpu_ms([*plain, *once], any_status=True))
            before_ms = used_ms(pid)
            launchers_ms = sum(cpu_ms([*forked, *once], any_status=True) for _ in range(FORKS))
            forked_ms.append((launchers_ms + used_ms(pid) - before_ms) / FORKS)
        memory_mb = {}
        for way, user in (("plain", plain), ("forked", forked)):
            users = hold(server, user, 10, 2, 20)
            memory_mb[way] = statistics.mean(private_mb(user.pid) for user in users)
            if way == "forked":
                launcher_mb, memory_mb[way] = memory_mb[way], statistics.mean(map(private_mb, children(pid)))
            for each in users:
                each.kill()
                each.wait()
        began_s = time.monotonic()
        users = hold(server, [*forked[:-1], *once[1:], "--frames"], given.held, 1000, 2)
        took_s = time.monotonic() - began_s - 1
        alive = len(children(pid))
        users_mb = sum(private_mb(each) for each in [*children(pid), *(user.pid for user in users)])
        for each in users:
            each.kill()
            each.wait()
    start_ms, plain_start_ms = statistics.median(forked_ms), statistics.median(plain_ms)
    print(
        f"client_cost start: a user with one frame takes {plain_start_ms:.0f} ms of CPU by itself, {start_ms:.1f} ms "
        f"by a fork (ratio {plain_start_ms / start_ms:.1f}); private memory {memory_mb['plain']:.1f} MB and "
        f"{memory_mb['forked']:.1f} MB, and {launcher_mb:.1f} MB of its launcher; two cores start "
        f"{2000 / start_ms:.0f} a second; {alive} of {given.held} held with a pause of 2 s, all sending "
        f"after {took_s:.0f} s, {users_mb:.0f} MB private"
    )
    return start_ms <= FORK_LIMIT_MS and memory_mb["forked"] <= FORK_LIMIT_MB and alive == given.held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--video", type=Path, default=Path(".local/sample.mp4"))
    parser.add_argument("--frames", type=int, default=400, help="for each user (default: %(default)s)")
    parser.add_argument("--held", type=int, default=1000, help="users at a time (default: %(default)s)")
    parser.add_argument("--only-starts", action="store_true", help="compare the two ways to start a user only")
    parser.add_argument("--runs", type=int, default=5, help="default: %(default)s")
    given = parser.parse_args()
    server, kept = Server(), True
    with tempfile.TemporaryDirectory(prefix="framestorm-cost-") as cache:
        kept &= compare_starts(server, given, cache)
        for encoding in () if given.only_starts else ("png-base64", "png", "jpeg"):
            start_ms, outside_ms, within_ms = measure(server, given, cache, encoding)
            kept &= start_ms <= START_LIMIT_MS and outside_ms <= FRAME_LIMIT_MS
            print(
                f"client_cost {encoding}: start {start_ms:.0f} ms CPU ({start_ms / START_LIMIT_MS:.0%} of the limit), "
                f"frame {outside_ms:.3f} ms CPU outside requests ({outside_ms / FRAME_LIMIT_MS:.0%} of the limit), "
                f"{within_ms:.3f} ms within (ratio {outside_ms / within_ms:.2f}); "
                f"{given.runs} runs of {given.frames} frames"
            )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
