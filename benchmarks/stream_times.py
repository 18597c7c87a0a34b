"""The times that the chat client takes of streams, against those at which a server sent the pieces.

    .local/client-venv/bin/python benchmarks/stream_times.py [--streams 200] [--tokens 100]

A process sends each piece when it is due, and notes when it did, by the clock that all processes of a machine share.
The users are those of a run: forks of the client server, each with a request of its own. CPU time is that of all users.
"""

import argparse
import heapq
import json
import math
import os
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from framestorm import client_server  # noqa: E402 - as a program by its path, too

TARGET_MS = 1.0  # at the 99th percentile of streams
FIGURES = ("ttft_ms", "itl_mean_ms", "itl_p99_ms", "itl_max_ms")
FIRST_S, GAP_S = 0.5, 0.04
NUMBER = re.compile(rb"stream-(\d+)")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def serve(listener: socket.socket, streams: int, tokens: int, log: Path) -> None:
    """Send each stream its pieces when they are due, in one process; write when each was sent."""
    chosen = selectors.DefaultSelector()
    listener.setblocking(False)
    chosen.register(listener, selectors.EVENT_READ)
    due: list[tuple[float, int, int, socket.socket]] = []
    sent: dict[int, list[tuple[int, int]]] = {}
    done = 0
    while done < streams:
        wait_s = due[0][0] - time.perf_counter() if due else None
        if wait_s is None or wait_s > 0:
            for key, _ in chosen.select(wait_s):
                if key.fileobj is listener:
                    connection = listener.accept()[0]
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    chosen.register(connection, selectors.EVENT_READ)
                    continue
                connection = key.fileobj  # type: ignore[assignment]
                if not (request := connection.recv(65536)):
                    chosen.unregister(connection)
                    connection.close()
                    continue
                if (found := NUMBER.search(request)) is None:  # its head came before its body
                    continue
                number = int(found[1])
                sent[number] = []
                # Spread over a gap, as streams of a real server are.
                first_s = time.perf_counter() + FIRST_S + GAP_S * number / streams
                heapq.heappush(due, (first_s, number, 0, connection))
        while due and due[0][0] <= time.perf_counter():
            due_s, number, index, connection = heapq.heappop(due)
            event = b'data: {"choices":[{"index":0,"delta":{"content":"%d.%d "}}]}\n\n' % (number, index)
            chunk = b"%x\r\n%b\r\n" % (len(event), event)
            end = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n" if index == tokens - 1 else b""
            before_ns = time.time_ns()
            connection.sendall((HEAD if index == 0 else b"") + chunk + end)
            sent[number].append((before_ns, time.time_ns()))
            if index < tokens - 1:
                heapq.heappush(due, (due_s + GAP_S, number, index + 1, connection))
            else:
                done += 1
    log.write_text(json.dumps(sent))


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the client's times of streams with those of a server.")
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stream-times-") as folder:
        return measure(options.streams, options.tokens, Path(folder))


def measure(streams: int, tokens: int, folder: Path) -> int:
    log = folder / "sent.json"
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/chat/completions"
    if (server := os.fork()) == 0:
        serve(listener, streams, tokens, log)
        os._exit(0)
    listener.close()
    name = client_server.new_name("/stream-times")
    with subprocess.Popen(client_server.command(sys.executable, ROOT / "client", name)) as users:
        client_server.Heartbeat(name, lambda: users.poll() is not None)
        before_s = _cpu_s(users.pid)
        words = ["perl", ROOT / "client/launch.pl", name, sys.executable, ROOT / "client/chat.py", "0", "--url", url]
        processes = [
            subprocess.Popen([*map(str, words), "--prompts", f"stream-{number}"], stdout=subprocess.PIPE, text=True)
            for number in range(streams)
        ]
        lines = [json.loads(process.communicate()[0].splitlines()[0]) for process in processes]
        cpu_s = _cpu_s(users.pid) - before_s
        users.kill()
    os.waitpid(server, 0)
    return report(lines, json.loads(log.read_text()), tokens, cpu_s)


def report(lines: list[dict[str, float]], sent: dict[str, list[tuple[int, int]]], tokens: int, cpu_s: float) -> int:
    """Print how far apart the figures of the client and the server are, over streams; return the exit status."""
    apart: dict[str, list[float]] = {name: [] for name in FIGURES}
    good = [(number, line) for number, line in enumerate(lines) if line["ok"] and line["pieces"] == tokens]
    for number, line in good:
        times_ms = [(before_ns / 1e6, after_ns / 1e6) for before_ns, after_ns in sent[str(number)]]
        for name, ends in zip(FIGURES, planted(times_ms, line["start_ms"]), strict=True):
            apart[name].append(max(0.0, ends[0] - line[name], line[name] - ends[1]))
    is_reached = len(good) == len(lines)
    for name in FIGURES:
        values = sorted(apart[name])
        is_reached &= at_p99(values) <= TARGET_MS
        print(f"{name:12} apart {values[len(values) // 2]:.3f} ms at p50, {at_p99(values):.3f} ms at p99")
    cpu_ms = 1000 * cpu_s / len(lines)
    print(f"{len(good)} of {len(lines)} streams of {tokens} tokens are whole; CPU time of a user {cpu_ms:.1f} ms")
    return 0 if is_reached else 1


def planted(times_ms: list[tuple[float, float]], start_ms: float) -> list[tuple[float, float]]:
    """Return each of FIGURES as the least and the most that it can be: a server may lose its turn while it sends."""
    gaps = [(after[0] - before[1], after[1] - before[0]) for before, after in pairwise(times_ms)]
    low, high = (sorted(gap[end] for gap in gaps) for end in (0, 1))
    first, last, n = times_ms[0], times_ms[-1], len(gaps)
    return [
        (first[0] - start_ms, first[1] - start_ms),
        ((last[0] - first[1]) / n, (last[1] - first[0]) / n),
        (at_p99(low), at_p99(high)),
        (low[-1], high[-1]),
    ]


def at_p99(ordered: list[float]) -> float:
    return ordered[math.ceil(0.99 * len(ordered)) - 1]


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
