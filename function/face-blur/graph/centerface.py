"""CenterFace as a TensorFlow 1 graph with the tensor names of the object detection API.

The weights come from an ONNX file; the operations around the network (fitting the frame into it, decoding its maps,
non-maximum suppression) are part of the graph, so whoever runs it needs nothing but the tensor names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx  # type: ignore[import-not-found]
import tensorflow.compat.v1 as tf  # type: ignore[import-untyped]
from numpy.typing import NDArray
from onnx import numpy_helper

# The network sees as many pixels as a 640x360 frame has, whatever the frame's size: a constant price a frame.
NETWORK_PIXELS = 640 * 360
# Very long and flat frames would otherwise be scaled to a line of many thousand pixels.
NETWORK_SIDE_MAX = 1280
# The network halves its input five times.
NETWORK_MULTIPLE = 32
# One cell of the network's maps is four pixels wide.
CELL_PIXELS = 4
CANDIDATES = 1000
DETECTIONS = 100
OVERLAP_MAX = 0.3
# What the graph reports at all; who uses it sets the real threshold.
SCORE_FLOOR = 0.05

MAPS = ("537", "538", "539")  # heat, size, offset; 540 (landmarks) is not needed


class UnsupportedModelError(Exception):
    """The ONNX file is not the CenterFace this module can translate."""


def frozen_graph(onnx_path: Path) -> bytes:
    """Return the serialized GraphDef of the detector whose weights are in `onnx_path`.

    Input `image_tensor` uint8 RGB [1, H, W, 3]; outputs `detection_boxes` float32 [1, 100, 4] as y1, x1, y2, x2 in
    0..1, `detection_scores` [1, 100], `detection_classes` [1, 100], `num_detections` [1]. Same bytes for the same file
    and the same TensorFlow.
    """
    graph = tf.Graph()
    with graph.as_default():
        image = tf.placeholder(tf.uint8, [1, None, None, 3], name="image_tensor")
        pixels, fitted = _fit(image)
        heat, size, offset = _network(onnx.load(onnx_path), pixels)
        _detections(heat, size, offset, fitted)
    serialized: bytes = graph.as_graph_def().SerializeToString(deterministic=True)
    return serialized


def _fit(image: Any) -> tuple[Any, Any]:
    """Scale a frame to the network's number of pixels, pad it right and below; also its height and width unpadded."""
    height_width = tf.cast(tf.shape(image)[1:3], tf.float32)
    scale = tf.minimum(
        tf.sqrt(NETWORK_PIXELS / tf.reduce_prod(height_width)), NETWORK_SIDE_MAX / tf.reduce_max(height_width)
    )
    fitted = tf.maximum(tf.cast(tf.round(height_width * scale), tf.int32), 1)
    # Bilinear is 15 times as fast and as good down to one half; below that it would skip pixels.
    scaled = tf.cond(
        scale < 0.5,
        lambda: tf.raw_ops.ScaleAndTranslate(
            images=image,
            size=fitted,
            scale=tf.cast(fitted, tf.float32) / height_width,
            translation=[0.0, 0.0],
            kernel_type="triangle",
            antialias=True,
        ),
        lambda: tf.image.resize_bilinear(image, fitted, half_pixel_centers=True),
    )
    missing = -fitted % NETWORK_MULTIPLE
    padded = tf.pad(scaled, [[0, 0], [0, missing[0]], [0, missing[1]], [0, 0]])
    return tf.ensure_shape(padded, [1, None, None, 3]), tf.cast(fitted, tf.float32)


