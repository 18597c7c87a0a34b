"""Blur faces beyond recognition, by man or detector, and touch nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from PIL import Image

from detector import Detection

# What is left of a face, whatever its size: so many colours across and down. More are found again by the detector, and
# so are a blur that ends at the face's outline and one with soft or round edges, which are what heads look like. Found
# again at threshold 0.4, of 120 scenes with faces 10 to 290 pixels high: 2 cells with margin 0: 7, 0.15: 0, 0.3: 0 (and
# the lowest scores, at most 0.17); 3 cells: 9, 3, 0; 4 cells: 16, 12, 4; 2 cells in a soft ellipse, margin 0.3: 8.
CELLS = 2
MARGIN_SHARE = 0.3


@dataclass(frozen=True)
class Face:
    """A blurred rectangle in whole pixels, inside of the picture, and the score of the face in it."""

    x: int
    y: int
    width: int
    height: int
    score: float


def blur(picture: Image.Image, detections: Iterable[Detection]) -> list[Face]:
    """Blur `picture` in place where the detections are; returns the rectangles, outside of which no pixel changed."""
    faces = [face for face in (_around(detection, picture.size) for detection in detections) if face]
    for face in faces:
        crop = picture.crop((face.x, face.y, face.x + face.width, face.y + face.height))
        cells = crop.resize((CELLS, CELLS), Image.Resampling.BOX)
        picture.paste(cells.resize(crop.size, Image.Resampling.BICUBIC), (face.x, face.y))
    return faces


def _around(detection: Detection, size: tuple[int, int]) -> Face | None:
    """Return the rectangle to blur: the detection with a margin, cut at the picture's edges."""
    across = MARGIN_SHARE * (detection.right - detection.left)
    down = MARGIN_SHARE * (detection.bottom - detection.top)
    left, top = max(0, math.floor(detection.left - across)), max(0, math.floor(detection.top - down))
    right, bottom = min(size[0], math.ceil(detection.right + across)), min(size[1], math.ceil(detection.bottom + down))
    if right <= left or bottom <= top:
        return None
    return Face(left, top, right - left, bottom - top, round(detection.score, 4))
