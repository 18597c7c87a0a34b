"""Bad input: a clear error, the right exit status, and nothing half-written."""

import os
import shlex
import socket
from pathlib import Path

import pytest

from framestorm import cli, paths
from tests.runs import RunSh, write_study
from tests.stand_in import StartServer

NOWHERE = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        ("-t jmx/none.jmx", 2, ["no plan at", "jmx/face-blur.jmx"]),
        ("-t README.md", 2, ["cannot be read as a JMeter plan"]),
        ("-Juser=5", 2, ["no property user", "did you mean users"]),
        ("-Jusers=some", 2, ["whole number"]),
        ("-J =5", 2, ["name=value"]),
        ("-q none.properties", 2, ["none.properties"]),
        ("-p none.properties", 2, ["-p none.properties"]),
        ("-s", 2, ["-s: slaves", "./run.sh deploy"]),
        ("--reportonly samples.jtl", 2, ["./run.sh report"]),
        ("-f", 2, ["never overwritten"]),
        ("-d /opt/jmeter", 2, ["jmx/lib"]),
        ("-H 127.0.0.1", 2, ["-H HOST and -P PORT"]),
        ("-a '${env:NOT_SET_HERE}'", 2, ["export NOT_SET_HERE="]),
        ("--fail-if 'p95 > soon'", 2, ["soon", "^"]),
        ("--no-such-option", 2, ["--no-such-option"]),
        ("-t jmx/requests.jmx", 2, ["requests.jmx needs -Jurl="]),
        ("-t jmx/tasks.jmx -Jworkers=0", 2, ["-Jworkers=0", "whole number >= 1"]),
        ("-t jmx/tasks.jmx --fail-if 'frame p95 > 2 s'", 2, ["tasks.jmx", "Its labels: task, user"]),
        ("-t jmx/face-blur-http.jmx --fail-if 'user p95 > 2 s'", 2, ["face-blur-http.jmx", "frame"]),
        ("-Jvideo=/none.mp4", 1, ["/none.mp4"]),
        ("-Jvideo=README.md", 1, ["README.md"]),
        ("-Jurl=ftp://127.0.0.1/", 2, ["http://"]),
        (f"-Jurl={NOWHERE}/function/face-blur", 1, ["127.0.0.1:9"]),
        ("--influxdb influx:8086", 2, ["--influxdb influx:8086: expected an address to write to"]),
        ("--influxdb http://influx:8086/", 2, ["expected an address to write to"]),
        ("--influxdb ftp://influx/write", 2, ["expected an address to write to"]),
        ("--influxdb http://[influx/write", 2, ["expected an address to write to"]),
        ("-o /proc/framestorm/run", 1, ["/proc", "-o"]),  # which takes no new folders from anyone, root included
        ("--summary none/out.md", 2, ["--summary none/out.md: the folder none does not exist"]),
        ("--summary studies", 2, ["--summary studies is a folder"]),
        ("report studies", 2, ["no run.json"]),
        ("report studies --summary none/out.md", 2, ["--summary none/out.md: the folder none does not exist"]),
        ("study", 2, ["say which study"]),
        ("study threads-by-slep", 2, ["no study threads-by-slep", "did you mean threads-by-sleep?"]),
        ("study STUDY --only user=2", 2, ["unknown factor 'user'", "did you mean users?"]),
        ("study STUDY --quick", 2, ["has no part `quick`"]),
        ("study STUDY --repetitions 300", 2, ["budget_min allows 5 min", "--over-budget", "--only"]),
        (f"study STUDY --gateway {NOWHERE}/", 1, ["no target of kind openfaas"]),
        ("study STUDY --resume", 2, ["study.json is missing"]),
        ("study watchdog --quick -R slaves", 1, ["slaves cannot reach the local one", "--gateway"]),
        (f"study watchdog --quick --gateway {NOWHERE}/", 1, ["nothing answers at 127.0.0.1:9"]),
    ],
)
def test_is_refused(
    words: str, status: int, expected: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(paths.ROOT)
    study = write_study(tmp_path)
    command = [study if word == "STUDY" else word for word in shlex.split(words)]
    if "-o" not in command and command[0] != "report":
        command += ["-o", str(tmp_path / "run"), "--port", str(RunSh(tmp_path).port)]
    try:
        result = cli.main(command)
    except SystemExit as end:
        result = int(end.code or 0)
    stderr = capfd.readouterr().err
    assert result == status, stderr
    for word in expected:
        assert word in stderr
    assert [each.name for each in tmp_path.iterdir()] == [Path(study).name]


def test_a_taken_port_is_named_with_who_has_it(run_sh: RunSh) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", run_sh.port))
        taken.listen()
        refused = run_sh(status=1)
    assert f"port {run_sh.port}" in refused.stderr
    assert f"pid {os.getpid()}" in refused.stderr
    assert not refused.folder.exists()


def test_what_only_jmeter_can_judge_is_refused_before_the_load(run_sh: RunSh, stand_in: StartServer) -> None:
    server = stand_in()
    refused = run_sh("-t", "jmx/requests.jmx", f"-Jurl={server.url}", "-Jexpect=$.[[", status=2)
    assert "-Jexpect=$.[[" in refused.stderr.splitlines()[-1]
    assert not refused.folder.exists() and server.received == []


def test_a_target_that_cannot_start_leaves_its_last_words(
    run_sh: RunSh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "face.pb").write_bytes(b"not a graph")
    monkeypatch.setenv("FACE_MODEL", str(tmp_path / "face.pb"))
    refused = run_sh(status=1)
    assert "face.pb" in refused.stderr
    assert not refused.folder.exists()
