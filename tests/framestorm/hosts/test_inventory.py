import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.hosts import inventory
from framestorm.hosts.inventory import Hosts, InventoryHost


def host(name: str, address: str, ssh_host: str = "203.0.113.9") -> InventoryHost:
    return InventoryHost(name, (), ssh_host, address)


SLAVE, FUNCTION = host("slave1", "10.0.0.11"), host("function1", "10.0.0.3", "203.0.113.3")


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://10.0.0.3:8080/function/face-blur", FUNCTION),
        ("http://203.0.113.3:8080/function/face-blur", FUNCTION),
        ("http://function1/function/face-blur", FUNCTION),
        ("http://10.0.0.11:8080/function/face-blur", None),
        ("http://10.0.0.99:8080/function/face-blur", None),
        ("", None),
    ],
)
def test_the_functions_host_is_known_by_the_url(url: str, found: InventoryHost | None) -> None:
    hosts = Hosts([SLAVE], None, [FUNCTION, SLAVE])
    assert hosts.function_at(url) == found
    assert hosts.function_url == "http://10.0.0.3:8080/function/face-blur"


def test_an_empty_group_has_no_url() -> None:
    assert Hosts([SLAVE], None, []).function_url is None


def test_an_address_is_no_option_of_ssh(tmp_path: Path) -> None:
    made = tmp_path / "made"
    command = InventoryHost("slave1", (), f"-oProxyCommand=touch {made}").ssh("localhost")
    assert subprocess.run(command, capture_output=True, timeout=20, check=False).returncode != 0
    assert not made.exists()


@pytest.mark.parametrize(
    ("variables", "options"),
    [
        ({}, []),
        ({"ansible_port": 2222, "ansible_user": "u"}, ["-p", "2222", "-l", "u"]),
        ({"ansible_ssh_private_key_file": "/k"}, ["-i", "/k"]),
        ({"ansible_ssh_common_args": "-o A='b c'", "ansible_ssh_extra_args": "-v"}, ["-o", "A=b c", "-v"]),
    ],
)
def test_ssh_has_the_variables_of_the_inventory(variables: dict[str, Any], options: list[str]) -> None:
    command = InventoryHost("slave1", (), "203.0.113.9", **variables).ssh("true")
    always = ["ssh", "-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={inventory.CONNECT_TIMEOUT_S}"]
    assert command == [*always, *options, "--", "203.0.113.9", "true"]


@pytest.mark.parametrize(
    ("address", "connection", "is_here"),
    [
        ("127.0.0.1", None, True),
        ("203.0.113.9", None, False),
        ("203.0.113.9", "local", True),
        ("127.0.0.1", "ssh", True),
    ],
)
def test_this_machine_is_known(address: str, connection: str | None, is_here: bool) -> None:
    assert InventoryHost("slave1", (), address, ansible_connection=connection).is_here() == is_here


@pytest.fixture
def ansible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for Ansible's Python: prints `hosts` of its folder, or fails with a warning and an error."""
    python = tmp_path / "python"
    fails = "{ echo 'no such host' >&2; exit 1; }"
    python.write_text(
        f"#!/bin/sh\necho '[WARNING]: old' >&2\n[ -f {tmp_path}/hosts ] || {fails}\ncat {tmp_path}/hosts\n"
    )
    python.chmod(0o755)
    (tmp_path / "inventory.ini").touch()
    monkeypatch.setattr(paths, "ANSIBLE_PYTHON", python)
    return tmp_path


LISTED = """\
[master]
here ansible_host=127.0.0.1
m1   ansible_host=203.0.113.8
m2   ansible_host=203.0.113.9

[eu]
s1 ansible_host=203.0.113.11
s2 ansible_ssh_host=203.0.113.12 ansible_ssh_port=2222 ansible_ssh_user=u ansible_private_key_file=/k

[slaves:children]
eu
empty
[empty]

[function]
f1 ansible_host=203.0.113.3

[all:vars]
framestorm_function_port=9090
"""


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    path = tmp_path / "inventory.ini"
    path.write_text(LISTED)
    return path


