import subprocess

import pytest

from framestorm import paths
from framestorm.run import jmeter


def test_java_finds_files_with_umlauts_whatever_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "POSIX")
    shown = [paths.JAVA_HOME / "bin" / "java", "-XshowSettings:properties", "-version"]
    done = subprocess.run(shown, env=jmeter.environment(), capture_output=True, text=True, check=True)
    assert "sun.jnu.encoding = UTF-8" in done.stderr


@pytest.mark.parametrize("words", [("-LERROR",), ("-Lframestorm=OFF", "-Lorg.apache=DEBUG")])
def test_what_the_kit_reads_is_logged_whatever_level_is_set(words: tuple[str, ...]) -> None:
    command = jmeter.java_command(words=words)
    # The last one counts.
    assert command.index("-Lframestorm=INFO") > max(command.index(word) for word in words)
    assert not any(word.startswith("-Lframestorm") for word in jmeter.java_command(words=("-LDEBUG",)))
