from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf  # type: ignore[import-untyped]
from PIL import Image

from blur import CELLS, blur
from detector import Detection, Detector, ModelError
from settings import FACE_MODEL_DEFAULT


def test_the_face_is_found_and_nothing_else(detector: Detector, frame: Image.Image) -> None:
    (face,), model_s = detector.detect(np.asarray(frame))
    assert face.score > 0.5
    assert 0 <= face.left < face.right <= 640
    assert 0 <= face.top < face.bottom <= 360
    assert model_s > 0


def test_an_upright_portrait_and_a_rotated_one_keep_their_shape(detector: Detector, frame: Image.Image) -> None:
    (face,), _ = detector.detect(np.asarray(frame))
    tall = Image.new("RGB", (360, 1000))
    tall.paste(frame.crop((int(face.left) - 100, 0, int(face.left) + 260, 360)), (0, 300))
    (again,), _ = detector.detect(np.asarray(tall))
    assert again.left == pytest.approx(100, abs=15)
    assert again.bottom - again.top == pytest.approx(face.bottom - face.top, rel=0.25)


@pytest.mark.parametrize("size", [(1, 1), (1, 3000), (3000, 1), (7, 5), (4000, 100)])
def test_any_shape_of_picture_works(detector: Detector, size: tuple[int, int]) -> None:
    faces, _ = detector.detect(np.zeros((*size, 3), np.uint8))
    assert faces == []


def test_the_threshold_is_kept(frame: Image.Image) -> None:
    faces, _ = Detector(FACE_MODEL_DEFAULT, 1.0, 1).detect(np.asarray(frame))
    assert faces == []


def graph_file(path: Path, dtype: tf.DType, boxes: tuple[int, ...], names: tuple[str, str, str]) -> Path:
    with tf.Graph().as_default() as graph:
        image = tf.placeholder(dtype, [1, None, None, 3], name="image_tensor")
        zero = tf.cast(image[0, 0, 0, 0], tf.float32) * 0
        for name, shape in zip(names, ((1,), (1, 5), boxes), strict=True):
            tf.add(tf.zeros(shape), zero, name=name)
        path.write_bytes(graph.as_graph_def().SerializeToString())
    return path


NAMES = ("num_detections", "detection_scores", "detection_boxes")


def test_any_graph_with_the_signature_drops_in(tmp_path: Path) -> None:
    own = Detector(graph_file(tmp_path / "own.pb", tf.uint8, (1, 5, 4), NAMES), 0.4, 1)
    assert own.detect(np.zeros((8, 8, 3), np.uint8))[0] == []


@pytest.mark.parametrize(
    ("dtype", "boxes", "names", "message"),
    [
        (tf.float32, (1, 5, 4), NAMES, "tensor image_tensor:0 is float32; needed is uint8"),
        (tf.uint8, (1, 5, 4), ("num", *NAMES[1:]), "has no tensor num_detections:0; its first nodes are: image_tensor"),
        (tf.uint8, (1, 6, 4), NAMES, r"have shapes .*needed are \(1,\), \(1, N\), \(1, N, 4\)"),
    ],
)
def test_a_graph_with_another_signature_is_refused(
    tmp_path: Path, dtype: tf.DType, boxes: tuple[int, ...], names: tuple[str, str, str], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        Detector(graph_file(tmp_path / "face.pb", dtype, boxes, names), 0.4, 1)


@pytest.mark.parametrize("content", [b"no graph at all", b"\x0a\x03abc"])
def test_a_file_that_is_no_graph_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "face.pb").write_bytes(content)
    with pytest.raises(ModelError, match="not a frozen TensorFlow graph"):
        Detector(tmp_path / "face.pb", 0.4, 1)


def scene(frame: Image.Image, face: Detection, size: tuple[int, int], scale: float) -> Image.Image:
    """The frame scaled by `scale`, with its face in the middle of a picture of `size`."""
    picture = Image.new("RGB", size, (120, 130, 140))
    scaled = frame.resize((round(frame.width * scale), round(frame.height * scale)), Image.Resampling.LANCZOS)
    left = round(size[0] / 2 - (face.left + face.right) / 2 * scale)
    top = round(size[1] / 2 - (face.top + face.bottom) / 2 * scale)
    picture.paste(scaled, (left, top))
    return picture


@pytest.mark.parametrize(
    ("size", "scale"),
    [((640, 360), scale) for scale in (0.4, 0.6, 1.0, 1.5, 2.0)]
    + [((1280, 720), scale) for scale in (0.8, 2.0, 3.0)]
    + [((360, 640), 0.56), ((360, 640), 1.0), ((320, 180), 0.5), ((2560, 1440), 4.0)],
)
def test_a_blurred_face_is_not_found_again_and_no_other_pixel_changes(
    detector: Detector, frame: Image.Image, size: tuple[int, int], scale: float
) -> None:
    (original,), _ = detector.detect(np.asarray(frame))
    picture = scene(frame, original, size, scale)
    before = np.array(picture)
    detections, _ = detector.detect(before)
    assert detections, "the face is not found before it is blurred"
    faces = blur(picture, detections)
    after = np.array(picture)
    assert detector.detect(after)[0] == []
    outside = np.ones(after.shape[:2], bool)
    for face in faces:
        inside = np.s_[face.y : face.y + face.height, face.x : face.x + face.width]
        outside[inside] = False
        assert (after[inside] != before[inside]).any()
    assert (after[outside] == before[outside]).all()


@pytest.mark.parametrize(
    ("detection", "rectangle"),
    [
        (Detection(10, 20, 20, 40, 0.9), (7, 14, 16, 32)),
        (Detection(-5, -5, 20, 10, 0.9), (0, 0, 28, 15)),
        (Detection(90, 90, 150, 150, 0.9), (72, 72, 28, 28)),
        (Detection(0, 0, 100, 100, 0.9), (0, 0, 100, 100)),
        (Detection(50, 50, 50.2, 50.2, 0.9), (49, 49, 2, 2)),
    ],
)
def test_the_rectangle_has_a_margin_and_stays_inside(
    detection: Detection, rectangle: tuple[int, int, int, int]
) -> None:
    (face,) = blur(Image.new("RGB", (100, 100)), [detection])
    assert (face.x, face.y, face.width, face.height) == rectangle


def test_a_detection_without_area_in_the_picture_is_left_out() -> None:
    picture = Image.new("RGB", (100, 100))
    assert blur(picture, [Detection(200, 200, 300, 300, 0.9), Detection(-20, 0, -10, 10, 0.9)]) == []


@pytest.mark.parametrize("side", [20, 200, 2000])
def test_what_is_left_of_a_face_does_not_depend_on_its_size(side: int) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (side, side, 3), np.uint8)
    picture = Image.fromarray(noise)
    blur(picture, [Detection(0, 0, side, side, 0.9)])
    corners = picture.resize((CELLS, CELLS), Image.Resampling.BOX).resize((side, side), Image.Resampling.BICUBIC)
    assert np.abs(np.array(picture).astype(int) - np.array(corners)).max() < 30


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA"])
def test_grey_and_transparent_pictures_keep_their_mode(frame: Image.Image, mode: str) -> None:
    picture = frame.convert(mode)
    before = np.array(picture)
    blur(picture, [Detection(100, 100, 200, 200, 0.9)])
    assert picture.mode == mode
    assert (np.array(picture)[:60] == before[:60]).all()
    assert (np.array(picture)[100:200, 100:200] != before[100:200, 100:200]).any()
