"""The processes of the local OpenFaaS: how each is started and how it is known to be ready."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from framestorm.errors import FramestormError
from framestorm.machine import last_lines, listens, port_holder, wait_until
from framestorm.platform import http
from framestorm.platform.openfaas.layout import (
    ALERTMANAGER_PORT,
    BIN,
    CONFIG,
    CREDENTIALS,
    GATEWAY_METRICS_PORT,
    GATEWAY_PORT,
    GATEWAY_URL,
    HOME,
    HOST,
    LOGS,
    NAMESPACE,
    NATS_PORT,
    PROMETHEUS_PORT,
    PROMETHEUS_URL,
    PROVIDER_PORT,
    PROVIDER_STATE,
    PROVIDER_URL,
    READ_WRITE_TIMEOUT_S,
    UPSTREAM_TIMEOUT_S,
)

READY_WITHIN_S = 30.0
POLL_S = 0.05
# Longer than any request may take: a queued one still at work must not be given to another worker.
ACK_WAIT_S = READ_WRITE_TIMEOUT_S + 5
QUEUE_AT_ONCE = 4


@dataclass(frozen=True)
class Program:
    """A part to start: `ports` are those it listens on, `ready` tells when it can be used."""

    name: str
    command: Sequence[str | Path]
    ready: Callable[[], bool]
    ports: tuple[int, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return LOGS / f"{self.name}.log"


def programs(backend: str, queue_at_once: int = QUEUE_AT_ONCE) -> list[Program]:
    """All parts in the order of starting: each needs only those before it."""
    timeouts = {"read_timeout": f"{READ_WRITE_TIMEOUT_S}s", "write_timeout": f"{READ_WRITE_TIMEOUT_S}s"}
    nats = {"faas_nats_address": HOST, "faas_nats_port": str(NATS_PORT)}
    credentials = {"basic_auth": "true", "secret_mount_path": str(CREDENTIALS)}
    queue_log = LOGS / "queue-worker.log"
    return [
        Program(
            "provider",
            [
                *(BIN / "provider", "-port", str(PROVIDER_PORT), "-backend", backend, "-state", PROVIDER_STATE),
                *("-images", CONFIG / "images.json", "-watchdog", BIN / "watchdog", "-credentials", CREDENTIALS),
                *("-namespace", NAMESPACE, "-upstream-timeout", f"{READ_WRITE_TIMEOUT_S}s"),
            ],
            lambda: http.answers(f"{PROVIDER_URL}/healthz"),
            (PROVIDER_PORT,),
        ),
        Program(
            "nats",
            [BIN / "nats-streaming-server", "-a", HOST, "-p", str(NATS_PORT), "-cid", "faas-cluster", "-st", "memory"],
            lambda: listens(NATS_PORT),
            (NATS_PORT,),
        ),
        Program(
            "alertmanager",
            [
                "prometheus-alertmanager",
                f"--config.file={CONFIG / 'alertmanager.yml'}",
                f"--storage.path={HOME / 'alertmanager'}",
                f"--web.listen-address={HOST}:{ALERTMANAGER_PORT}",
                "--cluster.listen-address=",
            ],
            lambda: http.answers(f"http://{HOST}:{ALERTMANAGER_PORT}/-/ready"),
            (ALERTMANAGER_PORT,),
        ),
        Program(
            "prometheus",
            [
                "prometheus",
                f"--config.file={CONFIG / 'prometheus.yml'}",
                f"--storage.tsdb.path={HOME / 'prometheus'}",
                "--storage.tsdb.retention.time=7d",
                # A function that is gone is not shown for minutes more.
                "--query.lookback-delta=10s",
                f"--web.listen-address={HOST}:{PROMETHEUS_PORT}",
            ],
            lambda: http.answers(f"{PROMETHEUS_URL}/-/ready"),
            (PROMETHEUS_PORT,),
        ),
        Program(
            "gateway",
            [BIN / "gateway"],
            lambda: http.answers(f"{GATEWAY_URL}/healthz"),
            (GATEWAY_PORT, GATEWAY_METRICS_PORT),
            {
                **timeouts,
                **nats,
                **credentials,
                "upstream_timeout": f"{UPSTREAM_TIMEOUT_S}s",
                "functions_provider_url": f"{PROVIDER_URL}/",
                "function_namespace": NAMESPACE,
                "scale_from_zero": "true",
                "faas_prometheus_host": HOST,
                "faas_prometheus_port": str(PROMETHEUS_PORT),
            },
        ),
        Program(
            "queue-worker",
            [BIN / "nats-queue-worker"],
            lambda: queue_log.exists() and "Listening on" in queue_log.read_text(errors="replace"),
            (),
            {
                **nats,
                **credentials,
                "faas_gateway_address": HOST,
                "faas_gateway_port": str(GATEWAY_PORT),
                "gateway_invoke": "true",
                "max_inflight": str(queue_at_once),
                "ack_wait": f"{ACK_WAIT_S}s",
            },
        ),
    ]


def check_ports_free(wanted: Sequence[Program]) -> None:
    """Refuse to start beside something that has one of the ports.

    Raises:
        FramestormError: names port, part and, as far as this user may see, the process that holds it.
    """
    for program in wanted:
        for port in program.ports:
            if holder := port_holder(port):
                fixed = ", which is fixed in the gateway" if program.name == "gateway" else ""
                raise FramestormError(f"port {port} of the {program.name}{fixed} is taken by {holder}; end that first")


def start(program: Program) -> int:
    """Start a part and wait for it; its process id. Raises as `launch` and `wait_until_ready` do, with nothing left."""
    started = launch(program)
    try:
        wait_until_ready(program, started)
    except BaseException:
        started.kill()
        started.wait()
        raise
    return started.pid


def launch(program: Program) -> subprocess.Popen[bytes]:
    """Start a part on its own, its output in its log.

    Raises:
        FramestormError: it is not installed.
    """
    program.log.parent.mkdir(parents=True, exist_ok=True)
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "DOCKER_HOST") if name in os.environ}
    with program.log.open("wb") as log:
        try:
            return subprocess.Popen(
                program.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**environment, **program.environment},
                cwd=HOME,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise FramestormError(f"{program.name} cannot be started: there is no {program.command[0]}") from None


def wait_until_ready(program: Program, started: subprocess.Popen[bytes]) -> None:
    """Wait for a started part, which then runs on without this process.

    Raises:
        FramestormError: it ended, or was not ready in time; with its last output.
    """
    wait_until(lambda: started.poll() is not None or program.ready(), READY_WITHIN_S, POLL_S)
    if started.returncode is not None:
        raise FramestormError(f"{program.name} ended with status {started.returncode}; {last_lines(program.log)}")
    if not program.ready():
        raise FramestormError(f"{program.name} was not ready in {READY_WITHIN_S:.0f} s; {last_lines(program.log)}")
    # Popen would warn of a process that was never waited for.
    started.returncode = 0