def test_hosts_are_found_by_their_groups(listed: Path) -> None:
    found = inventory.find_hosts(listed, "slaves")
    assert [host.name for host in found.slaves] == ["s1", "s2"]
    assert found.master is not None and found.master.name == "m1", "a master that is this machine is none"
    assert found.function_url == "http://203.0.113.3:9090/function/face-blur", "[all:vars] count too"
    with_all_names = ["-p", "2222", "-l", "u", "-i", "/k", "--", "203.0.113.12"]
    assert found.slaves[1].command("true")[-len(with_all_names) - 1 : -1] == with_all_names
    listed.write_text(LISTED.partition("m1")[0] + "[slaves]\ns1\n")
    assert inventory.find_hosts(listed, "s1").master is None


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("203.0.113.12", ["s2"]),
        ("slaves:!203.0.113.12", ["s1"]),
        ("eu[0]", ["s1"]),
        ("eu,!empty", ["s1", "s2"]),
    ],
)
def test_slaves_are_named_by_patterns_of_ansible(pattern: str, names: list[str], listed: Path) -> None:
    assert [host.name for host in inventory.find(listed, pattern)] == names


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("s1,s9", "'s9' names no host"),
        ("slaves:!203.0.113.99", "'203.0.113.99' names no host"),
        ("empty", "'empty' names no host"),
        ("localhost", "'localhost' names no host"),
        ("all", "here, m1, m2, f1 must be in the group slaves"),
    ],
)
def test_names_of_no_slave_are_refused(pattern: str, reason: str, listed: Path) -> None:
    with pytest.raises(UsageError, match=reason):
        inventory.find_hosts(listed, pattern)


YAML = """\
all:
  vars: {ansible_port: 22, ansible_user: u}
  children:
    slaves:
      hosts: {"203.0.113.[8:9]": , "s[1:2].example": }
      vars: {ansible_port: 2222}
"""


