"""The frame cache: cut once, by whoever comes first; whole or not there; read-only."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import cut
import frames
from encoding import ENCODINGS, FrameError
from frames import open_frames
from tests.client.conftest import write_video

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
    files = sorted(second.folder.iterdir())
    assert [path.name for path in files] == [*(f"{i:06}.png" for i in range(5)), "meta.json"]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o444}


def test_no_more_frames_are_cut_than_are_asked_for(settled: Path, tmp_path: Path) -> None:
    few = open_frames(settled, PNG, tmp_path, first=2)
    assert [path.name for path in sorted(few.folder.iterdir())] == ["000000.png", "000001.png", "meta.json"]
    assert frames.find_frames(settled, PNG, tmp_path) is None
    whole = open_frames(settled, PNG, tmp_path)
    assert len(whole.sizes) == 5
    assert open_frames(settled, PNG, tmp_path, first=3) == frames.find_frames(settled, PNG, tmp_path, first=3) == whole


def test_encodings_and_states_of_a_video_do_not_mix(tmp_path: Path) -> None:
    folders = set()
    for count in (2, 3):
        path = write_video(tmp_path / "clip.mp4", frames=count)
        for encoding in ENCODINGS.values():
            opened = open_frames(path, encoding, tmp_path / "cache")
            assert len(opened.sizes) == count
            folders.add(opened.folder)
    assert len(folders) == 6


def test_the_oldest_unused_go_when_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(name: str) -> Path:
        return open_frames(write_video(tmp_path / name, frames=len(name)), PNG, tmp_path / "cache").folder

    old, used, recent, draft = cut("1"), cut("22"), cut("333"), tmp_path / "cache" / ".killed.tmp"
    draft.mkdir()
    lock, memory = tmp_path / "cache" / "killed.lock", tmp_path / "cache" / "of-the-old.sha256"
    lock.touch()
    memory.write_text(old.name.partition("-")[0])
    for path in (draft, old, used, lock, memory):
        os.utime(path, (0, time.time() - 2 * frames.IN_USE_S))
    assert open_frames(tmp_path / "22", PNG, tmp_path / "cache").folder == used
    latest = cut("4444")
    assert old.exists(), "there is room"
    monkeypatch.setattr(frames, "LIMIT_BYTES", 0)
    last = cut("55555")
    assert {path for path in (tmp_path / "cache").iterdir() if path.suffix != ".sha256"} == {used, recent, latest, last}
    assert not memory.exists()


def test_a_video_just_written_is_not_remembered(tmp_path: Path) -> None:
    path = write_video(tmp_path / "clip.mp4", frames=1)
    os.utime(path)  # its ctime is now
    open_frames(path, PNG, tmp_path / "cache")
    assert list((tmp_path / "cache").glob("*.sha256")) == []


# A process that opens the frames of a video with one function of cut.py replaced; `real` is that function.
USER = """
import os, signal, sys
from pathlib import Path
folder, video, cache, name = sys.argv[1:]
sys.path.insert(0, folder)
import cut, frames
real, calls = getattr(cut, name), []
def replaced(*arguments):
    calls.append(arguments)
    if name == "write_whole" and len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments)
setattr(cut, name, replaced)
opened = frames.open_frames(Path(video), frames.ENCODINGS["png"], Path(cache))
print(len(opened.sizes), len(opened.body(0)) == opened.sizes[0], len(calls))
"""


def user(video: Path, cache: Path, name: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", USER, str(Path(frames.__file__).parent), str(video), str(cache), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_users_starting_together_cut_once(video: Path, tmp_path: Path) -> None:
    users = [user(video, tmp_path, "cut_video") for _ in range(8)]
    outputs = sorted(user.communicate(timeout=30)[0] for user in users)
    assert outputs == ["5 True 0\n"] * 7 + ["5 True 1\n"]


def test_frames_are_flushed_to_the_disk_all_at_once(
    video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr("os.fsync", flushed.append)
    monkeypatch.setattr("frames._sync_file_system", lambda draft: flushed.append(len(list(draft.iterdir()))))
    open_frames(video, PNG, tmp_path)
    assert flushed[0] == 6 and len(flushed) == 2, "five frames and meta.json, then their folder's name"


def test_a_killed_cutter_leaves_no_broken_cache(video: Path, tmp_path: Path) -> None:
    with user(video, tmp_path, "write_whole") as killed:
        assert killed.wait(30) == -9
    (unfinished,) = tmp_path.glob(".*.tmp")
    assert len(list(unfinished.iterdir())) == 2
    assert list(tmp_path.glob("*-png-v*[0-9]")) == []
    assert len(open_frames(video, PNG, tmp_path).sizes) == 5
    assert list(tmp_path.glob(".*.tmp")) == []


def test_a_broken_entry_is_cut_again_and_a_damaged_frame_is_named(video: Path, tmp_path: Path) -> None:
    folder = open_frames(video, PNG, tmp_path).folder
    (folder / "meta.json").unlink()
    (folder / "meta.json").write_text('{"width":')
    opened = open_frames(video, PNG, tmp_path)
    assert json.loads((folder / "meta.json").read_text())["sizes"] == opened.sizes
    (folder / "000001.png").unlink()
    (folder / "000001.png").write_bytes(b"short")
    with pytest.raises(FrameError, match=r"000001\.png has 5 bytes"):
        opened.body(1)
    shutil.rmtree(folder)
    with pytest.raises(FrameError, match=r"000000\.png cannot be read"):
        opened.body(0)


def test_a_video_that_changes_while_it_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = write_video(tmp_path / "clip.mp4", frames=1), cut.cut_video

    def meddled(*arguments: Any) -> Any:
        done = real(*arguments)
        write_video(path, frames=2)
        return done

    monkeypatch.setattr(cut, "cut_video", meddled)
    with pytest.raises(FrameError, match="changed while it was cut"):
        open_frames(path, PNG, tmp_path / "cache")


def test_as_a_command_it_prints_what_is_there(
    video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["frames.py", "--video", str(video), "--encoding", "jpeg", "--cache", str(tmp_path)]
    monkeypatch.setattr("sys.argv", words)
    assert frames.main() == 0
    output = capsys.readouterr()
    assert output.err == ""
    shown = json.loads(output.out)
    assert list(shown)[:4] == ["video", "frames", "width", "height"]
    assert (shown["frames"], shown["width"], shown["height"], shown["suffix"]) == (5, 128, 96, ".jpg")
    assert len(shown["video"]) == 12 and (Path(shown["folder"]) / "000004.jpg").exists()


@pytest.mark.parametrize("content", [None, b"", b"no video at all" * 10, "a pipe"])
def test_a_missing_or_broken_video_is_named_and_leaves_nothing(
    content: bytes | str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "clip.mp4"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        os.mkfifo(path)
    monkeypatch.setattr("sys.argv", ["frames.py", "--video", str(path), "--cache", str(tmp_path / "cache")])
    assert frames.main() == 2
    output = capsys.readouterr()
    assert (output.out, str(path) in output.err) == ("", True)
    assert list((tmp_path / "cache").glob("*")) == []
