"""A video, a function that answers in every right and wrong way, and clients to run against it."""

import base64
import io
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import av
import pytest
from jsonschema import Draft202012Validator
from PIL import Image, ImageFilter

CLIENT = Path(__file__).parents[2] / "client"
SCHEMA = Draft202012Validator(json.loads((CLIENT / "sample.json").read_text()))
WIDTH, HEIGHT, FRAMES = 128, 96, 5
FACE = (32, 16, 48, 48)  # x, y, width, height: what the function blurs in every frame


def write_video(path: Path, frames: int = FRAMES, container: str = "mp4", pixel_aspect: Fraction = Fraction(1)) -> Path:
    """Write a video of noise, other bytes each time, with a red corner at its upper left."""
    with av.open(str(path), "w", format=container, options={"movflags": "+faststart"}) as clip:
        stream = clip.add_stream("libx264", rate=25, options={"crf": "10", "threads": "1"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.sample_aspect_ratio = pixel_aspect
        for index in range(frames):
            image = Image.effect_noise((WIDTH, HEIGHT), 60).filter(ImageFilter.GaussianBlur(1)).convert("RGB")
            image.paste((200, 30, 30 + index * 20), (0, 0, 16, 16))
            clip.mux(stream.encode(av.VideoFrame.from_image(image)))  # type: ignore[no-untyped-call]
        clip.mux(stream.encode(None))
    return path


@pytest.fixture(autouse=True)
def pillow_as_a_client_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function, in another process but for these tests, has limits of its own and lifts Pillow's."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1024 * 1024 * 1024 // 4 // 3)


@pytest.fixture(scope="session")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_video(tmp_path_factory.mktemp("video") / "clip.mp4")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


class Handler(BaseHTTPRequestHandler):
    """Notes each request and keeps connections; `answer` is for those below."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # header and body are two writes: 40 ms a frame otherwise
    server: "Server"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, self.client_address[1], body))
        self.answer(self.path.strip("/").rpartition("/")[2], body)

    def answer(self, behaviour: str, body: bytes) -> None:
        raise NotImplementedError

    def send(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None, length: int = 0) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(length or len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def drip(self, begin: bytes, piece: bytes = b".") -> None:
        """A piece every 50 ms: each recv is quick, the whole never ends."""
        self.close_connection = True
        self.wfile.write(begin)
        while not self.server.released.wait(0.05):
            self.wfile.write(piece)

    def hang(self) -> None:
        self.close_connection = True
        self.server.released.wait(30)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, handler: type[Handler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.requests: list[tuple[str, int, bytes]] = []  # path, client's port, body
        self.released = threading.Event()  # ends what hangs
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections broken by either side are what is tested here."""

    def server_close(self) -> None:
        self.released.set()
        self.shutdown()
        super().server_close()


def blurred(image: Image.Image) -> Image.Image:
    x, y, width, height = FACE
    box = (x, y, x + width, y + height)
    image.paste(image.crop(box).filter(ImageFilter.GaussianBlur(8)), box)
    return image


# What a function does to a frame, and the faces that it reports.
IMAGES: dict[str, tuple[Callable[[Image.Image], Image.Image], list[tuple[int, int, int, int]]]] = {
    "right": (blurred, [FACE]),
    "unblurred": (lambda image: image, [FACE]),
    "no-faces": (lambda image: image, []),
}
ANSWERS: dict[str, tuple[int, bytes, dict[str, str]]] = {
    "garbage": (200, b"\x00 not what was asked for", {"X-Faces": "[[1,2"}),
    "500": (500, b'{"error": "no", "status": 500}', {}),
    "cookie": (200, b"{}", {"Set-Cookie": "a=b; Path=/"}),
    "moved": (302, b"", {"Location": "/right"}),
}


class Function(Handler):
    """Answers as the last part of the path says, with what Accept asks for."""

    def answer(self, behaviour: str, body: bytes) -> None:
        match behaviour:
            case "hang":
                self.hang()
            case "drip":
                self.drip(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            case "drip-headers":
                self.drip(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n")
            case "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True
            case "closed":
                self.close_connection = True
            case "truncated":
                self.send(200, b'{"image": "', length=5000)
                self.close_connection = True
            case "pieces":
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"2\r\nxy\r\n" * 30_000 + b"0\r\n\r\n")
            case "once-wrong":
                is_third = sum(path == self.path for path, _, _ in self.server.requests) == 3
                self.answer("500" if is_third else "right", body)
            case _ if behaviour in ANSWERS:
                self.send(*ANSWERS[behaviour])
            case _:
                self._image(*IMAGES[behaviour], body)

    def _image(
        self, change: Callable[[Image.Image], Image.Image], faces: list[tuple[int, int, int, int]], body: bytes
    ) -> None:
        raw = body if body[:1] in {b"\x89", b"\xff"} else base64.b64decode(body, validate=True)
        image = change(Image.open(io.BytesIO(raw)).convert("RGB"))
        accept, file = self.headers["Accept"], io.BytesIO()
        if accept == "image/jpeg":
            image.save(file, "JPEG", quality=90)
        else:
            image.save(file, "PNG", compress_level=1)
        if accept == "application/json":
            names = ("x", "y", "width", "height")
            answer = {
                "image": base64.b64encode(file.getvalue()).decode(),
                "faces": [{**dict(zip(names, face, strict=True)), "score": 0.9} for face in faces],
                "timings_ms": {"decode": 1.0, "model": 22.125, "total": 25.5},
                "cold": False,
            }
            self.send(200, json.dumps(answer).encode(), {"Content-Type": accept, "X-Worker": "replica-1"})
        else:
            timings = "decode;dur=1.0, model;dur=22.125, total;dur=25.5"
            headers = {"X-Faces": json.dumps([[*face, 0.9] for face in faces]), "X-Cold": "0"}
            self.send(200, file.getvalue(), {"Content-Type": accept, "Server-Timing": timings, **headers})


@pytest.fixture(scope="session")
def function() -> Iterator[Server]:
    with Server(Function) as server:
        yield server


@pytest.fixture
def requests_seen(function: Server) -> list[tuple[str, int, bytes]]:
    function.requests.clear()
    return function.requests


class Done:
    """What a client left behind."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        stdout, self.stderr = process.communicate(timeout=30)
        self.status = process.returncode
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in stdout.splitlines()]
        self.samples = [line for line in self.lines if line["type"] == "sample"]
        for sample in self.samples:
            SCHEMA.validate(sample)
            assert SCHEMA.schema["properties"].keys() <= sample.keys()
        self.user = self.lines[-1] if self.lines and self.lines[-1]["type"] == "user" else None


def start(program: str, *words: object) -> "subprocess.Popen[str]":
    """Start a client as JMeter does: a process, its lines on stdout."""
    command = [sys.executable, str(CLIENT / program), *map(str, words)]
    pipe, environment = subprocess.PIPE, {**os.environ, "PYTHONWARNINGS": "error"}
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, env=environment)


class Client:
    """Starts users who send the video to the function; of an option that is given twice the last counts."""

    def __init__(self, url: str, video: Path, cache: Path) -> None:
        self._url, self._usual = url, ("--video", video, "--cache", cache)

    def start(self, behaviour: str, *words: object) -> "subprocess.Popen[str]":
        url = behaviour if "://" in behaviour else f"{self._url}/{behaviour}"
        return start("client.py", "--url", url, *self._usual, *words)

    def run(self, behaviour: str, *words: object) -> Done:
        with self.start(behaviour, *words) as process:
            return Done(process)


@pytest.fixture
def client(function: Server, video: Path, cache: Path) -> Client:
    return Client(function.url, video, cache)


def wait_until(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline_s, "what was waited for did not happen"
        time.sleep(0.005)


def lines_of(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()]
