import base64
import json
import re

import numpy as np
import pytest
from PIL import Image

from function.exchange import RefusalError
from handler import FaceBlur, preferred
from settings import settings_from
from tests.function.conftest import decoded, encoded


def test_the_json_answer(face_blur: FaceBlur, png_body: bytes, frame: Image.Image) -> None:
    answer = face_blur(base64.b64encode(png_body), "")
    assert (answer.status, answer.content_type) == (200, "application/json")
    value = json.loads(answer.body)
    assert list(value) == ["image", "faces", "timings_ms", "cold"]
    (face,) = value["faces"]
    assert {name: type(item) for name, item in face.items()} == {
        "x": int, "y": int, "width": int, "height": int, "score": float,
    }  # fmt: skip
    assert list(value["timings_ms"]) == ["decode", "model", "blur", "encode", "total"]
    parts = [value["timings_ms"][name] for name in ("decode", "model", "blur", "encode")]
    assert sum(parts) <= value["timings_ms"]["total"] + 0.01
    image = decoded(base64.b64decode(value["image"], validate=True))
    assert (image.format, image.size) == ("PNG", frame.size)
    changed = (np.array(image) != np.array(frame)).any(axis=2)
    changed[face["y"] : face["y"] + face["height"], face["x"] : face["x"] + face["width"]] ^= True
    assert changed.mean() < 0.02  # nothing outside, nearly all inside
    timings = value["timings_ms"]
    assert dict(answer.headers)["Server-Timing"] == ", ".join(f"{name};dur={timings[name]:g}" for name in timings)


def test_the_answers_format_is_that_of_the_request(face_blur: FaceBlur, jpeg_body: bytes) -> None:
    value = json.loads(face_blur(jpeg_body, "application/json").body)
    assert decoded(base64.b64decode(value["image"])).format == "JPEG"


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_the_image_itself_on_request(face_blur: FaceBlur, png_body: bytes, jpeg_body: bytes, kind: str) -> None:
    for body in (png_body, jpeg_body):
        answer = face_blur(body, f"image/{kind}")
        headers = dict(answer.headers)
        assert answer.content_type == f"image/{kind}"
        assert decoded(answer.body).format == kind.upper()
        assert re.fullmatch(r"(\w+;dur=[\d.]+(, |$)){5}", headers["Server-Timing"])
        ((_x, _y, width, height, score),) = json.loads(headers["X-Faces"])
        assert min(width, height) > 10
        assert 0.4 <= score <= 1
        assert headers["X-Cold"] in {"0", "1"}


def test_a_picture_without_a_face_comes_back_as_it_was(face_blur: FaceBlur) -> None:
    grey = Image.fromarray(np.tile(np.arange(200, dtype=np.uint8), (100, 1)))
    value = json.loads(face_blur(encoded(grey, "PNG"), "").body)
    assert value["faces"] == []
    assert (np.array(decoded(base64.b64decode(value["image"]))) == np.array(grey)).all()


def test_only_the_first_request_is_cold_and_a_fork_tells_its_start(png_body: bytes) -> None:
    fresh = FaceBlur(settings_from({}))
    first = json.loads(fresh(png_body, "", start_ms=1234.5678).body)
    assert first["cold"] is True
    assert first["timings_ms"]["start"] == 1234.568
    assert json.loads(fresh(png_body, "").body)["cold"] is False


def test_the_limit_of_pixels_holds(png_body: bytes) -> None:
    with pytest.raises(RefusalError, match="max_pixels allows 230399") as refused:
        FaceBlur(settings_from({"MAX_PIXELS": "230399"}))(png_body, "")
    assert refused.value.status == 422


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("image/png", "image/png"),
        ("IMAGE/JPEG", "image/jpeg"),
        ("image/webp, image/jpeg;q=0.8, image/png;q=0.9", "image/png"),
        ("application/json;q=0.5, image/jpeg", "image/jpeg"),
        ("image/png;q=0", "application/json"),
        ("image/png;q=x;;,,", "application/json"),
    ],
)
def test_what_an_accept_header_asks_for(accept: str, wanted: str) -> None:
    assert preferred(accept) == wanted
