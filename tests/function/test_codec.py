import base64
import random
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from codec import JPEG, JPEG_SCANS_MAX, JPEG_SIDE_MAX_PX, PNG, START_OF_SCAN, decode, encode
from function.exchange import RefusalError
from png import encode_png
from tests.function.conftest import decoded, encoded

PIXELS = 1_000_000


def bomb(width: int, height: int) -> bytes:
    """A PNG that claims very many pixels."""
    png = encoded(Image.new("L", (1, 1)), PNG)
    header = b"IHDR" + struct.pack(">II", width, height) + png[24:29]
    return png[:12] + header + struct.pack(">I", zlib.crc32(header)) + png[33:]


def test_png_and_jpeg_are_told_apart_raw_and_as_base64(png_body: bytes, jpeg_body: bytes, frame: Image.Image) -> None:
    for body, kind in ((png_body, PNG), (jpeg_body, JPEG)):
        lines = base64.encodebytes(body)
        for sent in (body, base64.b64encode(body), lines, lines.replace(b"\n", b"\r\n")):
            picture = decode(sent, PIXELS)
            assert (picture.format, picture.image.mode, picture.image.size) == (kind, "RGB", (640, 360))
    assert (np.array(decode(png_body, PIXELS).image) == np.array(frame)).all()


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [("1", "L"), ("L", "L"), ("LA", "LA"), ("P", "RGB"), ("RGB", "RGB"), ("RGBA", "RGBA"), ("I;16", "L")],
)
def test_modes_of_png(mode: str, wanted: str) -> None:
    picture = decode(encoded(Image.new("RGB", (5, 4)).convert("L" if mode == "I;16" else mode).convert(mode), PNG), 99)
    assert picture.image.mode == wanted


def test_sixteen_bits_become_eight_and_are_not_cut_off() -> None:
    deep = Image.fromarray(np.array([[0, 256, 32768, 65535]], np.uint16))
    assert np.array(decode(encoded(deep, PNG), 99).image).tolist() == [[0, 1, 128, 255]]


@pytest.mark.parametrize(("mode", "key", "wanted"), [("RGB", (0, 0, 0), "RGBA"), ("L", 0, "LA"), ("P", 0, "RGBA")])
def test_a_transparent_colour_becomes_transparency(mode: str, key: Any, wanted: str) -> None:
    picture = decode(encoded(Image.new(mode, (3, 3)), PNG, transparency=key), 99)
    assert picture.image.mode == wanted
    assert set(np.array(picture.image)[..., -1].flat) == {0}


