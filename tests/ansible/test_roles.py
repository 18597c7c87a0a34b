"""What can be said of the roles without a host."""

import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from framestorm.hosts import preflight
from framestorm.paths import ANSIBLE, ROOT
from lab.hosts import planned
from tests.conftest import StartServer, ansible_tool

ROLES = sorted(path.name for path in (ANSIBLE / "roles").iterdir())


LOOK = "See what has the names that deploy gives, and is not noted as its own"
NOTE = "Note which names are Framestorm's own, so that they can be taken back"
CHECKS = ("Check that a run finds what deploy leaves", "Check that the account may listen on the ports")


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize("role", ROLES)
def test_argument_specs_say_what_defaults_do(role: str) -> None:
    folder = ANSIBLE / "roles" / role
    options = load(folder / "meta" / "argument_specs.yml")["argument_specs"]["main"].get("options", {})
    defaults = folder / "defaults" / "main.yml"
    assert {name: option["default"] for name, option in options.items()} == (
        load(defaults) if defaults.exists() else {}
    )
    assert all(option["description"] and option["type"] for option in options.values())
    assert all(name.startswith(f"{role}_") for name in options)


def test_no_role_is_left_out() -> None:
    named = {role["role"] for play in load(ANSIBLE / "site.yml") for role in play.get("roles", [])}
    assert named == set(ROLES) == {"common", "client", "jmeter", "jmeter_server", "function"}


@pytest.mark.parametrize("words", ["yamllint --strict .", "ansible-lint --offline --strict"])
def test_linters_find_nothing(words: str) -> None:
    ansible_tool(*words.split())


def test_the_shipped_inventory_names_the_labs_hosts() -> None:
    listed = json.loads(ansible_tool("ansible-inventory", "--playbook-dir", ANSIBLE, "--list"))
    hosts = {name: variables["ansible_host"] for name, variables in listed["_meta"]["hostvars"].items()}
    assert hosts == {host.name: host.address for host in planned()}
    groups = {group: listed[group]["hosts"] for group in ("master", "slaves", "function")}
    assert groups == {"master": ["master1"], "slaves": ["slave1", "slave2"], "function": ["function1"]}


def test_hosts_have_a_python_that_the_lock_files_are_for() -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    conditions = [each.get("ansible.builtin.assert", {}) for each in load(ANSIBLE / "roles/common/tasks/preflight.yml")]
    minimum = re.search(r"version_info'\]\[:2\] >= \[(\d+), (\d+)\]", str(conditions).replace('"', "'"))
    assert minimum and needed == ">={}.{}".format(*minimum.groups())


def test_a_slave_that_is_the_function_s_host_too_restarts_its_server(tmp_path: Path) -> None:
    (tmp_path / "hosts.ini").write_text("[slaves]\nboth ansible_host=203.0.113.9\n[function]\nboth\n")
    role = {"name": "common", "tasks_from": "describe"}
    java = {"_common_java": {"stderr_lines": ["", "17"]}, "framestorm_settings": str(tmp_path)}
    play = {"hosts": "both", "connection": "local", "vars": java, "tasks": [{"ansible.builtin.include_role": role}]}
    book = tmp_path / "describe.yml"
    book.write_text(json.dumps([play]))
    values = f"@{ANSIBLE / 'group_vars' / 'all.yml'}"
    words = ("--check", "--diff", "-e", values, "-e", f"framestorm_settings={tmp_path}")
    shown = ansible_tool("ansible-playbook", "-i", tmp_path / "hosts.ini", *words, book)
    assert "framestorm-jmeter-server.service" in shown and "function/face-blur" in shown


def play(folder: Path, tasks: list[Any], given: dict[str, Any], inventory: str = "localhost,", **settings: Any) -> None:
    """Play tasks for this machine, from a playbook beside the kit's roles; `given` is what -e gives."""
    (folder / "roles").symlink_to(ANSIBLE / "roles")
    book = folder / "book.yml"
    book.write_text(json.dumps([{"hosts": "localhost", "connection": "local", "tasks": tasks, **settings}]))
    words = ("-e", f"@{ANSIBLE / 'group_vars' / 'all.yml'}", "-e", json.dumps(given))
    ansible_tool("ansible-playbook", "-i", inventory, *words, book)


def check(*conditions: str, **variables: Any) -> dict[str, Any]:
    return {"ansible.builtin.assert": {"that": conditions}, "vars": variables}


