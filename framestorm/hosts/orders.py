"""The orders for each host of a run, with their files and command lines."""

import re
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from framestorm import client_server, paths
from framestorm.hosts import parcel as parcels
from framestorm.hosts.member import Delivery, Member
from framestorm.hosts.messages import Begin, Description, Open
from framestorm.hosts.parcel import Parcel
from framestorm.load import kit_load
from framestorm.model.run import Rmi
from framestorm.run import jmeter, properties, video
from framestorm.run.preparation import Prepared
from framestorm.run.settings import jmeter_names, kit_settings

# Written by the playbook: RMI's ports and, with SSL, its key; the second file is a host's own copy.
CONTROLLER_PROPERTIES = paths.LOCAL / "deploy" / "jmeter.properties"
HOST_PROPERTIES = Path("/etc/framestorm/jmeter.properties")
MODE = "framestorm.GroupSender"  # jmx/java/GroupSender.java
# https://jmeter.apache.org/usermanual/remote-test.html#sendmode; why Asynch lost rows is not known.
WHY = (
    "complete rows have priority over speed. GroupSender sends every complete sample, with response data, before its "
    "thread continues, as JMeter's Standard does, and what several threads have ready in one call: if a slave is lost, "
    "only its samples in flight are lost. Batch, Hold and DiskStore keep "
    "finished samples on the slave for a while, and they would be lost with it; Asynch lost some even without that; "
    "the Stripped modes drop the response data, and Statistical drops the samples."
)


def slave_delivery(prepared: Prepared, parcel: Parcel, number: int, slave: Member) -> Delivery:
    """Return what slave `number` gets: JMeter's server there then waits for the start, with its share of the load."""
    described = slave.facts.described
    run_dir = _run_dir(prepared, slave)
    of_plan = parcel.values_on(number, f"{run_dir}/{parcels.FOLDER}")
    values = {
        **prepared.settings.values,
        **{name: slave.share[name] for name in prepared.settings.values if name in slave.share},
    }
    files: dict[str, Path | bytes] = {**parcel.files_of(number)}
    sent = video.on_slave(prepared.plan, values, run_dir, described.video, described.cache)
    files |= sent.files
    paths_there = {
        "python": described.python,
        "client_dir": str(PurePosixPath(described.client).parent),
        "client_server": client_server.new_name(run_dir),
        "cache": described.cache,
        **sent.values,
        "client_log": f"{run_dir}/client.log",
        "journal": f"{run_dir}/journal.jsonl",
        "stop": f"{run_dir}/stop",
    }
    values_there = {name: paths_there.get(name, value) for name, value in values.items()}
    # The slaves need to know which variables samples carry, the controller how to write them.
    of_slaves = {"sample_variables", *kit_settings(prepared.plan)}
    values_there |= {name: value for name, value in prepared.settings.of_jmeter.items() if name in of_slaves}
    if kit_load.PROPERTY in prepared.settings.of_jmeter and prepared.kit_load is not None:
        files[kit_load.FILE] = prepared.kit_load.written.encode()
        values_there[kit_load.PROPERTY] = kit_load.reference(run_dir, number, parcel.division.slaves)
    # What JMeter does not have is read by the plan, though perhaps where it cannot be seen, as in a script.
    of_scripts = {name: value for name, value in prepared.settings.given.items() if name not in jmeter_names()}
    files["run.properties"] = properties.written({**of_scripts, **values_there, **prepared.settings.extra, **of_plan})
    tls = parcel.tls_on(f"{run_dir}/{parcels.FOLDER}")
    files |= {"system.properties": properties.written(tls)} if tls else {}
    name = slave.host.name
    follow = {
        f"journal-{name}.jsonl": "journal.jsonl",
        f"client-{name}.log": "client.log",
        f"jmeter-server-{name}.log": described.log,
    }
    server = values_there.get("client_server")
    environment = {**parcel.secrets, **parcel.jars_on(f"{run_dir}/{parcels.FOLDER}")}
    return Delivery(_open(prepared), files, Begin(follow, cut=sent.cut, environment=environment, client_server=server))


