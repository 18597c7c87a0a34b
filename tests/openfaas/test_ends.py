"""Everything that was started is gone after `down`, also after a part was killed."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.platform import cli
from framestorm.platform.openfaas import gateway, parts, services, stack
from framestorm.platform.openfaas.layout import BIN, CONFIG, GATEWAY_URL, INSTANCE, PROVIDER_PORT
from framestorm.probe import CGROUPS
from tests.openfaas.conftest import post

PARTS = ["provider", "nats", "alertmanager", "prometheus", "gateway", "queue-worker"]


def left_over() -> list[str]:
    """Command lines of processes that came of the local OpenFaaS."""
    commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    ours = (str(BIN), str(CONFIG))
    # Not a compiler that somebody runs meanwhile.
    return [" ".join(each) for each in commands if "build" not in each and any(part in " ".join(each) for part in ours)]


@pytest.fixture(scope="module", autouse=True)
def ended():
    yield
    stack.down()


def test_down_leaves_nothing(capsys):
    started = stack.up("process")
    assert stack.up("process") == started, "what runs is left as it is"
    gateway.call("POST", f"{GATEWAY_URL}/system/functions", {"service": "noop-fork", "image": "noop-fork"})
    gateway.scale("noop-fork", 3)
    gateway.wait_for_replicas("noop-fork", 3)
    assert cli.main(["status"]) == 0
    shown = capsys.readouterr().out
    assert all(part in shown for part in PARTS) and "3 of 3 replicas ready" in shown
    assert cli.main(["down"]) == 0
    assert left_over() == []
    assert not list(CGROUPS.glob(f"cpu/{INSTANCE}"))
    assert cli.main(["status"]) == 1
    assert cli.main(["down"]) == 0


ANOTHER_CHECKOUT = """
import sys
from pathlib import Path
from framestorm import paths
from framestorm.errors import FramestormError
paths.LOCAL = Path(sys.argv[1])
from framestorm.model import files
from framestorm.platform.openfaas import services, stack
stack.setup.ensure = lambda pieces: None
if sys.argv[2] == "crashed":
    files.write(stack.STATE, services.StartedServices("process", {"provider": services.Service(1, 0.0)}))
try:
    stack.up("process")
except FramestormError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize("before", ["bare", "crashed"])
def test_a_start_in_another_checkout_leaves_this_one_alone(tmp_path: Path, before: str):
    stack.up("process")
    gateway.call("POST", f"{GATEWAY_URL}/system/functions", {"service": "noop", "image": "noop"})
    replicas = gateway.replicas("noop")
    (tmp_path / "openfaas").mkdir()
    words = [sys.executable, "-c", ANOTHER_CHECKOUT, str(tmp_path), before]
    done = subprocess.run(words, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"port {PROVIDER_PORT} of the provider is taken" in done.stderr, done.stderr
    assert gateway.replicas("noop") == replicas
    assert stack.ended_parts() is None


def test_two_starts_at_a_time_are_one():
    stack.down()
    words = [sys.executable, "-m", "framestorm", "target", "openfaas"]
    both = [subprocess.Popen(words, cwd=paths.ROOT, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [each.wait(60) for each in both] == [0, 0]
    assert stack.ended_parts() is None
    assert len([line for line in left_over() if line.startswith(str(BIN / "gateway"))]) == 1


@pytest.mark.parametrize("part", PARTS)
def test_it_works_again_after_a_kill_of(part, capsys):
    started = stack.up("process")
    # The watchdog of a forking one takes two seconds to end, and its network is left by a killed provider alone.
    name = "noop-fork" if part == "provider" else "noop"
    gateway.call("POST", f"{GATEWAY_URL}/system/functions", {"service": name, "image": name})
    os.kill(started.services[part].pid, signal.SIGKILL)
    psutil.wait_procs([p for p in [started.services[part].process()] if p], timeout=5)
    assert part in (stack.ended_parts() or "")
    assert cli.main(["status"]) == 1
    assert "ENDED" in capsys.readouterr().out
    stack.up("process")
    assert stack.ended_parts() is None
    assert post(name).content == b"ok", "the function is there again"


def test_a_taken_port_is_named():
    stack.down()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", PROVIDER_PORT))
        taken.listen()
        with pytest.raises(FramestormError, match=rf"port {PROVIDER_PORT} of the provider is taken by .*{os.getpid()}"):
            stack.up("process")
    assert services.read() is None


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([parts.binary("provider"), "-backend", "tape"], "-state is missing"),
        (["/does/not/exist"], "there is no /does/not/exist"),
    ],
)
def test_a_part_that_ends_at_once_is_told_with_its_last_words(tmp_path, command, words):
    program = services.Program("broken", command, lambda: False)
    with pytest.raises(FramestormError, match=words):
        services.start(program, services.StartedServices("none"), tmp_path / "state.json")
