"""ssh gets in after deploy and uninstall: on another port, behind a forwarded one, past a firewall of the user.

It takes minutes and has hosts of its own in the same lab, so that the tests of the slaves run meanwhile.
"""

import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from framestorm import paths
from framestorm.machine import listens, wait_until
from lab import keys
from lab.hosts import LabHost
from tests.runs import RunSh

ELSEWHERE, FORWARDED, GUARDED = (LabHost(f"slave{n}") for n in (4, 5, 6))  # no other test uses them
PORT, FORWARDING_PORT = 2222, 2299
INVENTORY = f"""\
[slaves]
slave4 ansible_host={ELSEWHERE.address} ansible_port={PORT}
slave5 ansible_host=127.0.0.1 ansible_port={FORWARDING_PORT} framestorm_address={FORWARDED.address}
slave6 ansible_host={GUARDED.address}

[slaves:vars]
ansible_user=tester
ansible_ssh_private_key_file={paths.LOCAL}/lab/ssh/key
ansible_ssh_common_args=-o UserKnownHostsFile={paths.LOCAL}/lab/ssh/known_hosts -o StrictHostKeyChecking=no
"""
OWN_RULES = "ufw allow 22/tcp comment 'ours'\nufw allow from 192.0.2.0/24 to any port 8001:8003 proto tcp"


def ssh(host: LabHost, command: str, port: int = 22) -> str:
    """What a command prints on a host, by a connection of its own."""
    words = keys.ssh(host, command)
    words[1:1] = ["-p", str(port), "-o", "ControlMaster=no", "-o", "StrictHostKeyChecking=no"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, f"{host.name}: {done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def inventory(
    lab_cli: Callable[..., Any], fresh_lab: RunSh, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Three hosts whose ssh is set up by other people."""
    # With registries, as for the bare host: the proxy restarts when what it lets through changes.
    lab_cli("up", "--slaves", "6", "--registries")
    ssh(ELSEWHERE, f"echo Port {PORT} | sudo tee /etc/ssh/sshd_config.d/port.conf; sudo systemctl restart ssh")
    install = "sudo apt-get update -qq && sudo DEBIAN_FRONTEND=noninteractive apt-get install -qq ufw >/dev/null"
    rules = "; ".join(f"sudo {rule}" for rule in OWN_RULES.splitlines())
    ssh(GUARDED, f"{install} && ({rules}; sudo ufw --force enable)")
    path = tmp_path_factory.mktemp("ssh") / "inventory.ini"
    path.write_text(INVENTORY)
    forward = keys.ssh(GUARDED)
    forward[1:1] = ["-N", "-L", f"127.0.0.1:{FORWARDING_PORT}:{FORWARDED.address}:22"]
    with subprocess.Popen(forward) as forwarding:
        try:
            assert wait_until(lambda: listens(FORWARDING_PORT), 10)
            yield path
        finally:
            forwarding.terminate()


def rules(host: LabHost, port: int = 22) -> list[str]:
    return [line for line in ssh(host, "sudo ufw show added", port).splitlines() if line.startswith("ufw ")]


def deploy_twice_and_uninstall(inventory: Path, run_sh: RunSh) -> None:
    for _ in range(2):
        run_sh("./run.sh deploy", "-i", str(inventory), out="")
        assert f"ufw allow {PORT}/tcp comment 'framestorm ssh'" in rules(ELSEWHERE, PORT)
        assert "ufw allow 22/tcp comment 'framestorm ssh'" in rules(FORWARDED)
        assert not [rule for rule in rules(FORWARDED) if str(FORWARDING_PORT) in rule]
        assert set(OWN_RULES.splitlines()) < set(rules(GUARDED))
        assert not [rule for rule in rules(GUARDED) if "framestorm ssh" in rule]
        for host, port in ((ELSEWHERE, PORT), (FORWARDED, 22), (GUARDED, 22)):
            assert "Status: active" in ssh(host, "sudo ufw status", port)
    run_sh("./run.sh deploy --uninstall", "-i", str(inventory), out="")
    for host, port in ((ELSEWHERE, PORT), (FORWARDED, 22)):
        assert ssh(host, "hostname", port) == f"{host.name}\n"
    assert "Status: active" in ssh(GUARDED, "sudo ufw status")
    assert sorted(rules(GUARDED)) == sorted(OWN_RULES.splitlines())
    # `lab status` looks for it there.
    ssh(ELSEWHERE, "sudo rm /etc/ssh/sshd_config.d/port.conf; sudo systemctl restart ssh", PORT)


@pytest.fixture(scope="session")
def deployment(inventory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Future[None]]:
    """All of it, under way."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(deploy_twice_and_uninstall, inventory, RunSh(tmp_path_factory.mktemp("ssh_stays")))


@pytest.mark.long
def test_ssh_is_set_up_by_other_people(inventory: Path, request: pytest.FixtureRequest) -> None:
    assert f"port {PORT}\n" in ssh(ELSEWHERE, "sudo sshd -T", PORT)
    ssh(FORWARDED, "test ! -e /usr/sbin/ufw")
    assert sorted(rules(GUARDED)) == sorted(OWN_RULES.splitlines())
    request.getfixturevalue("deployment")


@pytest.mark.long
def test_ssh_gets_in_after_deploy_and_after_uninstall(deployment: Future[None]) -> None:
    deployment.result()
