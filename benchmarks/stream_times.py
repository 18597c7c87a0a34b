"""The times that the chat client takes of streams, against those at which a server sent the pieces.

    .local/client-venv/bin/python benchmarks/stream_times.py [--streams 200] [--tokens 100]

A process sends each piece when it is due, and notes when it did, by the clock that all processes of a machine share.
The users are those of a run: forks of the client server, each with a request of its own. CPU time is that of all users.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.stream_server import PATH, Pace, ServedStream, at_share, read_streams, stream_server  # noqa: E402
from framestorm import client_server  # noqa: E402 - as a program by its path, too

TARGET_MS = 1.0  # at the 99th percentile of streams
FIGURES = ("ttft_ms", "itl_mean_ms", "itl_p99_ms", "itl_max_ms")
FIRST_S, GAP_S = 0.5, 0.04


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the client's times of streams with those of a server.")
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stream-times-") as folder:
        return measure(options.streams, Path(folder), Pace(FIRST_S, GAP_S, options.tokens))


def measure(streams: int, folder: Path, pace: Pace) -> int:
    log = folder / "sent.json"
    with stream_server(pace, log, streams) as address:
        url = address + PATH
        name = client_server.new_name("/stream-times")
        with subprocess.Popen(client_server.command(sys.executable, ROOT / "client", name)) as users:
            client_server.Heartbeat(name, lambda: users.poll() is not None)
            before_s = _cpu_s(users.pid)
            client = [sys.executable, ROOT / "client/chat.py", "0", "--url", url]
            words = ["perl", ROOT / "client/launch.pl", name, *client]
            processes = [
                subprocess.Popen([*map(str, words), "--prompts", f"stream-{number}"], stdout=subprocess.PIPE, text=True)
                for number in range(streams)
            ]
            lines = [json.loads(process.communicate()[0].splitlines()[0]) for process in processes]
            cpu_s = _cpu_s(users.pid) - before_s
            users.kill()
    return report(lines, read_streams(log), pace.tokens, cpu_s)


def report(lines: list[dict[str, float]], sent: dict[int, ServedStream], tokens: int, cpu_s: float) -> int:
    """Print how far apart the figures of the client and the server are, over streams; return the exit status."""
    apart: dict[str, list[float]] = {name: [] for name in FIGURES}
    good = [(number, line) for number, line in enumerate(lines) if line["ok"] and line["pieces"] == tokens]
    for number, line in good:
        for name, ends in zip(FIGURES, planted(sent[number], line["start_ms"]), strict=True):
            apart[name].append(max(0.0, ends[0] - line[name], line[name] - ends[1]))
    is_reached = len(good) == len(lines)
    for name in FIGURES:
        values = sorted(apart[name])
        is_reached &= at_share(values, 0.99) <= TARGET_MS
        print(f"{name:12} apart {values[len(values) // 2]:.3f} ms at p50, {at_share(values, 0.99):.3f} ms at p99")
    cpu_ms = 1000 * cpu_s / len(lines)
    print(f"{len(good)} of {len(lines)} streams of {tokens} tokens are whole; CPU time of a user {cpu_ms:.1f} ms")
    return 0 if is_reached else 1


def planted(stream: ServedStream, start_ms: float) -> list[tuple[float, float]]:
    """Return each of FIGURES as the least and the most that it can be: a server may lose its turn while it sends."""
    low, high = stream.gaps_ms()
    first, last, n = stream.sent_ns[0], stream.sent_ns[-1], len(low)
    return [
        (first[0] / 1e6 - start_ms, first[1] / 1e6 - start_ms),
        ((last[0] - first[1]) / 1e6 / n, (last[1] - first[0]) / 1e6 / n),
        (at_share(low, 0.99), at_share(high, 0.99)),
        (low[-1], high[-1]),
    ]


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
