"""Facts about a host from /proc, systemd and its files.

This file is sent to the host with the agent, so like the agent it needs only the host's Python (3.10 or later).
"""

import contextlib
import fcntl
import hashlib
import itertools
import os
import pwd
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

PROC = Path("/proc")
BLOCK_BYTES = 1 << 20
MEASURED_FORKS = 16
CGROUPS = Path("/sys/fs/cgroup")
# In a JMeter's home; and within it, a file with the digest of what it was made of.
# The kit's own classes, which JMeter takes for a plug-in; and those of JMeter that the kit has made anew.
ADDITIONS, ADDITIONS_OF = "lib/ext/framestorm-plugin.jar", "framestorm/made-of"
PATCHES = "lib/framestorm.jar"
# The files with a limit and with what is used of it, by what they limit; those of cgroups v1 come second.
CGROUP_FILES = {
    "memory": (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")),
    "pids": (("pids.max", "pids.current"),),
}


@dataclass(frozen=True)
class Limits:
    """What a host has left for a run; 0: not known, or without limit.

    tasks: threads and processes. ports: for connections to one address.
    heap_bytes: of a JMeter server that runs there.
    """

    memory_bytes: int = 0
    tasks: int = 0
    open_files: int = 0
    ports: int = 0
    heap_bytes: int = 0


class Quota(NamedTuple):
    """The cores that a cgroup may use, and the CPU time that it has used so far."""

    cores: float
    used_s: float


class Usage(NamedTuple):
    """Resources used so far by processes, and by the whole host.

    host_cpu_s: of the cores that the affinity allows, `cores_allowed` of them. quota: of their cgroup, if it has less.
    """

    at_s: float
    cpu_s: float
    rss_bytes: int
    processes: int
    host_cpu_s: float
    host_memory_bytes: int
    cores_allowed: int = 0
    quota: Quota | None = None

    def percents_since(self, before: "Usage") -> tuple[float, float]:
        """Return how busy the processes, and the whole host, kept cores since then; 100 percent is one core.

        With a quota, the host's cores are those of the quota: one is busy if the cgroup uses it, or if none is idle.
        A process that ended unwaited for takes its time with it: that is never shown as negative work.
        """
        passed_s = max(self.at_s - before.at_s, 1e-3)
        of_processes, of_host = self.cpu_s - before.cpu_s, self.host_cpu_s - before.host_cpu_s
        if self.quota is not None and before.quota is not None:
            idle_s = self.cores_allowed * passed_s - of_host
            of_host = max(self.quota.used_s - before.quota.used_s, self.quota.cores * passed_s - idle_s)
        return max(0.0, of_processes) * 100 / passed_s, max(0.0, of_host) * 100 / passed_s


def usage(pids: Iterable[int], process: str = "self") -> Usage:
    """Usage of running processes and of their ended children, so that short-lived clients count too.

    The accounting of a systemd unit would be enough, but not every container has it.

    process: the one whose affinity and cgroups say which cores they may use.
    """
    stats = {pid: fields for pid in pids if (fields := stat(str(pid)))}
    # proc(5), from field 3 on: utime, stime, cutime, cstime
    ticks = sum(int(word) for fields in stats.values() for word in fields[11:15])
    allowed = _allowed(process)
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    memory_bytes, left_bytes = memory(process)
    return Usage(
        time.monotonic(),
        ticks * tick_s,
        _memory_bytes(stats),
        len(stats),
        _busy_ticks(allowed) * tick_s,
        memory_bytes - left_bytes,
        len(allowed),
        _quota(process, len(allowed)),
    )


def memory(process: str = "self") -> tuple[int, int]:
    """Return how much memory a process may use with its cgroups, or with the whole host, and what is left of it."""
    of_host = dict(re.findall(r"(\w+): +(\d+) kB", (PROC / "meminfo").read_text()))
    rooms = [(int(of_host["MemTotal"]) * 1024, int(of_host["MemAvailable"]) * 1024), *_rooms(process, "memory")]
    return min(most for most, _ in rooms), min(left for _, left in rooms)


def cores(process: str = "self") -> float:
    """Return how many cores a process may use, by its affinity and by the quotas of its cgroups."""
    allowed = len(_allowed(process))
    quota = _quota(process, allowed)
    return round(quota.cores, 3) if quota else allowed


def _allowed(process: str) -> set[int]:
    """Return the numbers of the cores that a process may run on; those of this process if it is gone."""
    with contextlib.suppress(ProcessLookupError):
        return os.sched_getaffinity(0 if process == "self" else int(process))
    return os.sched_getaffinity(0)


def _busy_ticks(allowed: set[int]) -> int:
    """Return how long these cores were busy; all where there are no others, or they have other numbers (lxcfs)."""
    busy = {}
    with (PROC / "stat").open() as lines:
        for name, *words in map(str.split, itertools.takewhile(lambda line: line.startswith("cpu"), lines)):
            user, nice, system, _, _, irq, softirq, steal = map(int, words[:8])
            busy[name] = user + nice + system + irq + softirq + steal
    own = {f"cpu{number}" for number in allowed}
    return sum(busy[name] for name in own) if own < busy.keys() - {"cpu"} else busy["cpu"]


def _quota(process: str, allowed: int) -> Quota | None:
    """Return the smallest CPU quota of a process's cgroups; None if no quota is below the number of allowed cores."""
    quotas = []
    for root, group in _cgroups(process, "cpu"):
        v1 = (_text(group / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
        words = _text(group / "cpu.max").split() or [word for text in v1 for word in text.split()]
        used = re.search(r"^usage_usec (\d+)", _text(group / "cpu.stat"), re.MULTILINE)
        # Of v1, two controllers share a hierarchy, or have one each with the same groups in both.
        used_ns = _text(CGROUPS / "cpuacct" / group.relative_to(root) / "cpuacct.usage")
        if len(words) == 2 and words[0].isdecimal() and (used or used_ns):
            quotas.append(Quota(int(words[0]) / int(words[1]), int(used[1]) / 1e6 if used else int(used_ns) / 1e9))
    quota = min(quotas, default=None)
    return quota if quota and quota.cores < allowed else None


def _memory_bytes(stats: Mapping[int, Sequence[str]]) -> int:
    """Resident memory of processes. What those of one program share is counted once, by the shares of some of them.

    They are forks of one process, or programs such as client/launch.pl, which share the files of their interpreter.
    """
    total = 0
    programs = defaultdict(list)
    for pid in stats:
        programs[_text(PROC / str(pid) / "comm")].append(pid)
    for group in programs.values():
        some = group[:: -(-len(group) // MEASURED_FORKS)] if len(group) > 1 else ()
        if shares := [share for pid in some if (share := _shared_bytes(pid))]:
            total += round(sum(shares) / len(shares) * len(group))
        else:
            total += sum(int(stats[pid][21]) for pid in group) * os.sysconf("SC_PAGE_SIZE")
    return total


def _shared_bytes(pid: int) -> int:
    """Return a process's proportional share of the memory that it uses; 0 if it is not to be read. Takes 0.3 ms."""
    match = re.search(r"^Pss: +(\d+) kB", _text(PROC / str(pid) / "smaps_rollup"), re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def limits(process: str = "self") -> Limits:
    """Return what is left for a run by a process, or in its place."""
    running = int((PROC / "loadavg").read_text().split()[3].partition("/")[2])
    # proc(5): each thread has an id of its own.
    most = min(_number(PROC / "sys/kernel" / name) or sys.maxsize for name in ("pid_max", "threads-max"))
    of_process = (PROC / process / "limits").read_text()
    open_files = re.search(r"^Max open files +\S+ +(\d+)", of_process, re.MULTILINE)
    of_account = re.search(r"^Max processes +(\d+)", of_process, re.MULTILINE)
    uid = (PROC / process).stat().st_uid
    left_to_account = int(of_account[1]) - _tasks(uid) if of_account and uid else sys.maxsize  # root has no such limit
    low, high = map(int, (PROC / "sys/net/ipv4/ip_local_port_range").read_text().split())
    return Limits(
        memory_bytes=memory(process)[1],
        tasks=min(most - running, left_to_account, *(left for _, left in _rooms(process, "pids"))),
        open_files=int(open_files[1]) if open_files else 0,
        ports=high - low + 1,
        heap_bytes=heap_bytes((PROC / process / "cmdline").read_bytes()),
    )


def _rooms(process: str, controller: str) -> Iterator[tuple[int, int]]:
    """Yield how much of a resource each cgroup above a process may use, and what is left of it."""
    for _, folder in _cgroups(process, controller):
        for limit, used in CGROUP_FILES[controller]:
            most, now = _number(folder / limit), _number(folder / used)
            if most is not None and now is not None:
                yield most, most - now + (_inactive_bytes(folder) if controller == "memory" else 0)


def _cgroups(process: str, controller: str) -> Iterator[tuple[Path, Path]]:
    """Yield each cgroup above a process that may limit a resource, after the root of its hierarchy."""
    for line in _text(PROC / process / "cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if names and controller not in names.split(","):
            continue
        root = CGROUPS / names
        group = root / path.lstrip("/")
        yield from ((root, each) for each in (group, *group.parents) if each.is_relative_to(root))


def _inactive_bytes(cgroup: Path) -> int:
    """Return the part of a cgroup's memory that holds files not in use, which the kernel gives back first."""
    match = re.search(r"^(?:total_)?inactive_file (\d+)", _text(cgroup / "memory.stat"), re.MULTILINE)
    return int(match[1]) if match else 0


def _text(path: Path) -> str:
    """Return what is in a file, which may have the name of a program in any bytes; empty where it cannot be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    """Return the number in a file; None where there is no such file or no number, such as `max`."""
    try:
        return int(_text(path))
    except ValueError:
        return None


def heap_bytes(command: bytes) -> int:
    """Return the largest heap by a command line of Java; 0 if it names none."""
    sizes = re.findall(rb"\0-Xmx(\d+)([kmg]?)(?=\0)", command, re.IGNORECASE)
    return int(sizes[-1][0]) << {b"": 0, b"k": 10, b"m": 20, b"g": 30}[sizes[-1][1].lower()] if sizes else 0


def clients(pids: Iterable[int]) -> list[int]:
    """Return those of the processes that are users of a plan: on SIGTERM they hand in their results before they end.

    They are recognised by their handler for that signal, not by their name. JMeter has one too (a slave's server has
    its jar in the class path), and so do coreutils' timeout, which kills its client soon after, the shell around it in
    jmx/process.jmx, and client/launch.pl, which passes it on to its user.
    """
    users = []
    for pid in pids:
        with contextlib.suppress(OSError):
            status = dict(re.findall(r"^(\w+):\s*(.*)$", _text(PROC / str(pid) / "status"), re.MULTILINE))
            handles_it = int(status.get("SigCgt", "0"), 16) >> (signal.SIGTERM - 1) & 1
            words = (PROC / str(pid) / "cmdline").read_bytes()
            is_user = b"/ApacheJMeter.jar" not in words and b"/launch.pl" not in words
            is_user = is_user and not words.startswith(b"sh\0-c\0timeout ")
            if handles_it and status["Name"] != "timeout" and is_user:
                users.append(pid)
    return users


def stop_clients(pids: Iterable[int], stopped: set[int]) -> None:
    """Ask each user of a plan once to end; called repeatedly, because users may start until the plan has ended."""
    for pid in set(clients(pids)) - stopped:
        stopped.add(pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # the latter of one of another account, as sudo
            os.kill(pid, signal.SIGTERM)


def stop_jmeter(run_dir: Path, *, is_now: bool) -> None:
    """Tell the JMeter of a run to begin no more samples, or `is_now` to interrupt its users (jmx/java/StopFiles.java).

    A controller tells its slaves.
    """
    (run_dir / ("StopTestNow" if is_now else "Shutdown")).touch()


def processes(account: str) -> list[int]:
    """Return the ids of an account's processes."""
    return _processes(pwd.getpwnam(account).pw_uid)


def _processes(uid: int) -> list[int]:
    pids = []
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == uid:
                pids.append(int(folder.name))
    return pids


def _tasks(uid: int) -> int:
    """Return how many threads and processes an account has."""
    return sum(int(fields[17]) for pid in _processes(uid) if (fields := stat(str(pid))))


def unit_of(pid: int) -> str:
    """Return the kit's systemd unit that a process belongs to; empty if it is of none, or gone."""
    match = re.search(r"/(framestorm-[\w-]+\.service)(?:/|$)", _text(PROC / str(pid) / "cgroup"), re.MULTILINE)
    return match[1] if match else ""


def stat(pid: str) -> list[str]:
    """Return the fields of a process, starting at its state (proc(5), field 3); empty if the process is gone."""
    return _text(PROC / pid / "stat").rpartition(")")[2].split() if pid else []


def output(*command: str) -> str:
    """Return what a command prints, on both of its outputs."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode(errors="replace").strip()


def show(unit: str, name: str) -> str:
    """Return a property of a systemd unit; empty if it has none."""
    match = re.search(rf"^{name}=(.*)$", output("systemctl", "show", unit, f"--property={name}"), re.MULTILINE)
    return match[1] if match else ""


def java_version() -> str | None:
    """Return the version of the Java on the PATH."""
    try:
        match = re.search(r'version "([^"]+)"', output("java", "-version"))
    except FileNotFoundError:
        return None
    return match[1] if match else None


def jmeter_version(home: Path) -> str | None:
    """Return the version of a JMeter, by its jar."""
    cores = list(home.glob("lib/ext/ApacheJMeter_core-*.jar"))
    return cores[0].stem.rpartition("-")[2] if cores else None


def additions(home: Path) -> str | None:
    """A digest of the sources of what the kit has added to a JMeter; None if that is nothing, or does not say it."""
    with contextlib.suppress(OSError, KeyError, zipfile.BadZipFile), zipfile.ZipFile(home / ADDITIONS) as jar:
        return jar.read(ADDITIONS_OF).decode()
    return None


def digest(folder: Path, names: Sequence[str]) -> str | None:
    """Return one hash over the files that plans and clients need, None when one is missing."""
    digest_of_all = hashlib.sha256()
    for name in names:
        try:
            with (folder / name).open("rb") as file:
                for block in iter(lambda: file.read(BLOCK_BYTES), b""):
                    digest_of_all.update(block)
        except OSError:
            return None
    return digest_of_all.hexdigest()


def lock_holder(path: Path) -> str | None:
    """Return the text that a lock's holder has written to its file; None if the lock is free."""
    with contextlib.suppress(FileNotFoundError), path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return file.read()
    return None


def count_lines(file: BinaryIO) -> int:
    """Return the number of lines of an open file, counted from its beginning."""
    file.seek(0)
    return sum(block.count(b"\n") for block in iter(lambda: file.read(BLOCK_BYTES), b""))
