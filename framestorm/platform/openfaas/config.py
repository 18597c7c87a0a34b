"""Configuration files of the local OpenFaaS: metrics, the autoscaling alert as OpenFaaS ships it, credentials."""

import json
import secrets
from pathlib import Path

from framestorm.errors import FramestormError
from framestorm.model import files
from framestorm.platform.openfaas import images
from framestorm.platform.openfaas.layout import (
    ALERTMANAGER_PORT,
    CONFIG,
    CREDENTIALS,
    GATEWAY_METRICS_PORT,
    GATEWAY_URL,
    HOST,
    PROVIDER_PORT,
    PROVIDER_URL,
    USER,
)

Content = dict[str, object]
PASSWORD_FILE = CREDENTIALS / "basic-auth-password"
# At least two scrapes within the alert's 10 s.
SCRAPE_INTERVAL = "2s"
# What replicas use is to be known of a few seconds of load, too.
REPLICA_INTERVAL = "1s"


def write() -> None:
    """Write all of them; the password stays what it was."""
    _credentials()
    # JSON is YAML: what is written by a library needs no quoting by hand.
    _write(CONFIG / "prometheus.yml", _prometheus())
    _write(CONFIG / "alert.rules.yml", _alert_rules())
    _write(CONFIG / "alertmanager.yml", _alertmanager())
    (CONFIG / "images.json").write_text(images.as_json())


def password() -> str:
    """The password of the gateway's user.

    Raises:
        FramestormError: there is none yet.
    """
    try:
        return PASSWORD_FILE.read_text()
    except FileNotFoundError:
        raise FramestormError("the local OpenFaaS was never started; start it by: ./run.sh target openfaas") from None


def _write(path: Path, content: Content) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2))


def _credentials() -> None:
    CREDENTIALS.mkdir(parents=True, exist_ok=True)
    CREDENTIALS.chmod(0o700)
    (CREDENTIALS / "basic-auth-user").write_text(USER)
    if not PASSWORD_FILE.exists() or not PASSWORD_FILE.stat().st_size:
        with files.replacing(PASSWORD_FILE) as draft:
            draft.touch(mode=0o600)
            draft.write_text(secrets.token_urlsafe(24))


def _prometheus() -> Content:
    def job(name: str, port: int) -> Content:
        return {"job_name": name, "static_configs": [{"targets": [f"{HOST}:{port}"]}]}

    watchdogs = {"url": f"{PROVIDER_URL}/system/replicas?format=prometheus", "refresh_interval": SCRAPE_INTERVAL}
    return {
        "global": {"scrape_interval": SCRAPE_INTERVAL, "evaluation_interval": SCRAPE_INTERVAL},
        "rule_files": ["alert.rules.yml"],
        "scrape_configs": [
            job("gateway", GATEWAY_METRICS_PORT),
            job("provider", PROVIDER_PORT) | {"scrape_interval": REPLICA_INTERVAL},
            {"job_name": "watchdog", "http_sd_configs": [watchdogs]},
        ],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"{HOST}:{ALERTMANAGER_PORT}"]}]}]},
    }


def _alert_rules() -> Content:
    """OpenFaaS's own rule: more than 5 successful requests a second for 5 s."""
    rule = {
        "alert": "APIHighInvocationRate",
        "expr": 'sum(rate(gateway_function_invocation_total{code="200"}[10s])) BY (function_name) > 5',
        "for": "5s",
        "labels": {"service": "gateway", "severity": "major"},
        "annotations": {"summary": "High invocation total on {{ $labels.function_name }}"},
    }
    return {"groups": [{"name": "openfaas", "rules": [rule]}]}


def _alertmanager() -> Content:
    scale_up = {
        "url": f"{GATEWAY_URL}/system/alert",
        "send_resolved": True,
        "http_config": {
            "basic_auth": {"username": USER, "password_file": str(PASSWORD_FILE)},
        },
    }
    return {
        "route": {
            "group_by": ["alertname", "function_name"],
            "group_wait": "5s",
            "group_interval": "10s",
            "repeat_interval": "30s",
            "receiver": "scale-up",
        },
        "receivers": [{"name": "scale-up", "webhook_configs": [scale_up]}],
    }
