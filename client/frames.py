"""The frame cache: a video's frames, cut and encoded once, shared read-only by all users of this machine.

    <cache>/<sha256 of the video>-<encoding>-v<cutter version>/000000.b64, 000001.b64, ..., meta.json
    <cache>/<...>-first<N>/                   only the first N frames, if a run asked for no more
    <cache>/<identity of the file>.sha256     so that not every user hashes the video
    <cache>/*.lock                            while a video is hashed or cut

A folder of frames appears whole or not at all; its time stamp is when it was last used. As a command it cuts ahead of a
run and prints one JSON object.
"""

import base64
import contextlib
import fcntl
import hashlib
import json
import mmap
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from encoding import DEFAULT_ENCODING, ENCODINGS, Encoding, FrameError
from files import write_whole

DEFAULT_CACHE = Path(__file__).resolve().parent.parent / ".local" / "frames"
# Goes up whenever cut.py gives other bytes for the same video.
CUTTER_VERSION = 5
# Past this size the videos go that were not used for longest, but none that a run of the last day used.
LIMIT_BYTES = 4 << 30
IN_USE_S = 24 * 3600.0
# A file changed this shortly ago may change again without a new time stamp (the kernel's clock ticks every 1-10 ms).
SETTLED_AFTER_S = 1.0


class Frames(NamedTuple):
    """The cached frames of one video in one encoding."""

    folder: Path
    video: str  # sha256 of the video file, hex
    encoding: Encoding
    width: int
    height: int
    sizes: list[int]  # bytes of each frame's file
    damage: str | None  # the first error that the decoder logged

    def body(self, index: int) -> memoryview:
        """Return the encoded frame `index`, from memory that users share; past the last frame it starts again."""
        index %= len(self.sizes)
        path = f"{self.folder}/{index:06}{self.encoding.suffix}"
        try:
            body = _map(path)
        except (OSError, ValueError) as error:  # it cannot be opened, or is empty
            raise FrameError(f"cached frame {path} cannot be read: {error}; remove {self.folder} and repeat") from error
        if len(body) != self.sizes[index]:
            raise FrameError(
                f"cached frame {path} has {len(body)} bytes of {self.sizes[index]}; remove {self.folder} and repeat"
            )
        return body

    def image(self, body: memoryview) -> bytes:
        """Return the image file that a frame's body carries."""
        return base64.b64decode(body) if self.encoding.suffix == ".b64" else bytes(body)


def _map(path: str) -> memoryview:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # All of it now: none is to be brought in while it is sent.
        flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
        return memoryview(mmap.mmap(descriptor, 0, flags, mmap.PROT_READ))
    finally:
        os.close(descriptor)


def open_frames(video: Path, encoding: Encoding, cache: Path, first: int = 0) -> Frames:
    """Return the video's frames, cutting them first if nobody has; users starting together cut once.

    first: how many frames are needed, 0 for all; more may be returned.
    """
    sha256 = _remembered_sha256(video, cache)
    frames = _find(cache, sha256, encoding, first)
    if frames is not None:
        return frames
    folder = _folder(cache, sha256, encoding, first)
    with _locked(cache, folder.name):
        frames = _load(folder, sha256, encoding)  # cut by another user while this one waited
        if frames is None:
            _cut(video, sha256, encoding, folder, first)
            _shrink(cache)
            frames = _load(folder, sha256, encoding)
    if frames is None:
        raise FrameError(f"frames just cut into {folder} cannot be read back; check the disk")
    return frames


def find_frames(video: Path, encoding: Encoding, cache: Path, first: int = 0) -> Frames | None:
    """Return the video's frames if they are there to be read at once: nothing is waited for, hashed or cut."""
    try:
        sha256 = _recall(cache / f"{_identity(video)}.sha256")
        return _find(cache, sha256, encoding, first) if sha256 else None
    except FrameError:
        return None


def _find(cache: Path, sha256: str, encoding: Encoding, first: int) -> Frames | None:
    """Return the frames of the whole video if they are cached, else its first ones, else None."""
    folders = dict.fromkeys(_folder(cache, sha256, encoding, count) for count in (0, first))
    return next((found for each in folders if (found := _load(each, sha256, encoding))), None)


def _folder(cache: Path, sha256: str, encoding: Encoding, first: int) -> Path:
    return cache / f"{sha256}-{encoding.name}-v{CUTTER_VERSION}{f'-first{first}' if first else ''}"


def _load(folder: Path, sha256: str, encoding: Encoding) -> Frames | None:
    with contextlib.suppress(OSError):  # not there yet, or another account's
        os.utime(folder)
    try:
        meta = json.loads((folder / "meta.json").read_bytes())
        size = int(meta["width"]), int(meta["height"])
        return Frames(folder, sha256, encoding, *size, meta["sizes"], meta["damage"])
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None
    except OSError as error:
        raise FrameError(f"cached frames in {folder} cannot be read: {error}") from error


