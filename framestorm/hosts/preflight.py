"""Checks of every host before any load: each failure names the host, what is wrong, and the remedy."""

from collections.abc import Sequence
from pathlib import Path

from framestorm import paths, probe
from framestorm.hosts.member import HostError, Member, together
from framestorm.hosts.messages import HostFacts
from framestorm.run import capacity
from framestorm.run.capacity import Demand
from framestorm.run.output import NEEDED_DISK_BYTES

CLOCK_WITHIN_MS = 100.0


def kit_files() -> list[str]:
    """Return the files of the checkout that a slave gets by ansible/pack.py and must have as they are here."""
    patterns = Path(__file__).with_name("kit.txt").read_text().split()
    return [str(path.relative_to(paths.ROOT)) for each in patterns for path in sorted(paths.ROOT.glob(each))]


def faults(members: Sequence[Member], slaves: Sequence[Member], target: str) -> dict[Member, list[str]]:
    """Ask all members for their facts; returns why each cannot take part (an empty list if it can).

    target: host:port that the slaves will send to, which this machine may not reach; empty if it is not known.
    """
    files = kit_files()
    unknown = together(lambda member: _learn(member, files), members)
    reasons = {member: [why] if why else [] for member, why in zip(members, unknown, strict=True)}
    reached = [member for member in members if not reasons[member]]
    versions = [member.facts.java for member in reached if member.facts.java]
    java = max(versions, key=versions.count, default=None)
    here = HostFacts(
        jmeter=probe.jmeter_version(paths.JMETER_HOME),
        kit=probe.digest(paths.ROOT, files),
        additions=probe.additions(paths.JMETER_HOME),
    )
    with_ssl = [member.facts.described.rmi_ssl for member in reached]
    ssl = max(with_ssl, key=with_ssl.count, default=False)
    for member in reached:
        reasons[member] = _faults(member, java, here, ssl)
    senders = [slave for slave in slaves if target and not reasons[slave]]
    for slave, why in zip(senders, together(lambda slave: slave.why_unreached(target), senders), strict=True):
        if why:
            reasons[slave].append(
                f"{slave.host.name} ({slave.host.place}) cannot connect to {target}: {why}; check the URL, that "
                "the gateway or the function is running, and the firewalls between"
            )
    for name in {member.facts.hostname for member in reached}:
        # Who has another fault takes no part. A master may be a slave too.
        named = [member for member in members if member.facts.hostname == name and not reasons[member]]
        of_slaves = [member for member in slaves if member in named]
        places = {member.host.address for member in of_slaves}
        masters = [member for member in named if member not in slaves and places - {member.host.address}]
        namesakes = [*masters, *of_slaves]
        for other in namesakes[1:]:
            reasons[other].append(
                f"{namesakes[0].host.name} and {other.host.name} have the same host name, {name}: their samples "
                "could not be told apart; give each its own"
            )
    return reasons


def shortages(slaves: Sequence[Member], asked: Demand) -> list[str]:
    """Return why slaves cannot hold their part of the users, each with its figures; empty if all can."""
    return [
        f"{slave.host.name} ({slave.host.place}) {reason}"
        for slave in slaves
        for reason in capacity.shortages(asked, slave.facts.limits)
    ]


def _learn(member: Member, files: Sequence[str]) -> str | None:
    """Return why the facts of a host cannot be read; None if they were."""
    try:
        member.learn(files)
    except HostError as error:
        return str(error)
    return None


def _faults(member: Member, java: str | None, here: HostFacts, ssl: bool) -> list[str]:
    """Return the reasons why a host with known facts and clock cannot take part, each with the remedy; empty if it can.

    here: this machine's own facts, as far as the host's must be the same.
    """
    facts, set_up = member.facts, member.host.set_up
    reasons = []
    if facts.java is None:
        reasons.append(f"has no Java; {set_up}")
    elif facts.java != java:
        reasons.append(f"has Java {facts.java}, the others {java}; {set_up}")
    if facts.jmeter != here.jmeter:
        reasons.append(f"has JMeter {facts.jmeter or 'none'}, this machine {here.jmeter}; {set_up}")
    elif facts.additions != here.additions:
        reasons.append(f"has other additions to JMeter than this machine; {set_up}")
    if facts.kit != here.kit:
        reasons.append(f"has another version of the kit than this checkout; {set_up}")
    if facts.described.address and facts.described.address != member.host.address:
        reasons.append(
            f"was deployed with the address {facts.described.address}, and now has {member.host.address}; {set_up}"
        )
    if facts.described.rmi_ssl != ssl:
        way = "without" if ssl else "with"
        reasons.append(f"was deployed {way} framestorm_rmi_ssl=true, unlike the others; {set_up}")
    if facts.described.unit and facts.unit != "loaded":
        reasons.append(f"has no unit {facts.described.unit}; {set_up}")
    if facts.busy_with:
        reasons.append(f"is busy with the run {facts.busy_with}; wait until that ends, or stop it there")
    if facts.free_bytes < NEEDED_DISK_BYTES:
        reasons.append(
            f"has {facts.free_bytes >> 20} MiB of disk left, a run needs {NEEDED_DISK_BYTES >> 20}; make room"
        )
    if abs(member.clock_offset_ms) > CLOCK_WITHIN_MS:
        reasons.append(
            f"has a clock that is {member.clock_offset_ms:+.0f} ms off; at most {CLOCK_WITHIN_MS:.0f} ms are "
            "allowed: see `chronyc tracking` there"
        )
    return [f"{member.host.name} ({member.host.place}) {fault}" for fault in reasons]
