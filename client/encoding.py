"""How frames travel: their encodings, and the error of a video that cannot be made into them."""

from typing import NamedTuple


class FrameError(Exception):
    """The video or the cache cannot be used; the message says why."""


class Encoding(NamedTuple):
    """How a frame travels: cached as `suffix`, sent as `content_type`, answered as `accept`."""

    name: str
    suffix: str
    content_type: str
    accept: str
    image_format: str
    image_suffix: str
    lossless: bool


ENCODINGS = {
    encoding.name: encoding
    for encoding in (
        Encoding("png-base64", ".b64", "text/plain", "application/json", "PNG", ".png", lossless=True),
        Encoding("png", ".png", "image/png", "image/png", "PNG", ".png", lossless=True),
        Encoding("jpeg", ".jpg", "image/jpeg", "image/jpeg", "JPEG", ".jpg", lossless=False),
    )
}
DEFAULT_ENCODING = "png-base64"
