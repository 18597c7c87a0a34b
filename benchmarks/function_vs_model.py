"""Frames a second of face-blur, kept alive behind HTTP, against its bare model called in a loop on the same frames.

`.local/test-venv/bin/python benchmarks/function_vs_model.py`

Both with one TensorFlow thread. Rounds alternate between model and function, so that what else the machine does meets
both; a ratio is the median of the rounds' own ratios. The function runs in its own process on loopback; each connection
sends its next frame as soon as its last is answered, and reads the whole answer. With several connections the function
decodes and encodes on one core while the model works on the other; with one connection, or one core, or a machine that
is busy with something else, the ratio is lower.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import io
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "function" / "face-blur")]

from settings import THRESHOLD_DEFAULT, prepare_libraries  # noqa: E402 (found by the line above)

prepare_libraries()

import av  # noqa: E402 (prepared by the line above)
import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

from detector import Detector  # noqa: E402

MODEL = ROOT / ".local" / "face.pb"
VIDEO = ROOT / ".local" / "sample.mp4"
TARGET_RATIO = 0.85
PATH = "/function/face-blur"


def main() -> int:
    parser = argparse.ArgumentParser(description="Frames/s of the function against the bare model, in one run.")
    parser.add_argument("--rounds", type=int, default=6, help="rounds of each (default %(default)s)")
    parser.add_argument("--round-s", type=float, default=2.0, help="length of a round (default %(default)s)")
    parser.add_argument(
        "--connections", type=int, default=2, help="connections that send at once (default %(default)s)"
    )
    arguments = parser.parse_args()
    with av.open(str(VIDEO)) as video:
        frames = [frame.to_image() for frame in video.decode(video=0)]
    detector = Detector(MODEL, float(THRESHOLD_DEFAULT), 1)
    arrays = [np.asarray(frame) for frame in frames]
    png = [encoded(frame, "PNG") for frame in frames]
    kinds = {
        "png-base64 -> JSON": ([base64.b64encode(body) for body in png], "application/json"),
        "png -> png": (png, "image/png"),
        "jpeg -> jpeg": ([encoded(frame, "JPEG") for frame in frames], "image/jpeg"),
    }
    rates: dict[str, list[float]] = {"bare model": [], **{kind: [] for kind in kinds}}
    with function() as port:
        for number in range(-1, arguments.rounds):  # the first is not counted
            endless = cycle(arrays)
            measured = {"bare model": rate(lambda: detector.detect(next(endless)), arguments.round_s, 1)}  # noqa: B023
            for kind, (bodies, accept) in kinds.items():
                senders = Senders(port, bodies, accept)
                measured[kind] = rate(senders.send, arguments.round_s, arguments.connections)
            if number >= 0:
                for kind, value in measured.items():
                    rates[kind].append(value)
    return report(rates, arguments.connections, f"{frames[0].width}x{frames[0].height}")


def encoded(frame: Image.Image, kind: str) -> bytes:
    buffer = io.BytesIO()
    frame.save(buffer, kind, quality=90)
    return buffer.getvalue()


@contextmanager
def function() -> Iterator[int]:
    """The function in its own process; gives its port."""
    command = [sys.executable, str(ROOT / "function" / "face-blur" / "app.py"), "--port", "0"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "TF_THREADS": "1", "FACE_MODEL": str(MODEL)}
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if line.startswith("ready "):
                yield int(line.rpartition(":")[2])
                break
        else:
            raise RuntimeError(f"the function did not start; {' '.join(command)} says why")
    finally:
        process.terminate()
        process.communicate()


class Senders:
    """One connection a thread; frames are taken in turn."""

    def __init__(self, port: int, bodies: list[bytes], accept: str) -> None:
        self._port = port
        self._bodies = cycle(bodies)
        self._headers = {"Accept": accept}
        self._lock = threading.Lock()
        self._own = threading.local()

    def send(self) -> None:
        if not hasattr(self._own, "connection"):
            self._own.connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=25)
        with self._lock:
            body = next(self._bodies)
        self._own.connection.request("POST", PATH, body, self._headers)
        response = self._own.connection.getresponse()
        response.read()
        assert response.status == 200, response.status


def rate(work: Callable[[], object], seconds: float, threads: int) -> float:
    """How often a second `work` is done by so many threads together."""
    counts = [0] * threads
    started_s = time.perf_counter()

    def loop(index: int) -> None:
        while time.perf_counter() - started_s < seconds:
            work()
            counts[index] += 1

    running = [threading.Thread(target=loop, args=(index,)) for index in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return sum(counts) / (time.perf_counter() - started_s)


def report(rates: dict[str, list[float]], connections: int, size: str) -> int:
    rounds = len(rates["bare model"])
    print(f"face-blur over HTTP against its bare model: {size} frames, 1 TensorFlow thread, {connections} connections,")
    print(f"{os.cpu_count()} cores, median of {rounds} alternating rounds; the default is png-base64 -> JSON")
    ratios = {}
    for kind, values in rates.items():
        ratios[kind] = statistics.median(value / bare for value, bare in zip(values, rates["bare model"], strict=True))
        spread = f"{min(values):.1f} to {max(values):.1f}"
        print(
            f"  {kind:20} {statistics.median(values):6.1f} frames/s ({spread})  {ratios[kind]:5.2f} of the bare model"
        )
    ratio = ratios["png-base64 -> JSON"]
    print(
        f"target {TARGET_RATIO:.2f}: {'reached' if ratio >= TARGET_RATIO else 'MISSED'} by the default with {ratio:.2f}"
    )
    return 0 if ratio >= TARGET_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
