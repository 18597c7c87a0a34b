"""What each host of a run is ordered to do, and the files and command lines that go with it."""

import base64
import json
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from framestorm import jmeter, paths
from framestorm.preparation import Prepared
from framestorm.slaves import rmi
from framestorm.slaves.member import Member

# Written by the playbook: RMI's ports and, with SSL, its key; the second is a host's own copy.
CONTROLLER_PROPERTIES = paths.LOCAL / "deploy" / "jmeter.properties"
HOST_PROPERTIES = Path("/etc/framestorm/jmeter.properties")


def slave_order(prepared: Prepared, slave: Member) -> dict[str, Any]:
    """Have JMeter's server wait with this slave's share of the load."""
    described = slave.facts["described"]
    run_dir = _run_dir(prepared, slave)
    values = {**prepared.values, **slave.share}
    files: dict[str, bytes] = {}
    video = described["video"]
    if "video" in values and Path(values["video"]) != paths.SAMPLE_VIDEO:
        source = Path(values["video"])
        video = f"{run_dir}/video{source.suffix}"
        files[f"video{source.suffix}"] = source.read_bytes()
    own = {
        "python": described["python"],
        "client": described["client"],
        "cache": described["cache"],
        "video": video,
        "client_log": f"{run_dir}/client.log",
        "journal": f"{run_dir}/journal.jsonl",
        "stop": f"{run_dir}/stop",
    }
    properties = {name: own.get(name, value) for name, value in values.items()}
    files["run.properties"] = _properties_file({**properties, **_sample_variables(prepared), **prepared.options.extra})
    cut = ["--video", video, "--encoding", values.get("encoding", "png-base64"), "--cache", described["cache"]]
    name = slave.host.name
    return {
        **_common(prepared, files),
        "follow": {
            f"journal-{name}.jsonl": "journal.jsonl",
            f"client-{name}.log": "client.log",
            f"jmeter-server-{name}.log": described["log"],
        },
        "command": None,
        "cut": cut if "video" in values else None,
    }


def controller_order(prepared: Prepared, master: Member, slaves: Sequence[Member]) -> dict[str, Any]:
    """Run JMeter's controller on the master."""
    plan, described = prepared.plan, master.facts["described"]
    run_dir = _run_dir(prepared, master)
    command = jmeter.run_command(
        Path(f"{run_dir}/jmx/{plan.name}"),
        {"tree": f"{run_dir}/tree.xml", **prepared.jmeter_values},
        Path(run_dir),
        0,
        jmeter.Home("java", described["jmeter"], f"{described['folder']}/jmx/user.properties"),
        jmeter.CONTROLLING,
    )
    return {
        **_common(prepared, {f"jmx/{plan.name}": plan.read_bytes()}),
        "follow": {name: name for name in ("samples.jtl", "tree.xml", "jmeter.log", "jmeter.out")},
        "command": [*command, *_remote_options(slaves, master.host.address, HOST_PROPERTIES)],
        "cut": None,
    }


def controller_command(prepared: Prepared, slaves: Sequence[Member]) -> list[str]:
    """The command of a JMeter's controller on this machine."""
    values = {"tree": prepared.values["tree"], **prepared.jmeter_values}
    port = jmeter.free_udp_port()
    command = jmeter.run_command(prepared.plan, values, prepared.run_dir, port, java_options=jmeter.CONTROLLING)
    own_address = _own_address(slaves[0].host.address)
    return [*command, *_remote_options(slaves, own_address, CONTROLLER_PROPERTIES)]


def _remote_options(slaves: Sequence[Member], own_address: str, settings: Path) -> list[str]:
    addresses = [f"{slave.host.address}:{slave.facts['described']['rmi_port']}" for slave in slaves]
    # The mode is the kit's to choose, whatever the file says; JMeter takes it from the controller alone.
    return [*jmeter.remote_options(addresses, own_address, settings), f"-Jmode={rmi.MODE}"]


def _run_dir(prepared: Prepared, member: Member) -> str:
    return f"{member.facts['described']['runs']}/{prepared.run_dir.name}"


def _common(prepared: Prepared, files: Mapping[str, bytes]) -> dict[str, Any]:
    return {
        "run": prepared.run_dir.name,
        "controller": f"{prepared.run_dir.name} of {socket.gethostname()}",
        "files": {path: base64.b64encode(content).decode() for path, content in files.items()},
    }


def _sample_variables(prepared: Prepared) -> dict[str, str]:
    """Which variables samples carry is asked on the slaves, what is made of them on the controller."""
    name = "sample_variables"
    return {name: prepared.jmeter_values[name]} if name in prepared.jmeter_values else {}


def _own_address(towards: str) -> str:
    """By which address of this machine a host is reached, and so reaches it back; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((towards, 9))
        return str(probe.getsockname()[0])


def _properties_file(properties: Mapping[str, str]) -> bytes:
    """Java's format: ASCII, backslashes doubled, no line breaks within a value."""
    lines = []
    for name, value in properties.items():
        escaped = json.dumps(value)[1:-1].replace('\\"', '"')
        lines.append(f"{name}={(escaped[:1] == ' ' and chr(92)) or ''}{escaped}\n")
    return "".join(lines).encode("ascii")
