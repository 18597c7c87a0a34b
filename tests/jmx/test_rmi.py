"""Who may connect to the controller of a run over slaves, and what it reads."""

import csv
import re
import socket
import subprocess
from pathlib import Path

from framestorm import paths
from framestorm.run import jmeter
from tests.jmx.conftest import groovy

SETTINGS = paths.JMETER_HOME / "bin" / "jmeter.properties"

LISTEN = """
org.apache.jmeter.util.JMeterUtils.loadJMeterProperties(args[0])
org.apache.jmeter.util.JMeterUtils.setProperty('server.rmi.ssl.disable', 'true')
def listening = org.apache.jmeter.rmi.RmiUtils.createServerSocketFactory().createServerSocket(0)
println listening.localPort
println listening.accept().inetAddress.hostAddress
"""


READ = """
org.apache.jmeter.util.JMeterUtils.loadJMeterProperties(args[0])
def result = new org.apache.jmeter.protocol.http.sampler.HTTPSampleResult(1L)
result.URL = new URL('http://127.0.0.1/')
result.addSubResult(org.apache.jmeter.samplers.SampleResult.createTestSample(1L))
def event = new org.apache.jmeter.samplers.SampleEvent(result, 'group')
def code = new org.codehaus.groovy.runtime.MethodClosure('', 'execute')
def lost = new java.rmi.RemoteException('lost', new IOException('reset'))
def nested = { int levels, inner -> levels.times { inner = [inner] }; inner }
def written = { sent ->
    def bytes = new ByteArrayOutputStream()
    new ObjectOutputStream(bytes).writeObject(sent)
    bytes.toByteArray()
}
byte[] huge = written(new Object[0])
huge[-4] = 0x7f // the first byte of its length
def other = new javax.management.BadAttributeValueExpException('')
def objects = [event, [event], nested(40, event), lost, code, [code], other, nested(60, event)]
for (sent in [*objects.collect(written), huge]) {
    try {
        println new ObjectInputStream(new ByteArrayInputStream(sent)).readObject().getClass().simpleName
    } catch (InvalidClassException refused) {
        println refused.message
    }
}
"""


SEND = """
org.apache.jmeter.util.JMeterUtils.loadJMeterProperties(args[0])
def calls = new java.util.concurrent.LinkedBlockingQueue()
def mayReturn = new java.util.concurrent.Semaphore(0)
def gone = new java.rmi.RemoteException('gone', new ConnectException('refused'))
def failure = { names -> Eval.xy(names, gone, args[1]) }
def controller = [processBatch: { batch ->
    def names = batch.collect { it.threadGroup }.sort()
    calls.add(names)
    mayReturn.acquireUninterruptibly()
    def error = failure(names)
    if (error) throw error
}] as org.apache.jmeter.samplers.RemoteSampleListener
def sender = new framestorm.GroupSender(controller)
def ended = new java.util.concurrent.LinkedBlockingQueue()
def start = { name -> Thread.start {
    String how = 'goes on'
    try {
        sender.sampleOccurred(new org.apache.jmeter.samplers.SampleEvent(null, name))
    } catch (org.apache.jorphan.util.JMeterError error) {
        how = error.message
    }
    ended.add("$name $how")
} }
def waits = { Thread.State state = it.state; state == Thread.State.WAITING }
start('a')
println calls.take()
def others = ['b', 'c', 'd'].collect(start)
while (!others.every(waits)) Thread.onSpinWait()
others[0].interrupt()
println([calls.size(), ended.size()])
mayReturn.release()
println ended.take()
println calls.take()
println ended.size()
mayReturn.release(4)
println((1..3).collect { ended.take() }.sort())
println calls.sort()
"""


# Two slaves, each with its clone of the tree, as JMeter's controller has them; the second outlives the first.
TWO_SLAVES = """
import org.apache.jmeter.samplers.*
import org.apache.jmeter.testelement.TestStateListener
org.apache.jmeter.util.JMeterUtils.setJMeterHome(args[2])
org.apache.jmeter.util.JMeterUtils.loadJMeterProperties(args[0])
org.apache.jmeter.util.JMeterUtils.setProperty('framestorm.samples', 'samples.jtl')
def tree = org.apache.jmeter.save.SaveService.loadTree(new File(args[1]))
def clone = {
    def cloner = new org.apache.jorphan.collections.HashTree[1]
    def copy = new org.apache.jmeter.engine.TreeCloner(false)
    tree.traverse(copy)
    copy.clonedTree
}
def slaves = ['a', 'b'].collectEntries { [it, clone()] }
def listeners = { type, test ->
    def found = new org.apache.jorphan.collections.SearchByClass(type)
    test.traverse(found)
    found.searchResults
}
// What samples go to: those directly below the test plan.
def hearing = { test -> test.getTree(test.list()[0]).list().findAll { it instanceof SampleListener } }
println hearing(slaves.a)*.name
def send = { slave, label ->
    def result = SampleResult.createTestSample(1L)
    result.sampleLabel = label
    result.successful = label != 'second'
    hearing(slaves[slave])*.sampleOccurred(new SampleEvent(result, 'users'))
}
slaves.each { slave, test -> listeners(TestStateListener, test)*.testStarted(slave) }
send('a', 'first')
send('b', 'second')
listeners(TestStateListener, slaves.a)*.testEnded('a')
send('b', 'third')
listeners(TestStateListener, slaves.b)*.testEnded('b')
"""
LISTENER = """
<ResultCollector testclass="ResultCollector" guiclass="x" testname="{}" enabled="true">
<boolProp name="ResultCollector.error_logging">{}</boolProp>{}
<stringProp name="filename">{}</stringProp></ResultCollector>"""
FORM = """<objProp><name>saveConfig</name><value class="SampleSaveConfiguration"><label>true</label><xml>true</xml>
</value></objProp>"""


