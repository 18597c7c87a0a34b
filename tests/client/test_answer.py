"""Answers as they come: right, sloppy, hostile."""

import base64
import json
from typing import Any

import pytest

from answer import AnswerContent, AnswerVerdict, judge, read_answer
from encoding import ENCODINGS

PNG = b"\x89PNG\r\n\x1a\n rest"


def answer(**changed: Any) -> bytes:
    whole = {
        "image": base64.b64encode(PNG).decode(),
        "faces": [{"x": 1, "y": 2, "width": 3, "height": 4, "score": 0.5}],
        "timings_ms": {"model": 2.25, "total": 3.0},
        "cold": True,
    }
    return json.dumps({**whole, **changed}).encode()


def test_json() -> None:
    text = base64.b64encode(PNG).decode()
    result = read_answer(answer(), {}, ENCODINGS["png-base64"])
    assert result == AnswerContent(text, [(1, 2, 3, 4)], 3.0, 2.25, True, None)
    assert AnswerVerdict(None, {}, result.payload).image() == PNG


@pytest.mark.parametrize("begin", ["", "\n", "\r\n  "])
def test_base64_with_line_breaks(begin: str) -> None:
    text = begin + base64.encodebytes(PNG * 9).decode()
    assert judge(answer(image=text), {}, ENCODINGS["png-base64"], None, 0).image() == PNG * 9


@pytest.mark.parametrize(
    ("coding", "cause"),
    [("zstd", "unknown-coding"), ("GZIP, br", "unknown-coding"), ("gzip", "not-image"), ("", "not-image")],
)
def test_an_answer_in_a_coding_that_nobody_asked_for(coding: str, cause: str) -> None:
    assert judge(b"\x28\xb5\x2f\xfd", {"Content-Encoding": coding}, ENCODINGS["png"], None, 0).cause == cause
    assert judge(PNG, {"Content-Encoding": coding}, ENCODINGS["png"], None, 0).cause is None


def test_base64_that_breaks_off_later() -> None:
    result = read_answer(answer(image=base64.b64encode(PNG).decode() + "?"), {}, ENCODINGS["png-base64"])
    assert result.cause is None and AnswerVerdict(None, {}, result.payload).image() is None


def test_raw() -> None:
    headers = {
        "Server-Timing": 'decode;dur=1, model;desc="x";dur=22.1, total; dur="23.5", odd;dur=x',
        "X-Faces": "[[1,2,3,4,0.9],[5,6,7,8,0.8]]",
        "X-Cold": "0",
    }
    expected = AnswerContent(PNG, [(1, 2, 3, 4), (5, 6, 7, 8)], 23.5, 22.1, False, None)
    assert read_answer(PNG, headers, ENCODINGS["png"]) == expected


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe\x00",
        b"[1]",
        b'"text"',
        b"[" * 100_000,
        b"{" + b'"a":{' * 50_000,
        b"nul",
        answer(more=[0] * 200_000),
    ],
)
def test_not_json(body: bytes) -> None:
    assert read_answer(body, {}, ENCODINGS["png-base64"]).cause == "not-json"


@pytest.mark.parametrize(
    "image", [None, 7, "", "####", "ünsinn", "AAAA", [1], base64.b64encode(b"\xff\xd8\xff").decode()]
)
def test_not_image(image: Any) -> None:
    assert read_answer(answer(image=image), {}, ENCODINGS["png-base64"]).cause == "not-image"


@pytest.mark.parametrize(
    "faces",
    [None, 3, [3], [None], [{}], [{"x": 1}], [[1, 2, 3]], [[1, 2, 0, 4]], [["1", 2, 3, 4]], [[10**400, 1, 1, 1]]],
)
def test_faces_that_are_not_understood(faces: Any) -> None:
    assert read_answer(answer(faces=faces), {}, ENCODINGS["png-base64"]).faces is None


@pytest.mark.parametrize("total", [None, "3", -1, True, float("nan"), float("inf"), 10**400, {}])
def test_times_that_are_none(total: Any) -> None:
    assert read_answer(answer(timings_ms={"total": total}), {}, ENCODINGS["png-base64"]).handler_ms is None
    assert read_answer(answer(timings_ms=total), {}, ENCODINGS["png-base64"]).handler_ms is None


def test_headers_that_are_missing() -> None:
    assert read_answer(b"\xff\xd8\xff rest", {}, ENCODINGS["jpeg"])[1:] == (None, None, None, None, None)
