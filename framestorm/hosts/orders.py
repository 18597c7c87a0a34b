"""The orders for each host of a run, with their files and command lines."""

import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path, PurePosixPath

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.hosts.member import Delivery, Member
from framestorm.hosts.messages import Begin, Description, Open
from framestorm.model.plan import Plan
from framestorm.model.run import Rmi
from framestorm.run import jmeter, properties
from framestorm.run.preparation import Prepared

# Written by the playbook: RMI's ports and, with SSL, its key; the second file is a host's own copy.
CONTROLLER_PROPERTIES = paths.LOCAL / "deploy" / "jmeter.properties"
HOST_PROPERTIES = Path("/etc/framestorm/jmeter.properties")
MODE = "Standard"
# https://jmeter.apache.org/usermanual/remote-test.html#sendmode; why Asynch lost rows is not known.
WHY = (
    "complete rows have priority over speed. Standard sends every complete sample, with response data, before its "
    "thread continues: if a slave is lost, only its samples in flight are lost. Batch, Hold and DiskStore keep "
    "finished samples on the slave for a while, and they would be lost with it; Asynch lost some even without that; "
    "the Stripped modes drop the response data, and Statistical drops the samples."
)


def split(plan: Plan, values: Mapping[str, str], slaves: int) -> list[dict[str, str]]:
    """Each slave's part of the run's totals; every slave runs the whole plan, and the parts add up exactly.

    A slave may get 0 users: it is then left out of the run by the caller.
    """
    shares: list[dict[str, str]] = [{} for _ in range(slaves)]
    for total in plan.totals:
        if total.name not in values:
            raise UsageError(f"-J{total.name}= has to be set: it is split over the slaves")
        if total.is_whole_number:
            # 5 users on 2 slaves are 3 and 2.
            each, more = divmod(int(values[total.name]), slaves)
            parts = [str(each + (number < more)) for number in range(slaves)]
        else:
            # Equal to a millionth; the first slave gets the rounding remainder, so that the sum is exact.
            whole = Decimal(values[total.name])
            part = round(whole / slaves, 6).normalize()
            parts = [f"{(whole - part * (slaves - 1)).normalize():f}", *[f"{part:f}"] * (slaves - 1)]
        for share, text in zip(shares, parts, strict=True):
            share[total.name] = text
    return shares


def slave_delivery(prepared: Prepared, slave: Member) -> Delivery:
    """What a slave gets: JMeter's server there then waits for the start, with this slave's share of the load."""
    described = slave.facts.described
    run_dir = _run_dir(prepared, slave)
    values = {**prepared.values, **slave.share}
    files: dict[str, Path | bytes] = {}
    video = described.video
    video_name = prepared.plan.video.name if prepared.plan.video else ""
    if video_name and Path(values[video_name]) != paths.SAMPLE_VIDEO:
        source = Path(values[video_name])
        video = f"{run_dir}/video{source.suffix}"
        files[f"video{source.suffix}"] = source
    paths_there = {
        "python": described.python,
        "client_dir": str(PurePosixPath(described.client).parent),
        "cache": described.cache,
        video_name: video,
        "client_log": f"{run_dir}/client.log",
        "journal": f"{run_dir}/journal.jsonl",
        "stop": f"{run_dir}/stop",
    }
    values_there = {name: paths_there.get(name, value) for name, value in values.items()}
    # The slaves need to know which variables samples carry, the controller how to write them.
    values_there |= {name: value for name, value in prepared.jmeter_values.items() if name == "sample_variables"}
    files["run.properties"] = properties.written({**values_there, **prepared.options.extra})
    cut = None
    if video_name:
        cut = ["--video", video, "--encoding", values.get("encoding", "png-base64"), "--cache", described.cache]
    name = slave.host.name
    follow = {
        f"journal-{name}.jsonl": "journal.jsonl",
        f"client-{name}.log": "client.log",
        f"jmeter-server-{name}.log": described.log,
    }
    return Delivery(_open(prepared), files, Begin(follow, cut=cut))


def controller_delivery(prepared: Prepared, master: Member, slaves: Sequence[Member]) -> Delivery:
    """What the master gets to run JMeter's controller."""
    plan, described = prepared.plan.path, master.facts.described
    run_dir = _run_dir(prepared, master)
    command = jmeter.run_command(
        Path(f"{run_dir}/jmx/{plan.name}"),
        {"tree": f"{run_dir}/tree.xml", **prepared.jmeter_values},
        Path(run_dir),
        0,
        jmeter.Home("java", described.jmeter, f"{described.folder}/jmx/user.properties"),
        jmeter.CONTROLLING,
        prepared.options.for_jmeter,
    )
    follow = {name: name for name in ("samples.jtl", "tree.xml", "jmeter.log", "jmeter.out")}
    command += _remote_options(slaves, master.host.address, HOST_PROPERTIES)
    return Delivery(_open(prepared), {f"jmx/{plan.name}": plan}, Begin(follow, command))


def controller_command(prepared: Prepared, slaves: Sequence[Member]) -> list[str]:
    """The command that runs JMeter's controller on this machine."""
    values = {"tree": prepared.values["tree"], **prepared.jmeter_values}
    port = jmeter.free_udp_port()
    command = jmeter.run_command(
        prepared.plan.path, values, prepared.run_dir, port, None, jmeter.CONTROLLING, prepared.options.for_jmeter
    )
    own_address = _own_address(slaves[0].host.address)
    return [*command, *_remote_options(slaves, own_address, CONTROLLER_PROPERTIES)]


def _remote_options(slaves: Sequence[Member], own_address: str, settings: Path) -> list[str]:
    """The options for a distributed run; the file `settings` has the same RMI ports as the slaves."""
    addresses = ",".join(f"{slave.host.address}:{slave.facts.described.rmi_port}" for slave in slaves)
    # The name of a Debian host resolves to its loopback, where slaves do not reach it. The kit chooses the mode,
    # whatever the file says; JMeter uses only the controller's setting.
    return ["-q", str(settings), f"-Djava.rmi.server.hostname={own_address}", "-R", addresses, f"-Jmode={MODE}"]


def _run_dir(prepared: Prepared, member: Member) -> str:
    return f"{member.facts.described.runs}/{_run_name(prepared)}"


def _open(prepared: Prepared) -> Open:
    return Open(_run_name(prepared), f"{prepared.run_dir.name} of {socket.gethostname()}")


def _run_name(prepared: Prepared) -> str:
    """The name of the run's folder on the host, without spaces: systemd and JMeter split their options at spaces."""
    return re.sub(r"[^A-Za-z0-9._=,+-]", "_", prepared.run_dir.name)


def _own_address(towards: str) -> str:
    """The address of this machine on the route to a host, at which the host can reach it; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((towards, 9))
        return str(probe.getsockname()[0])


def rmi(slaves: Iterable[Description]) -> Rmi:
    """How the slaves send samples to JMeter's controller, and why this way."""
    hosts = list(slaves)
    ssl = any(host.rmi_ssl for host in hosts)
    ports = sorted({host.rmi_port for host in hosts})
    # The values set in ansible/roles/jmeter/templates/jmeter.properties.j2.
    of_slaves = ", ".join(f"{port} and {port + 1}" if ssl else f"{port}" for port in ports)
    return Rmi(MODE, WHY, ssl, of_slaves, "any" if ssl else f"{ports[0] + 1} and {ports[0] + 2}")
