"""Pack what hosts are given into archives, on the controlling machine, each content once.

    pack.py jmeter kit client-env --python 3.11 --machine x86_64

Prints {"jmeter": {"archive": PATH, "digest": TEXT}, ...}. An archive holds an empty file `.packed-DIGEST`, which
tells what a host has.
Hosts need no package index: wheels come from here, checked against the hashes of the lock files.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

REPO = Path(__file__).resolve().parents[1]
LOCAL = REPO / ".local"
DEPLOY = LOCAL / "deploy"
# What Debian 12 and Ubuntu 24.04 can run, newest first; pip does not derive the older ones from the newer.
PLATFORMS = ("manylinux_2_35", "manylinux_2_34", "manylinux_2_31", "manylinux_2_28", "manylinux_2_27", "manylinux2014")
# As in framestorm/setup/pieces.py, which the Python of Ansible does not have.
PIP_OPTIONS = ("--disable-pip-version-check", "--retries", "2", "--timeout", "15", "--no-deps", "--require-hashes")

Files = list[tuple[str, Path]]  # name in the archive, file here


class PackError(Exception):
    """Something to pack is missing; the message says what makes it."""


def _tree(folder: Path, pattern: str = "**/*", under: str = "") -> Files:
    """Files, and folders that are empty: JMeter complains when its lib/junit is missing."""
    paths = [path for path in folder.glob(pattern) if path.is_file() or (path.is_dir() and not any(path.iterdir()))]
    return [(f"{under}{path.relative_to(folder)}", path) for path in sorted(paths) if "__pycache__" not in path.parts]


def _with_folders(files: Files) -> Files:
    """The folders of files too: one that is only implied would get its mode from the host's umask."""
    folders = {str(folder) for name, _ in files for folder in PurePosixPath(name).parents[:-1]}
    return sorted({**dict.fromkeys(folders, Path("/")), **dict(files)}.items())


def jmeter() -> Files:
    """JMeter's home."""
    return _tree(LOCAL / "jmeter")


def kit() -> Files:
    """What a slave needs of the checkout, laid out as there, and the default clip."""
    patterns = (REPO / "framestorm/hosts/kit.txt").read_text().split()
    files = [file for each in patterns for file in _tree(REPO, each)]
    return [*files, ("video/sample.mp4", LOCAL / "sample.mp4")]


def function() -> Files:
    """The face-blur function and its graph."""
    code = _tree(REPO / "function", "*.py", "function/")
    code += _tree(REPO / "function" / "face-blur", "*.py", "function/face-blur/")
    return [*code, ("face.pb", LOCAL / "face.pb")]


TREES = {"jmeter": jmeter, "kit": kit, "function": function}
LOCKS = {
    "client-env": REPO / "client" / "requirements.txt",
    "function-env": REPO / "function" / "face-blur" / "requirements.txt",
}


def _digest(files: Files) -> str:
    total = hashlib.sha256()
    for name, path in files:
        if not path.exists():
            raise PackError(f"{path} is missing; run `./run.sh` once, which makes it")
        content = path.read_bytes() if path.is_file() else b""
        total.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\0".encode())
    return total.hexdigest()[:16]


def _write(archive: Path, files: Files, digest: str) -> None:
    """Write a tar; nobody ever sees an incomplete one."""
    with tempfile.NamedTemporaryFile(dir=DEPLOY, suffix=".tar") as file:
        with tarfile.open(fileobj=file, mode="w", dereference=True) as tar:
            for name, path in files:
                tar.add(path, name, recursive=False, filter=_plain)
            tar.addfile(_plain(tarfile.TarInfo(f".packed-{digest}")), io.BytesIO())
        file.flush()
        Path(file.name).chmod(0o644)
        archive.unlink(missing_ok=True)
        archive.hardlink_to(file.name)
    for old in archive.parent.glob(f"{archive.name.rpartition('-')[0]}-{'[0-9a-f]' * 16}.tar"):
        if old != archive:
            old.unlink()


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    info.mode = 0o755 if info.isdir() else 0o644
    return info


def pack_tree(what: str) -> tuple[Path, str]:
    """Pack one of TREES; its digest is that of its contents."""
    files = TREES[what]()
    if not files:
        raise PackError(f"{what} is missing, so it cannot be packed; run `./run.sh` once, which makes it")
    files = _with_folders(files)
    digest = _digest(files)
    archive = DEPLOY / f"{what}-{digest}.tar"
    if not archive.is_file():
        _write(archive, files, digest)
    return archive, digest


def pack_wheels(what: str, python: str, machine: str) -> tuple[Path, str]:
    """Pack the wheels of one of LOCKS for a kind of host; its digest is that of the lock and the kind."""
    lock = LOCKS[what]
    digest = hashlib.sha256(lock.read_bytes() + f"{python} {machine} {PLATFORMS}".encode()).hexdigest()[:16]
    archive = DEPLOY / f"{what}-{python}-{machine}-{digest}.tar"
    if not archive.is_file():
        with tempfile.TemporaryDirectory(dir=DEPLOY) as folder:
            _download(lock, python, machine, Path(folder))
            _write(archive, [("requirements.txt", lock), *_tree(Path(folder), "*.whl", "wheels/")], digest)
    return archive, digest


def _download(lock: Path, python: str, machine: str, folder: Path) -> None:
    kinds = [part for platform in PLATFORMS for part in ("--platform", f"{platform}_{machine}")]
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", *PIP_OPTIONS, "--only-binary=:all:"]
    command += ["--python-version", python, "--implementation", "cp", *kinds, "--requirement", str(lock)]
    done = subprocess.run([*command, "--dest", str(folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PackError(f"wheels of {lock} for Python {python} on {machine} cannot be had: {done.stderr.strip()}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*TREES, *LOCKS], nargs="+")
    parser.add_argument("--python", required=True, help="the host's Python version, such as 3.11")
    parser.add_argument("--machine", required=True, help="the host's architecture, as x86_64")
    return parser


def main() -> int:
    arguments = _parser().parse_args()
    DEPLOY.mkdir(parents=True, exist_ok=True)
    try:
        with (DEPLOY / "lock").open("w") as lock:  # Ansible asks for each host at the same time
            fcntl.flock(lock, fcntl.LOCK_EX)
            packed = {
                what: pack_tree(what) if what in TREES else pack_wheels(what, arguments.python, arguments.machine)
                for what in arguments.what
            }
    except PackError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps({what: {"archive": str(archive), "digest": digest} for what, (archive, digest) in packed.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
