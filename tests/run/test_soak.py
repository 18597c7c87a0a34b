"""A soak of two minutes; `python -m tests.soak` runs longer and loads the provider too."""

from pathlib import Path

import pytest

from tests.soak import soak


@pytest.mark.long
def test_nothing_grows_under_load(tmp_path: Path) -> None:
    assert soak(tmp_path / "soak", 120) == []
