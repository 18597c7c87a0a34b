"""face-blur kept alive against forked for each request: frames a second of one user after the other, in one run.

Forked both as Framestorm does it and as any Python program starts (`benchmarks.ordinary_fork`).

.local/venv/bin/python -m benchmarks.openfaas_ways [--seconds 20]
"""

import argparse
import base64
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.openfaas_bench import Caller, deploy, openfaas
from framestorm import paths
from framestorm.platform.openfaas.layout import GATEWAY_URL


def frames(folder: Path) -> dict[str, tuple[bytes, dict[str, str]]]:
    """A frame of the sample video, and the headers that go with it, in the original study's encoding and in JPEG."""
    png, jpeg = folder / "frame.png", folder / "frame.jpg"
    code = (
        "import sys, av\n"
        "image = next(av.open(sys.argv[1]).decode(video=0)).to_image()\n"
        "image.save(sys.argv[2], compress_level=1)\n"
        "image.save(sys.argv[3], quality=90)\n"
    )
    subprocess.run([paths.CLIENT_PYTHON, "-c", code, paths.SAMPLE_VIDEO, png, jpeg], check=True)
    return {
        "png-base64": (base64.b64encode(png.read_bytes()), {}),
        "jpeg": (jpeg.read_bytes(), {"Accept": "image/jpeg"}),
    }


def frames_per_s(name: str, body: bytes, headers: Mapping[str, str], seconds: float) -> float:
    caller = Caller(f"{GATEWAY_URL}/function/{name}", headers)
    assert caller.post(body)[0] == 200, "the first frame, not counted"
    count, started_s = 0, time.perf_counter()
    while count == 0 or time.perf_counter() - started_s < seconds:
        status, _, _ = caller.post(body)
        assert status == 200, f"{name}: {status}"
        count += 1
    return count / (time.perf_counter() - started_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="time for each way (default: %(default)s)")
    asked = parser.parse_args()
    with openfaas():
        deploy("face-blur", annotations={"com.openfaas.ready.http.path": "/_/ready"})
        timeouts = {"read_timeout": "60s", "write_timeout": "60s"}
        deploy("face-blur-fork", envVars=timeouts)
        ordinary = f"{paths.FUNCTION_PYTHON} {paths.ROOT / 'benchmarks' / 'ordinary_fork.py'}"
        deploy("ordinary-fork", image="face-blur-fork", envVars=timeouts, envProcess=ordinary)
        for encoding, (body, headers) in frames(paths.LOCAL / "openfaas").items():
            kept = frames_per_s("face-blur", body, headers, asked.seconds)
            print(f"face-blur, {encoding}: {kept:.1f} frames/s kept alive")
            for name, to_reach in (("ordinary-fork", " (to reach: >= 50)"), ("face-blur-fork", "")):
                forked = frames_per_s(name, body, headers, asked.seconds)
                print(f"  {name}: {forked:.3f} frames/s, kept alive {kept / forked:.0f} times that{to_reach}")


if __name__ == "__main__":
    main()
