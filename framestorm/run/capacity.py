"""Checks before the load whether the host that generates it has the memory and limits that the run's users need."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from framestorm.load.reading import users_at_once
from framestorm.model.facets import GRPC
from framestorm.model.load import Load
from framestorm.model.plan import Plan
from framestorm.model.units import plural
from framestorm.probe import Limits

MIB, GIB = 2**20, 2**30
# Measured with requests.jmx, 1,020 users against 20: 118 MiB more after a garbage collection, 117 MiB more resident.
THREAD_BYTES = 120 * 2**10
JMETER_BYTES = 450 * MIB
# Garbage and answers under way beside what threads keep: for the heap, which JMeter need not use.
HEAP_BASE_BYTES, HEAP_OF_THREAD_BYTES, HEAP_LEAST_BYTES = 256 * MIB, 512 * 2**10, GIB
# A user by a fork, with its launcher: benchmarks/client_cost.py. What a program of one's own takes is not known.
FORK_BYTES = 6 * MIB
# Measured with infer.jmx, 20 users: 6.1 MB of each are its own, and gRPC has six threads in it.
GRPC_FORK_BYTES, GRPC_TASKS = 7 * MIB, 6
# Measured with face-blur.jmx, 85 users against 5: JMeter has two more threads and two pipes for each user, which is
# its time-out, its launcher and itself. JMeter alone has 40 threads and 190 descriptors.
TASKS, TASKS_OF_PROCESS = 60, 5
OPEN_FILES, OPEN_FILES_OF_THREAD = 250, 2


@dataclass(frozen=True)
class Demand:
    """What a run asks of one host.

    threads: of JMeter, one for each user. processes: those users that are processes; process_bytes: memory of one;
        process_tasks: threads and processes that one takes.
    """

    threads: int = 0
    processes: int = 0
    process_bytes: int = 0
    process_tasks: int = TASKS_OF_PROCESS

    def of_each(self, slaves: int) -> "Demand":
        """Return the largest part that one of so many slaves gets."""
        return replace(
            self,
            threads=math.ceil(self.threads / slaves),
            processes=math.ceil(self.processes / slaves),
        )

    @property
    def heap_bytes(self) -> int:
        """A heap for JMeter that is large enough."""
        return max(HEAP_LEAST_BYTES, HEAP_BASE_BYTES + self.threads * HEAP_OF_THREAD_BYTES)


def asked_of(plan: Plan, loads: Iterable[Load]) -> Demand:
    """Return what the loads of a plan ask for, but for users that are known only during the run."""
    threads = users_at_once(loads, is_serial=plan.is_serial)
    users = threads if plan.has_users else 0
    if plan.url is not None and GRPC in plan.url.facets:
        return Demand(threads, users, GRPC_FORK_BYTES, TASKS_OF_PROCESS + GRPC_TASKS)
    return Demand(threads, users, FORK_BYTES if "client_server" in plan.filled_in else 0)


@dataclass(frozen=True)
class _Resource:
    """One that users take of a host: so much without users, so much for each; `room`: what the host has, 0 if unknown.

    remedy: what makes more room.
    """

    name: str
    base: float
    each: float
    room: float
    remedy: str
    is_bytes: bool = False

    def shortage(self, users: int) -> str | None:
        """Return why so many users cannot have it; None if they can."""
        needed = self.base + self.each * users
        if not self.room or needed <= self.room:
            return None
        most = max(0, int((self.room - self.base) / self.each))
        need = f"{plural(users, 'user')} {'needs' if users == 1 else 'need'}"
        return (
            f"{self.name}: {need} {self._shown(needed)}, but only {self._shown(self.room)} are "
            f"available, enough for {most:,}; {self.remedy}"
        )

    def _shown(self, number: float) -> str:
        return f"{number / GIB:.1f} GiB" if self.is_bytes else f"{number:,.0f}"


def shortages(asked: Demand, limits: Limits) -> list[str]:
    """What the host has too little of, each with the figures and the remedy; empty if it can hold what is asked."""
    processes = asked.processes / max(asked.threads, 1)
    user_bytes = THREAD_BYTES + processes * asked.process_bytes
    user_tasks = 1 + processes * asked.process_tasks
    heap = "./run.sh deploy -e jmeter_server_heap=…, or slave --heap=… in a container"
    tasks = "raise kernel.pid_max, kernel.threads-max, pids.max of its cgroup or the user's limit (ulimit -u)"
    files = "raise the hard limit (ulimit -Hn; on a slave jmeter_server_open_files)"
    resources = (
        _Resource("memory", JMETER_BYTES, user_bytes, limits.memory_bytes, "a host with more memory", is_bytes=True),
        _Resource("heap of JMeter's server", HEAP_BASE_BYTES, THREAD_BYTES, limits.heap_bytes, heap, is_bytes=True),
        _Resource("threads and processes", TASKS, user_tasks, limits.tasks, tasks),
        _Resource("open files", OPEN_FILES, OPEN_FILES_OF_THREAD, limits.open_files, files),
        _Resource("ports", 0, 1, limits.ports, "widen net.ipv4.ip_local_port_range"),
    )
    return [why for each in resources if (why := each.shortage(asked.threads))]
