"""Cut a video into encoded frames. The only part of the client that needs PyAV."""

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import av
from PIL import Image

from encoding import Encoding, FrameError
from files import write_whole

# Level 1 takes a third of level 6's time for files a few per cent larger; all users wait for the cut.
PNG_COMPRESSION_LEVEL = 1
JPEG_QUALITY = 90
# Counter-clockwise, as the display matrix gives it.
QUARTER_TURNS = {
    90: Image.Transpose.ROTATE_90,
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_270,
}


def cut_video(video: Path, encoding: Encoding, folder: Path) -> tuple[int, int, list[int]]:
    """Write each frame to `folder` and return width and height (px) as shown and the files' sizes (bytes)."""
    sizes: list[int] = []
    first: tuple[int, int] | None = None
    for image in _upright_frames(video):
        first = first or image.size
        if image.size != first:
            raise FrameError(
                f"video {video} changes its size at frame {len(sizes)} from {first[0]}x{first[1]} to "
                f"{image.width}x{image.height}; re-encode it at one size"
            )
        body = encode(image, encoding)
        write_whole(folder / f"{len(sizes):06}{encoding.suffix}", body)
        sizes.append(len(body))
    if first is None:
        raise FrameError(f"video {video} has no frames")
    return *first, sizes


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
    count = 0
    try:
        with av.open(str(video)) as container:
            if not container.streams.video:
                raise FrameError(f"{video} has no video stream")
            for frame in container.decode(video=0):
                if frame.is_corrupt:
                    raise FrameError(f"video {video} is broken at frame {count}; copy or encode it again")
                turn = QUARTER_TURNS.get(round(frame.rotation / 90) * 90 % 360)
                image: Image.Image = frame.to_image()  # type: ignore[no-untyped-call]
                # PyAV leaves it to its user to apply the rotation that the file asks for.
                yield image if turn is None else image.transpose(turn)
                count += 1
    except (av.FFmpegError, UnicodeDecodeError) as error:
        where = f"after frame {count - 1}" if count else "at its start"
        raise FrameError(f"video {video} cannot be read {where}: {error}; copy or encode it again") from error
