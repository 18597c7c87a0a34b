"""Where the local OpenFaaS lies and on which ports its parts listen."""

import hashlib

from framestorm import paths

SOURCE = paths.ROOT / "function" / "openfaas"
FUNCTIONS = paths.ROOT / "function"
STACK = FUNCTIONS / "stack.yml"

HOME = paths.LOCAL / "openfaas"
BIN = HOME / "bin"
LOGS = HOME / "logs"
CONFIG = HOME / "config"
STATE = HOME / "state.json"
CREDENTIALS = HOME / "credentials"
PROVIDER_STATE = HOME / "provider"
FAAS_CLI = BIN / "faas-cli"
STACK_CHECK = BIN / "stack-check"
# What faas-cli keeps of a login, when this kit calls it.
FAAS_CLI_CONFIG = HOME / "faas-cli"

NAMESPACE = "openfaas-fn"
# Of control groups and containers, which are the machine's: those of another checkout have another name.
INSTANCE = f"framestorm-openfaas-{hashlib.sha256(str(HOME.resolve()).encode()).hexdigest()[:8]}"
# Above the ids that distributions, containers and systemd give to users; no account has them.
FIRST_USER = 1_900_000_000
USER = "admin"
HOST = "127.0.0.1"

# Fixed in the gateway.
GATEWAY_PORT = 8080
GATEWAY_METRICS_PORT = 8082
PROVIDER_PORT = 8083
NATS_PORT = 4222
# Beside those that a machine's own Prometheus has.
PROMETHEUS_PORT = 9190
ALERTMANAGER_PORT = 9193

GATEWAY_URL = f"http://{HOST}:{GATEWAY_PORT}"
PROVIDER_URL = f"http://{HOST}:{PROVIDER_PORT}"
PROMETHEUS_URL = f"http://{HOST}:{PROMETHEUS_PORT}"

# A function's exec time-out <= the gateway's upstream <= the gateway's read and write, which a request also spends
# being held while its function is scaled from zero.
UPSTREAM_TIMEOUT_S = 25
READ_WRITE_TIMEOUT_S = 60
