"""The classes and functions that a plan needs and JMeter does not have, with the plug-ins that bring them."""

import csv
import re
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model.plan import Plan, enabled_elements, field_text
from framestorm.plain import note
from framestorm.run import jmeter, properties

# Rows of the beginning of class names and what brings these: Maven coordinates, or the address of a jar. The longest
# beginning that fits counts. Of those that are checked, the jar was seen at Maven Central with the class in it; the
# others are from the catalogue of JMeter's Plugins Manager (jmeter-plugins.org).
KNOWN = Path(__file__).with_name("plugins.csv")
_FUNCTION = re.compile(r"(?<!\\)\$\{ *__(\w+) *\(")


def check(plan: Plan, root: ET.Element, values: Mapping[str, str]) -> None:
    """Raise UsageError, which says what brings them, if JMeter lacks classes of the plan: it could not read it.

    root: the plan's, or that of a fragment that it includes; values: of all properties.
    """
    places = [*(paths.JMETER_HOME / "lib" / "ext").glob("*.jar"), *_places(values)]
    for name in _not_in(sorted(_named_classes(root)), places):
        brings = f" ({where})" if (where := source(name)) else ""
        note(
            f"{plan.path.name}: JMeter has no class {name}, which an element names; put its jar{brings} and the jars "
            "that it needs into jmx/lib/"
        )
    for name in sorted(_unknown_functions(root, places)):
        what = f"JMeter has no function __{name}, so it uses the text ${{__{name}(…)}} itself"
        note(f"{plan.path.name}: {what}; put the jar that brings it into jmx/lib/")
    missing = _not_in(sorted(set(_classes(root)) - _aliases()), places)
    if not missing:
        return
    lines = [f"  {name}: {source(name) or 'of a plug-in that is not known here'}" for name in missing]
    raise UsageError(
        f"{plan.path.name}: JMeter has no class for these elements:\n" + "\n".join(lines) + "\n"
        "JMeter needs the class of a disabled element, too: it reads no plan without. Add coordinates to jmx/pom.xml, "
        "or put the plug-in's jar and the jars that it needs into jmx/lib/"
    )


def source(name: str) -> str | None:
    """Return what brings a class: a plug-in's coordinates on Maven Central, or its address; None if it is not known."""
    with KNOWN.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if name.startswith(row["class"])]
    if not rows:
        return None
    row = max(rows, key=lambda row: len(row["class"]))
    return row["source"] if row["is_checked"] == "yes" else f"{row['source']} (by jmeter-plugins.org; not tried)"


def _classes(root: ET.Element) -> Iterator[str]:
    """Yield the classes of a plan's elements, disabled ones too: JMeter reads a plan as a whole."""
    for tree in root.iter("hashTree"):
        for element in tree:
            if element.tag != "hashTree":
                yield element.tag
                yield from (each.get("elementType", element.tag) for each in element.iter("elementProp"))


def _named_classes(root: ET.Element) -> set[str]:
    """The classes of Java Requests and Backend Listeners: JMeter starts without them, and only its log says so."""
    elements = (each for each in enabled_elements(root) if each.tag in ("JavaSampler", "BackendListener"))
    return {name for name in (field_text(each, "classname") for each in elements) if name and "${" not in name}


def _aliases() -> set[str]:
    """Return the names in plans that stand for JMeter's own classes, and former names of these."""
    files = [paths.JMETER_HOME / "bin" / f"{name}.properties" for name in ("saveservice", "upgrade")]
    names = (name for file in files for name in properties.read(file))
    return {alias for name in names for alias in name.partition("|")[0].split(",")}


def _unknown_functions(root: ET.Element, places: Iterable[Path]) -> set[str]:
    """Return the functions that the enabled elements call and no class of these places has."""
    texts = (text for each in enabled_elements(root) for text in (each.get("testname", ""), *each.itertext()))
    unknown = {name for text in texts for name in _FUNCTION.findall(text)}
    for place in sorted(places, key=lambda place: "ApacheJMeter_functions" not in place.name):
        if unknown and place.is_file():
            with _jar(place) as jar:
                for path in jar.namelist():
                    # JMeter looks for functions in packages of this name.
                    if "/functions/" in path and path.endswith(".class"):
                        content = jar.read(path)
                        unknown -= {name for name in unknown if _constant(f"__{name}") in content}
    return unknown


def _constant(text: str) -> bytes:
    """Return a text as it stands in a class file."""
    return b"\1" + len(text).to_bytes(2, "big") + text.encode()


def _places(values: Mapping[str, str]) -> Iterator[Path]:
    """Yield the jars and folders of classes of a user, in jmx/lib/ and where properties say."""
    yield from jmeter.user_jars()
    for _, place in jmeter.class_path(values):
        yield place
        yield from place.glob("*.jar")


@contextmanager
def _jar(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a jar; raises UsageError if it is none."""
    try:
        with zipfile.ZipFile(path) as jar:
            yield jar
    except (OSError, zipfile.BadZipFile) as error:
        raise UsageError(f"{paths.shown(path)} cannot be read as a jar: {error}") from None


def _not_in(names: Iterable[str], places: Iterable[Path]) -> list[str]:
    missing = {name: f"{name.replace('.', '/')}.class" for name in names}
    for place in places:
        if not missing:
            break
        there: set[str] = set()
        if place.is_file():
            with _jar(place) as jar:
                there = set(jar.namelist())
        missing = {n: path for n, path in missing.items() if path not in there and not (place / path).is_file()}
    return list(missing)
