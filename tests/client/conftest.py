"""A video, a function that answers in every right and wrong way, and a client to run against it."""

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
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import av
import pytest
from jsonschema import Draft202012Validator
from PIL import Image, ImageFilter

CLIENT = Path(__file__).parents[2] / "client"
SCHEMA = Draft202012Validator(json.loads((CLIENT / "sample.json").read_text()))
WIDTH, HEIGHT, FRAMES = 128, 96, 5
FACE = (32, 16, 48, 48)  # x, y, width, height: what the function blurs in every frame


def textured(shade: int = 0) -> Image.Image:
    """A picture with detail everywhere, and a red corner at its upper left."""
    image = Image.effect_noise((WIDTH, HEIGHT), 60).filter(ImageFilter.GaussianBlur(1)).convert("RGB")
    image.paste((200, 30, 30 + shade), (0, 0, 16, 16))
    return image


def write_video(path: Path, frames: int = FRAMES) -> Path:
    with av.open(str(path), "w", format="mp4", options={"movflags": "+faststart"}) as clip:
        stream = clip.add_stream("libx264", rate=25, options={"crf": "10", "threads": "1"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for index in range(frames):
            clip.mux(stream.encode(av.VideoFrame.from_image(textured(index * 20))))  # type: ignore[no-untyped-call]
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


@pytest.fixture
def new_video() -> Callable[..., Path]:
    """Return what writes a video of noise: other bytes each time."""
    return write_video


@pytest.fixture
def turned_video(video: Path, tmp_path: Path) -> Callable[[int], Path]:
    """Return what makes the video ask to be shown turned clockwise by so many degrees, as telephones do."""

    def turn(degrees: int) -> Path:
        content = bytearray(video.read_bytes())
        matrix = content.index(b"tkhd") + 44  # of version 0, ISO/IEC 14496-12 section 8.3.2
        cosine, sine = {0: (1, 0), 90: (0, 1), 180: (-1, 0), 270: (0, -1)}[degrees]
        content[matrix : matrix + 20] = struct.pack(">5i", cosine << 16, sine << 16, 0, -sine << 16, cosine << 16)
        path = tmp_path / f"turned-{degrees}.mp4"
        path.write_bytes(content)
        return path

    return turn


class Function(BaseHTTPRequestHandler):
    """Answers as the last part of the path says; the part before it is what Accept asks for."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # header and body are two writes: 40 ms a frame otherwise
    requests: ClassVar[list[tuple[str, int, bytes]]] = []  # path, client's port, body
    released: ClassVar[threading.Event] = threading.Event()  # ends what hangs

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append((self.path, self.client_address[1], body))
        getattr(self, "answer_" + self.path.strip("/").replace("-", "_"))(body)

    def _frame(self, body: bytes) -> Image.Image:
        raw = body if body[:1] in {b"\x89", b"\xff"} else base64.b64decode(body, validate=True)
        return Image.open(io.BytesIO(raw)).convert("RGB")

    def _blur(self, image: Image.Image) -> Image.Image:
        x, y, width, height = FACE
        box = (x, y, x + width, y + height)
        image.paste(image.crop(box).filter(ImageFilter.GaussianBlur(8)), box)
        return image

    def _send(self, body: bytes, headers: dict[str, str] | None = None, status: int = 200, length: int = 0) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, image: Image.Image, faces: list[tuple[int, int, int, int]]) -> None:
        accept = self.headers["Accept"]
        kind = "JPEG" if accept == "image/jpeg" else "PNG"
        file = io.BytesIO()
        image.save(file, kind, **({"quality": 90} if kind == "JPEG" else {"compress_level": 1}))
        if accept == "application/json":
            names = ("x", "y", "width", "height")
            answer = {
                "image": base64.b64encode(file.getvalue()).decode(),
                "faces": [{**dict(zip(names, face, strict=True)), "score": 0.9} for face in faces],
                "timings_ms": {"decode": 1.0, "model": 22.125, "total": 25.5},
                "cold": False,
            }
            self._send(json.dumps(answer).encode(), {"Content-Type": accept, "X-Worker": "replica-1"})
        else:
            headers = {
                "Content-Type": accept,
                "Server-Timing": "decode;dur=1.0, model;dur=22.125, total;dur=25.5",
                "X-Faces": json.dumps([[*face, 0.9] for face in faces]),
                "X-Cold": "0",
            }
            self._send(file.getvalue(), headers)

    def answer_right(self, body: bytes) -> None:
        self._answer(self._blur(self._frame(body)), [FACE])

    def answer_unblurred(self, body: bytes) -> None:
        self._answer(self._frame(body), [FACE])

    def answer_no_faces(self, body: bytes) -> None:
        self._answer(self._frame(body), [])

    def answer_wrong_size(self, body: bytes) -> None:
        self._answer(self._blur(self._frame(body)).crop((0, 0, WIDTH, HEIGHT - 2)), [FACE])

    def answer_changed_outside(self, body: bytes) -> None:
        image = self._blur(self._frame(body))
        image.paste((0, 255, 0), (96, 64, 112, 80))
        self._answer(image, [FACE])

    def answer_garbage(self, body: bytes) -> None:
        self._send(b"\x00 not what was asked for", {"X-Faces": "[[1,2"})

    def answer_no_image(self, body: bytes) -> None:
        self._send(json.dumps({"image": "bm8gaW1hZ2U=", "faces": [{"x": None}], "timings_ms": 7}).encode())

    def answer_cut_image(self, body: bytes) -> None:
        raw = base64.b64decode(body)
        faces = [{"x": 1, "y": 1, "width": 9, "height": 9}]
        self._send(json.dumps({"image": base64.b64encode(raw[: len(raw) // 2]).decode(), "faces": faces}).encode())

    def answer_500(self, body: bytes) -> None:
        self._send(b'{"error": "no", "status": 500}', status=500)

    def answer_429(self, body: bytes) -> None:
        self._send(b'{"error": "busy", "status": 429}', status=429)

    def answer_moved(self, body: bytes) -> None:
        self._send(b"", {"Location": "/right"}, status=302)

    def answer_hang(self, body: bytes) -> None:
        self.released.wait(30)
        self.close_connection = True

    def answer_drip(self, body: bytes) -> None:
        """A byte every 50 ms: each recv is quick, the whole never ends."""
        self._send(b"{", length=1000)
        self._drip(b" ")

    def answer_drip_headers(self, body: bytes) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        self._drip(b"X-More: 1\r\n")

    def _drip(self, piece: bytes) -> None:
        self.close_connection = True
        try:
            while not self.released.wait(0.05):
                self.wfile.write(piece)
        except OSError:
            pass

    def answer_reset(self, body: bytes) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def answer_closed(self, body: bytes) -> None:
        self.close_connection = True

    def answer_truncated(self, body: bytes) -> None:
        self._send(b'{"image": "', length=5000)
        self.close_connection = True

    def answer_once_wrong(self, body: bytes) -> None:
        """Fails the third frame it is asked for."""
        asked = sum(path == self.path for path, _, _ in self.requests)
        if asked == 3:
            self.answer_500(body)
        else:
            self.answer_right(body)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections broken by either side are what is tested here."""


@pytest.fixture(scope="session")
def function_url() -> Iterator[str]:
    with Server(("127.0.0.1", 0), Function) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        Function.released.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def requests_seen() -> list[tuple[str, int, bytes]]:
    Function.requests.clear()
    return Function.requests


class Client:
    """Starts users as JMeter does: a process each, its lines on stdout."""

    def __init__(self, url: str, video: Path, cache: Path) -> None:
        self.url, self.video, self.cache = url, video, cache

    def start(
        self, behaviour: str, *arguments: str | Path, video: Path | None = None, after: Sequence[str] = ()
    ) -> "subprocess.Popen[str]":
        """Start a user; what stands in `after` wins over the usual options."""
        url = behaviour if "://" in behaviour else f"{self.url}/{behaviour}"
        usual = ["--url", url, "--video", video or self.video, "--cache", self.cache]
        command = [sys.executable, CLIENT / "client.py", *usual, *arguments, *after]
        pipe, environment = subprocess.PIPE, {**os.environ, "PYTHONWARNINGS": "error"}
        return subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
            env=environment,
        )

    def run(
        self, behaviour: str, *arguments: str | Path, video: Path | None = None, after: Sequence[str] = ()
    ) -> "Done":
        with self.start(behaviour, *arguments, video=video, after=after) as process:
            return finish(process)


class Done:
    """What a client left behind."""

    def __init__(self, status: int, stdout: str, stderr: str) -> None:
        self.status, self.stderr = status, stderr
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in stdout.splitlines()]
        self.samples = [line for line in self.lines if line["type"] == "sample"]
        for sample in self.samples:
            SCHEMA.validate(sample)
            assert SCHEMA.schema["properties"].keys() <= sample.keys()
        self.user = self.lines[-1] if self.lines and self.lines[-1]["type"] == "user" else None


def finish(process: "subprocess.Popen[str]") -> Done:
    stdout, stderr = process.communicate(timeout=30)
    return Done(process.returncode, stdout, stderr)


@pytest.fixture
def client(function_url: str, video: Path, cache: Path) -> Client:
    return Client(function_url, video, cache)


@pytest.fixture
def finished() -> Callable[["subprocess.Popen[str]"], Done]:
    return finish


@pytest.fixture
def until() -> Callable[[Callable[[], object]], None]:
    """Wait for a condition, with a deadline."""

    def wait(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 15
        while not condition():
            assert time.monotonic() < deadline, "what was waited for did not happen"
            time.sleep(0.005)

    return wait
