"""Cutting: upright frames in the wanted encoding, or a clear error."""

import base64
import gc
import io
import struct
from fractions import Fraction
from pathlib import Path

import av
import pytest
from PIL import ExifTags, Image, ImageChops, ImageOps, ImageStat

from cut import cut_video
from encoding import ENCODINGS, FrameError
from tests.client.conftest import write_video


@pytest.mark.parametrize(
    ("encoding", "name"), [("png-base64", "000004.b64"), ("png", "000004.png"), ("jpeg", "000004.jpg")]
)
def test_frames_in_each_encoding(video: Path, tmp_path: Path, encoding: str, name: str) -> None:
    width, height, sizes, damage = cut_video(video, ENCODINGS[encoding], tmp_path)
    assert (width, height, len(sizes), damage) == (128, 96, 5, None)
    body = (tmp_path / name).read_bytes()
    assert len(body) == sizes[4]
    image = Image.open(io.BytesIO(base64.b64decode(body, validate=True) if encoding == "png-base64" else body))
    assert (image.size, image.format, image.mode) == ((128, 96), ENCODINGS[encoding].image_format, "RGB")


@pytest.mark.parametrize(
    ("matrix", "size", "corner"),
    [
        ((1, 0, 0, 1), (128, 96), (4, 4)),
        ((0, 1, -1, 0), (96, 128), (91, 4)),
        ((-1, 0, 0, -1), (128, 96), (123, 91)),
        ((0, -1, 1, 0), (96, 128), (4, 123)),
        ((-1, 0, 0, 1), (128, 96), (123, 4)),
        ((1, 0, 0, -1), (128, 96), (4, 91)),
        ((0, 1, 1, 0), (96, 128), (4, 4)),
        ((0, -1, -1, 0), (96, 128), (91, 123)),
    ],
)
def test_a_video_turned_or_mirrored_as_telephones_do(
    video: Path, tmp_path: Path, matrix: tuple[int, ...], size: tuple[int, int], corner: tuple[int, int]
) -> None:
    content = bytearray(video.read_bytes())
    at = content.index(b"tkhd") + 44  # of version 0, ISO/IEC 14496-12 section 8.3.2
    a, b, c, d = (value << 16 for value in matrix)
    content[at : at + 20] = struct.pack(">5i", a, b, 0, c, d)
    (tmp_path / "turned.mp4").write_bytes(content)
    turned = cut_video(tmp_path / "turned.mp4", ENCODINGS["png"], tmp_path, first=1)
    with Image.open(tmp_path / "000000.png") as image:
        assert (turned.width, turned.height) == image.size == size
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
        "tracks-cut": (whole[:100], "no video stream, nor any other"),
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


def test_damage_that_a_decoder_passes_over_is_told(tmp_path: Path) -> None:
    path = write_video(tmp_path / "clip.mkv", frames=8, container="matroska")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    cut = cut_video(path, ENCODINGS["jpeg"], tmp_path)
    assert 0 < len(cut.sizes) < 8
    assert cut.damage == "File ended prematurely"


def test_a_list_of_other_files_is_no_video(video: Path, tmp_path: Path) -> None:
    (tmp_path / "clip.mp4").write_bytes(video.read_bytes())
    (tmp_path / "list").write_text("ffconcat version 1.0\nfile clip.mp4\n")
    with pytest.raises(FrameError, match="list of other files"):
        cut_video(tmp_path / "list", ENCODINGS["png"], tmp_path)


def test_a_decoder_error_is_told_if_there_are_no_frames(tmp_path: Path) -> None:
    path = write_video(tmp_path / "clip.mkv", frames=1, container="matroska")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    av.logging.set_skip_repeated(False)  # else an error that another test has seen is not logged again
    with pytest.raises(FrameError, match="no frames: File ended prematurely"):
        cut_video(path, ENCODINGS["png"], tmp_path)


def test_the_memory_of_frames_is_given_back(video: Path, tmp_path: Path) -> None:
    gc.collect()
    gc.disable()  # the frames of a large video would fill the memory before it runs
    try:
        cut_video(video, ENCODINGS["jpeg"], tmp_path)
        assert sum(isinstance(each, av.VideoFrame) for each in gc.get_objects()) <= 1
    finally:
        gc.enable()


def test_a_name_like_a_pattern_names_one_file(tmp_path: Path) -> None:
    for name in ("1.png", "2.png", "%d.png"):
        Image.new("RGB", (8, 8)).save(tmp_path / name)
    (tmp_path / "cut").mkdir()
    assert len(cut_video(tmp_path / "%d.png", ENCODINGS["png"], tmp_path / "cut").sizes) == 1


@pytest.mark.parametrize(("aspect", "size"), [(Fraction(2), (256, 96)), (Fraction(1, 2), (128, 192))])
def test_pixels_that_are_not_square(tmp_path: Path, aspect: Fraction, size: tuple[int, int]) -> None:
    path = write_video(tmp_path / "clip.mp4", frames=1, pixel_aspect=aspect)
    cut = cut_video(path, ENCODINGS["png"], tmp_path)
    with Image.open(tmp_path / "000000.png") as image:
        assert (cut.width, cut.height) == image.size == size


def test_the_picture_of_an_album_is_no_video(tmp_path: Path) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (8, 8)).save(picture, "JPEG")
    content = b"\0image/jpeg\0\x03\0" + picture.getvalue()
    frame = b"APIC" + struct.pack(">IH", len(content), 0) + content
    tag = b"ID3\x03\0\0" + bytes((len(frame) >> shift) & 127 for shift in (21, 14, 7, 0)) + frame
    silence = b"\xff\xfb\x90\xc0" + bytes(413)  # a frame of MPEG-1 layer III, 128 kbit/s, 44.1 kHz, mono
    (tmp_path / "song.mp3").write_bytes(tag + silence * 20)
    with pytest.raises(FrameError, match="no video stream"):
        cut_video(tmp_path / "song.mp3", ENCODINGS["png"], tmp_path)


@pytest.mark.parametrize("ending", ["jpg", "png", "webp"])
@pytest.mark.parametrize("orientation", range(9))
def test_a_photo_is_a_frame_turned_by_its_exif(tmp_path: Path, orientation: int, ending: str) -> None:
    photo = Image.new("RGB", (64, 48))
    for corner, colour in enumerate(("red", "lime", "blue")):
        x, y = 40 * (corner % 2), 32 * (corner // 2)
        photo.paste(colour, (x, y, x + 24, y + 16))
    exif = photo.getexif()
    exif[ExifTags.Base.Orientation] = orientation
    photo.save(tmp_path / f"photo.{ending}", exif=exif, quality=95)
    with Image.open(tmp_path / f"photo.{ending}") as stored:
        upright = ImageOps.exif_transpose(stored).convert("RGB")
    cut = cut_video(tmp_path / f"photo.{ending}", ENCODINGS["png"], tmp_path)
    with Image.open(tmp_path / "000000.png") as image:
        assert (cut.width, cut.height) == image.size == upright.size
        assert max(ImageStat.Stat(ImageChops.difference(image, upright)).mean) < 5


def test_a_folder_is_no_video(tmp_path: Path) -> None:
    with pytest.raises(FrameError, match="cannot be read"):
        cut_video(tmp_path, ENCODINGS["png"], tmp_path)
