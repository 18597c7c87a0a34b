"""Glue: a request's bytes become a picture without faces, and what was found and how long it took beside it."""

from __future__ import annotations

import base64
import json
import threading
import time

import numpy as np

import codec
from blur import Face, blur
from detector import Detector
from function.exchange import JSON, Answer
from settings import FaceBlurSettings

_FORMATS = {"image/png": codec.PNG, "image/jpeg": codec.JPEG}


class FaceBlur:
    """The function. Made once a process; may be called by several threads at once."""

    def __init__(self, settings: FaceBlurSettings) -> None:
        """Load and warm up the detector; raises detector.ModelError."""
        self._settings = settings
        self._detector = Detector(settings.face_model, settings.threshold, settings.tf_threads)
        self._first = threading.Lock()

    def __call__(self, body: bytes, accept: str, start_ms: float | None = None) -> Answer:
        """Blur the faces of one image; raises RefusalError for input that is none.

        `accept` as in HTTP: image/png and image/jpeg ask for the image itself, anything else for JSON. `start_ms` is
        how long the process took to come here, if it was started for this request.
        """
        cold = self._first.acquire(blocking=False)
        clock = _Clock() if start_ms is None else _Clock(start=start_ms)
        picture = codec.decode(body, self._settings.max_pixels)
        rgb = np.asarray(picture.image if picture.image.mode == "RGB" else picture.image.convert("RGB"))
        clock.lap("decode")
        detections, model_s = self._detector.detect(rgb)
        clock.lap("model", model_s)
        faces = blur(picture.image, detections)
        clock.lap("blur")
        media_type = preferred(accept)
        kind = _FORMATS.get(media_type, picture.format)
        image = codec.encode(picture.image, kind, self._settings.jpeg_quality, picture.icc_profile)
        text = base64.b64encode(image) if media_type == JSON else b""
        clock.lap("encode")
        timings_ms = clock.total()
        server_timing = ("Server-Timing", ", ".join(f"{name};dur={ms:g}" for name, ms in timings_ms.items()))
        if media_type == JSON:
            rest = {"faces": [vars(face) for face in faces], "timings_ms": timings_ms, "cold": cold}
            # The text needs no escaping, and looking for what does takes longer than the rest of the answer.
            whole = b"".join((b'{"image": "', text, b'", ', json.dumps(rest).encode()[1:]))
            return Answer(whole, JSON, headers=(server_timing,))
        headers = (server_timing, ("X-Faces", json.dumps([_row(face) for face in faces])), ("X-Cold", str(int(cold))))
        return Answer(image, media_type, headers=headers)


def preferred(accept: str) -> str:
    """Return which of JSON, image/png and image/jpeg an Accept header asks for first; JSON if none of them."""
    ranges = []
    for part in accept.lower().split(","):
        media_type, *parameters = (piece.strip() for piece in part.split(";"))
        quality = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        ranges.append((float(quality) if quality.replace(".", "", 1).isdecimal() else 0.0, media_type))
    ranges.sort(key=lambda item: -item[0])
    return next((name for quality, name in ranges if quality > 0 and (name in _FORMATS or name == JSON)), JSON)


def _row(face: Face) -> list[float]:
    return [face.x, face.y, face.width, face.height, face.score]


class _Clock:
    """Milliseconds by part, in the order of the parts; the total also holds the time spent waiting for the model."""

    def __init__(self, **before_ms: float) -> None:
        self._parts_ms = {name: round(ms, 3) for name, ms in before_ms.items()}
        self._started_s = self._lap_s = time.perf_counter()

    def lap(self, name: str, seconds: float | None = None) -> None:
        """End a part: the time since the last one's end, or what was measured inside of it."""
        now_s = time.perf_counter()
        self._parts_ms[name] = round((now_s - self._lap_s if seconds is None else seconds) * 1000, 3)
        self._lap_s = now_s

    def total(self) -> dict[str, float]:
        return {**self._parts_ms, "total": round((time.perf_counter() - self._started_s) * 1000, 3)}
