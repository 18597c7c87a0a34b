import io

import numpy as np
import pytest
from PIL import Image

from png import encode_png


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
@pytest.mark.parametrize("size", [(1, 1), (1, 9), (9, 1), (33, 17)])
def test_every_pixel_survives(mode: str, size: tuple[int, int]) -> None:
    shape = (size[1], size[0], len(mode)) if len(mode) > 1 else (size[1], size[0])
    picture = Image.fromarray(np.random.default_rng(1).integers(0, 256, shape, np.uint8))
    assert picture.mode == mode
    with Image.open(io.BytesIO(encode_png(picture))) as again:
        again.load()
        assert (again.format, again.mode, again.size) == ("PNG", mode, size)
        assert (np.array(again) == np.array(picture)).all()


def test_the_colour_profile_is_kept() -> None:
    with Image.open(io.BytesIO(encode_png(Image.new("RGB", (3, 3)), b"profile"))) as again:
        assert again.info["icc_profile"] == b"profile"


def test_size_is_near_that_of_pillows_fastest(frame: Image.Image) -> None:
    buffer = io.BytesIO()
    frame.save(buffer, "PNG", compress_level=1)
    assert len(encode_png(frame)) < 1.25 * len(buffer.getvalue())
