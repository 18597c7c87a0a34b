"""The Docker engine for the docker backend: the machine's own where there is one, else Debian's while it is needed."""

import shutil
import subprocess
import time
from pathlib import Path

from framestorm.errors import FramestormError
from framestorm.platform.openfaas import services, state
from framestorm.platform.openfaas.layout import HOME
from framestorm.platform.openfaas.services import Program
from framestorm.platform.openfaas.state import State
from framestorm.setup import packages

STATE = HOME / "docker.json"
# Kept apart from whatever a user's own engine has.
ROOT = HOME / "docker"
PID_FILE = HOME / "docker.pid"
# Holds unix sockets, whose paths may have at most 107 letters.
EXEC_ROOT = "/run/framestorm-docker"
BRIDGE_ADDRESS = "198.19.255.1/24"


def is_running() -> bool:
    """Whether an engine answers."""
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


def needed_packages() -> tuple[str, ...]:
    """Debian's packages of an engine; none where there is one from elsewhere."""
    return () if shutil.which("dockerd") else ("docker.io", "iptables")


def ensure_engine() -> None:
    """See to it that an engine runs.

    Raises:
        FramestormError: it could not be installed or started, with its last output.
    """
    if is_running():
        return
    packages.install(needed_packages())
    PID_FILE.unlink(missing_ok=True)
    options: list[str | Path] = ["--data-root", ROOT, "--exec-root", EXEC_ROOT, "--pidfile", PID_FILE]
    # Containers are reached over the bridge from here alone: no rule of the machine's firewall is touched.
    options += ["--iptables=false", "--ip-forward=false", "--ip-masq=false", "--bip", BRIDGE_ADDRESS]
    program = Program("dockerd", ["dockerd", *options], is_running)
    state.write(State("docker", {"dockerd": state.of(services.start(program))}), STATE)


def stop_engine() -> None:
    """End the engine if this kit started it; containers end with it."""
    started = state.read(STATE)
    if started is None:
        return
    state.end(list(started.services.values()))
    subprocess.run(["ip", "link", "delete", "docker0"], capture_output=True, check=False)
    STATE.unlink()


def image_exists(image: str) -> bool:
    """Whether the engine has an image of that name."""
    return subprocess.run(["docker", "image", "inspect", image], capture_output=True, check=False).returncode == 0


def run(*arguments: str, timeout_s: float = 600.0) -> str:
    """Call docker; what it printed.

    Raises:
        FramestormError: it failed or took too long; with the end of its output.
    """
    started_s = time.monotonic()
    try:
        done = subprocess.run(
            ["docker", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise FramestormError(f"docker {arguments[0]}: not done in {time.monotonic() - started_s:.0f} s") from None
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-12:])
        raise FramestormError(f"docker {' '.join(arguments)} failed:\n{tail}")
    return done.stdout
