import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from framestorm import paths, probe
from framestorm.model import plan as plans
from framestorm.model.sample import COMMON, SCHEMA
from framestorm.run.dashboard import make_dashboard
from framestorm.run.jmeter import QUICK_START, of_run
from tests.runs import RunFiles

JMETER_TIMEOUT_S = 120
# Java takes the jars of a folder in any order; the patched classes are in two of them.
OWN_JARS = ("bin/ApacheJMeter.jar", probe.PATCHES)
StartPlan = Callable[..., subprocess.Popen[bytes]]


def groovy(*words: str | Path, options: Sequence[str] = ()) -> list[str | Path]:
    """The command line that runs a Groovy script, a file or `-e` and its text, with JMeter's libraries."""
    jars = ":".join(f"{paths.JMETER_HOME}/{part}" for part in (*OWN_JARS, "lib/*", "lib/ext/*"))
    java = [paths.JAVA_HOME / "bin" / "java", "-Djava.awt.headless=true", *QUICK_START, *options, "-cp", jars]
    return ["timeout", "60", *java, "groovy.ui.GroovyMain", *words]


class JMeterRun(RunFiles):
    """What a JMeter run left in its folder."""

    def sample_lines(self) -> list[dict[str, Any]]:
        """The lines of all samples in the tree but users, each as client/sample.json declares it."""
        elements = [element for element in self.tree().iter() if element.tag in ("sample", "httpSample")]
        lines = [json.loads(e.findtext("responseData") or "") for e in elements if e.get("lb") != "user"]
        schema = Draft202012Validator(SCHEMA)
        for line in lines:
            schema.validate(line)
            assert COMMON.keys() <= line.keys()
        return lines

    def errors(self) -> list[str]:
        return [line for line in self.text("jmeter.log").splitlines() if " ERROR " in line]

    def dashboard(self) -> dict[str, dict[str, float]]:
        """The statistics by label of JMeter's dashboard of samples.jtl."""
        make_dashboard(self.folder)
        statistics: dict[str, dict[str, float]] = self.json("jmeter/statistics.json")
        return statistics


RunPlan = Callable[..., JMeterRun]


@pytest.fixture
def start_plan(tmp_path: Path) -> Iterator[StartPlan]:
    """Start a plan without a window, its files in tmp_path, properties as keywords."""
    started: list[subprocess.Popen[bytes]] = []

    def start(plan: str, **properties: object) -> subprocess.Popen[bytes]:
        path = paths.JMX / f"{plan}.jmx"
        properties = {
            "python": paths.CLIENT_PYTHON,
            "client_dir": paths.CLIENT,
            "video": paths.SAMPLE_VIDEO,
            "cache": tmp_path / "frames",
            "journal": tmp_path / "journal.jsonl",
            "client_log": tmp_path / "client.log",
            "tree": tmp_path / "tree.xml",
            "stop": tmp_path / "stop",
            "sample_variables": ",".join(plans.read(path).sample_variables),
            # JMeter sets the clock of its samples anew at this interval, by some milliseconds on a busy machine.
            "sampleresult.nanoThreadSleep": 600_000,
            **of_run(tmp_path),
            **properties,
        }
        command = [paths.JAVA_HOME / "bin" / "java", "-Xmx512m", *QUICK_START, "-jar"]
        command += [paths.JMETER_HOME / "bin" / "ApacheJMeter.jar", "-n", "-t", path]
        command += ["-q", paths.JMX / "user.properties", "-q", paths.JMX / "kit.properties"]
        command += ["-j", tmp_path / "jmeter.log"]
        command += [f"-J{name}={value}" for name, value in properties.items()]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=tmp_path))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def run_plan(tmp_path: Path, start_plan: StartPlan) -> RunPlan:
    def run(plan: str, **properties: object) -> JMeterRun:
        assert start_plan(plan, **properties).wait(JMETER_TIMEOUT_S) == 0
        return JMeterRun(tmp_path)

    return run
