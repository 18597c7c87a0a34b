"""The engine of the cluster that the kit makes on this machine."""

from pathlib import Path

import pytest

from framestorm.errors import FramestormError
from framestorm.platform.kubernetes import engine


@pytest.mark.parametrize("is_left", [False, True])
def test_a_link_that_goes_by_itself_is_no_failure(
    is_left: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel removes it with the engine's network, perhaps just before the kit does."""
    for name in ("STATE", "RUN", "MADE_MODULES", "CGROUPS"):
        monkeypatch.setattr(engine, name, tmp_path / name)
    owners = [str(engine.HOME), str(engine.HOME) if is_left else None]
    monkeypatch.setattr(engine, "_owner", lambda: owners.pop(0))

    def execute(*_: str) -> str:
        raise FramestormError("Cannot find device")

    monkeypatch.setattr(engine, "execute", execute)
    if is_left:
        with pytest.raises(FramestormError, match="Cannot find device"):
            engine.stop()
    else:
        engine.stop()
    assert owners == []
