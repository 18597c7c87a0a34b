"""Cut a video into encoded frames. The only part of the client that needs PyAV."""

import base64
import io
import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import av
import av.logging
from av.stream import Disposition
from PIL import ExifTags, Image

from encoding import Encoding, FrameError
from files import write_whole

# Level 1 takes a third of level 6's time for files a few per cent larger; all users wait for the cut.
PNG_COMPRESSION_LEVEL = 1
JPEG_QUALITY = 90
# A file with a larger pixel aspect ratio is wrong: anamorphic formats stretch a picture to at most twice its width.
MOST_STRETCHED = Fraction(4)
# Formats of a file that only names others.
LISTS = ("concat", "dash", "hls")
# By the display matrix: where a step to the right and a step down of the stored picture lead.
_TRANSPOSE = Image.Transpose
UPRIGHT = {
    (0, 1, -1, 0): _TRANSPOSE.ROTATE_270,
    (-1, 0, 0, -1): _TRANSPOSE.ROTATE_180,
    (0, -1, 1, 0): _TRANSPOSE.ROTATE_90,
    (-1, 0, 0, 1): _TRANSPOSE.FLIP_LEFT_RIGHT,  # as front cameras do
    (1, 0, 0, -1): _TRANSPOSE.FLIP_TOP_BOTTOM,
    (0, 1, 1, 0): _TRANSPOSE.TRANSPOSE,
    (0, -1, -1, 0): _TRANSPOSE.TRANSVERSE,
}
# By the orientation of a photo.
UPRIGHT_BY_EXIF = {
    2: _TRANSPOSE.FLIP_LEFT_RIGHT,
    3: _TRANSPOSE.ROTATE_180,
    4: _TRANSPOSE.FLIP_TOP_BOTTOM,
    5: _TRANSPOSE.TRANSPOSE,
    6: _TRANSPOSE.ROTATE_270,
    7: _TRANSPOSE.TRANSVERSE,
    8: _TRANSPOSE.ROTATE_90,
}


class Cut(NamedTuple):
    """The frames of a video: width and height as shown (px), sizes of the files (bytes), the decoder's first error."""

    width: int
    height: int
    sizes: list[int]
    damage: str | None


def cut_video(video: Path, encoding: Encoding, folder: Path, first: int = 0) -> Cut:
    """Write the frames to `folder`: all, or only the `first` ones."""
    sizes: list[int] = []
    size: tuple[int, int] | None = None
    with _decoder_errors() as errors:
        for image in islice(_upright_frames(video), first or None):
            size = size or image.size
            if image.size != size:
                raise FrameError(
                    f"video {video} changes its size at frame {len(sizes)} from {size[0]}x{size[1]} to "
                    f"{image.width}x{image.height}; re-encode it at one size"
                )
            body = encode(image, encoding)
            write_whole(folder / f"{len(sizes):06}{encoding.suffix}", body)
            sizes.append(len(body))
    damage = errors[0][2].strip() if errors else None
    if size is None:
        raise FrameError(f"video {video} has no frames{f': {damage}' if damage else ''}")
    return Cut(*size, sizes, damage)


@contextmanager
def _decoder_errors() -> Iterator[list[tuple[int, str, str]]]:
    """Collect the errors that the decoder only logs, because it can go on after them: level, codec and message."""
    level = av.logging.get_level()
    av.logging.set_level(av.logging.ERROR)
    try:
        with av.logging.Capture() as logs:
            yield logs
    finally:
        av.logging.set_level(level)


def encode(image: Image.Image, encoding: Encoding) -> bytes:
    """Return the image as it is sent."""
    file = io.BytesIO()
    if encoding.image_format == "JPEG":
        image.save(file, "JPEG", quality=JPEG_QUALITY)
    else:
        image.save(file, "PNG", compress_level=PNG_COMPRESSION_LEVEL)
    body = file.getvalue()
    return base64.b64encode(body) if encoding.suffix == ".b64" else body


def _upright_frames(video: Path) -> Iterator[Image.Image]:
    count, turn = 0, None
    try:
        # Of a list of files, or of a name like a pattern, the cache would not see that the files change.
        with av.open(str(video), options={"pattern_type": "none"}) as container:
            if container.format.name in LISTS:
                raise FrameError(f"video {video} is a list of other files; join them into one")
            streams = [each for each in container.streams.video if not each.disposition & Disposition.attached_pic]
            if not streams:  # the picture of an album is none
                what = "" if container.streams else ", nor any other; copy it again, a part may be missing"
                raise FrameError(f"{video} has no video stream{what}")
            streams[0].codec_context.thread_count = 1  # its other threads would wait for Python's lock to log
            for frame in container.decode(streams[0]):
                if frame.is_corrupt:
                    raise FrameError(f"video {video} is broken at frame {count}; copy or encode it again")
                if not count:  # of the first one only: what is read there keeps a frame's memory for long
                    turn = _turn(video, frame)
                image = _with_square_pixels(frame, streams[0].sample_aspect_ratio)
                yield image if turn is None else image.transpose(turn)
                count += 1
    except (av.FFmpegError, UnicodeDecodeError) as error:
        where = f"after frame {count - 1}" if count else "at its start"
        raise FrameError(
            f"video {video} cannot be read {where}: {getattr(error, 'strerror', error)}; copy or encode it again"
        ) from error


def _with_square_pixels(frame: av.VideoFrame, aspect: Fraction | None) -> Image.Image:
    """Return the picture with square pixels, as video players show it. It is only enlarged, so no detail is lost."""
    image: Image.Image = frame.to_image()  # type: ignore[no-untyped-call]
    if not aspect or not 1 / MOST_STRETCHED <= aspect <= MOST_STRETCHED or aspect == 1:
        return image
    wider, higher = max(aspect, Fraction(1)), max(1 / aspect, Fraction(1))
    return image.resize((round(image.width * wider), round(image.height * higher)))


def _turn(video: Path, frame: av.VideoFrame) -> Image.Transpose | None:
    """Return what the file asks to be done with each picture, which PyAV leaves to its user."""
    try:
        matrix: Any = frame.side_data["DISPLAYMATRIX"]  # type: ignore[typeddict-item]
        a, b, _, c, d, *_ = (round(number / 65536) for number in struct.unpack("=9i", bytes(matrix)))
    except KeyError:
        return None
    except ValueError:  # beside the matrix there is something that PyAV does not know, such as the EXIF of a photo
        turn = _turn_of_photo(video)
        return _turn_of_angle(frame.rotation) if turn is None else turn
    return UPRIGHT.get((a, b, c, d))


def _turn_of_photo(photo: Path) -> Image.Transpose | None:
    try:
        with Image.open(photo) as image:
            return UPRIGHT_BY_EXIF.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):  # it is none, or none that Pillow reads
        return None


def _turn_of_angle(degrees: int) -> Image.Transpose | None:
    """Return the turn by an angle, which is not enough to tell whether the picture is mirrored too."""
    angle = math.radians(degrees)
    cos, sin = round(math.cos(angle)), round(math.sin(angle))
    return UPRIGHT.get((cos, -sin, sin, cos))
