"""Two minutes of load; `python -m tests.soak` loads for longer, and the provider too."""

from pathlib import Path

from tests.soak import soak


def test_nothing_grows_under_load(tmp_path: Path) -> None:
    assert soak(tmp_path / "soak", 120) == []
