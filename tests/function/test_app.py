import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from PIL import Image

from framestorm.paths import FACE_BLUR
from tests.function.conftest import decoded, encoded, start

APP = FACE_BLUR / "app.py"
MAX_BODY_BYTES = 3_000_000


@pytest.fixture(scope="module")
def app() -> Iterator[Any]:
    with start(APP, MAX_PIXELS="1000000", MAX_BODY_BYTES=str(MAX_BODY_BYTES)) as client:
        yield client


def test_cold_once_then_warm_and_the_same_answer_by_both_paths_and_encodings(app: Any, png_body: bytes) -> None:
    first = app("POST", "/function/face-blur", base64.b64encode(png_body)).json()
    second = app("POST", "/", iter([png_body[:1000], png_body[1000:]])).json()
    assert (first["cold"], second["cold"]) == (True, False)
    assert (first["image"], first["faces"]) == (second["image"], second["faces"])
    reply = app("POST", "/", png_body, Accept="image/png")
    assert (reply.headers["Content-Type"], reply.headers["X-Cold"]) == ("image/png", "0")
    assert reply.headers["Server-Timing"].startswith("decode;dur=")
    assert reply.content == base64.b64decode(first["image"])


def test_many_at_once_get_their_own_answers(app: Any, frame: Image.Image) -> None:
    def is_right(width: int) -> bool:
        body = encoded(frame.crop((0, 0, width, 360)), "JPEG")
        return decoded(app("POST", "/", body, Accept="image/jpeg").content).size == (width, 360)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(is_right, range(600, 640, 4)))


def test_bad_input_is_refused_with_json_and_memory_stays_flat(app: Any, png_body: bytes, jpeg_body: bytes) -> None:
    cases: list[tuple[int, Any]] = [
        (400, b""),
        (400, base64.b64encode(png_body)[:-2]),
        (415, b"GIF89a" + bytes(range(128, 255)) * 1000),
        (422, png_body[:20000]),
        (422, jpeg_body[:5000]),
        (422, encoded(Image.new("1", (30000, 30000)), "PNG")),
        (413, bytes(MAX_BODY_BYTES + 1)),
    ]

    def all_of_them(times: int) -> None:
        for _ in range(times):
            for status, body in cases:
                reply = app("POST", "/", body)
                assert (reply.status_code, reply.json()["status"]) == (status, status), reply.json()
            chunks = (bytes(2**20) for _ in range(20))
            assert app("POST", "/", chunks).status_code == 413

    all_of_them(3)
    before_mb = app.rss_mb
    all_of_them(15)
    assert app.rss_mb - before_mb < 30
    assert app("POST", "/", png_body).json()["faces"]


def fork(body: bytes, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, str(FACE_BLUR / "fork.py")]
    return subprocess.run(command, input=body, capture_output=True, check=False, env={**os.environ, **environment})


def test_one_request_from_stdin_to_stdout(png_body: bytes) -> None:
    result = fork(base64.b64encode(png_body))
    assert result.returncode == 0
    value = json.loads(result.stdout)
    assert value["cold"] is True
    assert len(value["faces"]) == 1
    assert list(value["timings_ms"]) == ["start", "decode", "model", "blur", "encode", "total"]
    # Starting Python and importing TensorFlow; less would mean that it was measured from somewhere later.
    assert value["timings_ms"]["start"] > 300


def test_the_image_itself_on_request_without_keras(jpeg_body: bytes) -> None:
    """A frozen graph needs none, and every request would wait for its import."""
    result = fork(jpeg_body, Http_Accept="image/jpeg", PYTHONPROFILEIMPORTTIME="1")
    assert result.returncode == 0
    assert result.stdout.startswith(b"\xff\xd8\xff")
    imported = {line.rpartition(b"|")[2].strip() for line in result.stderr.splitlines()}
    assert b"tensorflow" in imported
    assert b"keras" not in imported


@pytest.mark.parametrize(
    ("body", "environment", "status"),
    [
        (b"not an image", {}, 400),
        (bytes(2000), {"MAX_BODY_BYTES": "1000"}, 413),
        (b"", {"MAX_PIXELS": "none"}, 500),
    ],
)
def test_errors_are_json_with_exit_status_1(body: bytes, environment: dict[str, str], status: int) -> None:
    result = fork(body, **environment)
    assert result.returncode == 1
    value = json.loads(result.stdout)
    assert value["status"] == status
    assert value["error"]
