"""Faults that tests cause on hosts, to see how a run copes with them.

Processes are looked up by a part of their command line among those of the host, from outside of it.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from framestorm.machine import execute
from lab import groups, network
from lab.hosts import LabError, LabHost


def cut(host: LabHost) -> None:
    """Pull the network cable."""
    network.set_link(host.name, connected=False)


def reconnect(host: LabHost) -> None:
    """Plug the network cable in again."""
    network.set_link(host.name, connected=True)


def slow_down(host: LabHost, rate: str) -> None:
    """Let a host receive slowly."""
    network.limit_rate(host.name, rate)


def speed_up(host: LabHost) -> None:
    """Let it receive as fast as ever."""
    network.limit_rate(host.name, None)


def move_away(host: LabHost, delay_ms: float, loss: float) -> None:
    """Let all that a host sends and gets take `delay_ms` each way, and lose the share `loss` of it."""
    network.move_away(host.name, delay_ms, loss)


def move_back(host: LabHost) -> None:
    """Bring it near again."""
    network.move_back(host.name)


def drop(host: LabHost, chain: str) -> None:
    """Lose all that comes to the host (chain INPUT) or goes from it (OUTPUT), and nothing the other way."""
    _iptables(host, "-I", chain)


def pass_all(host: LabHost, chain: str) -> None:
    """Take that back."""
    _iptables(host, "-D", chain)


def _iptables(host: LabHost, what: str, chain: str) -> None:
    device = "-i" if chain == "INPUT" else "-o"
    _run_on(host, "iptables", "-w", what, chain, device, "host0", "-j", "DROP")


def _run_on(host: LabHost, *command: str) -> None:
    # In its process tree too: `umount` asks /proc about itself.
    execute("nsenter", f"--target={_init(host)}", "--mount", "--net", "--pid", *command)


def mount_disk(host: LabHost, folder: str, size_bytes: int) -> None:
    """Put an empty disk of that size in the place of a folder."""
    options = f"size={size_bytes},$(stat -c uid=%u,gid=%g,mode=%a {folder})"
    _run_on(host, "sh", "-c", f"mount -t tmpfs -o {options} tmpfs {folder}")


def fill_disk(host: LabHost, folder: str) -> None:
    """Leave a page of that disk."""
    used = f"$(( ($(stat -f -c '(%b - %f) * %S' {folder})) + 4096 ))"
    _run_on(host, "sh", "-c", f"mount -o remount,size={used} {folder}")


def unmount_disk(host: LabHost, folder: str) -> None:
    """Take the disk away, with what is on it."""
    _run_on(host, "umount", "--lazy", folder)


def matching(host: LabHost, part: str) -> list[int]:
    """Return the host's processes with `part` in their command line, as this machine numbers them."""
    return [pid for pid in groups.processes(host.name) if part in _command_line(pid)]


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def signal_all(host: LabHost, part: str, number: signal.Signals) -> list[int]:
    """Send a signal to the host's processes with `part` in their command line; their process ids."""
    pids = matching(host, part)
    if not pids:
        raise LabError(f"no process on {host.name} has {part!r} in its command line")
    for pid in pids:
        os.kill(pid, number)
    return pids


def freeze(host: LabHost, part: str) -> list[int]:
    """Stop processes where they are: they keep their connections and send nothing (SIGSTOP)."""
    return signal_all(host, part, signal.SIGSTOP)


def thaw(host: LabHost, part: str) -> list[int]:
    """Let frozen processes go on."""
    return signal_all(host, part, signal.SIGCONT)


def kill(host: LabHost, part: str) -> list[int]:
    """End processes without a chance to tidy up (SIGKILL)."""
    return signal_all(host, part, signal.SIGKILL)


def reboot(host: LabHost) -> None:
    """Restart a host at once, as by its reset button; it comes back by itself."""
    # systemd takes SIGRTMIN+15 as "reboot immediately, without stopping anything"
    os.kill(_init(host), signal.SIGRTMIN + 15)


def _init(host: LabHost) -> int:
    """Return the host's process 1."""
    return min(pid for pid in groups.processes(host.name) if _is_init(pid))


def _is_init(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
    return len(numbers) > 1 and numbers[-1] == "1"
