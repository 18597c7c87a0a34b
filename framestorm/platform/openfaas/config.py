"""How the parts of the local OpenFaaS are started: commands, configuration files, credentials."""

import json
import secrets
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.machine import answers, listens
from framestorm.model import files
from framestorm.platform.openfaas import layout, parts
from framestorm.platform.openfaas.layout import BIN, CONFIG, CREDENTIALS, HOME, HOST, USER
from framestorm.platform.openfaas.services import Program

PASSWORD_FILE = CREDENTIALS / "basic-auth-password"
# At least two scrapes within the alert's 10 s.
SCRAPE_INTERVAL = "2s"
# Short enough to show the resource usage of replicas for a load of only a few seconds.
REPLICA_INTERVAL = "1s"
# Longer than any request may take: a queued request that still runs must not be given to another worker.
ACK_WAIT_S = layout.READ_WRITE_TIMEOUT_S + 5
QUEUE_AT_ONCE = 4


def programs(backend: str, queue_at_once: int = QUEUE_AT_ONCE) -> list[Program]:
    """Return all parts in the order of starting: each needs only those before it."""
    alertmanager_url = f"http://{HOST}:{layout.ALERTMANAGER_PORT}"
    nats_port = str(layout.NATS_PORT)
    common = {
        "faas_nats_address": HOST,
        "faas_nats_port": nats_port,
        "basic_auth": "true",
        "secret_mount_path": str(CREDENTIALS),
    }
    of_gateway = {
        "read_timeout": f"{layout.READ_WRITE_TIMEOUT_S}s",
        "write_timeout": f"{layout.READ_WRITE_TIMEOUT_S}s",
        "upstream_timeout": f"{layout.UPSTREAM_TIMEOUT_S}s",
        "functions_provider_url": f"{layout.PROVIDER_URL}/",
        "function_namespace": layout.NAMESPACE,
        "scale_from_zero": "true",
        "faas_prometheus_host": HOST,
        "faas_prometheus_port": str(layout.PROMETHEUS_PORT),
    }
    of_queue_worker = {
        "faas_gateway_address": HOST,
        "faas_gateway_port": str(layout.GATEWAY_PORT),
        "gateway_invoke": "true",
        "max_inflight": str(queue_at_once),
        "ack_wait": f"{ACK_WAIT_S}s",
    }
    queue_log = layout.LOGS / "queue-worker.log"
    return [
        Program(
            "provider",
            [
                *(BIN / "provider", "-port", str(layout.PROVIDER_PORT), "-namespace", layout.NAMESPACE),
                *("-backend", backend, "-state", layout.PROVIDER_STATE, "-credentials", CREDENTIALS),
                *("-images", CONFIG / "images.json", "-watchdog", BIN / "watchdog"),
                *("-host", HOST, "-instance", layout.INSTANCE),
                *("-users", str(layout.FIRST_USER), "-readable", ",".join(_folders_of_functions())),
                *("-upstream-timeout", f"{layout.READ_WRITE_TIMEOUT_S}s"),
            ],
            lambda: answers(f"{layout.PROVIDER_URL}/healthz"),
            (layout.PROVIDER_PORT,),
        ),
        Program(
            "nats",
            [
                *(BIN / "nats-streaming-server", "-a", HOST, "-p", nats_port, "-cid", "faas-cluster", "-st", "memory"),
                # At its usual limits it would drop the oldest requests, and tell nobody. Without, the machine's memory
                # is the limit: the part ends then, which a run notices.
                *("-mm", "0", "-mb", "0"),
            ],
            lambda: listens(layout.NATS_PORT),
            (layout.NATS_PORT,),
        ),
        Program(
            "alertmanager",
            [
                *("prometheus-alertmanager", f"--config.file={CONFIG / 'alertmanager.yml'}"),
                *(f"--storage.path={HOME / 'alertmanager'}", f"--web.listen-address={HOST}:{layout.ALERTMANAGER_PORT}"),
                "--cluster.listen-address=",
            ],
            lambda: answers(f"{alertmanager_url}/-/ready"),
            (layout.ALERTMANAGER_PORT,),
        ),
        Program(
            "prometheus",
            [
                *("prometheus", f"--config.file={CONFIG / 'prometheus.yml'}"),
                *(f"--storage.tsdb.path={HOME / 'prometheus'}", "--storage.tsdb.retention.time=7d"),
                # Otherwise a removed function would still be shown for minutes.
                *("--query.lookback-delta=10s", f"--web.listen-address={HOST}:{layout.PROMETHEUS_PORT}"),
            ],
            lambda: answers(f"{layout.PROMETHEUS_URL}/-/ready"),
            (layout.PROMETHEUS_PORT,),
        ),
        Program(
            "gateway",
            [BIN / "gateway"],
            lambda: answers(f"{layout.GATEWAY_URL}/healthz"),
            (layout.GATEWAY_PORT, layout.GATEWAY_METRICS_PORT),
            {**common, **of_gateway},
        ),
        Program(
            "queue-worker",
            [BIN / "nats-queue-worker"],
            lambda: queue_log.exists() and "Listening on" in queue_log.read_text(errors="replace"),
            (),
            {**common, **of_queue_worker},
        ),
    ]


