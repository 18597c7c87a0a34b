"""What the lab's hosts are after `deploy`: tried from outside, from inside, and by JMeter itself."""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.hosts.orders import CONTROLLER_PROPERTIES
from framestorm.machine import wait_until
from lab import faults
from lab.hosts import LabHost
from tests.conftest import Lab, ansible_tool
from tests.runs import RunSh

PLAN = Path(__file__).with_name("one-command.jmx")
SLAVES = ("198.18.0.11", "198.18.0.12")


def jmeter(
    folder: Path, command: str, slaves: Sequence[str], plan: Path = PLAN, properties: Path = CONTROLLER_PROPERTIES
) -> subprocess.CompletedProcess[str]:
    """Run a command on each slave by JMeter, started as a run's controller is."""
    words: list[str | Path] = ["java", "-Djava.rmi.server.hostname=198.18.0.254", "-jar"]
    words += [paths.JMETER_HOME / "bin/ApacheJMeter.jar", "-n", "-t", plan, "-q", properties]
    words += [f"-Gcommand={command}"]
    words += ["-R", ",".join(f"{address}:8001" for address in slaves), "-l", folder / "result.xml"]
    words += ["-j", folder / "jmeter.log", f"-Jtree={folder / 'tree.xml'}"]
    words += ["-Jjmeter.save.saveservice.output_format=xml"]
    return subprocess.run(words, cwd=paths.ROOT, capture_output=True, text=True, timeout=120, check=False)


def on_slaves(command: str, folder: Path, slaves: Sequence[str] = SLAVES) -> list[str]:
    """What a command prints that JMeter runs on each slave."""
    done = jmeter(folder, command, slaves)
    assert done.returncode == 0, done.stdout + done.stderr
    result = (folder / "result.xml").read_text()
    return re.findall(r'<responseData class="java.lang.String">(.*?)</responseData>', result, re.DOTALL)


def changes(output: str) -> dict[str, str]:
    """How many things Ansible changed on each host; each was reached, and nothing failed."""
    return dict(re.findall(r"(\w+)\s+: ok=\d+ +changed=(\d+) +unreachable=0 +failed=0", output))


def test_a_second_deploy_changes_nothing(deployed: Lab, run_sh: RunSh) -> None:
    again = run_sh("./run.sh deploy", out="").stdout
    assert changes(again) == {"master1": "0", "slave1": "0", "slave2": "0", "function1": "0"}


@pytest.mark.long
def test_molecule_verifies(deployed: Lab) -> None:
    ansible_tool("molecule", "verify")


def test_hosts_describe_themselves(deployed: Lab) -> None:
    hosts = {host: json.loads(deployed.ssh(host, "cat /etc/framestorm/host.json")) for host in ("slave1", "function1")}
    slave = hosts["slave1"]
    assert (slave["address"], slave["jmeter_version"], slave["rmi_port"]) == ("198.18.0.11", "5.5", 8001)
    paths = [slave[name] for name in ("jmeter", "python", "client", "video", "cache", "runs", "log", "folder")]
    deployed.ssh("slave1", f"ls -d {' '.join(paths)}")
    assert hosts["function1"]["url"] == "http://198.18.0.3:8080/function/face-blur"


def test_the_function_cannot_take_all_of_its_host(deployed: Lab) -> None:
    shown = deployed.ssh("function1", "systemctl show framestorm-function --property MemoryMax,LimitNOFILE")
    limits = dict(line.split("=") for line in shown.split())
    total = 1024 * int(deployed.ssh("function1", "awk '/MemTotal/ {print $2}' /proc/meminfo"))
    assert 0.7 < int(limits["MemoryMax"]) / total < 0.9
    assert limits["LimitNOFILE"] == "4096"


def test_outsiders_reach_ssh_alone(deployed: Lab) -> None:
    assert deployed.before == {"slave1": {22}, "function1": {22}}
    assert deployed.scan("outsider", "slave1") == {22}
    assert deployed.scan("outsider", "function1", "1-10000") == {22}
    # RMI runs what it is sent: neither another slave nor the function's host gets to it.
    assert deployed.scan("slave2", "slave1", "7990-8010") == frozenset()
    assert deployed.scan("function1", "slave1", "1-10000") == {22}
    assert deployed.scan("function1", "master1", "1-10000") == {22}
    assert deployed.scan("slave1", "function1", "8000-8100") == {8080}
    assert deployed.scan("master1", "slave1", "7990-8010") == {8001}


def test_without_the_firewall_outsiders_would_reach_more(deployed: Lab) -> None:
    for host in ("slave1", "function1"):
        deployed.ssh(host, "sudo ufw disable")
    try:
        assert deployed.scan("outsider", "slave1", "1-10000") == {22, 8001}
        assert deployed.scan("outsider", "function1", "1-10000") == {22, 8080}
    finally:
        for host in ("slave1", "function1"):
            deployed.ssh(host, "sudo ufw --force enable")


def test_the_server_runs_what_it_is_sent_and_that_can_do_little(deployed: Lab, tmp_path: Path) -> None:
    tried = "/etc /usr/bin /opt/framestorm /opt/framestorm/kit /home/tester /root /boot /var/cache"
    allowed = ["/var/lib/framestorm/runs", "/var/log/framestorm", "/tmp"]
    script = f"id -un; hostname; for d in {tried} {' '.join(allowed)}; do touch $d/probe 2>&- && echo $d; done; "
    script += "rm -f /var/lib/framestorm/runs/probe /var/log/framestorm/probe; sudo -n true 2>&- && echo sudo; "
    script += "grep -E 'NoNewPrivs|CapBnd' /proc/self/status; unshare -r true 2>&- && echo ns"
    answers = on_slaves(script, tmp_path)
    status = ["CapBnd:", "0000000000000000", "NoNewPrivs:", "1"]
    assert sorted(answer.split() for answer in answers) == [
        ["framestorm", slave, *allowed, *status] for slave in ("slave1", "slave2")
    ]


def test_a_row_travels_without_the_servers_class_path(deployed: Lab, tmp_path: Path) -> None:
    rows = 1600
    plan = tmp_path / "rows.jmx"
    text = (paths.ROOT / "benchmarks" / "rows.jmx").read_text()
    plan.write_text(text.replace(">12500<", f">{rows // 16}<"))
    sent = "cat /sys/class/net/host0/statistics/tx_bytes"
    before = int(deployed.ssh("slave1", sent))
    done = jmeter(tmp_path, "", SLAVES[:1], plan)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "result.xml").read_text().count("<sample ") == rows
    assert (int(deployed.ssh("slave1", sent)) - before) / rows < 10_000


def test_the_server_comes_back_after_kill_and_reboot(deployed: Lab, tmp_path: Path) -> None:
    faults.kill(LabHost("slave1"), "NewDriver --server")
    faults.reboot(LabHost("slave2"))
    ready = "Bound to RMI registry"
    log = "cat /var/log/framestorm/jmeter-server.log"
    for host in ("slave1", "slave2"):
        assert wait_until(lambda host=host: ready in (deployed.look(host, log) or ""), 60), host
    assert len(on_slaves("hostname", tmp_path)) == 2
    assert deployed.scan("outsider", "slave2", "1-10000") == {22}


def test_a_dry_run_changes_nothing(deployed: Lab, run_sh: RunSh) -> None:
    output = run_sh("./run.sh deploy --check", "-e", "common_open_files=20000", out="").stdout
    assert changes(output) == {"master1": "1", "slave1": "1", "slave2": "1", "function1": "1"}
    assert "16384" in deployed.ssh("slave1", "cat /etc/security/limits.d/framestorm.conf")
