"""The assembled JMeter home, and the pom.xml that it is made from."""

import re

from framestorm.paths import JMETER_HOME as HOME
from framestorm.paths import JMX


def test_no_artifact_twice() -> None:
    names = [re.sub(r"-r?\d[\w.]*(-b\d+)?(?=(-data)?\.jar$)", "", jar.name) for jar in HOME.glob("lib/**/*.jar")]
    assert sorted(names) == sorted(set(names))


def test_pom_pins_versions_and_names_no_registry() -> None:
    pom = (JMX / "pom.xml").read_text()
    assert "<repositor" not in pom
    versions = re.findall(r"<version>([^<]*)</version>", pom)
    assert all(re.fullmatch(r"[\d.]+|\$\{jmeter\.version\}", version) for version in versions), versions
    artifacts = re.findall(r"<(?:dependency|plugin|artifactItem)>", pom)
    assert len(versions) == len(artifacts) + 1  # and the project's own
