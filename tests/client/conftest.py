"""A video, a function that answers in every right and wrong way, and clients to run against it."""

import base64
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import psutil
import pytest
from jsonschema import Draft202012Validator
from PIL import Image, ImageFilter

from framestorm import client_server
from tests.stand_in import EARLY, Answer, Received, StandIn, serving

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


@pytest.fixture(scope="session")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_video(tmp_path_factory.mktemp("video") / "clip.mp4")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


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
ANSWERS = {
    "garbage": Answer(body=b"\x00 not what was asked for", headers=(("X-Faces", "[[1,2"),)),
    "500": Answer(500, body=b'{"error": "no", "status": 500}'),
    "long-name": Answer(500, body=b"", headers=(("X-Worker", "w" * 60_000),)),
    "cookie": Answer(body=b"{}", headers=(("Set-Cookie", "a=b; Path=/"),)),
    "moved": Answer(302, body=b"", headers=(("Location", "/right"),)),
    "hang": Answer(delay_s=30),
    "drip": Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", again=b"."),
    "drip-headers": Answer(raw=b"HTTP/1.1 200 OK\r\n", again=b"X-More: 1\r\n"),
    "pieces": Answer(
        raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"2\r\nxy\r\n" * 30_000 + b"0\r\n\r\n"
    ),
    "negative-chunk": Answer(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello"),
    "no-chunk-size": Answer(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\nzz\r\nhello"),
    "cut-chunk": Answer(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\n"),
    "two-lengths": Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nhello"),
    "early": Answer(raw=EARLY + b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"),
    "reset": Answer(resets=True),
    "closed": Answer(raw=b""),
    "truncated": Answer(body=b'{"image": "' + bytes(5000), sent_bytes=11),
}


class Function(StandIn):
    """Answers as the last part of the path says, with what Accept asks for."""

    def next_answer(self, request: Received) -> Answer:
        with self.lock:
            self.received.append(request)
            asked = sum(each.path == request.path for each in self.received)
        behaviour = request.path.rpartition("/")[2]
        if behaviour == "once-wrong":
            behaviour = "500" if asked == 3 else "right"
        return ANSWERS.get(behaviour) or image_answer(*IMAGES[behaviour], request)


def image_answer(
    change: Callable[[Image.Image], Image.Image], faces: list[tuple[int, int, int, int]], request: Received
) -> Answer:
    body, accept, file = request.body, request.headers["Accept"], io.BytesIO()
    raw = body if body[:1] in {b"\x89", b"\xff"} else base64.b64decode(body, validate=True)
    image = change(Image.open(io.BytesIO(raw)).convert("RGB"))
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
        return Answer(body=json.dumps(answer).encode(), headers=(("X-Worker", "replica-1"),))
    timings = ("Server-Timing", "decode;dur=1.0, model;dur=22.125, total;dur=25.5")
    headers = (timings, ("X-Faces", json.dumps([[*face, 0.9] for face in faces])), ("X-Cold", "0"))
    return Answer(content_type=accept, body=file.getvalue(), headers=headers)


@pytest.fixture(scope="session")
def function() -> Iterator[StandIn]:
    with serving(server=Function([])) as server:
        yield server


@pytest.fixture
def requests_seen(function: StandIn) -> list[Received]:
    function.received.clear()
    return function.received


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
def client(function: StandIn, video: Path, cache: Path) -> Client:
    return Client(function.url, video, cache)


class Forked(Client):
    """Starts users as the OS Process Sampler does, with the launcher before their command."""

    def __init__(self, name: str, server: int, words: tuple[object, ...]) -> None:
        self.name, self.server, self._words = name, server, words

    def launch(self, *command: object, **options: Any) -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        words = ["perl", CLIENT / "launch.pl", self.name, *command]
        return subprocess.Popen([*map(str, words)], stdin=pipe, stdout=pipe, stderr=pipe, text=True, **options)

    def start(self, behaviour: str, *words: object, **options: Any) -> "subprocess.Popen[str]":
        url = f"{self._words[0]}/{behaviour}"
        return self.launch(sys.executable, CLIENT / "client.py", "--url", url, *self._words[1:], *words, **options)

    def start_chat(self, *words: object) -> "subprocess.Popen[str]":
        return self.launch(sys.executable, CLIENT / "chat.py", *words)

    def users(self) -> list[psutil.Process]:
        return psutil.Process(self.server).children()


@pytest.fixture
def forked(function: Any, video: Path, cache: Path) -> Iterator[Forked]:
    name = client_server.new_name("/tests")
    with subprocess.Popen(client_server.command(sys.executable, CLIENT, name)) as server:
        watch = client_server.Heartbeat(name, lambda: server.poll() is not None)
        yield Forked(name, server.pid, (function.url, "--video", video, "--cache", cache))
        watch.close()
        server.kill()


@pytest.fixture(params=["client", "forked"], ids=["by itself", "by the client server"])
def each_client(request: pytest.FixtureRequest) -> Client:
    """However its users are started."""
    started: Client = request.getfixturevalue(request.param)
    return started


def wait_until(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline_s, "what was waited for did not happen"
        time.sleep(0.005)


def lines_of(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()]


def hashed(certificate: Path, folder: Path) -> Path:
    """Return a folder in which OpenSSL finds the certificate."""
    ask = ["openssl", "x509", "-noout", "-subject_hash", "-in", str(certificate)]
    name = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
    folder.mkdir()
    (folder / f"{name}.0").symlink_to(certificate)
    return folder
