"""Verification: what a blurred frame is and what is none."""

import base64
import io
import zlib
from collections.abc import Callable

import pytest
from PIL import Image, ImageDraw, ImageFilter

from encoding import ENCODINGS, Encoding
from verify import verify_image

FACE = (200, 80, 120, 150)


def portrait() -> Image.Image:
    """A smooth picture with some detail, as a camera gives: neither noise nor flat."""
    image = Image.radial_gradient("L").resize((640, 360)).convert("RGB")
    draw = ImageDraw.Draw(image)
    for step in range(24):
        draw.ellipse(
            (190 + 5 * step, 90 + 5 * step, 230 + 5 * step, 104 + 5 * step), fill=(250 - 9 * step, 120, 9 * step)
        )
        draw.line((0, step * 15, 640, 360 - step * 15), fill=(30, step * 10, 90))
    return image.filter(ImageFilter.GaussianBlur(1))


def blurred(image: Image.Image, face: tuple[int, int, int, int] = FACE) -> Image.Image:
    x, y, width, height = face
    image = image.copy()
    image.paste(image.crop((x, y, x + width, y + height)).filter(ImageFilter.GaussianBlur(20)), (x, y))
    return image


def encoded(image: Image.Image, encoding: Encoding, quality: int = 90) -> bytes:
    file = io.BytesIO()
    image.save(file, encoding.image_format, **({} if encoding.lossless else {"quality": quality}))
    return file.getvalue()


def with_dot(image: Image.Image) -> Image.Image:
    image.paste((255, 0, 255), (500, 20, 516, 36))
    return image


Case = tuple[str, Callable[[Image.Image], Image.Image], list[tuple[int, int, int, int]], str | None]
CASES: list[Case] = [
    ("blurred", blurred, [FACE], None),
    ("blurred twice", lambda image: blurred(blurred(image), (420, 200, 90, 90)), [FACE, (420, 200, 90, 90)], None),
    ("face at the edge", lambda image: blurred(image, (600, 300, 40, 60)), [(600, 300, 80, 90)], None),
    ("nothing to blur", lambda image: image, [], None),
    ("sent back as it was", lambda image: image, [FACE], "not-blurred"),
    ("one of two", blurred, [FACE, (420, 200, 90, 90)], "not-blurred"),
    ("face outside of the picture", blurred, [FACE, (900, 900, 10, 10)], "not-blurred"),
    ("blurred elsewhere", lambda image: blurred(blurred(image), (16, 8, 120, 200)), [FACE], "changed-outside"),
    ("a dot outside", lambda image: with_dot(blurred(image)), [FACE], "changed-outside"),
    ("smaller", lambda image: blurred(image).crop((0, 0, 639, 360)), [FACE], "wrong-size"),
    ("grey", lambda image: blurred(image.convert("L").convert("RGB")), [FACE], "changed-outside"),
]


@pytest.mark.parametrize("encoding", ["png", "jpeg"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_cases(encoding: str, case: Case) -> None:
    kind, (_, change, faces, cause) = ENCODINGS[encoding], case
    sent = encoded(portrait(), kind)
    answer = encoded(change(Image.open(io.BytesIO(sent)).convert("RGB")), kind)
    assert verify_image(sent, answer, faces, kind) == cause


@pytest.mark.parametrize("quality", [75, 95])
def test_jpeg_of_another_quality_is_no_change(quality: int) -> None:
    kind = ENCODINGS["jpeg"]
    sent = encoded(portrait(), kind)
    image = Image.open(io.BytesIO(sent))
    assert verify_image(sent, encoded(blurred(image), kind, quality), [FACE], kind) is None
    assert verify_image(sent, encoded(image, kind, quality), [FACE], kind) == "not-blurred"


def test_one_pixel_outside_is_seen_in_a_lossless_answer() -> None:
    kind = ENCODINGS["png"]
    image = blurred(portrait())
    red, green, blue = image.getpixel((5, 5))  # type: ignore[misc]
    image.putpixel((5, 5), (red, green, blue ^ 1))
    assert verify_image(encoded(portrait(), kind), encoded(image, kind), [FACE], kind) == "changed-outside"


@pytest.mark.parametrize("side", [12_000, 60_000])
def test_a_picture_that_claims_to_be_large_is_not_decoded(side: int) -> None:
    small = encoded(Image.new("L", (1, 1)), ENCODINGS["png"])
    header = b"IHDR" + side.to_bytes(4) * 2 + small[24:29]
    bomb = small[:12] + header + zlib.crc32(header).to_bytes(4) + small[33:]
    assert verify_image(WHOLE, bomb, [FACE], ENCODINGS["png"]) == "wrong-size"


WHOLE = encoded(portrait(), ENCODINGS["png"])
NO_IMAGES = {
    "empty": b"",
    "signature": b"\x89PNG\r\n\x1a\n",
    "truncated": WHOLE[:5000],
    "jpeg": encoded(portrait(), ENCODINGS["jpeg"]),
    "base64": base64.b64encode(WHOLE),
}


@pytest.mark.parametrize("name", NO_IMAGES)
def test_not_image(name: str) -> None:
    assert verify_image(WHOLE, NO_IMAGES[name], [FACE], ENCODINGS["png"]) == "not-image"


def test_scans_without_number_are_not_decoded() -> None:
    kind, file = ENCODINGS["jpeg"], io.BytesIO()
    portrait().save(file, "JPEG", progressive=True)
    sent = file.getvalue()
    first = sent.index(b"\xff\xda")
    empty_scan = sent[first : first + 2 + int.from_bytes(sent[first + 2 : first + 4])] + b"\0"
    assert verify_image(sent, sent, [], kind) is None
    assert verify_image(sent, sent[:-2] + empty_scan * 1000 + sent[-2:], [], kind) == "not-image"


def test_faces_that_cover_the_picture_again_and_again_are_not_looked_at() -> None:
    kind = ENCODINGS["png"]
    black = encoded(Image.new("RGB", (640, 360)), kind)
    whole = (0, 0, 10**5, 10**5)
    assert verify_image(WHOLE, black, [whole] * 10, kind) is None
    assert verify_image(WHOLE, black, [whole] * 5000, kind) == "not-blurred"
