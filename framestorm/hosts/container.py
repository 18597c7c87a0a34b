"""`./run.sh slave`: this machine, a container or pod, as a slave; its conductor comes by ssh, as to every slave.

Nothing of it needs root. JMeter's server is started for each run, and nothing but ssh listens in between.
"""

import ipaddress
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from framestorm import paths, probe
from framestorm.errors import FramestormError, UsageError
from framestorm.hosts.agent import DESCRIPTION, LOCK
from framestorm.hosts.inventory import ansible_environment
from framestorm.hosts.messages import Description
from framestorm.hosts.orders import CONTROLLER_PROPERTIES, HOST_PROPERTIES
from framestorm.model.foreign import read_utf_8
from framestorm.parser import Parser, port_number
from framestorm.setup import pieces as setup
from framestorm.setup.log import call

PIECES = (*setup.FOR_A_RUN, setup.CLIENT_VENV, setup.SAMPLE_VIDEO, setup.ANSIBLE_VENV)
STATE = Path("/var/lib/framestorm")
KEYS = "FRAMESTORM_AUTHORIZED_KEYS"
SSHD = Path("/usr/sbin/sshd")
SSH_PORT, RMI_PORT = 8022, 8001
HEAP = "1g"
IDLE_AT_MOST_S, LOOK_EVERY_S = 900, 5


def main(words: Sequence[str]) -> int:
    """Make what the image needs, or wait for runs until this process is stopped."""
    parser = Parser(
        prog="./run.sh slave",
        description="Run a slave in a container: wait for conductors, which log in by ssh as the user of this process.",
        epilog=f"Conductors log in by a key whose public part is in the file of --keys, or in the variable {KEYS}.",
    )
    parser.add_argument("--setup", action="store_true", help="install what a slave and its conductor need, and end")
    parser.add_argument(
        "--by-exec", action="store_true", help="without ssh: the conductor comes by kubectl exec; ends if none comes"
    )
    parser.add_argument("--keys", metavar="FILE", type=Path, help="public keys, as in authorized_keys")
    parser.add_argument("--port", type=port_number(), default=SSH_PORT, help="port of ssh (default: %(default)s)")
    parser.add_argument(
        "--address", help="address by which the conductor's JMeter reaches this slave (default: that of its host name)"
    )
    parser.add_argument("--heap", default=HEAP, help="memory of JMeter's server (default: %(default)s)")
    arguments = parser.parse_args(list(words))
    setup.ensure(PIECES)
    if arguments.setup:
        write_properties()
        return 0
    if arguments.by_exec:
        _describe(arguments.address or _own_address(), arguments.heap)
        return _wait_for_runs()
    file = arguments.keys
    keys = read_utf_8(file, f"--keys {file}") if file else os.environ.get(KEYS, "")
    if not keys.strip():
        raise UsageError(f"nobody could come in: give public keys by --keys FILE or in {KEYS}")
    if not SSHD.exists():
        raise FramestormError(f"there is no {SSHD}; install openssh-server")
    _describe(arguments.address or _own_address(), arguments.heap)
    command = _sshd(keys, arguments.port)
    print(f"a slave on port {arguments.port}, JMeter's on {RMI_PORT} during runs", flush=True)
    os.execv(command[0], command)  # noqa: S606 - SIGTERM is for it


def write_properties() -> None:
    """Write the properties of JMeter's controller and servers, as the playbook does."""
    program = paths.ANSIBLE_PYTHON.with_name("ansible")
    role = "name=jmeter tasks_from=controller"
    variables = (
        "-e",
        f"@{paths.ANSIBLE}/group_vars/all.yml",
        "-e",
        f"framestorm_deploy={CONTROLLER_PROPERTIES.parent}",
    )
    CONTROLLER_PROPERTIES.parent.mkdir(parents=True, exist_ok=True)
    environment = [f"{name}={value}" for name, value in ansible_environment().items()]
    call(["env", *environment, program, "localhost", "-m", "include_role", "-a", role, *variables])
    CONTROLLER_PROPERTIES.chmod(0o644)  # without SSL it has no secret, and in the image another user reads it


def _wait_for_runs() -> int:
    """Be there while runs come; a conductor that was killed has not taken its pods away."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    busy_s = time.monotonic()
    while time.monotonic() - busy_s < IDLE_AT_MOST_S:
        time.sleep(LOOK_EVERY_S)
        if probe.lock_holder(LOCK) is not None:
            busy_s = time.monotonic()
    return 0


def _describe(address: str, heap: str) -> None:
    """Describe this slave to the runs, where the playbook describes a host.

    Raises:
        FramestormError: the user of this process has no name, without which ssh lets nobody in.
    """
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        raise FramestormError(
            f"user {os.getuid()} has no name here; leave out --user, or give one that /etc/passwd of the image has"
        ) from None
    for folder in (STATE / "runs", STATE / "cache"):
        folder.mkdir(parents=True, exist_ok=True)
    log = STATE / "jmeter-server.log"
    shutil.copyfile(CONTROLLER_PROPERTIES, HOST_PROPERTIES)
    described = Description(
        name=socket.gethostname(),
        user=user,
        java=probe.java_version() or "",
        jmeter=str(paths.JMETER_HOME),
        jmeter_version=probe.jmeter_version(paths.JMETER_HOME) or "",
        folder=str(paths.ROOT),
        python=str(paths.CLIENT_PYTHON),
        client=str(paths.CLIENT / "client.py"),
        video=str(paths.SAMPLE_VIDEO),
        cache=str(STATE / "cache"),
        runs=str(STATE / "runs"),
        rmi_port=RMI_PORT,
        log=str(log),
        server={
            "JMETER": str(paths.JMETER_HOME),
            "HEAP": heap,
            "ADDRESS": address,
            "STATE": str(STATE),
            "LOG": str(log),
            "SETTINGS": str(HOST_PROPERTIES),
        },
    )
    DESCRIPTION.write_text(json.dumps(asdict(described), indent=2) + "\n")


def _own_address() -> str:
    name = socket.gethostname()
    try:
        address = socket.gethostbyname(name)
    except OSError as error:
        raise FramestormError(f"the address of {name} is not known ({error}); give --address") from None
    if ipaddress.ip_address(address).is_loopback:  # as Debian names itself, in a container with the host's network
        raise FramestormError(f"the address of {name} is {address}, which no other host reaches; give --address")
    return address


def _sshd(keys: str, port: int) -> list[str]:
    """Return the command of an ssh server for this user alone, with a key of its own and no passwords."""
    folder = STATE / "ssh"
    folder.mkdir(mode=0o700, exist_ok=True)
    key, allowed = folder / "host_key", folder / "authorized_keys"
    if not key.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    allowed.write_text(keys.strip() + "\n")
    settings = {
        "Port": port,
        "HostKey": key,
        "AuthorizedKeysFile": allowed,
        "StrictModes": "no",  # a volume's owner may be another
        "PidFile": "none",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "AllowTcpForwarding": "no",
        "X11Forwarding": "no",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    return [str(SSHD), "-D", "-e", "-f", "/dev/null", *options]
