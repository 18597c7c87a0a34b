"""Plans that nobody made for the kit: run and stopped as plain JMeter runs them."""

import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.run.jmeter import environment, run_command
from framestorm.run.options import What
from framestorm.run.preparation import prepare
from tests.run.foreign import ARRIVALS, CONCURRENCY, REQUEST, THREADS, jar_with_function, script, write_plan
from tests.runs import RunSh
from tests.stand_in import StartServer

FIRST = script("sleep(20)")


@pytest.mark.parametrize(
    ("group", "delay_s", "before", "interrupted"),
    [
        (THREADS, 0.05, "", 0),  # for ever
        (THREADS, 90, FIRST, 2),  # blocked in an answer that does not come
        (CONCURRENCY, 0.2, "", 0),
        (CONCURRENCY, 90, FIRST, 2),
    ],
    ids=["endless", "blocked", "concurrency", "blocked concurrency"],
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
    # Every answer that came has its row; a request that was interrupted, maybe before it was sent, is a failure.
    outcomes = done.count("label", "success")
    assert outcomes["call", "false"] <= interrupted
    rows = outcomes["call", "true"] + outcomes["call", "false"]
    assert rows == len(server.received)
    assert {row["cause"] for row in done.rows("samples.csv") if row["ok"] == "false"} <= {"stopped"}
    record = done.json("run.json")
    assert record["state"] == "stopped"
    assert record["started_ms"] < record["stopping_ms"] < record["ended_ms"] < record["stopping_ms"] + 20_000


def test_arrivals_that_a_plug_in_dropped_are_counted(run_sh: RunSh, tmp_path: Path) -> None:
    """Though each of the others makes two samples, which are more than the arrivals that were due."""
    samples = script("Thread.sleep(60)", "first") + script("Thread.sleep(60)", "second")
    done = run_sh("-t", str(write_plan(tmp_path / "arrivals.jmx", samples, group=ARRIVALS)), status=3)
    summary = done.json("summary.json")
    facts, n = summary["facts"], summary["labels"]["first"]["n"]
    assert 0 < facts["dropped"] == facts["arrivals"] - n
    assert summary["labels"]["all"]["n"] == 2 * n
    assert [each["text"] for each in summary["criteria"] if each["state"] == "failed"] == ["overload"]
    assert summary["warnings"][1].startswith(f"{facts['dropped']} of {facts['arrivals']} arrivals")


def test_jars_of_a_user_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A jar in jmx/lib/ with a JMeter function, which the plan calls by its name."""
    monkeypatch.setattr(paths, "JARS", tmp_path / "lib")
    paths.JARS.mkdir()
    jar_with_function(paths.JARS / "twice.jar", tmp_path)
    plan = write_plan(tmp_path / "theirs.jmx", script("log.info('it is ${__twice(ab)}')"), loops=1)
    prepared = prepare(What(plan), tmp_path / "run")
    command = run_command(plan, prepared.settings.of_jmeter, tmp_path)
    subprocess.run(command, env=environment(), check=True, capture_output=True)
    assert "it is abab" in (tmp_path / "jmeter.log").read_text()


TIMEOUT = """<SampleTimeout guiclass="SampleTimeoutGui" testclass="SampleTimeout" testname="timeout" enabled="true">
  <stringProp name="InterruptTimer.timeout">400</stringProp></SampleTimeout><hashTree/>"""
PARALLEL = """<com.blazemeter.jmeter.controller.ParallelSampler testname="side by side" enabled="true"
  guiclass="com.blazemeter.jmeter.controller.ParallelControllerGui"
  testclass="com.blazemeter.jmeter.controller.ParallelSampler">
  <intProp name="MAX_THREAD_NUMBER">2</intProp><boolProp name="PARENT_SAMPLE">true</boolProp>
  <boolProp name="LIMIT_MAX_THREAD_NUMBER">false</boolProp></com.blazemeter.jmeter.controller.ParallelSampler>
  <hashTree>{elements}</hashTree>"""
LISTENER = """<ResultCollector guiclass="SimpleDataWriter" testclass="ResultCollector" testname="writer" enabled="true">
  <objProp><name>saveConfig</name><value class="SampleSaveConfiguration"><label>true</label>
  <subresults>true</subresults><xml>true</xml></value></objProp>
  <stringProp name="filename">{path}</stringProp></ResultCollector><hashTree/>"""


def test_what_the_elements_of_a_plan_make_of_its_samples(run_sh: RunSh, stand_in: StartServer, tmp_path: Path) -> None:
    """A Sample Timeout, a Parallel Controller that is a sample, an answer that JMeter cannot read, an XML listener."""
    server = stand_in({"delay_s": 5}, {"body": b"ok"}, {"status": 503}, {"content_type": 'text/html; charset="'})

    def request(name: str, below: str = "") -> str:
        text = REQUEST.format(url=server.url).replace('"call"', f'"{name}"')
        return text.replace("<hashTree/>", f"<hashTree>{below}</hashTree>")

    elements = request("slow", TIMEOUT) + PARALLEL.format(elements=request("one") + request("one")) + request("broken")
    elements += LISTENER.format(path=tmp_path / "theirs.xml")
    group = THREADS.replace('num_threads">2', 'num_threads">1')
    plan = write_plan(tmp_path / "theirs.jmx", elements, group, loops=1)
    done = run_sh("-t", str(plan), status=3)
    causes = sorted((row["label"], row["cause"], row["censored"]) for row in done.rows("samples.csv"))
    assert causes == [
        ("broken", "not-http", "false"), ("one", "", "false"), ("one", "status-503", "false"),
        ("side by side", "failed-sample", "false"), ("slow", "timeout", "true"),
    ]  # fmt: skip
    labels = done.json("summary.json")["labels"]
    kinds = {name: (label["kind"], label["n"]) for name, label in labels.items()}
    assert kinds["side by side"] == ("transaction", 1)
    assert (kinds["one"], kinds["all"]) == (("sampler", 2), ("sampler", 4))
    samples = ET.parse(tmp_path / "theirs.xml").getroot().iter()  # noqa: S314 - JMeter has just written it
    attributes = [sample.keys() for sample in samples if sample.get("lb")]
    assert len(attributes) == 5 and not any("sub" in name for names in attributes for name in names)


OWN_TRACE = "0af7651916cd43dd8448eb211c80319c"
MANAGER = """<HeaderManager guiclass="HeaderPanel" testclass="HeaderManager" testname="headers" enabled="true">
  <collectionProp name="HeaderManager.headers"><elementProp name="" elementType="Header">
  <stringProp name="Header.name">{name}</stringProp><stringProp name="Header.value">{value}</stringProp>
  </elementProp></collectionProp></HeaderManager><hashTree/>"""
TRANSACTION = """<TransactionController guiclass="TransactionControllerGui" testclass="TransactionController"
  testname="buy" enabled="true"><boolProp name="TransactionController.parent">false</boolProp>
  </TransactionController><hashTree>{elements}</hashTree>"""


def test_each_request_of_a_plan_has_a_trace_id(run_sh: RunSh, stand_in: StartServer, tmp_path: Path) -> None:
    """But a transaction, a script, and a request whose own header says another one; other headers stay."""
    server = stand_in({"body": b"ok"}, {"status": 503})
    call = REQUEST.format(url=server.url)
    manager = MANAGER.format(name="Traceparent", value=f"00-{OWN_TRACE}-b7ad6b7169203331-00")
    own = call.replace('"call"', '"own"').replace("<hashTree/>", f"<hashTree>{manager}</hashTree>")
    elements = MANAGER.format(name="X-Shop", value="7") + TRANSACTION.format(elements=call) + own + script("1")
    group = THREADS.replace('num_threads">2', 'num_threads">1')
    run = run_sh("-t", str(write_plan(tmp_path / "theirs.jmx", elements, group, loops=3)), "--trace", status=3)
    sent = [request.headers["traceparent"].split("-")[1] for request in server.received]
    assert sent[1::2] == [OWN_TRACE] * 3 and len(set(sent)) == 4
    assert {request.headers["X-Shop"] for request in server.received} == {"7"}
    ids = {label: [row["trace_id"] for row in run.rows("samples.csv") if row["label"] == label]
           for label in ("call", "own", "script", "buy")}  # fmt: skip
    assert ids == {"call": sent[::2], "own": sent[1::2], "script": [""] * 3, "buy": [""] * 3}
    slowest = run.json("summary.json")["labels"]["call"]["traces"]["slowest"]
    assert {each["trace_id"] for each in slowest} == set(sent[::2])


# The second time it fails.
GROOVY = """
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
PARTS = """
    def part = { org.apache.jmeter.samplers.SampleResult.createTestSample(5).with { successful = true; it } }
    2.times { SampleResult.addSubResult(part()) }
"""


def test_scripts_run_as_in_plain_jmeter(run_sh: RunSh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They get Java's options of the environment, the class path of their plan, and the variables of JSR 223."""
    monkeypatch.setenv("HEAP", "-Xms64m -Xmx200m")
    monkeypatch.setenv("GC_ALGO", "-XX:+UseParallelGC")
    monkeypatch.setenv("JVM_ARGS", "-Dof.test=yes")
    of_java = "log.info('java ' + System.getProperty('of.test') + ' ' + (Runtime.runtime.maxMemory() &gt;&gt; 20))"
    texts = {"java": of_java, "class path": "org.h2.Driver.load()", "parts": PARTS, "script": GROOVY}
    texts["stop"] = "if (vars.iteration == 2) ctx.engine.askThreadsToStop()"
    group = THREADS.replace('num_threads">2', 'num_threads">1')
    elements = "".join(script(text, name) for name, text in texts.items())
    plan = write_plan(tmp_path / "theirs.jmx", elements, group, loops=2)
    jar = next(paths.TEST_JARS.glob("h2-*.jar"))
    field = f'<stringProp name="TestPlan.user_define_classpath">{jar}</stringProp>'
    plan.write_text(plan.read_text().replace("</TestPlan>", f"{field}</TestPlan>"))
    run = run_sh("-t", str(plan), "--fail-if", "errors > 50 %", dashboard=True)
    (first, second) = (row for row in run.rows() if row["label"] == "script")
    assert (first["success"], first["responseMessage"]) == ("true", "3 script 0 ")
    assert second["success"] == "false" and "notThere()" in second["responseMessage"]
    others = {("java", "true"): 2, ("class path", "true"): 2, ("stop", "true"): 2}
    others |= {(name, "true"): 2 for name in ("parts", "parts-0", "parts-1")}
    assert run.count("label", "success") == {**others, ("script", "true"): 1, ("script", "false"): 1}
    assert "java yes 1" in run.text("jmeter.log") or "java yes 2" in run.text("jmeter.log")
    assert (run.folder / "jmeter" / "index.html").exists()
    assert run.json("summary.json")["facts"]["stopped_by"] == "thread threads 1-1"