def _folders_of_functions() -> list[str]:
    """Return what functions need to read: the checkout, what was made for it, and the runtimes, wherever those are."""
    runtimes = [Path(program) for program in (parts.HERE.python, parts.HERE.node, parts.HERE.java)]
    homes = [program.resolve().parents[1] for program in runtimes if program.exists()]
    return [str(folder) for folder in dict.fromkeys([paths.ROOT, paths.LOCAL.resolve(), *homes])]


def write() -> None:
    """Write the configuration files; the password does not change."""
    _make_password()
    CONFIG.mkdir(parents=True, exist_ok=True)
    for name, content in _files().items():
        (CONFIG / name).write_text(json.dumps(content, indent=2))


def password() -> str:
    """Return the password of the gateway's user."""
    try:
        return PASSWORD_FILE.read_text()
    except FileNotFoundError:
        raise FramestormError("the local OpenFaaS was never started; start it by: ./run.sh target openfaas") from None


def _make_password() -> None:
    CREDENTIALS.mkdir(parents=True, exist_ok=True)
    CREDENTIALS.chmod(0o700)
    (CREDENTIALS / "basic-auth-user").write_text(USER)
    if not PASSWORD_FILE.exists() or not PASSWORD_FILE.stat().st_size:
        with files.replacing(PASSWORD_FILE) as draft:
            draft.touch(mode=0o600)
            draft.write_text(secrets.token_urlsafe(24))


def _files() -> dict[str, object]:
    """Return the content of each file, by name. JSON is valid YAML, and a library writes it with correct quoting."""
    watchdogs = {"url": f"{layout.PROVIDER_URL}/system/replicas?format=prometheus", "refresh_interval": SCRAPE_INTERVAL}
    prometheus = {
        "global": {"scrape_interval": SCRAPE_INTERVAL, "evaluation_interval": SCRAPE_INTERVAL},
        "rule_files": ["alert.rules.yml"],
        "scrape_configs": [
            {"job_name": "gateway", "static_configs": _at(layout.GATEWAY_METRICS_PORT)},
            {
                "job_name": "provider",
                "static_configs": _at(layout.PROVIDER_PORT),
                "scrape_interval": REPLICA_INTERVAL,
            },
            {"job_name": "watchdog", "http_sd_configs": [watchdogs]},
        ],
        "alerting": {"alertmanagers": [{"static_configs": _at(layout.ALERTMANAGER_PORT)}]},
    }
    # OpenFaaS's default rule: more than 5 successful requests per second for 5 s.
    rule = {
        "alert": "APIHighInvocationRate",
        "expr": 'sum(rate(gateway_function_invocation_total{code="200"}[10s])) BY (function_name) > 5',
        "for": "5s",
        "labels": {"service": "gateway", "severity": "major"},
        "annotations": {"summary": "High invocation total on {{ $labels.function_name }}"},
    }
    scale_up = {
        "url": f"{layout.GATEWAY_URL}/system/alert",
        "send_resolved": True,
        "http_config": {"basic_auth": {"username": USER, "password_file": str(PASSWORD_FILE)}},
    }
    route = {
        "group_by": ["alertname", "function_name"],
        "group_wait": "5s",
        "group_interval": "10s",
        "repeat_interval": "30s",
        "receiver": "scale-up",
    }
    return {
        "prometheus.yml": prometheus,
        "alert.rules.yml": {"groups": [{"name": "openfaas", "rules": [rule]}]},
        "alertmanager.yml": {
            "route": route,
            "receivers": [{"name": "scale-up", "webhook_configs": [scale_up]}],
        },
        "images.json": parts.catalogue(parts.HERE),
    }


def _at(port: int) -> list[dict[str, list[str]]]:
    return [{"targets": [f"{HOST}:{port}"]}]
