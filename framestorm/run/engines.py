"""Scripts before the load: languages that JMeter has no engine for, and values that a cached script keeps."""

import csv
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from framestorm import paths
from framestorm.model import plan as plans
from framestorm.model.units import listed
from framestorm.model.variables import Definitions, Place, names_in
from framestorm.run import jmeter

# The languages whose engines JMeter 5.5 brings, as it names them.
_OF_JMETER = {"groovy", "beanshell", "bsh", "java", "jexl", "jexl2", "jexl3"}
_ENGINES_OF_JMETER = {
    "bsh.engine.BshScriptEngineFactory",
    "org.codehaus.groovy.jsr223.GroovyScriptEngineFactory",
    "org.apache.commons.jexl2.scripting.JexlScriptEngineFactory",
    "org.apache.commons.jexl3.scripting.JexlScriptEngineFactory",
}
# Rows of a language, the class of its engine, and the Maven coordinates that bring it; the first is the simplest.
_KNOWN = Path(__file__).with_name("engines.csv")
_SERVICE = "META-INF/services/javax.script.ScriptEngineFactory"
_FUNCTION = re.compile(r"(?<!\\)\$\{(__\w+)")
# Functions that give the same value all through a run.
_CONSTANT = {"__P", "__property", "__env", "__TestPlanName", "__machineName", "__machineIP"}


def findings(plan_name: str, places: Sequence[Place], defined: Definitions, values: Mapping[str, str]) -> Iterator[str]:
    """Yield sentences on scripts that cannot run, and on those that JMeter keeps with the first value of a variable."""
    engines = None
    for place in places:
        element = place.element
        if not element.tag.startswith("JSR223"):
            continue
        language = plans.field_text(element, "scriptLanguage").strip()
        if language and "${" not in language and language.lower() not in _OF_JMETER:
            engines = _engines(values) if engines is None else engines
            known = _coordinates(language)
            # An engine that is not known here may be of any language.
            if not (any(name in engines for name, _ in known) if known else engines):
                yield f"{plan_name}: {plans.title(element)} is in {language}, {_advice(known)}"
        changing = _changing(place, defined)
        if changing:
            what = f"uses {listed(changing)} in a script that JMeter keeps compiled"
            remedy = 'use vars.get("…") or the parameters, or switch "Cache compiled script" off'
            yield f"{plan_name}: {plans.title(element)} {what}: it keeps the first value; {remedy}"


def _advice(known: Sequence[tuple[str, str]]) -> str:
    brings = next((coordinates for _, coordinates in known if coordinates), None)
    where = (
        f"add {brings} to jmx/pom.xml, or put its jar" if brings else "put the jar of one and the jars that it needs"
    )
    return f"for which JMeter has no engine, so it fails each time: {where} into jmx/lib/, or write it in groovy"


def _changing(place: Place, defined: Definitions) -> list[str]:
    """Return the references in a cached script whose values change during the run."""
    element = place.element
    script = plans.field_text(element, "script")
    if (
        plans.field_text(element, "cacheKey").strip().lower() == "false"
        or plans.field_text(element, "filename").strip()
    ):
        return []
    if plans.field_text(element, "scriptLanguage").lower() in ("beanshell", "bsh", "java"):
        return []  # JMeter does not keep these.
    functions = [f"${{{name}}}" for name in _FUNCTION.findall(script) if name not in _CONSTANT]
    variables = []
    for name in names_in(script):
        origins = defined.names.get(name, [])
        # Not what the script itself may define, nor what is the same all through a run.
        if origins and not any(each.element.tag in ("Arguments", "TestPlan") or each == place for each in origins):
            variables.append(f"${{{name}}}")
    return list(dict.fromkeys([*functions, *variables]))


def _coordinates(language: str) -> list[tuple[str, str]]:
    """Return the classes of engines of a language, each with what brings it."""
    with _KNOWN.open(newline="") as file:
        return [
            (row["class"], row["coordinates"]) for row in csv.DictReader(file) if row["language"] == language.lower()
        ]


def _engines(values: Mapping[str, str]) -> set[str]:
    """Return the classes of the script engines that were added to those of JMeter."""
    jars = [*(paths.JMETER_HOME / "lib").glob("*.jar"), *(paths.JMETER_HOME / "lib" / "ext").glob("*.jar")]
    jars += jmeter.user_jars()
    for _, place in jmeter.class_path(values):
        jars += [place] if place.suffix == ".jar" else place.glob("*.jar")
    classes: set[str] = set()
    for jar in jars:
        try:
            with zipfile.ZipFile(jar) as content:
                text = content.read(_SERVICE).decode(errors="replace") if _SERVICE in content.namelist() else ""
        except (OSError, zipfile.BadZipFile):
            continue
        classes |= {line.partition("#")[0].strip() for line in text.splitlines()} - {""}
    return classes - _ENGINES_OF_JMETER
