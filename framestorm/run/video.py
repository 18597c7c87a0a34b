"""The video whose frames users send: cut into encoded frames once, before the load."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.model.facets import VIDEO
from framestorm.model.plan import Plan
from framestorm.plain import note

DEFAULT_ENCODING = "png-base64"


class OnSlave(NamedTuple):
    """A plan's video on a slave.

    values: the property with its path there. files: the file to send; none for the sample video, which is there. cut:
    the options of client/frames.py there; None for a plan without a video.
    """

    values: dict[str, str]
    files: dict[str, Path]
    cut: list[str] | None


def absolute(plan: Plan, properties: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the property of the plan's video with an absolute path.

    A path that the user gives is relative to the working folder, the plan's default to the project.
    """
    each = plan.having(VIDEO)
    if each is None:
        return {}
    path = Path(given[each.name]).expanduser().absolute() if each.name in given else paths.ROOT / properties[each.name]
    return {each.name: str(path)}


def fill_in(plan: Plan, properties: Mapping[str, str]) -> dict[str, Path]:
    """Cut the plan's video, if it has one, and return the folder of the frames by the name that plans have for it."""
    each = plan.having(VIDEO)
    return {"frame_dir": cut(Path(properties[each.name]), properties)} if each is not None else {}


def on_slave(plan: Plan, values: Mapping[str, str], run_dir: str, sample: str, cache: str) -> OnSlave:
    """Return what a slave needs for the plan's video; each slave has the sample video and a cache already."""
    each = plan.having(VIDEO)
    if each is None:
        return OnSlave({}, {}, None)
    source = Path(values[each.name])
    files = {} if source == paths.SAMPLE_VIDEO else {f"video{source.suffix}": source}
    there = next((f"{run_dir}/{name}" for name in files), sample)
    return OnSlave({each.name: there}, files, cut_words(there, values, cache))


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
