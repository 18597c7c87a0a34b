import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FORK = Path(__file__).resolve().parents[2] / "function" / "face-blur" / "fork.py"


def run(body: bytes, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, str(FORK)], input=body, capture_output=True, check=False, env={**os.environ, **environment}
    )


def test_one_request_from_stdin_to_stdout(png_body: bytes) -> None:
    result = run(base64.b64encode(png_body))
    assert result.returncode == 0
    value = json.loads(result.stdout)
    assert value["cold"] is True
    assert len(value["faces"]) == 1
    assert list(value["timings_ms"]) == ["start", "decode", "model", "blur", "encode", "total"]
    # Starting Python and importing TensorFlow; less would mean that it was measured from somewhere later.
    assert value["timings_ms"]["start"] > 300


def test_the_image_itself_on_request(jpeg_body: bytes) -> None:
    result = run(jpeg_body, Http_Accept="image/jpeg")
    assert result.returncode == 0
    assert result.stdout.startswith(b"\xff\xd8\xff")


def test_no_keras_is_imported(jpeg_body: bytes) -> None:
    """A frozen graph needs none, and every request would wait for it."""
    result = run(jpeg_body, Http_Accept="image/jpeg", PYTHONPROFILEIMPORTTIME="1")
    imported = {line.rpartition(b"|")[2].strip() for line in result.stderr.splitlines()}
    assert b"tensorflow" in imported
    assert b"keras" not in imported


@pytest.mark.parametrize(
    ("body", "environment", "status"),
    [
        (b"not an image", {}, 400),
        (bytes(2000), {"MAX_BODY_BYTES": "1000"}, 413),
        (b"", {"MAX_PIXELS": "none"}, 500),
    ],
)
def test_errors_are_json_with_exit_status_1(body: bytes, environment: dict[str, str], status: int) -> None:
    result = run(body, **environment)
    assert result.returncode == 1
    value = json.loads(result.stdout)
    assert value["status"] == status
    assert value["error"]
