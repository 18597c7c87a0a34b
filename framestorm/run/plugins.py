"""The classes that a plan needs and JMeter does not have, with the plug-ins that bring them."""

import csv
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model.plan import Plan
from framestorm.run import jmeter, properties

# Rows of the beginning of class names and Maven coordinates; the longest beginning that fits counts.
KNOWN = Path(__file__).with_name("plugins.csv")


def check(plan: Plan, root: ET.Element, jmeter_values: Mapping[str, str]) -> None:
    """Raise UsageError, which says what brings them, if JMeter lacks classes of the plan: it could not read it.

    root: the plan's, or that of a fragment that it includes.
    """
    missing = sorted(set(_classes(root)) - _aliases())
    missing = _not_in_jars(missing, [*(paths.JMETER_HOME / "lib" / "ext").glob("*.jar"), *_jars(jmeter_values)])
    if not missing:
        return
    known = [(name, coordinates(name)) for name in missing]
    lines = [f"  {name}: {each or 'of a plug-in that is not known here'}" for name, each in known]
    raise UsageError(
        f"{plan.path.name}: JMeter has no class for these elements:\n" + "\n".join(lines) + "\n"
        "Add the coordinates to jmx/pom.xml, or put the plug-in's jar and the jars that it needs into jmx/lib/"
    )


def coordinates(name: str) -> str | None:
    """The plug-in on Maven Central that brings a class; None if it is not known."""
    with KNOWN.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if name.startswith(row["class"])]
    return max(rows, key=lambda row: len(row["class"]))["coordinates"] if rows else None


def _classes(root: ET.Element) -> Iterator[str]:
    """The classes of a plan's elements, disabled ones too: JMeter reads a plan as a whole."""
    for tree in root.iter("hashTree"):
        for element in tree:
            if element.tag != "hashTree":
                yield element.get("testclass") or element.tag
                yield from (each.get("elementType", element.tag) for each in element.iter("elementProp"))


def _aliases() -> set[str]:
    """The names in plans that stand for JMeter's own classes, and former names of these."""
    files = [paths.JMETER_HOME / "bin" / f"{name}.properties" for name in ("saveservice", "upgrade")]
    names = (name for file in files for name in properties.read(file))
    return {alias for name in names for alias in name.partition("|")[0].split(",")}


def _jars(jmeter_values: Mapping[str, str]) -> Iterator[Path]:
    """The jars of a user, in jmx/lib/ and where properties say."""
    yield from jmeter.user_jars()
    for name, separator in (("search_paths", ";"), ("user.classpath", ":")):
        for word in filter(None, jmeter_values.get(name, "").split(separator)):
            yield from Path(word).glob("*.jar") if Path(word).is_dir() else [Path(word)]


def _not_in_jars(names: Iterable[str], jars: Iterable[Path]) -> list[str]:
    missing = list(names)
    for jar in jars:
        if not missing:
            break
        try:
            with zipfile.ZipFile(jar) as archive:
                there = set(archive.namelist())
        except (OSError, zipfile.BadZipFile) as error:
            raise UsageError(f"{paths.shown(jar)} cannot be read as a jar: {error}") from None
        missing = [name for name in missing if f"{name.replace('.', '/')}.class" not in there]
    return missing
