"""The kit's plans in an unmodified JMeter 5.5 with jmeter-plugins: they open, save, and say what they need to run."""

import os
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from typing import Any

import pytest

from framestorm import paths, probe
from framestorm.paths import JMETER_HOME, JMX
from framestorm.run.jmeter import QUICK_START
from tests.jmx.conftest import JMETER_TIMEOUT_S, JMeterRun
from tests.stand_in import StartServer

PLANS = sorted(JMX.glob("*.jmx"))
SAVE = """
import org.apache.jmeter.save.SaveService
import org.apache.jmeter.util.JMeterUtils

JMeterUtils.setJMeterHome(args[0])
JMeterUtils.loadJMeterProperties(args[0] + "/bin/jmeter.properties")
args.drop(2).each { plan ->
    def tree = SaveService.loadTree(new File(plan))
    new File(args[1], new File(plan).name).withOutputStream { SaveService.saveTree(tree, it) }
}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """JMeter's home without what the kit adds to it."""
    home = tmp_path / "jmeter"
    (home / "bin").mkdir(parents=True)
    (home / "lib" / "ext").mkdir(parents=True)
    for folder in ("bin", "lib", "lib/ext"):
        for path in (JMETER_HOME / folder).iterdir():
            if path.is_file() and path not in {JMETER_HOME / probe.ADDITIONS, JMETER_HOME / probe.PATCHES}:
                # Java names the home by where the jar really is.
                os.link(path, home / folder / path.name)
    converters = home / "bin" / "saveservice.properties"
    text = converters.read_text().replace(
        "_framestorm.TreeConverter=", "_org.apache.jmeter.save.converters.HashTreeConverter="
    )
    converters.unlink()
    converters.write_text(text)
    return home


def meaning(element: ET.Element) -> tuple[Any, ...]:
    """An element of a plan with all in it; JMeter moves some properties of a sampler."""
    below = [meaning(each) for each in element]
    in_order = below if element.tag in ("hashTree", "collectionProp") else sorted(below, key=repr)
    return element.tag, element.attrib, (element.text or "").strip(), in_order


def test_plans_are_saved_as_they_were_opened(home: Path, tmp_path: Path) -> None:
    jars = ":".join(f"{home}/{part}" for part in ("bin/ApacheJMeter.jar", "lib/*", "lib/ext/*"))
    command = [paths.JAVA_HOME / "bin" / "java", "-Djava.awt.headless=true", *QUICK_START, "-cp", jars]
    subprocess.run(
        [*command, "groovy.ui.GroovyMain", "-e", SAVE, home, tmp_path, *PLANS], check=True, timeout=JMETER_TIMEOUT_S
    )
    for plan in PLANS:
        saved, original = (ET.parse(path).getroot() for path in (tmp_path / plan.name, plan))  # noqa: S314
        assert meaning(saved) == meaning(original)


def run(home: Path, plan: str, **properties: object) -> JMeterRun:
    """Run a plan in that JMeter, with its defaults for all that the kit does not need."""
    folder = home.parent
    command = [paths.JAVA_HOME / "bin" / "java", *QUICK_START, "-jar", home / "bin" / "ApacheJMeter.jar"]
    command += ["-n", "-t", JMX / f"{plan}.jmx", "-l", folder / "samples.jtl", "-j", folder / "jmeter.log"]
    properties = {"tree": folder / "tree.xml", "jmeterengine.nongui.port": 0, **properties}
    command += [f"-J{name}={value}" for name, value in properties.items()]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True, timeout=JMETER_TIMEOUT_S)
    return JMeterRun(folder)


@pytest.mark.parametrize("plan", ["requests", "process"])
def test_without_the_jar_one_sample_says_what_to_do(home: Path, plan: str, stand_in: StartServer) -> None:
    server = stand_in({"body": b"ok"})
    done = run(home, plan, url=server.url, command="true", users=2, hold_s=60)
    assert [(row["label"], row["success"]) for row in done.rows()] == [
        ("needs framestorm-plugin.jar in lib/ext of JMeter", "false")
    ]
    assert "No such property: framestorm" in done.rows()[0]["responseMessage"]
    assert server.requests == []


@pytest.mark.parametrize("is_script", [False, True], ids=["exchanged", "script"])
def test_with_the_jar_in_lib_ext_the_plan_runs(home: Path, stand_in: StartServer, is_script: bool) -> None:
    """As a script, too, which it is if nothing has JMeter exchange it: the classes of framestorm.functions do."""
    server = stand_in({"body": b"ok", "content_type": "text/plain"})
    with zipfile.ZipFile(JMETER_HOME / probe.ADDITIONS) as jar, zipfile.ZipFile(home / "lib/ext/f.jar", "w") as own:
        for name in jar.namelist():
            if not (is_script and name.startswith("framestorm/functions/")):
                own.writestr(name, jar.read(name))
    done = run(home, "request-rate", url=server.url, rate_per_s=20, hold_s=1, expect="ok")
    rows = done.rows()
    assert {(row["label"], row["responseMessage"], row["success"]) for row in rows} == {("request", "OK", "true")}
    assert len(rows) == len(server.requests) == 20
    assert done.errors() == []


def test_a_plan_that_needs_no_plug_in_runs_without_any(home: Path, stand_in: StartServer) -> None:
    server = stand_in({"body": b"ok", "content_type": "text/plain"})
    for jar in (home / "lib" / "ext").glob("jmeter-*.jar"):
        jar.unlink()
    os.link(JMETER_HOME / probe.ADDITIONS, home / "lib" / "ext" / "framestorm-plugin.jar")
    done = run(home, "request-rate", url=server.url, rate_per_s=20, hold_s=1, expect="ok")
    assert [row["responseMessage"] for row in done.rows()] == ["OK"] * 20
    assert done.errors() == []


@pytest.mark.parametrize(
    ("plan", "level"), [("requests", "users"), ("process", "users"), ("request-rate", "rate_per_s")]
)
def test_a_load_in_words_is_refused_where_nothing_reads_it(
    home: Path, plan: str, level: str, stand_in: StartServer
) -> None:
    server = stand_in()
    os.link(JMETER_HOME / probe.ADDITIONS, home / "lib" / "ext" / "framestorm-plugin.jar")
    words = "3/s for 2 s" if level == "rate_per_s" else "3 users for 2 s"
    done = run(home, plan, url=server.url, command="true", load=words, hold_s=60)
    (refusal,) = [line for line in done.errors() if "refused" in line]
    assert f"load: ./run.sh reads the words; JMeter alone takes {level}, ramp_s and hold_s" in refusal
    assert server.requests == []
