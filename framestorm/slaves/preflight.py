"""What must hold on every host before any load: each failure names the host, what was seen, and the cure."""

from pathlib import Path

from framestorm import paths
from framestorm.slaves.member import Member

CLOCK_WITHIN_MS = 100.0
FREE_BYTES = 200 * 2**20
DEPLOY = "run ./run.sh deploy"


def kit_files(plan: Path) -> list[str]:
    """What of the checkout a slave needs to run the plan, by its path there."""
    own = sorted(
        path
        for folder, pattern in ((paths.CLIENT, "*.py"), (plan.parent / "groovy", "*.groovy"))
        for path in folder.glob(pattern)
    )
    return [str(path.relative_to(paths.ROOT)) for path in own]


def faults(member: Member, java: str | None, jmeter: str | None, digest: str | None) -> list[str]:
    """Why this host cannot take part, each with what to do; none when it can.

    Args:
        member: a host whose facts and clock are known.
        java: the version that all hosts must have.
        jmeter: the version of the controlling machine's JMeter.
        digest: the hash of this checkout's own copies of `kit_files`.
    """
    facts = member.facts
    found = []
    if facts["java"] != java:
        found.append(f"has Java {facts['java'] or 'none'}, the others {java}; {DEPLOY}")
    if facts["jmeter"] != jmeter:
        found.append(f"has JMeter {facts['jmeter'] or 'none'}, this machine {jmeter}; {DEPLOY}")
    if facts["kit"] != digest:
        found.append(f"has another version of the client or of the plans' scripts than this checkout; {DEPLOY}")
    if "unit" in facts["described"] and facts["unit"]["LoadState"] != "loaded":
        found.append(f"has no unit {facts['described']['unit']}; {DEPLOY}")
    if facts["busy_with"]:
        found.append(f"is busy with the run {facts['busy_with']}; wait for its end, or end it there")
    if facts["free_bytes"] < FREE_BYTES:
        found.append(f"has {facts['free_bytes'] >> 20} MiB of disk left, a run wants {FREE_BYTES >> 20}; make room")
    if abs(member.clock_offset_ms) > CLOCK_WITHIN_MS:
        found.append(
            f"has a clock that is {member.clock_offset_ms:+.0f} ms off, allowed are {CLOCK_WITHIN_MS:.0f}; "
            "see `chronyc tracking` there"
        )
    return [f"{member.host.name} ({member.host.ssh_host}) {fault}" for fault in found]
