"""Cutting: upright frames in the wanted encoding, or a clear error."""

import base64
import io
import struct
from pathlib import Path

import pytest
from PIL import Image

from cut import cut_video
from encoding import ENCODINGS, FrameError


@pytest.mark.parametrize(
    ("encoding", "name"), [("png-base64", "000004.b64"), ("png", "000004.png"), ("jpeg", "000004.jpg")]
)
def test_frames_in_each_encoding(video: Path, tmp_path: Path, encoding: str, name: str) -> None:
    width, height, sizes = cut_video(video, ENCODINGS[encoding], tmp_path)
    assert (width, height, len(sizes)) == (128, 96, 5)
    body = (tmp_path / name).read_bytes()
    assert len(body) == sizes[4]
    image = Image.open(io.BytesIO(base64.b64decode(body, validate=True) if encoding == "png-base64" else body))
    assert (image.size, image.format, image.mode) == ((128, 96), ENCODINGS[encoding].image_format, "RGB")


@pytest.mark.parametrize(
    ("degrees", "size", "corner"),
    [(0, (128, 96), (4, 4)), (90, (96, 128), (91, 4)), (180, (128, 96), (123, 91)), (270, (96, 128), (4, 123))],
)
def test_a_video_turned_clockwise_as_telephones_do(
    video: Path, tmp_path: Path, degrees: int, size: tuple[int, int], corner: tuple[int, int]
) -> None:
    content = bytearray(video.read_bytes())
    matrix = content.index(b"tkhd") + 44  # of version 0, ISO/IEC 14496-12 section 8.3.2
    cosine, sine = {0: (1, 0), 90: (0, 1), 180: (-1, 0), 270: (0, -1)}[degrees]
    content[matrix : matrix + 20] = struct.pack(">5i", cosine << 16, sine << 16, 0, -sine << 16, cosine << 16)
    (tmp_path / "turned.mp4").write_bytes(content)
    width, height, _ = cut_video(tmp_path / "turned.mp4", ENCODINGS["png"], tmp_path)
    with Image.open(tmp_path / "000000.png") as image:
        assert (width, height) == image.size == size
        red, green, blue = image.getpixel(corner)  # type: ignore[misc]
    assert red > 150 and green < 90 and blue < 90


def test_broken_videos(video: Path, tmp_path: Path) -> None:
    whole = video.read_bytes()
    audio = b"RIFF" + (36 + 800).to_bytes(4, "little") + b"WAVEfmt " + bytes.fromhex("10000000010001004000000040000000")
    audio += bytes.fromhex("01000800") + b"data" + (800).to_bytes(4, "little") + bytes(800)
    cases: dict[str, tuple[bytes, str]] = {
        "empty": (b"", "at its start"),
        "no-video": (b"this is a text, not a video" * 100, "at its start"),
        "audio": (audio, "no video stream"),
        "header-cut": (whole[:200], "no video stream"),
        "cut": (whole[: len(whole) * 2 // 3], "after frame"),
        "damaged": (whole[: len(whole) // 2] + bytes(3000) + whole[len(whole) // 2 + 3000 :], "frame"),
    }
    for name, (content, expected) in cases.items():
        path = tmp_path / f"{name}.mp4"
        path.write_bytes(content)
        (tmp_path / name).mkdir()
        with pytest.raises(FrameError, match=expected) as raised:
            cut_video(path, ENCODINGS["jpeg"], tmp_path / name)
        assert str(path) in str(raised.value)


def test_a_folder_is_no_video(tmp_path: Path) -> None:
    with pytest.raises(FrameError, match="cannot be read"):
        cut_video(tmp_path, ENCODINGS["png"], tmp_path)
