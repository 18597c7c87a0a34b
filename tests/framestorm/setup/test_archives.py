"""The distribution's archives: their logins reach apt, and neither a command line nor the systems that are unpacked."""

import re
from pathlib import Path

import pytest

from framestorm.setup import archives


def test_logins_of_archives_are_on_no_command_line_and_in_no_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[str] = []
    auth: list[str] = []

    def make_system(command: list[str]) -> None:
        commands.append(" ".join(command))
        (settings,) = (Path(word.removeprefix("--aptopt=")) for word in command if word.startswith("--aptopt="))
        assert settings.parent.stat().st_mode & 0o077 == 0
        found = re.search('^Dir::Etc::netrc "(.*)";$', settings.read_text(), re.MULTILINE)
        assert found
        auth.extend(Path(found[1]).read_text().splitlines())

    targets = "".join(
        f"Debian|https://me:s%40cret@deb.example:8443/debian/|stable|{component}|/key\n"
        for component in ("main", "contrib")
    )
    own = tmp_path / "auth.conf.d" / "own.conf"
    own.parent.mkdir()
    own.write_text("machine mirror.example login i password hidden")
    monkeypatch.setattr(archives, "_LOGINS", tmp_path / "auth.conf")
    monkeypatch.setattr(archives.packages, "install", lambda names: None)
    monkeypatch.setattr(archives, "execute", lambda name, *_: targets if name == "apt-get" else "")
    monkeypatch.setattr(archives, "call", make_system)
    archives.unpack(tmp_path / "root", ["python3"], archives.of_this_machine())
    assert "deb [signed-by=/key] https://deb.example:8443/debian/ stable contrib" in commands[0]
    assert auth == ["machine https://deb.example:8443/debian/ login me password s@cret", own.read_text()]
    assert not any(secret in commands[0] for secret in ("s@cret", "s%40cret", "hidden"))
