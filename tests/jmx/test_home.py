"""The assembled JMeter home, and the pom.xml that it is made from."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".local" / "jmeter"


def test_home_is_complete() -> None:
    assert (HOME / "bin" / "ApacheJMeter.jar").is_file()
    assert (HOME / "lib" / "junit").is_dir()
    for name in ("jmeter.properties", "saveservice.properties", "log4j2.xml", "report-template", "templates"):
        assert (HOME / "bin" / name).exists(), name
    extensions = {jar.name for jar in (HOME / "lib" / "ext").glob("*.jar")}
    parts = ("core", "components", "functions", "http", "java", "native")
    assert {f"ApacheJMeter_{part}-5.5.jar" for part in parts} <= extensions
    assert {"jmeter-plugins-casutg-2.10.jar", "jmeter-plugins-cmn-jmeter-0.7.jar"} <= extensions


def test_no_artifact_twice() -> None:
    names = [re.sub(r"-r?\d[\w.]*(-b\d+)?(?=(-data)?\.jar$)", "", jar.name) for jar in HOME.glob("lib/**/*.jar")]
    assert sorted(names) == sorted(set(names))


def test_pom_pins_versions_and_names_no_registry() -> None:
    pom = (ROOT / "jmx" / "pom.xml").read_text()
    assert "<repositor" not in pom
    versions = re.findall(r"<version>([^<]*)</version>", pom)
    assert all(re.fullmatch(r"[\d.]+|\$\{jmeter\.version\}", version) for version in versions), versions
    artifacts = re.findall(r"<(?:dependency|plugin|artifactItem)>", pom)
    assert len(versions) == len(artifacts) + 1  # and the project's own
