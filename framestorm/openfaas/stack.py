"""Starting and stopping the whole: the local OpenFaaS as one thing."""

import shutil
import subprocess
from pathlib import Path

from framestorm import setup
from framestorm.errors import FramestormError
from framestorm.openfaas import balancers, config, docker, docker_images, parts, services, state
from framestorm.openfaas.layout import HOME, LOGS, NAMESPACE, PROVIDER_STATE, STATE
from framestorm.openfaas.state import State

CGROUP_ROOT = Path("/sys/fs/cgroup")
CGROUP = "framestorm-openfaas"


def up(backend: str) -> State:
    """Set up what is missing and start every part; what runs already and is whole is left as it is.

    Raises:
        FramestormError: a port is taken, or a part did not get ready; nothing is left running then.
    """
    setup.ensure(parts.PIECES)
    before = state.read()
    if before is not None and before.backend == backend and not before.dead():
        return before
    end()
    if backend == "docker":
        docker.ensure_engine()
        docker_images.ensure()
    config.write()
    programs = services.programs(backend)
    services.check_ports_free(programs)
    HOME.mkdir(parents=True, exist_ok=True)
    started = State(backend, {})
    try:
        for program in programs:
            process = services.launch(program)
            # Before it is ready: should this process be killed now, the next start still knows of what it left.
            started = State(backend, {**started.services, program.name: state.of(process.pid)})
            state.write(started)
            services.wait_until_ready(program, process)
    except BaseException:
        end()
        raise
    return started


def down() -> list[str]:
    """End all and forget deployments and secrets; the names of what was still running."""
    running = end()
    for kept in (PROVIDER_STATE / "functions.json", PROVIDER_STATE / "secrets"):
        shutil.rmtree(kept) if kept.is_dir() else kept.unlink(missing_ok=True)
    return running


def end() -> list[str]:
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
    seen = subprocess.run(["docker", "ps", "-aq", "--filter", label], capture_output=True, text=True, check=False)
    if ids := seen.stdout.split():
        subprocess.run(["docker", "rm", "--force", *ids], capture_output=True, check=False)


def ended_parts() -> str | None:
    """Why a run against the local OpenFaaS cannot be trusted any more: which part ended, with its last output."""
    started = state.read()
    dead = started.dead() if started else []
    if not dead:
        return None
    words = "\n".join(services.last_words(LOGS / f"{name}.log") for name in dead)
    return f"{', '.join(dead)} of the local OpenFaaS ended during the run; {words}"
