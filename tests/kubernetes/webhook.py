"""An admission webhook that refuses objects of one kind, with a reason."""

import base64
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from framestorm.machine import LOOPBACK
from framestorm.platform.kubernetes.cluster import Cluster
from tests.in_thread import in_thread
from tests.stand_in import make_certificate

NAME = "policy.example.com"


def configuration(group: str, resource: str, **client: str) -> dict[str, Any]:
    """The object by which an API server asks a webhook about each new or changed object of one kind."""
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [resource]}
    webhook = {
        "name": NAME,
        "clientConfig": client,
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [webhook],
    }


@contextmanager
def asked(cluster: Cluster, item: dict[str, Any]) -> Iterator[None]:
    """Have an API server ask a webhook, as a configuration says."""
    cluster.apply([item])
    try:
        yield
    finally:
        cluster.delete("validatingwebhookconfiguration", NAME)


@contextmanager
def refusing(cluster: Cluster, group: str, resource: str, reason: str, folder: Path) -> Iterator[None]:
    """Refuse all objects of one kind."""

    class RefusingHandler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            refusal = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": reason}}
            body = json.dumps({**review, "response": refusal}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer((LOOPBACK, 0), RefusingHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(make_certificate(folder, f"IP:{LOOPBACK}"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    authority = base64.b64encode((folder / "crt.pem").read_bytes()).decode()
    url = f"https://{LOOPBACK}:{server.server_port}/"
    with in_thread(server), asked(cluster, configuration(group, resource, url=url, caBundle=authority)):
        yield
