"""A Shutdown lets the users of each kind of thread group finish what they send; the plug-in's own interrupt them."""

import subprocess
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.machine import wait_until
from framestorm.probe import stop_jmeter
from framestorm.run.jmeter import QUICK_START, of_run
from tests.jmx.conftest import JMETER_TIMEOUT_S, JMeterRun
from tests.run import foreign

_ROW = "".join(f'<stringProp name="{name}">{of}</stringProp>' for name, of in (("a", 5), ("b", 5), ("c", 600)))
FREE_FORM = foreign.ARRIVALS.replace("ArrivalsThreadGroup", "FreeFormArrivalsThreadGroup").replace(
    '<stringProp name="Unit">', f'<collectionProp name="Schedule"><collectionProp name="row">{_ROW}</collectionProp>'
    '</collectionProp><stringProp name="Unit">'
)  # fmt: skip
OPEN_MODEL = """<OpenModelThreadGroup guiclass="OpenModelThreadGroupGui" testclass="OpenModelThreadGroup" testname="o">
  <elementProp name="ThreadGroup.main_controller" elementType="OpenModelThreadGroupController"/>
  <stringProp name="OpenModelThreadGroup.schedule">rate(5/sec) even_arrivals(600 sec)</stringProp>
  </OpenModelThreadGroup>"""
GROUPS = {
    "plain": foreign.THREADS,
    "concurrency": foreign.CONCURRENCY,
    "arrivals": foreign.ARRIVALS.replace('"Hold">2<', '"Hold">600<'),
    "free form": FREE_FORM,
    "open model": OPEN_MODEL,
}


@pytest.mark.parametrize("is_now", [False, True], ids=["shutdown", "stop now"])
@pytest.mark.parametrize("kind", GROUPS)
def test_users_finish_after_a_shutdown_and_are_interrupted_by_stop(kind: str, is_now: bool, tmp_path: Path) -> None:
    group = GROUPS[kind].replace('"ConcurrencyLimit">1<', '"ConcurrencyLimit">9<')
    script = f"Thread.sleep({3_600_000 if is_now else 1500})"  # which fails if it is interrupted
    plan = foreign.write_plan(tmp_path / "theirs.jmx", foreign.script(script), group=group)
    properties = {**of_run(tmp_path), "jmeterengine.force.system.exit": "true"}
    command = [paths.JAVA_HOME / "bin" / "java", *QUICK_START, "-jar", paths.JMETER_HOME / "bin" / "ApacheJMeter.jar"]
    command += ["-n", "-t", plan, "-j", tmp_path / "jmeter.log", "-q", paths.JMX / "user.properties"]
    command += [f"-J{name}={value}" for name, value in properties.items()]
    log, samples = tmp_path / "jmeter.log", tmp_path / "samples.jtl"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=tmp_path) as jmeter:
        try:
            is_under_way = lambda: samples.exists() and log.read_text().count("Thread started") > 1  # noqa: E731
            assert wait_until(is_under_way, JMETER_TIMEOUT_S)
            stop_jmeter(tmp_path, is_now=is_now)
            # JMeter gives threads that it interrupts only a moment, and then ends by force.
            assert jmeter.wait(JMETER_TIMEOUT_S) == 0 or is_now
        finally:
            jmeter.kill()
    if not is_now:
        run = JMeterRun(tmp_path)
        assert {row["success"] for row in run.rows()} == {"true"}
        assert run.errors() == []
