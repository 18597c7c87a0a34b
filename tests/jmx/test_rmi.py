"""Who may connect to the controller of a run over slaves, and what it reads."""

import socket
import subprocess

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
