"""What JMeter's log says of elements that failed, which no row of samples.jtl tells."""

from pathlib import Path

from framestorm.results.jmeter_log import read_log

LOG = r"""2026-11-25 11:13:15,601 ERROR o.a.j.v.b.i.HttpMetricsSender: failed to send data to influxDB server.
java.net.ConnectException: Connection refused
	at sun.nio.ch.Net.pollConnect(Native Method) ~[?:?]
2026-11-25 11:13:15,679 ERROR o.a.j.m.JSR223PreProcessor: Problem in JSR223 script, read: id
javax.script.ScriptException: java.io.FileNotFoundException: nowhere (No such file or directory)
	at org.codehaus.groovy.jsr223.GroovyScriptEngineImpl.eval(GroovyScriptEngineImpl.java:320) ~[groovy.jar:3.0.11]
Caused by: java.io.FileNotFoundException: nowhere (No such file or directory)
2026-11-25 11:13:15,699 ERROR o.a.j.u.BeanShellInterpreter: Error invoking bsh method: eval
2026-11-25 11:13:15,700 WARN o.a.j.m.BeanShellPreProcessor: Problem in BeanShell script. x.JMeterException: Error: eval
2026-11-25 11:13:15,701 ERROR o.a.j.m.JSR223PreProcessor: Problem in JSR223 script, read: id
javax.script.ScriptException: java.io.FileNotFoundException: nowhere (No such file or directory)
2026-11-25 11:13:15,816 ERROR o.a.j.e.j.j.JSONPostProcessor: Error processing JSON content in find, message: No token
2026-11-25 11:13:16,566 ERROR o.a.j.u.XPathUtil: Type=Val=false Tol=false. org.xml.sax.SAXParseException
2026-11-25 11:13:16,566 WARN o.a.j.e.XPathExtractor: SAXException while processing (///). Content is not allowed
2026-11-25 11:13:17,768 ERROR o.a.j.c.IfController: is ready: error while processing [1 +]
org.mozilla.javascript.EvaluatorException: Unexpected end of file (<cmd>#1)
2026-11-25 11:13:18,085 WARN o.a.j.f.Groovy: Error running groovy script
javax.script.ScriptException: groovy.lang.MissingPropertyException: No such property: nope for class: Script5
2026-11-25 11:13:18,165 ERROR o.a.j.t.JMeterThread: Error while processing sampler: 'inner'.
java.lang.RuntimeException: Attempting to reset the thread context
2026-11-25 11:13:18,165 ERROR o.a.j.m.J.my script: no token in the answer
2026-11-25 11:13:18,166 ERROR o.a.j.s.SampleResult: sampleEnd called twice
java.lang.Throwable: Invalid call sequence
	at org.apache.jmeter.samplers.SampleResult.sampleEnd(SampleResult.java:1147) ~[framestorm.jar:5.5]
2026-11-25 11:13:18,200 WARN o.a.j.m.SampleTimeout: Call Done interrupting x took 3
2026-11-25 11:13:18,200 WARN o.a.j.t.JMeterThread: The delay timer was interrupted - probably did not wait as long as
2026-11-25 11:13:18,200 ERROR o.a.j.f.LogFunction: users 1-1 : said by __log
2026-11-25 11:13:18,200 WARN o.a.j.e.StandardJMeterEngine: Error encountered during shutdown of x
2026-11-25 11:13:18,200 WARN f.Scripts: user failed: 1 lines of its client cannot be used
2026-11-25 11:13:18,300 WARN o.a.j.c.CSVDataSet: Could not translate shareMode=one id using Locale: en
2026-11-25 11:13:19,000 INFO o.a.j.m.JSR223PreProcessor: Problem in JSR223 script, of no error
"""


def test_errors_are_counted_by_element(tmp_path: Path) -> None:
    (tmp_path / "jmeter.log").write_text(LOG)
    (tmp_path / "jmeter-server-one.log").write_text(LOG)  # of a slave
    found = read_log(tmp_path).element_errors
    assert {each.element: each.n for each in found} == {
        "JSR223PreProcessor 'read: id'": 4,
        "BackendListener (HttpMetricsSender)": 2,
        "BeanShellPreProcessor": 2,
        "JSONPostProcessor 'find'": 2,
        "XPathExtractor": 2,
        "IfController 'is ready'": 2,
        "function groovy": 2,
        "sampler 'inner'": 2,
        "script 'my script'": 2,
        "SampleResult": 2,
    }
    first = found[0]
    assert first.message == "java.io.FileNotFoundException: nowhere (No such file or directory)"
    assert first.consequence == "requests were sent all the same"
    messages = {each.element: each.message for each in found}
    assert messages["XPathExtractor"].startswith("SAXException while processing")
    assert messages["IfController 'is ready'"].startswith("org.mozilla.javascript.EvaluatorException: Unexpected end")
    assert messages["BeanShellPreProcessor"] == "Error: eval"
    assert messages["SampleResult"] == "sampleEnd called twice"


def test_many_elements_are_not_all_kept(tmp_path: Path) -> None:
    line = "2026-11-25 11:13:15,679 ERROR o.a.j.m.JSR223PreProcessor: Problem in JSR223 script, {}\n"
    (tmp_path / "jmeter.log").write_text("".join(map(line.format, range(300))) + line.format(7))
    found = read_log(tmp_path).element_errors
    assert len(found) == 100 and found[0].element == "JSR223PreProcessor '7'" and found[0].n == 2


def test_the_end_of_the_engine_is_told_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "jmeter.log").write_text(
        "2026-11-25 11:14:33,231 ERROR o.a.j.JMeter: Uncaught exception in thread Thread[StandardJMeterEngine,5,main]\n"
        "java.lang.IndexOutOfBoundsException: Index 1 out of bounds for length 1\n\tat java.util.ArrayList.get(A:4)\n"
        "2026-11-25 11:14:33,300 ERROR o.a.j.t.JMeterThread: Test failed!\njava.lang.NullPointerException: no loop\n"
    )
    log = read_log(tmp_path)
    assert log.ended_engine == "java.lang.IndexOutOfBoundsException: Index 1 out of bounds for length 1"
    assert dict(log.ended_threads) == {"java.lang.NullPointerException": 1} and log.element_errors == []
