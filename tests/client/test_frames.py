"""The frame cache: cut once, by whoever comes first; whole or not there; read-only."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import frames
from encoding import ENCODINGS, FrameError
from frames import open_frames

PNG = ENCODINGS["png"]


@pytest.fixture
def settled(video: Path) -> Path:
    """A video that was written long enough ago for its hash to be remembered."""
    time.sleep(max(0.0, video.stat().st_ctime + frames.SETTLED_AFTER_S + 0.05 - time.time()))
    return video


def test_cut_once_then_read(settled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_frames(settled, PNG, tmp_path)
    monkeypatch.setattr(frames, "_sha256", lambda _: pytest.fail("hashed again"))
    monkeypatch.setattr(frames, "_cut", lambda *_: pytest.fail("cut again"))
    second = open_frames(settled, PNG, tmp_path)
    assert first == second
    assert (second.width, second.height, len(second.sizes)) == (128, 96, 5)
    assert second.body(7) == second.body(2) == (second.folder / "000002.png").read_bytes()


def test_cached_files_are_read_only_and_complete(video: Path, tmp_path: Path) -> None:
    folder = open_frames(video, PNG, tmp_path).folder
    assert sorted(path.name for path in folder.iterdir()) == [*(f"{i:06}.png" for i in range(5)), "meta.json"]
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o444}


def test_encodings_and_videos_do_not_mix(video: Path, new_video: Callable[..., Path], tmp_path: Path) -> None:
    other = new_video(tmp_path / "other.mp4", frames=2)
    folders = {open_frames(one, encoding, tmp_path).folder for one in (video, other) for encoding in ENCODINGS.values()}
    assert len(folders) == 6


def test_a_changed_video_is_cut_again(new_video: Callable[..., Path], tmp_path: Path) -> None:
    path = new_video(tmp_path / "clip.mp4", frames=2)
    before = open_frames(path, PNG, tmp_path / "cache")
    new_video(path, frames=3)
    after = open_frames(path, PNG, tmp_path / "cache")
    assert before.video != after.video and (len(before.sizes), len(after.sizes)) == (2, 3)


def test_a_video_just_written_is_not_remembered(new_video: Callable[..., Path], tmp_path: Path) -> None:
    path = new_video(tmp_path / "clip.mp4", frames=1)
    os.utime(path)  # its ctime is now
    open_frames(path, PNG, tmp_path / "cache")
    assert list((tmp_path / "cache").glob("*.sha256")) == []


COUNTING_USER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import cut, frames
real = cut.cut_video
def counted(video, encoding, folder):
    with open(sys.argv[4], "a") as log:
        log.write("cut\\n")
    return real(video, encoding, folder)
cut.cut_video = counted
found = frames.open_frames(Path(sys.argv[2]), frames.ENCODINGS["png-base64"], Path(sys.argv[3]))
print(len(found.sizes), len(found.body(0)) == found.sizes[0])
"""


def test_users_starting_together_cut_once(video: Path, tmp_path: Path) -> None:
    log = tmp_path / "cuts"
    command = [sys.executable, "-c", COUNTING_USER, str(Path(frames.__file__).parent), str(video)]
    command += [str(tmp_path / "cache"), str(log)]
    users = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    said = {user.communicate(timeout=30)[0].strip() for user in users}
    assert said == {"5 True"} and {user.returncode for user in users} == {0}
    assert log.read_text() == "cut\n"


KILLED_CUTTER = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import cut, frames
real, left = cut.write_whole, 2
def dying(path, content):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    real(path, content)
cut.write_whole = dying
frames.open_frames(Path(sys.argv[2]), frames.ENCODINGS["png"], Path(sys.argv[3]))
"""


def test_a_killed_cutter_leaves_no_broken_cache(video: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_CUTTER, str(Path(frames.__file__).parent), str(video), str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == -9
    (unfinished,) = tmp_path.glob(".*.tmp")
    assert len(list(unfinished.iterdir())) == 2
    assert list(tmp_path.glob("*-png-v*[0-9]")) == []
    assert len(open_frames(video, PNG, tmp_path).sizes) == 5
    assert list(tmp_path.glob(".*.tmp")) == []


def test_a_broken_entry_is_cut_again_and_a_damaged_frame_is_named(video: Path, tmp_path: Path) -> None:
    folder = open_frames(video, PNG, tmp_path).folder
    (folder / "meta.json").unlink()
    (folder / "meta.json").write_text('{"width":')
    found = open_frames(video, PNG, tmp_path)
    assert json.loads((folder / "meta.json").read_text())["sizes"] == found.sizes
    (folder / "000001.png").unlink()
    (folder / "000001.png").write_bytes(b"short")
    with pytest.raises(FrameError, match=r"000001\.png has 5 bytes"):
        found.body(1)
    shutil.rmtree(folder)
    with pytest.raises(FrameError, match=r"000000\.png cannot be read"):
        found.body(0)


def test_a_failed_cut_leaves_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video at all" * 10)
    with pytest.raises(FrameError, match="broken"):
        open_frames(broken, PNG, tmp_path / "cache")
    assert [path for path in (tmp_path / "cache").iterdir() if path.suffix != ".lock"] == []


def test_a_video_that_changes_while_it_is_cut(
    new_video: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cut

    path, real = new_video(tmp_path / "clip.mp4", frames=1), cut.cut_video

    def meddled(*arguments: Any) -> Any:
        done = real(*arguments)
        new_video(path, frames=2)
        return done

    monkeypatch.setattr(cut, "cut_video", meddled)
    with pytest.raises(FrameError, match="changed while it was cut"):
        open_frames(path, PNG, tmp_path / "cache")


def prepare(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, frames.__file__, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_prepare_says_what_is_there(video: Path, tmp_path: Path) -> None:
    done = prepare("--video", video, "--encoding", "jpeg", "--cache", tmp_path)
    said = json.loads(done.stdout)
    assert done.returncode == 0 and list(said)[:4] == ["video", "frames", "width", "height"]
    assert (said["frames"], said["width"], said["height"], said["suffix"]) == (5, 128, 96, ".jpg")
    assert len(said["video"]) == 12 and (Path(said["folder"]) / "000004.jpg").exists()


@pytest.mark.parametrize("content", [None, b"", b"no video at all" * 10])
def test_prepare_names_a_missing_or_broken_video(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "clip.mp4"
    if content is not None:
        path.write_bytes(content)
    done = prepare("--video", path, "--cache", tmp_path / "cache")
    assert (done.returncode, done.stdout) == (2, "")
    assert str(path) in done.stderr and "Traceback" not in done.stderr