def _cut(video: Path, sha256: str, encoding: Encoding, folder: Path, first: int) -> None:
    import cut  # only here: brings in PyAV, 100 ms of CPU that a user with a cached video does not pay

    draft = folder.with_name(f".{folder.name}.tmp")
    try:
        shutil.rmtree(draft, ignore_errors=True)  # of a killed cutter: the lock is ours, nobody works in it
        shutil.rmtree(folder, ignore_errors=True)  # without a readable meta.json it is of no use
        draft.mkdir()
        try:
            content = cut.cut_video(video, encoding, draft, first)
            if _sha256(video) != sha256:
                raise FrameError(f"video {video} changed while it was cut; repeat when it is complete")
            meta = {"video": sha256, "encoding": encoding.name, **content._asdict()}
            write_whole(draft / "meta.json", json.dumps(meta).encode())
            _sync_file_system(draft)  # once for all: to flush each frame by itself takes longer than to cut it
            draft.rename(folder)
            _sync_folder(folder.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise _unwritable(folder.parent, error) from error


def _shrink(cache: Path) -> None:
    """Keep the cache to its limit, together with what killed users left and what is remembered of videos that went."""
    with contextlib.suppress(OSError):  # another process may do the same
        folders = [(entry.stat().st_mtime, Path(entry)) for entry in os.scandir(cache) if entry.is_dir()]
        sizes = {folder: sum(file.stat().st_size for file in os.scandir(folder)) for _, folder in folders}
        total = sum(sizes.values())
        for used_s, folder in sorted(folders):
            if total <= LIMIT_BYTES or time.time() - used_s < IN_USE_S:
                break
            total -= sizes[folder]
            gone = folder.with_name(f".{folder.name}.old")
            folder.rename(gone)  # it goes as a whole
            shutil.rmtree(gone, ignore_errors=True)
        videos = {folder.name.partition("-")[0] for _, folder in folders if folder.exists()}
        for entry in os.scandir(cache):
            path, age_s = Path(entry), time.time() - entry.stat().st_mtime
            is_of_none = path.suffix == ".lock" or (path.suffix == ".sha256" and _recall(path) not in videos)
            if is_of_none and age_s > IN_USE_S:
                path.unlink(missing_ok=True)


def _sync_file_system(folder: Path) -> None:
    """Flush the file system of a folder; os.sync() would wait for others too, such as a share whose server is gone."""
    import ctypes  # only here: no user with a cached video needs it

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(cache: Path, error: OSError) -> FrameError:
    return FrameError(f"frame cache {cache} cannot be written: {error}; make room there or name another with --cache")


@contextlib.contextmanager
def _locked(cache: Path, name: str) -> Iterator[None]:
    """Hold the lock `name`; the kernel gives it back when its holder ends, however that happens."""
    path = cache / f"{name}.lock"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        while True:
            descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    break
            os.close(descriptor)  # its last holder removed it while this one waited
    except OSError as error:
        raise _unwritable(cache, error) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(descriptor)


def _identity(video: Path) -> str:
    """Name this state of the file: another path, inode, size or time stamp is another state."""
    try:
        stat = video.stat()
        path = video.resolve()
    except OSError as error:
        raise FrameError(f"video {video} cannot be read: {error.strerror}") from error
    if not S_ISREG(stat.st_mode):  # reading a pipe might never end
        raise FrameError(f"video {video} is not a file")
    state = [os.fsdecode(path), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()


def _sha256(video: Path) -> str:
    try:
        with video.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FrameError(f"video {video} cannot be read: {error.strerror}") from error


def _remembered_sha256(video: Path, cache: Path) -> str:
    identity = _identity(video)
    memory = cache / f"{identity}.sha256"
    if (sha256 := _recall(memory)) is not None:
        return sha256
    if os.access(cache, os.R_OK) and not os.access(cache, os.W_OK):
        return _sha256(video)  # a cache filled by another account is good to read from
    with _locked(cache, identity):
        if (sha256 := _recall(memory)) is not None:
            return sha256
        sha256 = _sha256(video)
        if _identity(video) != identity:
            raise FrameError(f"video {video} changed while it was read; repeat when it is complete")
        if time.time() - video.stat().st_ctime > SETTLED_AFTER_S:
            draft = memory.with_name(f".{memory.name}.tmp")
            try:
                draft.unlink(missing_ok=True)
                write_whole(draft, sha256.encode())
                draft.rename(memory)
            except OSError as error:
                raise _unwritable(cache, error) from error
        return sha256


def _recall(memory: Path) -> str | None:
    try:
        sha256 = memory.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return None
    return sha256 if len(sha256) == 64 else None


def main() -> int:
    import argparse

    parser = argparse.ArgumentParser(description="Cut a video into the frame cache and print its content as JSON.")
    parser.add_argument("--video", type=Path, required=True, metavar="FILE")
    parser.add_argument("--frames", type=int, default=0, metavar="N", help="0: the whole video (default: 0)")
    parser.add_argument("--encoding", choices=list(ENCODINGS), default=DEFAULT_ENCODING)
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, metavar="DIR", help="default: %(default)s")
    options = parser.parse_args()
    try:
        frames = open_frames(options.video, ENCODINGS[options.encoding], options.cache, options.frames)
    except FrameError as error:
        print(f"frames: {error}", file=sys.stderr)
        return 2
    if frames.damage:
        print(
            f"video {options.video} is damaged, so that frames may be missing or wrong ({len(frames.sizes)} could be "
            f"read): {frames.damage}",
            file=sys.stderr,
        )
    content = {
        "video": frames.video[:12],
        "frames": len(frames.sizes),
        "width": frames.width,
        "height": frames.height,
        "encoding": frames.encoding.name,
        "folder": str(frames.folder.resolve()),
        "suffix": frames.encoding.suffix,
    }
    print(json.dumps(content))
    return 0


if __name__ == "__main__":
    sys.exit(main())
