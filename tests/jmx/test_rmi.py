"""Who may connect to JMeter: to the controller of a run over slaves, and to the port of stop messages."""

import socket
import subprocess

from framestorm import paths

LISTEN = """
org.apache.jmeter.util.JMeterUtils.loadJMeterProperties(args[0])
org.apache.jmeter.util.JMeterUtils.setProperty('server.rmi.ssl.disable', 'true')
def listening = org.apache.jmeter.rmi.RmiUtils.createServerSocketFactory().createServerSocket(0)
println listening.localPort
println listening.accept().inetAddress.hostAddress
println org.apache.jmeter.JMeter.getSocket(0, 0).localAddress.hostAddress
"""


def test_a_controller_hears_its_slaves_alone_and_at_one_address() -> None:
    libraries = f"{paths.JMETER_HOME}/lib/*:{paths.JMETER_HOME}/lib/ext/*"
    options = ("-Dframestorm.slaves=127.0.0.2,127.0.0.3", "-Djava.rmi.server.hostname=127.0.0.1")
    java = ("timeout", "60", paths.JAVA_HOME / "bin" / "java", *options, "-cp", libraries)
    command = [*java, "groovy.ui.GroovyMain", "-e", LISTEN, paths.JMETER_HOME / "bin" / "jmeter.properties"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        port = int(controller.stdout.readline())
        with socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.9", 0)) as outsider:
            assert outsider.recv(1) == b""
        with socket.socket() as elsewhere:
            assert elsewhere.connect_ex(("127.0.0.4", port)) != 0
        with socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.3", 0)):
            assert controller.stdout.read().split() == ["127.0.0.3", "127.0.0.1"]
