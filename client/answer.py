"""Judge a face-blur function's answer: JSON with a base64 image, or the image itself with figures in its headers.

A client for another function has its own judge: client/user.py needs only an AnswerVerdict.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from coding import is_readable
from encoding import Encoding

SIGNATURES = {"PNG": b"\x89PNG\r\n\x1a\n", "JPEG": b"\xff\xd8\xff"}

# Above what an answer has; a JSON of millions of values takes minutes to read, and gigabytes.
MAX_VALUES = 100_000

Face = tuple[int, int, int, int]
"""x, y, width, height in pixels of the frame."""


Figures = dict[str, float | bool | None]
NOTHING_KNOWN: Figures = {"handler_ms": None, "model_ms": None, "faces": None, "cold": None, "verified": False}


class AnswerVerdict(NamedTuple):
    """Why an answer is an error, if it is one, and the further figures of its sample."""

    cause: str | None
    figures: Figures
    payload: str | bytes | None = None  # base64 text or the image itself

    def image(self) -> bytes | None:
        """Return the image file, None if it is not proper base64. Takes longer than all of read_answer."""
        return _decoded(self.payload) if isinstance(self.payload, str) else self.payload


class AnswerContent(NamedTuple):
    """The content of an answer with status 200. If it is wrong, `cause` says why and `payload` is None."""

    payload: str | bytes | None
    faces: list[Face] | None
    handler_ms: float | None
    model_ms: float | None
    cold: bool | None
    cause: str | None


def judge(
    body: bytes, headers: Mapping[str, str], encoding: Encoding, frame: bytes | None, min_faces: int
) -> AnswerVerdict:
    """Judge the answer to a frame; its image is compared with the image `frame`, unless that is None."""
    answer = read_answer(body, headers, encoding)
    faces, cause = answer.faces or [], answer.cause
    is_verified = frame is not None and answer.payload is not None
    figures: Figures = {
        "handler_ms": answer.handler_ms,
        "model_ms": answer.model_ms,
        "faces": None if answer.faces is None else len(answer.faces),
        "cold": answer.cold,
        "verified": is_verified,
    }
    if cause is not None and not is_readable(headers):
        cause = "unknown-coding"
    verdict = AnswerVerdict(cause, figures, answer.payload)
    if frame is not None and is_verified:
        from verify import verify_image  # imported here: needs Pillow, which users that do not verify do without

        cause = verify_image(frame, verdict.image() or b"", faces, encoding)
    # If a face was not found, a change is missing too; the cause is then the missing face.
    if answer.payload is not None and cause in {None, "changed-outside"} and len(faces) < min_faces:
        cause = "too-few-faces"
    return verdict._replace(cause=cause)


def read_answer(body: bytes, headers: Mapping[str, str], encoding: Encoding) -> AnswerContent:
    """Read an answer; the result is always an AnswerContent, never an exception."""
    if encoding.accept == "application/json":
        return _read_json(body, encoding)
    timings = _server_timing(headers.get("Server-Timing", ""))
    faces = _faces(_parsed(headers.get("X-Faces", "")))
    cold = {"1": True, "0": False}.get(headers.get("X-Cold", "").strip())
    return _answer(body, faces, timings, cold, encoding)


def _read_json(body: bytes, encoding: Encoding) -> AnswerContent:
    answer = None if _has_too_many_values(body) else _parsed(body)
    if not isinstance(answer, dict):
        return AnswerContent(None, None, None, None, None, "not-json")
    timings = answer.get("timings_ms")
    cold = answer.get("cold")
    image = answer.get("image")
    return _answer(
        image if isinstance(image, str) else "",
        _faces(answer.get("faces")),
        timings if isinstance(timings, dict) else {},
        cold if isinstance(cold, bool) else None,
        encoding,
    )


def _has_too_many_values(body: bytes) -> bool:
    at = -1
    for _ in range(MAX_VALUES):  # an image has no comma: finding the next takes a tenth of the time of count()
        at = body.find(b",", at + 1)
        if at < 0:
            return False
    return True


def _answer(
    payload: str | bytes, faces: list[Face] | None, timings: Mapping[str, Any], cold: bool | None, encoding: Encoding
) -> AnswerContent:
    begin = _decoded(payload.lstrip()[:12]) if isinstance(payload, str) else payload
    is_image = (begin or b"").startswith(SIGNATURES[encoding.image_format])
    handler_ms, model_ms = _milliseconds(timings.get("total")), _milliseconds(timings.get("model"))
    return AnswerContent(
        payload if is_image else None, faces, handler_ms, model_ms, cold, None if is_image else "not-image"
    )


def _decoded(base64_text: str) -> bytes | None:
    try:
        return base64.b64decode("".join(base64_text.split()), validate=True)  # MIME's has line breaks
    except ValueError:  # binascii.Error, or text that is not ASCII
        return None


def _parsed(text: bytes | str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _milliseconds(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(float(value), 3) if 0 <= value < 1e9 else None  # excludes NaN and infinity


def _server_timing(header: str) -> dict[str, float]:
    """Read `decode;dur=1.2, model;dur=22.1` (W3C Server-Timing)."""
    timings = {}
    for entry in header.split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip().lower() == "dur":
                try:
                    timings[name] = float(value.strip().strip('"'))
                except ValueError:
                    continue
    return timings


def _faces(reported: Any) -> list[Face] | None:
    """Read faces as objects (JSON) or as lists (X-Faces); None if they are missing or invalid."""
    if not isinstance(reported, list):
        return None
    faces: list[Face] = []
    for face in reported:
        sides = [face.get(side) for side in ("x", "y", "width", "height")] if isinstance(face, dict) else face
        if not isinstance(sides, list) or len(sides) < 4:
            return None
        if not all(isinstance(side, int | float) and abs(side) < 1e6 for side in sides[:4]):
            return None
        x, y, width, height = (round(side) for side in sides[:4])
        if width <= 0 or height <= 0:
            return None
        faces.append((x, y, width, height))
    return faces