def _network(model: Any, pixels: Any) -> list[Any]:
    """Translate the ONNX nodes one by one, from NCHW to TensorFlow's NHWC."""
    weights: dict[str, NDArray[np.float32]] = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    values: dict[str, Any] = {"input.1": pixels}
    for node in model.graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        constants = [weights[name] for name in node.input if name in weights]
        inputs = [values[name] for name in node.input if name not in weights]
        match node.op_type:
            case "Conv":
                result = _convolution(inputs[0], attributes, *constants)
            case "ConvTranspose":
                result = _doubling(inputs[0], attributes, *constants)
            case "BatchNormalization":
                gain, bias, mean, variance = constants
                factor = gain / np.sqrt(variance + np.float32(attributes["epsilon"]))
                result = inputs[0] * factor + (bias - mean * factor)
            case "Relu":
                result = tf.nn.relu(inputs[0])
            case "Sigmoid":
                result = tf.sigmoid(inputs[0])
            case "Add":
                result = inputs[0] + inputs[1]
            case other:
                raise UnsupportedModelError(
                    f"the ONNX graph has a node of type {other}, which CenterFace does not have"
                )
        values[node.output[0]] = result
    try:
        return [values[name] for name in MAPS]
    except KeyError as error:
        raise UnsupportedModelError(f"the ONNX graph has no output {error}, which CenterFace has") from error


def _convolution(
    value: Any, attributes: dict[str, Any], kernel: NDArray[np.float32], bias: NDArray[np.float32] | None = None
) -> Any:
    top, left, bottom, right = attributes["pads"]
    stride = attributes["strides"][0]
    padding = "VALID"
    if stride == 1:
        padding = "SAME"
    elif top or left or bottom or right:
        # Not SAME: at stride 2 TensorFlow would pad below and right only. Not EXPLICIT: in TensorFlow 2.21 the graph
        # optimiser aborts the process on a depthwise convolution that has it.
        value = tf.pad(value, [[0, 0], [top, bottom], [left, right], [0, 0]])
    kind: dict[str, Any] = {"strides": [1, stride, stride, 1], "padding": padding}
    if attributes["group"] == 1:
        result = tf.raw_ops.Conv2D(input=value, filter=kernel.transpose(2, 3, 1, 0), **kind)
    else:
        result = tf.raw_ops.DepthwiseConv2dNative(input=value, filter=kernel.transpose(2, 3, 0, 1), **kind)
    return result if bias is None else tf.nn.bias_add(result, bias)


def _doubling(value: Any, attributes: dict[str, Any], kernel: NDArray[np.float32]) -> Any:
    """Transposed convolution of 2x2 at stride 2: nothing overlaps, so it is a 1x1 convolution and a rearrangement."""
    if list(attributes["kernel_shape"]) != [2, 2] or list(attributes["strides"]) != [2, 2] or attributes["group"] != 1:
        raise UnsupportedModelError(f"a transposed convolution with {attributes}: 2x2 at stride 2 was expected")
    channels_in, channels_out = kernel.shape[:2]
    flat = kernel.transpose(0, 2, 3, 1).reshape(1, 1, channels_in, 4 * channels_out)
    return tf.nn.depth_to_space(tf.nn.conv2d(value, flat, strides=1, padding="VALID"), 2)


def _detections(heat: Any, size: Any, offset: Any, fitted: Any) -> None:
    """Decode the maps and name the outputs; `fitted` is the frame's height and width as the network saw it."""
    columns = tf.shape(heat)[2]
    scores, cells = tf.math.top_k(tf.reshape(heat, [-1]), tf.minimum(CANDIDATES, tf.size(heat)))
    cell_yx = tf.cast(tf.stack([cells // columns, cells % columns], axis=1), tf.float32)
    half = tf.exp(tf.gather(tf.reshape(size, [-1, 2]), cells)) * (CELL_PIXELS / 2)
    center = (cell_yx + tf.gather(tf.reshape(offset, [-1, 2]), cells) + 0.5) * CELL_PIXELS
    corners = tf.concat([(center - half) / fitted, (center + half) / fitted], axis=1)
    boxes = tf.clip_by_value(corners, 0.0, 1.0)
    kept = tf.image.non_max_suppression(boxes, scores, DETECTIONS, OVERLAP_MAX, SCORE_FLOOR)
    count = tf.size(kept)
    rest = DETECTIONS - count
    tf.identity(tf.pad(tf.gather(boxes, kept), [[0, rest], [0, 0]])[tf.newaxis], name="detection_boxes")
    tf.identity(tf.pad(tf.gather(scores, kept), [[0, rest]])[tf.newaxis], name="detection_scores")
    tf.identity(tf.pad(tf.ones([count]), [[0, rest]])[tf.newaxis], name="detection_classes")
    tf.identity(tf.cast(count, tf.float32)[tf.newaxis], name="num_detections")
