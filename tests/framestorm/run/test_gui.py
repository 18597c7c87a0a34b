"""What opening a plan in JMeter's window leaves; the window itself is tested in tests/jmx."""

import subprocess
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from framestorm import paths
from framestorm.run import load
from framestorm.run.options import What


@pytest.mark.parametrize(
    ("files", "is_left"), [(["jmeter.log", "load.txt"], False), (["jmeter.log", "tree.xml"], True)]
)
def test_a_window_in_which_nothing_ran_leaves_no_folder(
    files: list[str], is_left: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shop-gui"

    def window(*_: Any, **__: Any) -> SimpleNamespace:
        for name in files:
            (folder / name).touch()
        return SimpleNamespace(returncode=0)

    platform = SimpleNamespace(serving=lambda _: nullcontext())
    settings = SimpleNamespace(values={}, of_window=lambda _: {})
    prepared = SimpleNamespace(plan=None, settings=settings, platform=platform, write_load=lambda: None)
    monkeypatch.setattr(paths, "new_dashboard", lambda _: folder)
    monkeypatch.setattr(load, "prepare", lambda *_: prepared)
    monkeypatch.setattr(load, "options_for_jmeter", lambda _: nullcontext([]))
    monkeypatch.setattr(subprocess, "run", window)
    load.open_gui(SimpleNamespace(plan=Path("shop.jmx")))
    assert folder.exists() == is_left


def test_a_default_that_is_changed_in_the_window_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def window(command: list[str], **_: Any) -> SimpleNamespace:
        commands.append(command)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(paths, "new_dashboard", lambda _: tmp_path / "requests-gui")
    monkeypatch.setattr(subprocess, "run", window)
    given = {"url": "http://127.0.0.1:1/f", "timeout_s": "25"}  # the second is the plan's default, too
    load.open_gui(What(plan=paths.JMX / "requests.jmx", given=given, is_for_gui=True))
    (command,) = commands
    assert {"-Jurl=http://127.0.0.1:1/f", "-Jtimeout_s=25"} <= {*command}
    assert not [word for word in command if word.startswith(("-Jusers=", "-Jhold_s=", "-Jexpect_status="))]
    assert any(word.startswith("-Jtree=") for word in command)