@pytest.mark.parametrize(("mode", "wanted"), [("CMYK", "RGB"), ("L", "L")])
def test_a_jpeg_taken_sideways_is_put_upright(mode: str, wanted: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    image = decode(encoded(Image.new(mode, (40, 20)), JPEG, exif=exif), 999).image
    assert (image.mode, image.size) == (wanted, (20, 40))


def test_the_colour_profile_comes_through() -> None:
    for kind in (PNG, JPEG):
        picture = decode(encoded(Image.new("RGB", (4, 4)), kind, icc_profile=b"profile"), 99)
        again = decode(encode(picture.image, kind, 90, picture.icc_profile), 99)
        assert again.icc_profile == b"profile"


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_encode_keeps_the_size_and_jpeg_drops_transparency(mode: str) -> None:
    picture = Image.new(mode, (5, 4))
    assert decode(encode(picture, PNG, 90, None), 99).image.mode == mode
    jpeg = decode(encode(picture, JPEG, 90, None), 99)
    assert (jpeg.format, jpeg.image.size, jpeg.image.mode) == (JPEG, (5, 4), mode.removesuffix("A"))


@pytest.mark.parametrize("size", [(JPEG_SIDE_MAX_PX + 1, 1), (1, JPEG_SIDE_MAX_PX + 1)])
def test_a_picture_that_jpeg_has_no_room_for_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(RefusalError, match=f"{size[0]}x{size[1]} is too large for JPEG") as refusal:
        encode(Image.new("L", size), JPEG, 90, None)
    assert refusal.value.status == 422
    largest = Image.new("L", (min(size[0], JPEG_SIDE_MAX_PX), min(size[1], JPEG_SIDE_MAX_PX)))
    assert decoded(encode(largest, JPEG, 90, None)).size == largest.size


GIF = encoded(Image.new("P", (5, 4)), "GIF")


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "the body is empty"),
        (b"hello, function!", 400, "not the base64 of an image"),
        (b'{"image": "iVBORw0K"}', 400, "not the base64 of an image"),
        (base64.b64encode(GIF)[:-1], 400, "not the base64 of an image"),
        (b"   \n", 415, "neither PNG nor JPEG: the image starts with nothing"),
        (GIF, 415, "neither PNG nor JPEG: the image starts with 47 49 46 38"),
        (base64.b64encode(GIF), 415, "neither PNG nor JPEG"),
        (bytes(1000), 400, "not the base64"),
        (bytes(range(128, 256)), 415, "neither PNG nor JPEG"),
        (b"\x89PNG\r\n\x1a\n", 422, "cannot be decoded"),
        (b"\xff\xd8\xff", 422, "cannot be decoded"),
        (encoded(Image.new("RGB", (10, 10)), PNG), 422, "10x10 is 100 pixels; max_pixels allows 99"),
        (bomb(60000, 60000), 422, "60000x60000 is 3600000000 pixels"),
    ],
)
def test_bad_bodies(body: bytes, status: int, message: str) -> None:
    with pytest.raises(RefusalError, match=message) as refused:
        decode(body, 99)
    assert refused.value.status == status


def test_a_jpeg_of_endless_scans_is_refused_before_it_is_decoded(frame: Image.Image) -> None:
    body = encoded(frame, "JPEG", progressive=True)
    assert decode(body, 10**6).format == "JPEG"
    last_scan = body[body.rindex(START_OF_SCAN) : -2]
    with pytest.raises(RefusalError, match="scans") as refusal:
        decode(body[:-2] + last_scan * JPEG_SCANS_MAX + body[-2:], 10**6)
    assert refusal.value.status == 422


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
def test_damaged_images_are_decoded_or_refused_and_nothing_else(frame: Image.Image) -> None:
    chance = random.Random(1)  # noqa: S311 (the same damage in every run)
    small = frame.resize((64, 36))
    originals = [
        encoded(small, PNG),
        encoded(small.convert("P"), PNG, icc_profile=b"p" * 100, pnginfo=None),
        encoded(small, JPEG),
        encoded(small, JPEG, progressive=True, exif=Image.Exif()),
    ]
    refused = 0
    for _ in range(1000):
        body = bytearray(chance.choice(originals))
        for _ in range(chance.choice((1, 3, 10))):
            body[chance.randrange(3, min(len(body), chance.choice((60, 700, 10**6))))] = chance.randrange(256)
        try:
            decode(bytes(body), PIXELS)
        except RefusalError as error:
            refused += 1
            assert error.status in {400, 415, 422}
    assert refused > 100


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
@pytest.mark.parametrize("size", [(1, 1), (1, 9), (9, 1), (33, 17)])
def test_every_pixel_survives(mode: str, size: tuple[int, int]) -> None:
    shape = (size[1], size[0], len(mode)) if len(mode) > 1 else (size[1], size[0])
    picture = Image.fromarray(np.random.default_rng(1).integers(0, 256, shape, np.uint8))
    assert picture.mode == mode
    again = decoded(encode_png(picture))
    assert (again.format, again.mode, again.size) == ("PNG", mode, size)
    assert (np.array(again) == np.array(picture)).all()


def test_the_colour_profile_is_kept() -> None:
    assert decoded(encode_png(Image.new("RGB", (3, 3)), b"profile")).info["icc_profile"] == b"profile"


def test_size_is_near_that_of_pillows_fastest(frame: Image.Image) -> None:
    assert len(encode_png(frame)) < 1.25 * len(encoded(frame, "PNG", compress_level=1))
