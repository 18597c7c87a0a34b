"""Starting and stopping the whole: the local OpenFaaS as one thing."""

import contextlib
import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.machine import last_lines
from framestorm.platform.openfaas import balancers, config, docker, parts, services
from framestorm.platform.openfaas.layout import HOME, INSTANCE, LOGS, PROVIDER_STATE, STATE
from framestorm.platform.openfaas.services import StartedServices
from framestorm.probe import CGROUPS
from framestorm.setup import pieces as setup


def up(backend: str) -> StartedServices:
    """Set up what is missing and start every part; what runs already and is whole is left as it is.

    Raises:
        UsageError: the path of the checkout is one that its parts cannot be told.
        FramestormError: a port is taken, or a part did not get ready; nothing is left running then.
    """
    paths.check_plain("the local OpenFaaS")
    setup.ensure(parts.PIECES)
    with locked():
        before = services.read()
        if before is not None and before.backend == backend and not before.dead():
            return before
        programs = config.programs(backend)
        if before is None:
            # Somebody else has them: nothing is ended for a start that cannot succeed.
            services.check_ports_free(programs)
        _end()
        if backend == "docker":
            docker.ensure_engine()
            docker.make_images()
        config.write()
        services.check_ports_free(programs)
        started = StartedServices(backend)
        try:
            for program in programs:
                started = services.start(program, started)
        except BaseException:
            _end()
            raise
        return started


def down() -> list[str]:
    """End all and forget deployments and secrets; the names of what was still running."""
    with locked():
        running = _end()
        (PROVIDER_STATE / "functions.json").unlink(missing_ok=True)
        shutil.rmtree(PROVIDER_STATE / "secrets", ignore_errors=True)
    return running


def _end() -> list[str]:
    """End exactly what was started, also what a killed part left behind; functions are there again after `up`."""
    balancers.stop(*balancers.running())
    before = services.read() or StartedServices("none")
    running = [name for name, service in before.services.items() if service.process() is not None]
    # The gateway first: no new requests; the provider last, it lets those under way finish.
    for name in reversed(list(before.services)):
        services.end([before.services[name]], grace_s=15.0 if name == "provider" else 5.0)
    STATE.unlink(missing_ok=True)
    _clear_cgroups()
    if before.backend == "docker":
        docker.stop_engine()
    return running


def restart(name: str, queue_at_once: int = config.QUEUE_AT_ONCE) -> None:
    """End one part and start it again, as after an update of it; `queue_at_once` is for the queue-worker.

    Raises:
        FramestormError: nothing was started, or there is no part of that name.
    """
    with locked():
        before = services.read()
        if before is None or name not in before.services:
            raise FramestormError(f"no {name} of the local OpenFaaS was started; start all by ./run.sh target openfaas")
        program = next(each for each in config.programs(before.backend, queue_at_once) if each.name == name)
        services.end([before.services[name]])
        services.start(program, before)


def queue_at_once() -> int:
    """Return how many requests the queue-worker has under way at a time, as it was started."""
    started = services.read()
    process = started.services["queue-worker"].process() if started else None
    if process is None:
        raise FramestormError("the queue-worker does not run; see ./run.sh target status")
    return int(process.environ().get("max_inflight", config.QUEUE_AT_ONCE))


@contextmanager
def locked() -> Iterator[None]:
    """Keep another process of this checkout from changing the local OpenFaaS at the same time; it waits."""
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _clear_cgroups() -> None:
    """End what is in the replicas' control groups, which this checkout's provider alone makes, and remove these."""
    for parent in {*CGROUPS.glob(INSTANCE), *CGROUPS.glob(f"*/{INSTANCE}")}:
        for group in [*(path for path in parent.iterdir() if path.is_dir()), parent]:
            for pid in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    services.end([services.of(int(pid))], grace_s=0)
            try:
                group.rmdir()
            except OSError:
                continue


def ended_parts() -> str | None:
    """Why a run against the local OpenFaaS cannot be trusted any more: which part ended, with its last output."""
    started = services.read()
    dead = started.dead() if started else []
    if not dead:
        return None
    words = "\n".join(last_lines(LOGS / f"{name}.log") for name in dead)
    return f"{', '.join(dead)} of the local OpenFaaS ended during the run; {words}"
