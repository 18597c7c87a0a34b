"""The video of a run: cut once by the client, before any user starts."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError


@dataclass(frozen=True)
class PreparedVideo:
    """A video cut into encoded frames in the cache."""

    frame_dir: Path
    frames: int
    width: int
    height: int


def prepare(video: Path, encoding: str, cache_dir: Path) -> PreparedVideo:
    """Cut the video into the cache, or find it there.

    Raises:
        FramestormError: the video is missing or cannot be decoded; the client's own words.
    """
    command: list[str | Path] = [
        paths.CLIENT_PYTHON,
        paths.CLIENT / "frames.py",
        "--video",
        video,
        "--encoding",
        encoding,
        "--cache",
        cache_dir,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FramestormError(f"the video cannot be used: {done.stderr.strip()}")
    answer = json.loads(done.stdout)
    return PreparedVideo(Path(answer["folder"]), answer["frames"], answer["width"], answer["height"])