def test_ranges_and_yaml_are_read(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yml"
    path.write_text(YAML)
    slaves = inventory.find_hosts(path, "slaves:!s2.example").slaves
    assert [host.address for host in slaves] == ["203.0.113.8", "203.0.113.9", "s1.example"]
    assert all({"2222", "u"} < set(host.command("true")) for host in slaves)


@pytest.mark.parametrize(("become", "remote"), [("false", "exec true"), ("true", "sudo -n) true")])
def test_who_logs_in_is_root_unless_the_inventory_says_otherwise(become: str, remote: str, tmp_path: Path) -> None:
    path = tmp_path / "hosts.ini"
    path.write_text(f"[slaves]\ns1 ansible_host=203.0.113.8 ansible_become={become}\n")
    (slave,) = inventory.find_hosts(path, "slaves").slaves
    assert slave.command("true")[-1].endswith(remote)


def test_slaves_with_one_address_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "hosts.ini"
    path.write_text("[slaves]\ns[1:3] ansible_host=203.0.113.8\n")
    with pytest.raises(UsageError, match=r"s1 and s2 have the same address 203\.0\.113\.8"):
        inventory.find_hosts(path, "slaves")
    assert [host.name for host in inventory.find_hosts(path, "s2").slaves] == ["s2"]


def test_an_address_of_several_hosts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hosts.ini"
    path.write_text("[slaves]\ns[1:2] ansible_host=203.0.113.8\n203.0.113.9\ns3 ansible_host=203.0.113.9\n")
    with pytest.raises(UsageError, match=r"'203\.0\.113\.8' is the address of s1 and s2; name one"):
        inventory.find(path, "203.0.113.8")
    assert [host.name for host in inventory.find(path, "203.0.113.9")] == ["203.0.113.9"], "its name comes first"


def test_a_master_sends_no_load(listed: Path) -> None:
    listed.write_text(LISTED.replace("[empty]\n", "[empty]\nm1\n"))
    with pytest.raises(UsageError, match="m1 is the master"):
        inventory.find_hosts(listed, "slaves")
    assert [host.name for host in inventory.find_hosts(listed, "eu").slaves] == ["s1", "s2"]


def test_variables_may_be_in_a_vault(listed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, password = tmp_path / "group_vars", tmp_path / "password"
    folder.mkdir()
    (folder / "slaves.yml").write_text("ansible_user: vaulted\n")
    password.write_text("secret")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(password))
    encrypt = [paths.ANSIBLE_PYTHON.with_name("ansible-vault"), "encrypt", folder / "slaves.yml"]
    subprocess.run(encrypt, capture_output=True, check=True)
    assert inventory.find(listed, "s1")[0].ansible_user == "vaulted"


@pytest.mark.parametrize("option", ["-i", "--inventory"])
def test_deploy_hands_further_words_to_ansible(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ansible-playbook").write_text(
        '#!/bin/sh\npwd; printf "%s\\n" "$LC_ALL" "$ANSIBLE_CONFIG" "$@"; exit 4\n'
    )
    (tmp_path / "ansible-playbook").chmod(0o755)
    (tmp_path / "hosts.yml").touch()
    monkeypatch.setattr(paths, "ANSIBLE_PYTHON", tmp_path / "python")
    monkeypatch.setattr(inventory.setup, "ensure", lambda pieces: None)
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.chdir(tmp_path)
    assert inventory.main([option, "hosts.yml", "--limit", "s1", "-e", "@my.yml"]) == 1
    settings = ["C.UTF-8", str(paths.ANSIBLE / "ansible.cfg")]
    words = ["-i", f"{tmp_path}/hosts.yml", str(paths.ANSIBLE / "site.yml"), "--limit", "s1", "-e", "@my.yml"]
    assert capfd.readouterr().out.splitlines() == [str(tmp_path), *settings, *words]


@pytest.mark.parametrize("words", [[], ["--limit", "s1"], ["--uninstall"]])
def test_deploy_refuses_an_inventory_with_no_host_of_its_groups(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hosts.ini").write_text("[slave]\ns1\n")
    monkeypatch.setattr(inventory.setup, "ensure", lambda pieces: None)
    with pytest.raises(UsageError, match=r"hosts\.ini .*is in the group master, slaves or function"):
        inventory.main(["-i", str(tmp_path / "hosts.ini"), *words])


def test_deploy_refuses_an_inventory_that_ansible_cannot_read_before_the_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hosts.ini").write_text("[slaves\ns1\n")
    monkeypatch.setattr(inventory.setup, "ensure", lambda pieces: pieces == [inventory.setup.ANSIBLE_VENV] or 1 / 0)
    with pytest.raises(UsageError, match=r"cannot read the inventory .*hosts\.ini:\n(.|\n)*Failed to parse"):
        inventory.main(["-i", str(tmp_path / "hosts.ini")])


def test_deploy_gets_on_in_a_folder_whose_path_is_too_long_for_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANSIBLE_SSH_ARGS", raising=False)
    for length, options in ((79, None), (80, "-o ServerAliveInterval=5 -o ServerAliveCountMax=3")):
        monkeypatch.setattr(paths, "LOCAL", Path("/" + "a" * (length - len("//ssh"))))
        environment = inventory.ansible_environment()
        assert len(environment["ANSIBLE_SSH_CONTROL_PATH_DIR"]) == length
        assert environment.get("ANSIBLE_SSH_ARGS") == options
    monkeypatch.setenv("ANSIBLE_SSH_ARGS", "-C")
    assert inventory.ansible_environment()["ANSIBLE_SSH_ARGS"] == "-C"


def test_deploy_takes_one_inventory_as_runs_do() -> None:
    with pytest.raises(UsageError, match="-i is given twice"):
        inventory.main(["-i", "a.ini", "-i", "b.ini"])


def test_hosts_between_which_jmeter_talks_have_ipv4(ansible: Path) -> None:
    slave = {"name": "s1", "groups": ("slaves",), "ansible_host": "fd00::1"}
    (ansible / "hosts").write_text(json.dumps([slave]))
    with pytest.raises(UsageError, match=r"s1 has the IPv6 address fd00::1: .* set its framestorm_address"):
        inventory.find_hosts(ansible / "inventory.ini", "slaves")
    function = InventoryHost("f1", ("function",), "fd00::3")
    there = Hosts([SLAVE], None, [function])
    assert there.function_url == "http://[fd00::3]:8080/function/face-blur"
    assert there.function_at(there.function_url) == function


def test_why_no_host_is_found_is_told_without_warnings(ansible: Path) -> None:
    with pytest.raises(UsageError, match=r"^-R slave9: no such host$"):
        inventory.find(ansible / "inventory.ini", "slave9")
    with pytest.raises(UsageError, match=r"no inventory at .*/none\.ini"):
        inventory.find(ansible / "none.ini", "all")


def test_a_master_is_not_watched_as_the_functions_host() -> None:
    assert Hosts([SLAVE], FUNCTION, [FUNCTION]).function_at("http://10.0.0.3/f") is None
