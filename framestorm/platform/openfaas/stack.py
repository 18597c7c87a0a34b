"""Starting and stopping the whole: the local OpenFaaS as one thing."""

import fcntl
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from framestorm.errors import FramestormError
from framestorm.machine import last_lines
from framestorm.platform.openfaas import balancers, config, docker, docker_images, parts, services, state
from framestorm.platform.openfaas.layout import HOME, LOGS, NAMESPACE, PROVIDER_STATE, STATE
from framestorm.platform.openfaas.services import Program
from framestorm.platform.openfaas.state import State
from framestorm.setup import pieces as setup

CGROUP_ROOT = Path("/sys/fs/cgroup")
CGROUP = "framestorm-openfaas"


def up(backend: str) -> State:
    """Set up what is missing and start every part; what runs already and is whole is left as it is.

    Raises:
        FramestormError: a port is taken, or a part did not get ready; nothing is left running then.
    """
    setup.ensure(parts.PIECES)
    with _locked():
        before = state.read()
        if before is not None and before.backend == backend and not before.dead():
            return before
        programs = services.programs(backend)
        if before is None:
            # Control groups are the machine's: with the ports taken, what is in them is of another checkout.
            services.check_ports_free(programs)
        _end()
        if backend == "docker":
            docker.ensure_engine()
            docker_images.ensure()
        config.write()
        services.check_ports_free(programs)
        return _start(backend, programs)


def _start(backend: str, programs: Sequence[Program]) -> State:
    started = State(backend, {})
    try:
        for program in programs:
            process = services.launch(program)
            # Before it is ready: should this process be killed now, the next start still knows of what it left.
            started = State(backend, {**started.services, program.name: state.of(process.pid)})
            state.write(started)
            services.wait_until_ready(program, process)
    except BaseException:
        _end()
        raise
    return started


def down() -> list[str]:
    """End all and forget deployments and secrets; the names of what was still running."""
    with _locked():
        running = _end()
    for kept in (PROVIDER_STATE / "functions.json", PROVIDER_STATE / "secrets"):
        shutil.rmtree(kept) if kept.is_dir() else kept.unlink(missing_ok=True)
    return running


def _end() -> list[str]:
    """End exactly what was started, also what a killed part left behind; functions are there again after `up`."""
    balancers.stop_all()
    before = state.read()
    running: list[str] = []
    if before is not None:
        running = [name for name, service in before.services.items() if service.process() is not None]
        # The gateway first: no new requests; the provider last, it lets those under way finish.
        for name in reversed(list(before.services)):
            state.end([before.services[name]], grace_s=15.0 if name == "provider" else 5.0)
        STATE.unlink()
    _clear_cgroups()
    if before is not None and before.backend == "docker":
        _remove_containers()
        docker.stop_engine()
    return running


def restart(name: str, queue_at_once: int = services.QUEUE_AT_ONCE) -> None:
    """End one part and start it again, as after an update of it; `queue_at_once` is for the queue-worker.

    Raises:
        FramestormError: nothing was started, or there is no part of that name.
    """
    with _locked():
        before = state.read()
        if before is None or name not in before.services:
            raise FramestormError(f"no {name} of the local OpenFaaS was started; start all by ./run.sh target openfaas")
        program = next(each for each in services.programs(before.backend, queue_at_once) if each.name == name)
        state.end([before.services[name]])
        pid = services.start(program)
        state.write(State(before.backend, {**before.services, name: state.of(pid)}))


def queue_at_once() -> int:
    """How many requests the queue-worker has under way at a time, as it was started.

    Raises:
        FramestormError: it does not run.
    """
    started = state.read()
    service = started.services.get("queue-worker") if started else None
    process = service.process() if service else None
    if process is None:
        raise FramestormError("the queue-worker does not run; see ./run.sh target status")
    return int(process.environ().get("max_inflight", services.QUEUE_AT_ONCE))


@contextmanager
def _locked() -> Iterator[None]:
    """Keep another process of this checkout from starting or ending parts at the same time; it waits."""
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _clear_cgroups() -> None:
    """End what is in the replicas' control groups, which the provider alone makes, and remove these."""
    for parent in {*CGROUP_ROOT.glob(CGROUP), *CGROUP_ROOT.glob(f"*/{CGROUP}")}:
        for group in [*parent.iterdir(), parent]:
            if not group.is_dir():
                continue
            pids = [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
            state.end([state.of(pid) for pid in pids], grace_s=0)
            try:
                group.rmdir()
            except OSError:
                continue


def _remove_containers() -> None:
    """Remove containers that a killed provider left behind."""
    if shutil.which("docker") is None or not docker.is_running():
        return
    label = f"label=framestorm.openfaas={NAMESPACE}"
    containers = subprocess.run(["docker", "ps", "-aq", "--filter", label], capture_output=True, text=True, check=False)
    if ids := containers.stdout.split():
        subprocess.run(["docker", "rm", "--force", *ids], capture_output=True, check=False)


def ended_parts() -> str | None:
    """Why a run against the local OpenFaaS cannot be trusted any more: which part ended, with its last output."""
    started = state.read()
    dead = started.dead() if started else []
    if not dead:
        return None
    words = "\n".join(last_lines(LOGS / f"{name}.log") for name in dead)
    return f"{', '.join(dead)} of the local OpenFaaS ended during the run; {words}"
