from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf  # type: ignore[import-untyped]
from PIL import Image

from detector import Detector, ModelError
from settings import FACE_MODEL_DEFAULT


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector(FACE_MODEL_DEFAULT, 0.4, 1)


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
    file = tmp_path / "face.pb"
    file.write_bytes(content)
    with pytest.raises(ModelError, match="not a frozen TensorFlow graph"):
        Detector(file, 0.4, 1)
