"""Bytes to picture and back: PNG and JPEG, raw or as base64 text, told apart by what they are."""

from __future__ import annotations

import base64
import binascii
import io
import struct
import warnings
import zlib
from dataclasses import dataclass

from PIL import Image, ImageOps

import png
from function.exchange import RefusalError

PNG = "PNG"
JPEG = "JPEG"
_SIGNATURES = {PNG: png.SIGNATURE, JPEG: b"\xff\xd8\xff"}
# Encoders write some ten; a thumbnail in the metadata has its own.
JPEG_SCANS_MAX = 100
START_OF_SCAN = b"\xff\xda"
# The widest and highest that libjpeg writes.
JPEG_SIDE_MAX_PX = 65500
# Grey of one bit up to 32: what has no colour stays without.
_GREY_MODES = {"1", "L", "LA", "La", "I", "F"}
# What Pillow raises on broken files, by fuzzing it and by its documentation.
_BROKEN = (OSError, SyntaxError, ValueError, TypeError, IndexError, KeyError, struct.error, zlib.error, OverflowError)

# The limit is ours and exact, see `decode`; Pillow's own would warn from half of it on.
Image.MAX_IMAGE_PIXELS = None
# Damaged metadata is no reason to fail, nor to write a line for every such request.
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")


@dataclass(frozen=True)
class Picture:
    """A decoded picture (mode L, LA, RGB or RGBA, upright), the format it came in, and its colour profile."""

    image: Image.Image
    format: str
    icc_profile: bytes | None


def decode(body: bytes, max_pixels: int) -> Picture:
    """Decode a request's body; raises RefusalError with status 400, 415 or 422."""
    if not body:
        raise RefusalError(400, "the body is empty; send a PNG or JPEG image, or its base64 text")
    raw = body if _format(body) else _from_base64(body)
    kind = _format(raw)
    if kind is None:
        raise RefusalError(415, f"neither PNG nor JPEG: the image starts with {raw[:8].hex(' ') or 'nothing'}")
    try:
        image = Image.open(io.BytesIO(raw), formats=(kind,))
        width, height = image.size
        if width * height > max_pixels:
            message = f"{width}x{height} is {width * height} pixels; max_pixels allows {max_pixels}"
            raise RefusalError(422, message)
        # Each scan of a progressive JPEG goes over the whole picture: thousands of empty ones are a few KB of body, and
        # minutes of work.
        if kind == JPEG and raw.count(START_OF_SCAN) > JPEG_SCANS_MAX:
            raise RefusalError(422, f"the JPEG image has more than {JPEG_SCANS_MAX} scans")
        icc_profile = image.info.get("icc_profile")
        image.load()
        plain = _plain(image)
        if plain.mode in ("L", "LA") and image.mode not in _GREY_MODES | {"I;16"}:
            icc_profile = None
        if image.mode in ("CMYK", "YCCK"):
            icc_profile = None
        return Picture(ImageOps.exif_transpose(plain), kind, icc_profile)
    except _BROKEN as error:
        raise RefusalError(422, f"the {kind} image cannot be decoded: {error}") from error


def encode(picture: Image.Image, kind: str, jpeg_quality: int, icc_profile: bytes | None) -> bytes:
    """Encode a picture of mode L, LA, RGB or RGBA as PNG or JPEG (which knows no transparency); raises RefusalError."""
    if kind == PNG:
        return png.encode_png(picture, icc_profile)
    if max(picture.size) > JPEG_SIDE_MAX_PX:
        size = f"{picture.width}x{picture.height}"
        raise RefusalError(422, f"{size} is too large for JPEG, whose sides have at most {JPEG_SIDE_MAX_PX} pixels")
    opaque = picture.convert(picture.mode.removesuffix("A")) if picture.mode.endswith("A") else picture
    buffer = io.BytesIO()
    opaque.save(buffer, JPEG, quality=jpeg_quality, icc_profile=icc_profile)
    return buffer.getvalue()


def _format(data: bytes) -> str | None:
    return next((kind for kind, signature in _SIGNATURES.items() if data.startswith(signature)), None)


def _from_base64(body: bytes) -> bytes:
    """Return the bytes behind base64 text, line breaks allowed. Anything that is not text is returned as it is."""
    if not body[:64].isascii() or not body.isascii():
        return body
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error:
        pass  # line breaks, most likely
    try:
        return base64.b64decode(b"".join(body.split()), validate=True)
    except binascii.Error as error:
        raise RefusalError(400, f"the body is text, but not the base64 of an image: {error}") from error


def _plain(image: Image.Image) -> Image.Image:
    """Return the same picture with 8 bits a channel, grey or RGB, with transparency if it had any."""
    if image.mode.startswith("I"):
        # 16 bits a pixel: Pillow's own conversion to 8 cuts off at 255.
        image = image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    base = "L" if image.mode in _GREY_MODES else "RGB"
    wanted = base + "A" if image.has_transparency_data else base
    return image if image.mode == wanted else image.convert(wanted)