def test_numbers_that_e_gives_as_text_are_numbers(tmp_path: Path) -> None:
    common, template = ANSIBLE / "roles/common", ANSIBLE / "roles/jmeter/templates/jmeter.properties.j2"
    (description,) = (task["vars"] for task in load(common / "tasks/describe.yml"))
    java = [task for task in load(common / "tasks/install.yml") if "ansible.builtin.assert" in task]
    properties = f"{{{{ lookup('ansible.builtin.template', '{template}') }}}}"
    tasks = [
        check("_common_ports.rmi is match('9001:9003 ')"),
        check("'server.rmi.localport=9002' in properties", properties=properties, _jmeter_password="p"),
        check("_common_server.rmi_port + 1 == 9002", **description),
        *java,
    ]
    seen = {"rc": 0, "stderr": 'openjdk version "17.0.9"', "stderr_lines": ["", "17.0.9+9"]}
    numbers = {"framestorm_rmi_port": "9001", "common_java_major": "17"}
    given = {**numbers, "framestorm_rmi_ssl": "true", "_common_java": seen}
    play(tmp_path, tasks, given, vars_files=[str(common / "vars/main.yml")])


def test_the_function_is_asked_past_a_proxy(tmp_path: Path, stand_in: StartServer) -> None:
    (task,) = (each for each in load(ANSIBLE / "roles/function/tasks/run.yml") if "ansible.builtin.uri" in each)
    there = {"framestorm_address": "127.0.0.1", "framestorm_function_port": stand_in({}).server_port}
    play(tmp_path, [{**task, "retries": 1}], there, environment={"http_proxy": "http://127.0.0.1:9", "no_proxy": ""})


def test_the_function_gets_its_environment_as_the_inventory_has_it(tmp_path: Path) -> None:
    unit = tmp_path / "unit"
    template = {"src": f"{ANSIBLE}/roles/function/templates/framestorm-function.service.j2", "dest": str(unit)}
    packed = {name: {"digest": "0"} for name in ("function", "function-env")}
    given = {"function_environment": {"LIMIT": 3, "TEXT": '50% of "C:\\h"\n$HOME'}, "common_packed": packed}
    play(tmp_path, [{"ansible.builtin.template": template}], given)
    lines = ['Environment="LIMIT=3"', r'Environment="TEXT=50%% of \"C:\\h\"\n$HOME"']
    assert [line for line in unit.read_text().splitlines() if line.startswith('Environment="')] == lines


@pytest.mark.parametrize("given", [{}, {"common_packages": ["chrony", "mine"]}])
def test_uninstall_goes_by_the_packages_that_deploy_was_asked_for(given: dict[str, Any], tmp_path: Path) -> None:
    (uninstall,) = load(ANSIBLE / "uninstall.yml")
    (variables,) = (each["vars"] for each in uninstall["tasks"] if "_uninstall_asked" in each.get("vars", {}))
    asked = given.get("common_packages", ["chrony", "ufw"])
    added = {"_uninstall_added": ["chrony", "mine", "ufw", "came-along"]}
    play(tmp_path, [check(f"_uninstall_asked | sort == {asked}", **variables)], {**given, **added})


def tasks_of(path: str, first: str, last: str) -> list[Any]:
    """Return the tasks of a file from one to another, by their names, without owners, which only root may set."""
    content = load(ANSIBLE / path)
    tasks = content[0]["tasks"] if "hosts" in content[0] else content
    tasks = [each for task in tasks for each in (task, *task.get("block", ()))]
    names = [task["name"] for task in tasks]
    kept = tasks[names.index(first) : names.index(last) + 1]

    def without_owner(keys: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in keys.items() if key not in {"owner", "group"}}

    return list(json.loads(json.dumps(kept), object_hook=without_owner))