def controller_delivery(prepared: Prepared, parcel: Parcel, master: Member, slaves: Sequence[Member]) -> Delivery:
    """Return the files and the order with which the master runs JMeter's controller."""
    described = master.facts.described
    run_dir = _run_dir(prepared, master)
    files, words = parcel.files_of_controller(), []
    for number, word in enumerate(prepared.what.for_jmeter):
        is_file = word[1] in "pqS"
        words.append(f"{word[:2]}{run_dir}/settings-{number}" if is_file else word)
        files |= {f"settings-{number}": Path(word[2:])} if is_file else {}
    command = jmeter.run_command(
        Path(f"{run_dir}/{parcels.FOLDER}/{parcel.plan.name}"),
        {
            "tree": f"{run_dir}/tree.xml",
            **prepared.settings.of_jmeter,
            **parcel.class_paths_on(f"{run_dir}/{parcels.FOLDER}"),
            **parcel.of_fragments,
        },
        Path(run_dir),
        jmeter.Home("java", described.jmeter, f"{described.folder}/jmx/user.properties"),
        jmeter.CONTROLLING,
        words,
    )
    follow = {name: name for name in ("samples.jtl", "tree.xml", "jmeter.log", "jmeter.out", *parcel.outputs)}
    command += remote_options(_addresses(slaves), master.host.address, HOST_PROPERTIES)
    return Delivery(_open(prepared), files, Begin(follow, command))


def controller_command(prepared: Prepared, parcel: Parcel, slaves: Sequence[Member]) -> list[str]:
    """Return the command that runs JMeter's controller on this machine."""
    tree = {name: value for name, value in prepared.settings.values.items() if name == "tree"}
    values = {**tree, **prepared.settings.of_jmeter, **parcel.of_fragments}
    words = prepared.what.for_jmeter
    command = jmeter.run_command(parcel.plan, values, prepared.run_dir, None, jmeter.CONTROLLING, words)
    own_address = _own_address(slaves[0].host.address)
    return [*command, *remote_options(_addresses(slaves), own_address, CONTROLLER_PROPERTIES)]


def _addresses(slaves: Sequence[Member]) -> list[str]:
    return [rmi_address(slave) for slave in slaves]


def rmi_address(slave: Member) -> str:
    """Return where JMeter's server on a slave listens."""
    return f"{slave.host.address}:{slave.facts.described.rmi_port}"


def remote_options(addresses: Sequence[str], own_address: str, settings: Path) -> list[str]:
    """The options for a run over slaves with these addresses; the file `settings` has the same RMI ports as they."""
    # The name of a Debian host resolves to its loopback, where slaves do not reach it. The kit chooses the mode,
    # whatever the file says; JMeter uses only the controller's setting.
    return [
        "-q",
        str(settings),
        f"-Djava.rmi.server.hostname={own_address}",
        f"-Dframestorm.slaves={','.join(address.rpartition(':')[0] for address in addresses)}",
        "-R",
        ",".join(addresses),
        f"-Jframestorm.servers={','.join(addresses)}",
        f"-Jmode={MODE}",
    ]


def _run_dir(prepared: Prepared, member: Member) -> str:
    return f"{member.facts.described.runs}/{_run_name(prepared)}"


def _open(prepared: Prepared) -> Open:
    return Open(_run_name(prepared), f"{prepared.run_dir.name} of {socket.gethostname()}")


def _run_name(prepared: Prepared) -> str:
    """The name of the run's folder on the host, without spaces: systemd and JMeter split their options at spaces."""
    return re.sub(r"[^A-Za-z0-9._=,+-]", "_", prepared.run_dir.name)


def callback(slave: Member) -> tuple[str, int]:
    """Where slaves connect to a controller on this machine: address and first port, with SSL any free one (0)."""
    described = slave.facts.described
    return _own_address(slave.host.address), 0 if described.rmi_ssl else described.rmi_port + 1


def _own_address(towards: str) -> str:
    """Return the address of this machine on the route to a host, at which the host can reach it; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((towards, 9))
        return str(probe.getsockname()[0])


def rmi(slaves: Iterable[Description]) -> Rmi:
    """Return how the slaves send samples to JMeter's controller, and why this way."""
    hosts = list(slaves)
    ssl = any(host.rmi_ssl for host in hosts)
    ports = sorted({host.rmi_port for host in hosts})
    # The values set in ansible/roles/jmeter/templates/jmeter.properties.j2.
    of_slaves = ", ".join(f"{port} and {port + 1}" if ssl else f"{port}" for port in ports)
    return Rmi(MODE.rpartition(".")[2], WHY, ssl, of_slaves, "any" if ssl else f"{ports[0] + 1} and {ports[0] + 2}")
