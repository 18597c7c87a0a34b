"""What face-blur can be told by the environment, checked once at start."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from function.limits import FunctionLimits, VariableError, integer, limits_from, share, value_of

# 4K (UHD).
MAX_PIXELS_DEFAULT = str(3840 * 2160)
TF_THREADS_DEFAULT = "1"
THRESHOLD_DEFAULT = "0.4"
JPEG_QUALITY_DEFAULT = "90"
FACE_MODEL_DEFAULT = Path(__file__).resolve().parents[2] / ".local" / "face.pb"


@dataclass(frozen=True)
class FaceBlurSettings:
    """Limits and knobs of one process."""

    limits: FunctionLimits
    max_pixels: int
    tf_threads: int
    threshold: float
    jpeg_quality: int
    face_model: Path


def settings_from(environment: Mapping[str, str]) -> FaceBlurSettings:
    """Read all settings; raises VariableError, which names the variable, its value and what it may be."""
    face_model = Path(value_of(environment, "face_model", str(FACE_MODEL_DEFAULT)))
    if not face_model.is_file():
        raise VariableError(f"face_model={str(face_model)!r}: no such file; set FACE_MODEL to a frozen graph (face.pb)")
    return FaceBlurSettings(
        limits=limits_from(environment),
        max_pixels=integer(environment, "max_pixels", MAX_PIXELS_DEFAULT, 1, 2**28),
        tf_threads=integer(environment, "tf_threads", TF_THREADS_DEFAULT, 1, 256),
        threshold=share(environment, "threshold", THRESHOLD_DEFAULT),
        jpeg_quality=integer(environment, "jpeg_quality", JPEG_QUALITY_DEFAULT, 1, 95),
        face_model=face_model,
    )


def prepare_libraries(environment: MutableMapping[str, str] = os.environ) -> None:
    """Tell numpy and TensorFlow how to start; to be called before either is imported."""
    # OpenBLAS otherwise starts threads that nothing here uses, 40 ms of a forked process.
    environment.setdefault("OPENBLAS_NUM_THREADS", "1")
    environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    environment.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    # TensorFlow imports Keras if it is there, for saved models; a frozen graph needs none. None says "not there".
    sys.modules.setdefault("keras", None)  # type: ignore[arg-type]