def test_uninstall_knows_what_a_deployment_that_was_cut_off_has_added(tmp_path: Path) -> None:
    """Its records are on disk before they have their names: a loss of power leaves none that is empty."""
    program, settings, synced = tmp_path / "bin", tmp_path / "settings", tmp_path / "synced"
    program.mkdir()
    settings.mkdir()
    for name, script in (
        ("dpkg-query", "printf 'installed %s\\n' base chrony"),
        ("sync", f'cat "$1" >>{synced}; ls {settings} >>{synced}'),
    ):
        (program / name).write_text(f"#!/bin/sh\n{script}\n")
        (program / name).chmod(0o755)
    keep = "Keep what is installed, should this deployment not end"
    tasks = [
        *tasks_of("roles/common/tasks/install.yml", keep, keep),
        *tasks_of("uninstall.yml", "See whether a deployment did not end", "Note what it has added"),
        *tasks_of("uninstall.yml", "See what was there before", "See what was there before"),
        check("_uninstall_before.stdout_lines | reject('search', ':') | list == ['chrony']"),
    ]
    before = "installed base\ninstalled systemd-timesyncd"
    given = {"framestorm_settings": str(settings), "_common_before": {"stdout": before}}
    play(tmp_path, tasks, given, environment={"PATH": f"{program}:{os.environ['PATH']}"})
    assert "removed: systemd-timesyncd" in (settings / "packages-added").read_text()
    assert [path.name for path in settings.iterdir()] == ["packages-added"]
    lines = [line for line in synced.read_text().splitlines() if not line.startswith("#")]
    assert lines == [*before.splitlines(), "chrony", "removed: systemd-timesyncd", "packages-before"]


@pytest.mark.parametrize("left", [["host.json"], ["packages-before", "host.json"], []])
def test_a_deployment_goes_through_the_packages_after_one_that_did_not_end(left: list[str], tmp_path: Path) -> None:
    """And after a removal that began."""
    for name in left:
        (tmp_path / name).touch()
    [*_, look, install] = tasks_of(
        "roles/common/tasks/install.yml", "See what is installed", "Install what Framestorm needs"
    )
    begin = tasks_of("uninstall.yml", "Remove the description of the host", "Remove the description of the host")
    decide = {"ansible.builtin.set_fact": {"goes": True}, "when": install["when"]}
    goes = check(f"(goes is defined) == {left != ['host.json']}")
    given = {
        "framestorm_settings": str(tmp_path),
        "common_packages": ["chrony"],
        "_common_before": {"stdout_lines": ["installed base", "installed chrony"]},
    }
    play(tmp_path, [look, decide, goes, *begin, look, decide, check("goes is defined")], given)


@pytest.mark.parametrize("playbook", ["site.yml", "uninstall.yml"])
def test_what_ufw_says_is_read_also_on_a_host_with_another_language(
    playbook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ufw = tmp_path / "bin" / "ufw"
    ufw.parent.mkdir()
    ufw.write_text('#!/bin/sh\n[ "${LANGUAGE:-$LC_ALL}" = C ] && echo Status: inactive || echo État : inactif\n')
    ufw.chmod(0o755)
    for name in ("LANG", "LC_ALL", "LANGUAGE"):
        monkeypatch.setenv(name, "C.UTF-8" if name == "LC_ALL" else "fr_FR.UTF-8")
    see, note = (
        "See which rules the firewall has and how it stands",
        "Record the firewall's state, so that uninstall can restore it",
    )
    for step, each in enumerate(load(ANSIBLE / playbook)):
        folder = tmp_path / str(step)
        folder.mkdir()
        environment = {**each["environment"], "PATH": f"{ufw.parent}:{os.environ['PATH']}"}
        tasks = tasks_of("roles/common/tasks/firewall.yml", see, note)
        play(folder, tasks, {"framestorm_settings": str(folder)}, environment=environment)
        assert "Status: inactive" in (folder / "firewall-before").read_text()


def test_what_a_removal_leaves_that_is_cut_off_does_not_pass_for_the_whole(tmp_path: Path) -> None:
    home, kit = tmp_path / "home", tmp_path / "kit"
    for folder in (kit, home / "jmeter"):
        folder.mkdir(parents=True)
        (folder / ".packed-0123").touch()
    *before, _ = tasks_of("tasks/unpack.yml", "Forget what is there", "Remove another {{ unpack_what }}")
    *further, _ = tasks_of("uninstall.yml", "Forget what is unpacked", "Remove files")
    names = {"_uninstall_names": {"stdout_lines": ["framestorm", str(home)]}}
    play(tmp_path, [*before, *further], {"unpack_destination": str(kit), **names})
    assert list(kit.iterdir()) == list((home / "jmeter").iterdir()) == []


def test_a_name_of_somebody_else_is_refused_also_where_deploy_was_before(tmp_path: Path) -> None:
    """And what the inventory has named before is taken back too."""
    settings, home, other = (tmp_path / name for name in ("settings", "home", "other"))
    for folder in (settings, home, other):
        folder.mkdir()
    (look,) = tasks_of("roles/common/tasks/preflight.yml", *[LOOK] * 2)
    (note,) = tasks_of("roles/common/tasks/install.yml", *[NOTE] * 2)
    (take,) = tasks_of("uninstall.yml", *["See which names are Framestorm's own"] * 2)
    given = dict.fromkeys(("framestorm_state", "framestorm_log"), f"{tmp_path}/none")
    given |= {"framestorm_user": "no-such-user", "framestorm_settings": str(settings), "framestorm_home": str(home)}
    common = {"vars_files": [str(ANSIBLE / "roles/common/vars/main.yml")]}
    own = check("_common_others.stdout == ''")
    for step, (tasks, changed) in enumerate(
        [
            ([look, own, note, look, own], {}),
            ([look, check(f"_common_others.stdout == '{other}'"), note, take], {"framestorm_home": str(other)}),
        ]
    ):
        (tmp_path / str(step)).mkdir()
        known = [f"{tmp_path}/home", "no-such-user"] + [str(other)] * step
        taken = check(f"_uninstall_names.stdout_lines | difference(['{tmp_path}/none']) | sort == {sorted(known)}")
        play(tmp_path / str(step), [*tasks, take, taken], {**given, **changed}, **common)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"framestorm_settings": "/etc/mine"}, "a run looks in /etc/framestorm"),
        ({"framestorm_state": "/home/me/state"}, "path without blanks"),
        ({"framestorm_home": "/opt/my kit"}, "path without blanks"),
        ({"framestorm_function_port": "80"}, "on a port below 1024"),
        ({"framestorm_home": "/srv/kit", "framestorm_rmi_port": "9001"}, ""),
    ],
)
def test_what_the_units_cannot_use_is_refused(given: dict[str, str], message: str, tmp_path: Path) -> None:
    tasks = tasks_of("roles/common/tasks/preflight.yml", *CHECKS)
    common = {"vars_files": [str(ANSIBLE / "roles/common/vars/main.yml")]}
    if not message:
        play(tmp_path, tasks, given, **common)
        return
    with pytest.raises(AssertionError, match=message):
        play(tmp_path, tasks, given, **common)


