"""Faces in a picture, by a frozen TensorFlow 1 graph with the tensor names of the object detection API."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf  # type: ignore[import-untyped]
from numpy.typing import NDArray

INPUT = "image_tensor:0"
OUTPUTS = ("num_detections:0", "detection_scores:0", "detection_boxes:0")
WARM_UP_HEIGHT_WIDTH = (360, 640)


class ModelError(Exception):
    """The file is not a usable detector; the message says what is wrong with it."""


@dataclass(frozen=True)
class Detection:
    """One face: its edges in pixels, not rounded, and how sure the detector is (0..1)."""

    left: float
    top: float
    right: float
    bottom: float
    score: float


class Detector:
    """The graph, loaded and warmed up once; one picture at a time, on `threads` threads."""

    def __init__(self, model: Path, threshold: float, threads: int) -> None:
        """Load `model`; faces below `threshold` are left out. Raises ModelError."""
        self._threshold = threshold
        self._lock = threading.Lock()
        graph = _loaded(model)
        config = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
        self._call = tf.Session(graph=graph, config=config).make_callable(list(OUTPUTS), [INPUT])
        try:
            count, scores, boxes = self._call(np.zeros((1, *WARM_UP_HEIGHT_WIDTH, 3), np.uint8))
        except tf.errors.OpError as error:
            raise ModelError(f"{model}: the graph fails on a black {WARM_UP_HEIGHT_WIDTH} frame: {error}") from error
        shapes = (np.shape(count), np.shape(scores), np.shape(boxes))
        if np.size(count) != 1 or np.ndim(scores) != 2 or shapes[2] != (*shapes[1], 4):
            raise ModelError(f"{model}: {OUTPUTS} have shapes {shapes}; needed are (1,), (1, N), (1, N, 4)")

    def detect(self, rgb: NDArray[np.uint8]) -> tuple[list[Detection], float]:
        """Faces in a picture [height, width, 3], best first, and the seconds the model took (waiting not counted)."""
        height, width = rgb.shape[:2]
        batch = rgb[np.newaxis]
        with self._lock:
            started_s = time.perf_counter()
            count, scores, boxes = self._call(batch)
            model_s = time.perf_counter() - started_s
        found = [
            Detection(float(x1 * width), float(y1 * height), float(x2 * width), float(y2 * height), float(score))
            for score, (y1, x1, y2, x2) in zip(scores[0, : int(count[0])], boxes[0], strict=False)
            if score >= self._threshold
        ]
        return found, model_s


def _loaded(model: Path) -> Any:
    """Read the file and check that it has the tensors with the right types; raises ModelError."""
    definition = tf.GraphDef()
    graph = tf.Graph()
    try:
        definition.ParseFromString(model.read_bytes())
        with graph.as_default():
            tf.import_graph_def(definition, name="")
    except OSError as error:
        raise ModelError(f"{model}: cannot be read: {error}") from error
    except Exception as error:  # protobuf's and TensorFlow's own kinds, which differ from version to version
        raise ModelError(f"{model}: not a frozen TensorFlow graph: {error}") from error
    for name, wanted in ((INPUT, tf.uint8), *((output, tf.float32) for output in OUTPUTS)):
        try:
            seen = graph.get_tensor_by_name(name).dtype
        except (KeyError, ValueError) as error:
            names = ", ".join(operation.name for operation in graph.get_operations()[:3])
            raise ModelError(f"{model}: the graph has no tensor {name}; its first nodes are: {names}") from error
        if seen != wanted:
            raise ModelError(f"{model}: tensor {name} is {seen.name}; needed is {wanted.name}")
    return graph
