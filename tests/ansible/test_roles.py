"""What can be said of the roles without a host."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from framestorm.paths import ANSIBLE
from lab.hosts import planned
from tests.conftest import ansible_tool

ROLES = sorted(path.name for path in (ANSIBLE / "roles").iterdir())


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize("role", ROLES)
def test_argument_specs_say_what_defaults_do(role: str) -> None:
    folder = ANSIBLE / "roles" / role
    options = load(folder / "meta" / "argument_specs.yml")["argument_specs"]["main"]["options"]
    assert {name: option["default"] for name, option in options.items()} == load(folder / "defaults" / "main.yml")
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
    assert listing == ["lib/a.jar", "lib/junit/", f".packed-{other}"]


def test_what_is_not_there_to_pack_is_said() -> None:
    program = "import pack, pathlib; pack.LOCAL = pathlib.Path('/nowhere'); raise SystemExit(pack.main())"
    words = ["kit", "--python", "3.11", "--machine", "x86_64"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=ANSIBLE, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "/nowhere/sample.mp4" in done.stderr and done.stderr.count("\n") == 1
