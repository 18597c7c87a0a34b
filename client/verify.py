"""Look at an answer's image: is it the frame, blurred in the reported faces and nowhere else?

Imported only when a frame is verified; none of it runs while the response time is measured.
"""

import io
import struct
import zlib
from collections.abc import Sequence

from PIL import Image, ImageChops, ImageStat

from encoding import Encoding

# Minimum mean change (0..255) of a blurred face. Measured on the default clip: 30 in a blurred face; 0 in a frame sent
# back unchanged, or up to 4.1 if JPEG encoded it again at quality 75.
FACE_CHANGE_LOSSLESS, FACE_CHANGE_LOSSY = 0.5, 6.0
# JPEG spreads a change over its blocks of 16x16 pixels, and encoding again changes every block a little. The greatest
# mean change of a block that was measured: 12 in photographs at quality 75, 5 at quality 90.
LOSSY_BLOCK = 16
OUTSIDE_CHANGE_LOSSY = 16
# What the function chooses costs time here: scans of a JPEG, each of which goes over the whole picture, and faces,
# which together may cover it so often.
MAX_JPEG_SCANS = 100
MAX_COVERED = 20
# Nothing is decoded that has another size than the frame: Pillow need not warn of large ones.
Image.MAX_IMAGE_PIXELS = None
_START_OF_SCAN = b"\xff\xda"

_NOT_DECODED = (OSError, ValueError, SyntaxError, EOFError, OverflowError, MemoryError, struct.error, zlib.error)


def verify_image(
    frame_file: bytes, answer_file: bytes, faces: Sequence[tuple[int, int, int, int]], encoding: Encoding
) -> str | None:
    """Return None if the answer is the frame with its faces (x, y, width, height) blurred, else the cause."""
    if not encoding.lossless and answer_file.count(_START_OF_SCAN) > MAX_JPEG_SCANS:
        return "not-image"
    try:
        with Image.open(io.BytesIO(frame_file), formats=[encoding.image_format]) as image:
            frame = image.convert("RGB")
        with Image.open(io.BytesIO(answer_file), formats=[encoding.image_format]) as image:
            if image.size != frame.size:
                return "wrong-size"
            answer = image.convert("RGB")
    except _NOT_DECODED:
        return "not-image"
    change = ImageChops.difference(frame, answer)
    boxes = [_box(face, change) for face in faces]
    if sum(map(_area, boxes)) > MAX_COVERED * frame.width * frame.height:
        return "not-blurred"
    least = FACE_CHANGE_LOSSLESS if encoding.lossless else FACE_CHANGE_LOSSY
    if any(_mean_change(change, box) < least for box in boxes):
        return "not-blurred"
    return None if _unchanged_outside(change, boxes, encoding) else "changed-outside"


Box = tuple[int, int, int, int]
"""Left, top, right, bottom, as Pillow cuts it out."""


def _box(face: tuple[int, int, int, int], image: Image.Image) -> Box:
    x, y, width, height = face
    return max(x, 0), max(y, 0), min(x + width, image.width), min(y + height, image.height)


def _area(box: Box) -> int:
    left, top, right, bottom = box
    return max(right - left, 0) * max(bottom - top, 0)


def _mean_change(change: Image.Image, box: Box) -> float:
    left, top, right, bottom = box
    if right <= left or bottom <= top:
        return 0.0  # a face outside of the picture was not blurred
    return sum(ImageStat.Stat(change.crop(box)).mean) / 3


def _unchanged_outside(change: Image.Image, boxes: list[Box], encoding: Encoding) -> bool:
    margin = 0 if encoding.lossless else LOSSY_BLOCK
    for left, top, right, bottom in boxes:
        change.paste((0, 0, 0), (left - margin, top - margin, right + margin, bottom + margin))
    if encoding.lossless:
        return change.getbbox() is None
    return all(high <= OUTSIDE_CHANGE_LOSSY for _, high in ImageStat.Stat(change.reduce(LOSSY_BLOCK)).extrema)
