"""Shared by the tests of the functions: frames with a face, the loaded function, servers as processes."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from settings import prepare_libraries

prepare_libraries()

import av  # noqa: E402 (prepared by the line above)
from PIL import Image  # noqa: E402

from detector import Detector  # noqa: E402
from framestorm import paths  # noqa: E402
from handler import FaceBlur  # noqa: E402
from settings import FACE_MODEL_DEFAULT, settings_from  # noqa: E402


@pytest.fixture(scope="session")
def frame() -> Image.Image:
    """A 640x360 frame with one face."""
    with av.open(str(paths.SAMPLE_VIDEO)) as video:
        image: Image.Image = next(video.decode(video=0)).to_image()  # type: ignore[no-untyped-call]
        return image


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def decoded(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


@pytest.fixture(scope="session")
def png_body(frame: Image.Image) -> bytes:
    return encoded(frame, "PNG")


@pytest.fixture(scope="session")
def jpeg_body(frame: Image.Image) -> bytes:
    return encoded(frame, "JPEG", quality=95)


@pytest.fixture(scope="session")
def detector() -> Detector:
    return Detector(FACE_MODEL_DEFAULT, 0.4, 1)


@pytest.fixture(scope="session")
def face_blur() -> FaceBlur:
    """The function with the real detector and default settings."""
    return FaceBlur(settings_from({}))


class Client:
    """Talks to one server process, a new connection for each request."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        """Send one request; a body that is an iterator of bytes goes chunked."""
        return requests.request(method, f"http://127.0.0.1:{self.port}{path}", data=body, headers=headers, timeout=30)

    @property
    def rss_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1000


@contextmanager
def start(script: Path | str, *arguments: str, **environment: str) -> Iterator[Client]:
    """Run a server; ends it."""
    process = subprocess.Popen(
        [sys.executable, str(script), *(arguments or ("--port", "0"))],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(paths.ROOT), **environment},
    )
    assert process.stderr is not None
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if line.startswith("ready "):
                break
        assert line.startswith("ready "), f"the server did not start: {''.join(lines)}"
        yield Client(process, int(line.rpartition(":")[2]))
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
