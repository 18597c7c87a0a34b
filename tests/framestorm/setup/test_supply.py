"""What comes from elsewhere: jars are fetched and compared by lock files, and all of it can be listed."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from framestorm import cli, paths, probe
from framestorm.errors import FramestormError
from framestorm.setup import jars

LISTING = """
The following files have been resolved:
   org.apache.jmeter:ApacheJMeter:jar:5.5:compile -- module ApacheJMeter (auto)
   org.xmlresolver:xmlresolver:jar:data:4.2.0:runtime -- module org.xmlresolver.data [auto]
   org.javassist:javassist:jar:3.30.2-GA:provided -- module org.javassist
   junit:junit:jar:4.13.2:test -- module junit (auto)
"""


@pytest.fixture
def pom(tmp_path: Path) -> Path:
    """A pom.xml with the lock file of one jar, which set-up has fetched already."""
    pom = tmp_path / "pom.xml"
    pom.write_text("<project/>")
    [javassist] = [jar for jar in jars.Lock.of(paths.JMX / "pom.xml").jars if "javassist" in jar.path]
    lock = f"# {hashlib.sha256(pom.read_bytes()).hexdigest()}\n{javassist.sha256} lib/a.jar {javassist.coordinates}\n"
    pom.with_name("jars.lock").write_text(lock)
    return pom


def test_jars_are_fetched_by_their_lock_file(tmp_path: Path, pom: Path) -> None:
    jars.fill(tmp_path / "home", pom)
    assert [path.name for path in (tmp_path / "home").rglob("*") if path.is_file()] == ["a.jar"]


def test_a_jar_that_differs_from_its_lock_file_is_refused(tmp_path: Path, pom: Path) -> None:
    lock = pom.with_name("jars.lock")
    pinned = jars.Lock.of(pom).jars[0].sha256
    lock.write_text(lock.read_text().replace(pinned, "0" * 64))
    with pytest.raises(FramestormError, match=rf"lib/a\.jar has the SHA-256 {pinned}, and its jars\.lock says 0000"):
        jars.fill(tmp_path / "home", pom)


def test_a_pom_that_was_changed_is_resolved_by_maven(
    tmp_path: Path, pom: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def package(*words: str | Path) -> None:
        assert words == ("-f", pom, "package", f"-Dhome={tmp_path}")
        (tmp_path / "own.jar").write_bytes(b"own")

    monkeypatch.setattr(jars, "call_maven", package)
    pom.write_text("<project></project>")
    jars.fill(tmp_path, pom)
    said = capsys.readouterr().err
    assert "its jars.lock is of another one" in said and "no jars.lock has a digest of own.jar" in said


def test_a_maven_whose_jars_are_elsewhere_resolves_the_pom(
    tmp_path: Path, pom: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "bin" / "mvn"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    jars.fill(tmp_path / "home", pom)
    assert f"{script} has no lib folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pom", "home"),
    [(paths.JMX / "pom.xml", paths.JMETER_HOME), (paths.ROOT / "tests/foreign/pom.xml", paths.TEST_JARS)],
)
def test_the_locked_jars_are_those_of_the_home(pom: Path, home: Path) -> None:
    lock = jars.Lock.of(pom)
    assert lock.pom == hashlib.sha256(pom.read_bytes()).hexdigest(), f"run python -m framestorm.setup.jars {pom}"
    made = {path.relative_to(home).as_posix() for path in home.glob("**/*.jar")} - {probe.ADDITIONS, probe.PATCHES}
    assert {jar.path for jar in lock.jars} == made


def test_coordinates_are_read_from_the_list_of_maven() -> None:
    names = {
        "ApacheJMeter": "org.apache.jmeter:ApacheJMeter:jar:5.5",
        "ApacheJMeter-5.5": "org.apache.jmeter:ApacheJMeter:jar:5.5",
        "xmlresolver-data": "org.xmlresolver:xmlresolver:jar:data:4.2.0",
        "xmlresolver-4.2.0-data": "org.xmlresolver:xmlresolver:jar:data:4.2.0",
        "javassist": "org.javassist:javassist:jar:3.30.2-GA",
        "javassist-3.30.2-GA": "org.javassist:javassist:jar:3.30.2-GA",
    }
    assert jars.coordinates_by_name(LISTING) == {f"{name}.jar": coordinates for name, coordinates in names.items()}


def test_software_is_listed(tmp_path: Path) -> None:
    assert cli.main(["sbom", str(tmp_path)]) == 0
    lists = {path.name: json.loads(path.read_text()) for path in tmp_path.iterdir()}
    assert {each["bomFormat"] for each in lists.values()} == {"CycloneDX"}
    names = {name: {part["name"] for part in each.get("components", ())} for name, each in lists.items()}
    assert "ApacheJMeter_core" in names["jmeter.cdx.json"]
    assert "requests" in names["python-client.cdx.json"]
    assert "github.com/nats-io/stan.go" in names["go-nats-queue-worker.cdx.json"]
    assert "github.com/distribution/distribution/v3" in names["go-cluster-registry.cdx.json"]
