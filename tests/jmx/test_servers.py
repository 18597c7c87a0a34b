"""A JMeter server and its controller in a run over slaves, both on this machine."""

import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.hosts.orders import remote_options
from framestorm.machine import wait_until
from framestorm.run.jmeter import CONTROLLING, QUICK_START, run_command
from tests.jmx.conftest import JMETER_TIMEOUT_S, OWN_JARS
from tests.run.foreign import script, write_plan
from tests.runs import RunFiles

HERE = "127.0.0.1"
SETTINGS = paths.JMX / "user.properties"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a server, whose log is server.log."""
    with socket.create_server((HERE, 0)) as listening:
        address = f"{HERE}:{listening.getsockname()[1]}"
    jars = ":".join(f"{paths.JMETER_HOME}/{part}" for part in (*OWN_JARS, "lib/*", "lib/ext/*"))
    java = [paths.JAVA_HOME / "bin" / "java", "-Xmx256m", *QUICK_START, "-cp", jars]
    java += [f"-Djava.rmi.server.hostname={HERE}", f"-Djmeter.home={paths.JMETER_HOME}", "org.apache.jmeter.NewDriver"]
    words = ["--server", "-j", tmp_path / "server.log", "-q", SETTINGS, "-Jserver.rmi.ssl.disable=true"]
    output = tmp_path / "server.out"
    with output.open("wb") as out:
        command = [*java, *words, f"-Jserver_port={address.partition(':')[2]}"]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=out, stderr=out)
    wait_until(lambda: "Created remote object" in output.read_text(), JMETER_TIMEOUT_S)
    yield address
    process.kill()
    process.wait()


def test_a_server_runs_one_test_after_the_other_and_a_file_at_the_controller_stops_it(
    server: str, tmp_path: Path
) -> None:
    elements = script("SampleResult.addSubResult(new org.apache.jmeter.samplers.SampleResult())") + script("1", "last")
    for name, loops, rows in (("ends", 2, 12), ("endless", -1, None)):
        run = RunFiles(tmp_path / name)
        run.folder.mkdir()
        plan = write_plan(tmp_path / f"{name}.jmx", elements, loops=loops)
        command = run_command(plan, {"server.rmi.ssl.disable": "true"}, run.folder, None, CONTROLLING)
        with (run.folder / "jmeter.out").open("wb") as out:
            controller = subprocess.Popen(
                [*command, *remote_options([server], HERE, SETTINGS)], cwd=tmp_path, stdout=out, stderr=out
            )
        try:
            if rows is None:
                wait_until(lambda run=run: run.lines("samples.jtl") > 20, JMETER_TIMEOUT_S)
                (run.folder / "Shutdown").touch()
            assert controller.wait(JMETER_TIMEOUT_S) == 0
        finally:
            controller.kill()
        kinds = run.count("label", "sample_kind")
        assert set(kinds) == {("script", "sample"), ("script-0", "sub-result"), ("last", "sample")}
        assert rows is None or sum(kinds.values()) == rows
        # As a listener of its own, the summariser would have every sample sent once more.
        assert "Creating summariser" not in run.text("jmeter.out")
        counted = re.findall(r"Summariser: summary =\s+(\d+) in", run.text("jmeter.log"))
        assert int(counted[-1]) == kinds["script", "sample"] + kinds["last", "sample"]
        # JMeter sets the clock of its samples anew now and then, and a time across that is in whole milliseconds.
        assert any(row["elapsed_us"] for row in run.rows() if row["label"] == "last")
    log = (tmp_path / "server.log").read_text()
    assert log.count("warmed up by") == 2 and "asked for at" not in log
