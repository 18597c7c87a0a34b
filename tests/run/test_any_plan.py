"""Plans that nobody made for the kit: run and stopped as plain JMeter runs them."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.run.jmeter import environment, run_command
from framestorm.run.preparation import RunOptions, prepare
from tests.run.foreign import CONCURRENCY, REQUEST, SCRIPT, THREADS, write_plan
from tests.runs import RunSh
from tests.stand_in import StartServer

CLASS = "org/example/functions/Twice.class"
FUNCTION = """package org.example.functions;
import java.util.*;
import org.apache.jmeter.engine.util.CompoundVariable;
import org.apache.jmeter.samplers.*;
public class Twice extends org.apache.jmeter.functions.AbstractFunction {
    private Collection<CompoundVariable> words;
    public String execute(SampleResult last, Sampler current) {
        String word = words.iterator().next().execute();
        return word + word;
    }
    public void setParameters(Collection<CompoundVariable> words) { this.words = words; }
    public String getReferenceKey() { return "__twice"; }
    public List<String> getArgumentDesc() { return List.of("word"); }
}
"""
FIRST = SCRIPT.format(script="sleep(20)")


@pytest.mark.parametrize(
    ("group", "delay_s", "before", "interrupted"),
    [
        (THREADS, 0.05, "", 0),  # for ever
        (THREADS, 90, FIRST, 2),  # blocked in an answer that does not come
        (CONCURRENCY, 0.2, "", 2),  # interrupts its users
    ],
    ids=["endless", "blocked", "concurrency"],
)
def test_one_interrupt_stops_any_plan(
    group: str, delay_s: float, before: str, interrupted: int, run_sh: RunSh, stand_in: StartServer, tmp_path: Path
) -> None:
    server = stand_in({"body": b"ok", "content_type": "text/plain", "delay_s": delay_s})
    plan = write_plan(tmp_path / "theirs.jmx", before + REQUEST.format(url=server.url), group)
    running = run_sh.start("-n", "-t", str(plan))
    running.until(lambda: len(server.received) > (1 if before else 5))
    running.interrupt()
    done = running.ended(4)
    assert run_sh.left_running() == []
    # Every answer that came has its row; a request that was interrupted, maybe before it was sent, is a failure, or
    # without a row if its group did not wait for it.
    outcomes = done.count("label", "success")
    assert outcomes["call", "false"] <= interrupted
    rows = outcomes["call", "true"] + outcomes["call", "false"]
    lost = interrupted if group is CONCURRENCY else 0
    assert len(server.received) - lost <= rows <= len(server.received) + lost
    assert {row["cause"] for row in done.rows("samples.csv") if row["ok"] == "false"} <= {"stopped"}
    record = done.json("run.json")
    assert record["state"] == "stopped"
    assert record["started_ms"] < record["stopping_ms"] < record["ended_ms"] < record["stopping_ms"] + 20_000


def test_java_takes_its_options_from_the_environment(
    run_sh: RunSh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEAP", "-Xms64m -Xmx200m")
    monkeypatch.setenv("GC_ALGO", "-XX:+UseParallelGC")
    monkeypatch.setenv("JVM_ARGS", "-Dof.test=yes")
    script = "log.info('java ' + System.getProperty('of.test') + ' ' + (Runtime.runtime.maxMemory() &gt;&gt; 20))"
    plan = write_plan(tmp_path / "theirs.jmx", SCRIPT.format(script=script), loops=1)
    done = run_sh("-t", str(plan))
    assert "java yes 1" in done.text("jmeter.log") or "java yes 2" in done.text("jmeter.log")
    assert (done.folder / "jmeter" / "index.html").exists()


def test_jars_of_a_user_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A jar in jmx/lib/ with a JMeter function, which the plan calls by its name."""
    (tmp_path / "Twice.groovy").write_text(FUNCTION)
    jars = ":".join(str(path) for path in paths.JMETER_HOME.glob("lib/**/*.jar"))
    compiler = "org.codehaus.groovy.tools.FileSystemCompiler"
    words = [paths.JAVA_HOME / "bin" / "java", "-cp", jars, compiler, "-d", tmp_path, tmp_path / "Twice.groovy"]
    subprocess.run(words, check=True)
    monkeypatch.setattr(paths, "JARS", tmp_path / "lib")
    paths.JARS.mkdir()
    with zipfile.ZipFile(paths.JARS / "twice.jar", "w") as jar:
        jar.write(tmp_path / CLASS, CLASS)
    plan = write_plan(tmp_path / "theirs.jmx", SCRIPT.format(script="log.info('it is ${__twice(ab)}')"), loops=1)
    prepared = prepare(RunOptions(plan), tmp_path / "run")
    command = run_command(plan, prepared.jmeter_values, tmp_path, 0)
    subprocess.run(command, env=environment(), check=True, capture_output=True)
    assert "it is abab" in (tmp_path / "jmeter.log").read_text()


def test_scripts_know_the_class_path_of_their_plan(run_sh: RunSh, tmp_path: Path) -> None:
    jar = next(paths.TEST_JARS.glob("h2-*.jar"))
    plan = write_plan(tmp_path / "theirs.jmx", SCRIPT.format(script="org.h2.Driver.load()"), loops=1)
    field = f'<stringProp name="TestPlan.user_define_classpath">{jar}</stringProp>'
    plan.write_text(plan.read_text().replace("</TestPlan>", f"{field}</TestPlan>"))
    assert run_sh("-t", str(plan)).count("success") == {("true",): 2}


def test_sub_results_are_named_as_in_plain_jmeter(run_sh: RunSh, tmp_path: Path) -> None:
    part = "org.apache.jmeter.samplers.SampleResult.createTestSample(5).with { successful = true; it }"
    script = f"2.times {{ SampleResult.addSubResult({part}) }}"
    plan = write_plan(tmp_path / "theirs.jmx", SCRIPT.format(script=script), loops=1)
    assert set(run_sh("-t", str(plan)).count("label")) == {("script",), ("script-0",), ("script-1",)}


def test_groovy_scripts_have_what_java_s_scripting_interface_gives_them(run_sh: RunSh, tmp_path: Path) -> None:
    """The kit runs them by Groovy itself; a wrong one fails as ever."""
    script = """
        def twice(x) { x * 2 }
        total = binding.hasVariable('total') ? total : twice(1)
        plus = { it + total }
        out.println('printed'); println('printed'); OUT.println('printed')
        assert context.getAttribute('vars').is(vars) &amp;&amp; ctx.variables.is(vars) &amp;&amp; sampler.name == Label
        SampleResult.responseMessage = [plus(1), log.name.tokenize('.').last(), args.length, Parameters].join(' ')
        if (vars.get('again')) { notThere() }
        vars.put('again', 'yes')
        'done'
    """
    group = THREADS.replace('num_threads">2', 'num_threads">1')
    plan = write_plan(tmp_path / "theirs.jmx", SCRIPT.format(script=script), group, loops=2)
    run = run_sh("-t", str(plan), "--fail-if", "errors > 50 %")
    (first, second) = run.rows()
    assert (first["success"], first["responseMessage"]) == ("true", "3 script 0 ")
    assert second["success"] == "false" and "notThere()" in second["responseMessage"]
