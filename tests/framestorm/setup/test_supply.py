"""What comes from elsewhere: jars are compared with pinned digests, and all of it can be listed."""

import hashlib
import json
from pathlib import Path

import pytest

from framestorm import cli, probe
from framestorm.errors import FramestormError
from framestorm.setup import pieces as setup


def test_a_changed_jar_is_refused_and_an_unknown_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, pinned = tmp_path / "home", tmp_path / "jars.sha256"
    (home / "lib").mkdir(parents=True)
    (home / "lib" / "a.jar").write_bytes(b"a")
    (home / "lib" / "own.jar").write_bytes(b"own")
    pinned.write_text(f"{hashlib.sha256(b'a').hexdigest()}  lib/a.jar\n")
    setup.check_digests(home, pinned)
    assert "lib/own.jar" in capsys.readouterr().err
    (home / "lib" / "a.jar").write_bytes(b"b")
    with pytest.raises(FramestormError, match=r"lib/a\.jar has the SHA-256"):
        setup.check_digests(home, pinned)


def test_the_pinned_jars_are_those_of_the_home() -> None:
    lines = (setup.paths.JMX / "jars.sha256").read_text().splitlines()
    home = setup.paths.JMETER_HOME
    made = {path.relative_to(home).as_posix() for path in home.glob("**/*.jar")} - {probe.ADDITIONS, probe.PATCHES}
    assert {line.split()[1] for line in lines} == made
    _, name, version = setup.JAVASSIST.split(":")
    assert (setup.paths.JMX / "patch.sha256").read_text().split()[1] == f"{name}-{version}.jar"


def test_software_is_listed(tmp_path: Path) -> None:
    assert cli.main(["sbom", str(tmp_path)]) == 0
    lists = {path.name: json.loads(path.read_text()) for path in tmp_path.iterdir()}
    assert {each["bomFormat"] for each in lists.values()} == {"CycloneDX"}
    names = {name: {part["name"] for part in each.get("components", ())} for name, each in lists.items()}
    assert "ApacheJMeter_core" in names["jmeter.cdx.json"]
    assert "requests" in names["python-client.cdx.json"]
    assert "github.com/nats-io/stan.go" in names["go-nats-queue-worker.cdx.json"]
