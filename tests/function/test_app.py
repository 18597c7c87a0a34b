import base64
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

APP = Path(__file__).resolve().parents[2] / "function" / "face-blur" / "app.py"
MAX_BODY_BYTES = 3_000_000


@pytest.fixture(scope="module")
def app(start: Any) -> Iterator[Any]:
    with start(APP, MAX_PIXELS="1000000", MAX_BODY_BYTES=str(MAX_BODY_BYTES)) as client:
        yield client


def test_cold_once_then_warm_and_the_same_answer_by_both_paths_and_encodings(app: Any, png_body: bytes) -> None:
    first = app("POST", "/function/face-blur", base64.b64encode(png_body)).json
    second = app("POST", "/", iter([png_body[:1000], png_body[1000:]])).json
    assert (first["cold"], second["cold"]) == (True, False)
    assert (first["image"], first["faces"]) == (second["image"], second["faces"])


def test_the_image_itself_with_its_headers(app: Any, png_body: bytes) -> None:
    reply = app("POST", "/", png_body, Accept="image/png")
    assert reply.headers["Content-Type"] == "image/png"
    assert reply.headers["X-Cold"] == "0"
    assert reply.headers["Server-Timing"].startswith("decode;dur=")
    with Image.open(io.BytesIO(reply.body)) as image:
        image.load()
        assert image.size == (640, 360)


def test_many_at_once_get_their_own_answers(app: Any, frame: Image.Image) -> None:
    bodies = []
    for width in range(600, 640, 4):
        buffer = io.BytesIO()
        frame.crop((0, 0, width, 360)).save(buffer, "JPEG")
        bodies.append((width, buffer.getvalue()))

    def sent(case: tuple[int, bytes]) -> bool:
        reply = app("POST", "/", case[1], Accept="image/jpeg")
        with Image.open(io.BytesIO(reply.body)) as image:
            return image.size == (case[0], 360)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(sent, bodies))


def test_bad_input_is_refused_with_json_and_memory_stays_flat(app: Any, png_body: bytes, jpeg_body: bytes) -> None:
    buffer = io.BytesIO()
    Image.new("1", (30000, 30000)).save(buffer, "PNG")
    bomb = buffer.getvalue()
    cases: list[tuple[int, Any]] = [
        (400, b""),
        (400, b"not base64!"),
        (400, base64.b64encode(png_body)[:-2]),
        (415, b"GIF89a" + bytes(range(128, 255)) * 1000),
        (415, b"aGVsbG8="),
        (422, png_body[:20000]),
        (422, jpeg_body[:5000]),
        (422, base64.b64encode(png_body[:9999])),
        (422, bomb),
        (413, bytes(MAX_BODY_BYTES + 1)),
    ]

    def all_of_them(times: int) -> None:
        for _ in range(times):
            for status, body in cases:
                reply = app("POST", "/", body)
                assert (reply.status, reply.json["status"]) == (status, status), reply.json
            chunks = (bytes(2**20) for _ in range(20))
            assert app("POST", "/", chunks).status == 413

    all_of_them(3)
    before_mb = app.rss_mb
    all_of_them(15)
    assert app.rss_mb - before_mb < 30
    assert app("POST", "/", png_body).json["faces"]


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"MAX_PIXELS": "lots"}, "face-blur: max_pixels='lots': must be a whole number"),
        ({"exec_timeout": "soon"}, "face-blur: exec_timeout='soon': must be a duration"),
        ({"FACE_MODEL": "/no/such.pb"}, "face-blur: face_model='/no/such.pb': no such file"),
        ({"FACE_MODEL": str(APP)}, "app.py: not a frozen TensorFlow graph"),
    ],
)
def test_a_wrong_setting_ends_the_start_with_its_name(environment: dict[str, str], message: str) -> None:
    result = subprocess.run(
        [sys.executable, str(APP), "--port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )
    assert result.returncode == 1
    assert message in result.stderr
