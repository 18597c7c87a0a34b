"""face-blur for one request as any Python program starts: with Keras, the collector, and an orderly end of TensorFlow.

A control for `benchmarks.openfaas_ways`: function/face-blur/fork.py without what makes it quicker than that.
"""

import gc
import os
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FACE_BLUR = ROOT / "function" / "face-blur"
sys.path[:0] = [str(FACE_BLUR), str(ROOT)]

import settings  # noqa: E402 (found by the line above)

prepare = settings.prepare_libraries


def prepare_with_keras() -> None:
    prepare()
    del sys.modules["keras"]


settings.prepare_libraries = prepare_with_keras
gc.disable = lambda: None
os._exit = sys.exit
runpy.run_path(str(FACE_BLUR / "fork.py"), run_name="__main__")
