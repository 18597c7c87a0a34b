import subprocess

import pytest

from framestorm import paths
from framestorm.run import jmeter


def test_java_finds_files_with_umlauts_whatever_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "POSIX")
    shown = [paths.JAVA_HOME / "bin" / "java", "-XshowSettings:properties", "-version"]
    done = subprocess.run(shown, env=jmeter.environment(), capture_output=True, text=True, check=True)
    assert "sun.jnu.encoding = UTF-8" in done.stderr