@pytest.mark.parametrize(("other", "is_refused"), [("127.0.0.1", True), ("127.0.0.2", False)])
def test_two_hosts_with_one_address_are_refused(other: str, is_refused: bool, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.ini"
    hosts.write_text(f"[slaves]\ns1 ansible_host=127.0.0.1\ns2 ansible_host={other}\n[function]\ns1\n")
    tasks = tasks_of("roles/common/tasks/preflight.yml", *["Check that no two hosts have the same address"] * 2)
    given, common = {"ansible_connection": "local"}, str(ANSIBLE / "roles/common/vars/main.yml")
    with pytest.raises(AssertionError, match=r"'s2': '127\.0\.0\.1'") if is_refused else nullcontext():
        play(tmp_path, tasks, given, str(hosts), hosts="all", gather_facts=False, vars_files=[common])


def test_an_archive_is_made_once_a_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ANSIBLE))
    pack = importlib.import_module("pack")

    monkeypatch.setattr(pack, "DEPLOY", tmp_path)
    monkeypatch.setattr(pack, "REPO", tmp_path)
    monkeypatch.setattr(pack, "LOCAL", tmp_path)
    home = tmp_path / "jmeter"
    (home / "lib" / "junit").mkdir(parents=True)
    (home / "lib" / "a.jar").write_text("a")
    first, digest = pack.pack_tree("jmeter")
    made = first.stat()
    assert pack.pack_tree("jmeter") == (first, digest)
    assert first.stat() == made
    (home / "lib" / "a.jar").write_text("b")
    second, other = pack.pack_tree("jmeter")
    assert (other != digest, first.exists(), second.exists()) == (True, False, True)
    listing = subprocess.run(["tar", "tf", second], capture_output=True, text=True, check=True).stdout.split()
    assert listing == ["lib/", "lib/a.jar", "lib/junit/", f".packed-{other}"]


def test_a_slave_gets_the_files_that_pre_flight_looks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ANSIBLE))
    pack = importlib.import_module("pack")
    names = [name for name, _ in pack.kit()]
    assert names == [*preflight.kit_files(), "video/sample.mp4"]
    assert {"client/client.py", "client/launch.pl", "client/datatypes.json", "jmx/jmeter-server"} < {*names}


def test_what_is_not_there_to_pack_is_said() -> None:
    program = "import pack, pathlib; pack.LOCAL = pathlib.Path('/nowhere'); raise SystemExit(pack.main())"
    words = ["kit", "--python", "3.11", "--machine", "x86_64"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=ANSIBLE, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "/nowhere/sample.mp4" in done.stderr and done.stderr.count("\n") == 1