def lines_of_sender(failure: str) -> list[str]:
    """What is seen of four threads; failure: that of a call, in Groovy, with its samples `x`."""
    done = subprocess.run(groovy("-e", SEND, SETTINGS, failure), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_threads_go_on_when_the_controller_has_their_samples_which_go_in_one_call() -> None:
    assert lines_of_sender("null") == [
        "[a]", "[0, 0]", "a goes on", "[b, c, d]", "0", "[b goes on, c goes on, d goes on]", "[]"
    ]  # fmt: skip


def test_every_thread_hears_that_its_controller_is_gone() -> None:
    lines = lines_of_sender("y")
    lost = "{} Could not return sample"
    assert lines[2] == lost.format("a")
    assert lines[5:] == [f"[{', '.join(map(lost.format, 'bcd'))}]", "[]"]


def test_a_sample_that_cannot_be_read_takes_no_other_with_it() -> None:
    unread = "new java.rmi.ServerException('', new java.rmi.UnmarshalException(''))"
    assert lines_of_sender(f"'c' in x ? {unread} : null")[-2:] == [
        "[b goes on, c goes on, d goes on]", "[[b], [c], [d]]"
    ]  # fmt: skip
    # What the controller read may be in its files already.
    assert lines_of_sender("new java.rmi.ServerException('', new IOException())")[-1] == "[]"


def test_a_controller_makes_samples_of_what_it_is_sent_and_nothing_else() -> None:
    command = groovy("-e", READ, SETTINGS, options=jmeter.CONTROLLING)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[:4] == ["SampleEvent", "ArrayList", "ArrayList", "RemoteException"]
    assert lines[4:] == ["filter status: REJECTED"] * 5


def test_a_controller_hears_its_slaves_alone_and_at_one_address() -> None:
    options = ("-Dframestorm.slaves=127.0.0.2,127.0.0.3", "-Djava.rmi.server.hostname=127.0.0.1")
    command = groovy("-e", LISTEN, SETTINGS, options=options)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        port = int(controller.stdout.readline())
        with socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.9", 0)) as outsider:
            assert outsider.recv(1) == b""
        with socket.socket() as elsewhere:
            assert elsewhere.connect_ex(("127.0.0.4", port)) != 0
        with socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.3", 0)):
            assert controller.stdout.read().split() == ["127.0.0.3"]


def test_a_slave_sends_a_sample_once_and_every_listener_of_the_plan_has_it(tmp_path: Path) -> None:
    listeners = [("tree.xml", "false", FORM), ("errors.csv", "true", ""), ("log.csv", "false", "")]
    elements = [LISTENER.format(name, is_for_errors, form, name) for name, is_for_errors, form in listeners]
    of_group = LISTENER.format("of a group", "false", "", "group.csv")
    plan = tmp_path / "plan.jmx"
    plan.write_text(
        '<jmeterTestPlan version="1.2" properties="5.0" jmeter="5.5"><hashTree>'
        '<TestPlan testclass="TestPlan" guiclass="x" testname="plan" enabled="true"/><hashTree>'
        f"{'<hashTree/>'.join(elements)}<hashTree/>"
        '<ThreadGroup testclass="ThreadGroup" guiclass="x" testname="users" enabled="true"/>'
        f"<hashTree>{of_group}<hashTree/></hashTree></hashTree></hashTree></jmeterTestPlan>"
    )
    words = ("-e", TWO_SLAVES, SETTINGS, plan, paths.JMETER_HOME)
    command = groovy(*words, options=("-Dframestorm.slaves=127.0.0.2,127.0.0.3",))
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[0] == "[samples.jtl]", "what samples are sent to"
    labels = ["first", "second", "third"]
    assert _labels(tmp_path / "samples.jtl") == _labels(tmp_path / "log.csv") == labels
    assert re.findall(r'<sample .*lb="(.*?)"', (tmp_path / "tree.xml").read_text()) == labels
    assert _labels(tmp_path / "errors.csv") == ["second"]


def _labels(file: Path) -> list[str]:
    with file.open(newline="") as rows:
        return [row["label"] for row in csv.DictReader(rows)]
