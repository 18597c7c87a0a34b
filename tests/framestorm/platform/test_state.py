"""Processes that run on after the command that started them."""

import subprocess
import time

from framestorm.platform.openfaas import state


def test_ending_a_process_does_not_wait_for_its_parent_to_notice() -> None:
    """The first process of a container may leave zombies for seconds."""
    command = "sleep 60 >/dev/null & echo $!; exec sleep 60 >/dev/null"
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = state.of(int(parent.stdout.readline()))
        started_s = time.monotonic()
        state.end([child])
        assert time.monotonic() - started_s < state.GRACE_S / 2
        assert child.process() is None
        assert parent.poll() is None
        state.end([state.of(parent.pid)])
