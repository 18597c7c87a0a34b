"""Shared by the tests of the functions: frames with a face, the loaded function, servers as processes."""

from __future__ import annotations

import http.client
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from settings import prepare_libraries

prepare_libraries()

import av  # noqa: E402 (prepared by the line above)
from PIL import Image  # noqa: E402

from handler import FaceBlur  # noqa: E402
from settings import settings_from  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FACE_BLUR = ROOT / "function" / "face-blur"


@pytest.fixture(scope="session")
def frame() -> Image.Image:
    """A 640x360 frame with one face."""
    with av.open(str(ROOT / ".local" / "sample.mp4")) as video:
        image: Image.Image = next(video.decode(video=0)).to_image()  # type: ignore[no-untyped-call]
        return image


@pytest.fixture(scope="session")
def png_body(frame: Image.Image) -> bytes:
    return encoded(frame, "PNG")


@pytest.fixture(scope="session")
def jpeg_body(frame: Image.Image) -> bytes:
    return encoded(frame, "JPEG")


def encoded(image: Image.Image, kind: str) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, quality=95)
    return buffer.getvalue()


@pytest.fixture(scope="session")
def face_blur() -> FaceBlur:
    """The function with the real detector and default settings."""
    return FaceBlur(settings_from({}))


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Talks to one server process, a new connection for each request."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Send one request; a body that is an iterator of bytes goes chunked."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return Reply(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    @property
    def rss_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1000


Start = Callable[..., Any]


@pytest.fixture(scope="session")
def start() -> Start:
    """`with start(script, NAME="value") as client:` runs a server and ends it."""

    @contextmanager
    def starting(script: Path, *arguments: str, **environment: str) -> Iterator[Client]:
        process = subprocess.Popen(
            [sys.executable, str(script), *(arguments or ("--port", "0"))],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        )
        assert process.stderr is not None
        try:
            seen = []
            for line in process.stderr:
                seen.append(line)
                if line.startswith("ready "):
                    break
            else:
                pytest.fail(f"the server did not start: {''.join(seen)}")
            yield Client(process, int(seen[-1].rpartition(":")[2]))
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()

    return starting
