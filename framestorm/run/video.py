"""The video whose frames users send: cut into encoded frames once, before the load."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.plain import note

DEFAULT_ENCODING = "png-base64"


def cut_words(video: str | Path, properties: Mapping[str, str], cache: str | Path) -> list[str]:
    """Return the options of client/frames.py for a run with these properties."""
    encoding, frames = properties.get("encoding", DEFAULT_ENCODING), properties.get("frames", "0")
    return ["--video", str(video), "--encoding", encoding, "--frames", frames, "--cache", str(cache)]


def cut(video: Path, properties: Mapping[str, str]) -> Path:
    """Let the client cut a video into encoded frames, or find them in the cache; returns their folder.

    Raises:
        FramestormError: it cannot be cut.
    """
    command: list[str | Path] = [paths.CLIENT_PYTHON, paths.CLIENT / "frames.py"]
    command += cut_words(video, properties, paths.FRAME_CACHE)
    cutting = subprocess.run(command, capture_output=True, text=True, check=False)
    if cutting.returncode != 0:
        raise FramestormError(f"the video cannot be used: {cutting.stderr.strip()}")
    if cutting.stderr:
        note(cutting.stderr.strip())
    return Path(json.loads(cutting.stdout)["folder"])
