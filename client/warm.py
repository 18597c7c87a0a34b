"""Runs what a user runs, before the fork: what is loaded or specialised at first use is then shared by all users."""

import base64
import contextlib
import io
import json
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

import chat
import client
from encoding import ENCODINGS
from frames import Frames
from interrupt import Interrupts

TIMES = 16  # the interpreter specialises code that has run 8 times
ASKED_WITHIN_S = 10.0  # or a user has failed
ENCODING = ENCODINGS["png-base64"]
SIZE, FACE = (64, 48), (8, 8, 24, 24)


def warm_up(journal: Path = Path(os.devnull)) -> None:
    """Be users of each client, one after the other, of a function that answers at once; they write to the journal."""
    with _own_signals_and_stdout(), tempfile.TemporaryDirectory(prefix="framestorm-warm-") as folder:
        _warm_frames(journal, Path(folder))
        _warm_chat(journal)


def _warm_frames(journal: Path, folder: Path) -> None:
    picture = Image.new("RGB", SIZE)
    frame = _base64(picture)
    picture.paste("gray", FACE)
    left, top, right, bottom = FACE
    face = {"x": left, "y": top, "width": right - left, "height": bottom - top, "score": 0.9}
    timings_ms = {"model": 1.5, "total": 2.5}
    answer = json.dumps({"image": _base64(picture).decode(), "faces": [face], "timings_ms": timings_ms}).encode()
    frames = Frames(folder, "0" * 64, ENCODING, *SIZE, [len(frame)], None)
    (frames.folder / f"000000{ENCODING.suffix}").write_bytes(frame)
    with _serving(frame, b"Content-Length: %d\r\n\r\n%b" % (len(answer), answer)) as url:
        options = client.parse_options(["--url", url, "--video", os.devnull, "--journal", str(journal)])
        for _ in range(TIMES):
            start, sender = (time.time() * 1000, time.perf_counter()), client.new_sender(options)
            _check(client.run(options, Interrupts(), start, sender, frames))
            sender.close()


def _warm_chat(journal: Path) -> None:
    pieces = [{"choices": [{"delta": {"content": "a"}}]}] * 4 + [{"usage": {"completion_tokens": 4}}]
    events = [b"data: %b\n\n" % text for text in (*(json.dumps(each).encode() for each in pieces), b"[DONE]")]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events) + b"0\r\n\r\n"
    head = b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    with _serving(b"}", head + chunks) as url:
        options = chat.parse_options(["--url", url, "--journal", str(journal)])
        for _ in range(TIMES):
            start, sender = (time.time() * 1000, time.perf_counter()), chat.new_sender(options)
            _check(chat.run(options, Interrupts(), start, sender))
            sender.close()


def _check(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"a user of the warm-up ended with status {status}")


@contextlib.contextmanager
def _serving(end_of_request: bytes, answer: bytes) -> Iterator[str]:
    """Yield the URL of a function that answers TIMES connections."""
    with socket.create_server(("127.0.0.1", 0)) as function:
        function.settimeout(ASKED_WITHIN_S)
        thread = threading.Thread(target=_answer, args=(function, end_of_request, answer))
        thread.start()
        try:
            yield f"http://127.0.0.1:{function.getsockname()[1]}/"
        finally:
            thread.join()  # a fork must find no thread


@contextlib.contextmanager
def _own_signals_and_stdout() -> Iterator[None]:
    """Leave this process's handlers of signals and its stdout as they were."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT)}
    stdout, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    try:
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
        os.close(nothing)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _base64(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG")
    return base64.b64encode(file.getvalue())


def _answer(function: socket.socket, end_of_request: bytes, answer: bytes) -> None:
    with contextlib.suppress(TimeoutError):  # the user says what is wrong
        for _ in range(TIMES):
            connection = function.accept()[0]
            connection.settimeout(ASKED_WITHIN_S)
            with connection:
                request = b""
                while data := connection.recv(65536):
                    request += data
                    if request.endswith(end_of_request):
                        request = b""
                        connection.sendall(b"HTTP/1.1 200 OK\r\n" + answer)
