"""A host without its agent, by processes that stand for sudo and the agent."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from framestorm import paths, probe
from framestorm.machine import wait_until

# As sudo does: it stops with its command, and ends with it.
SUDO = """
import os, signal, subprocess, sys
agent = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]])
while os.WIFSTOPPED(status := os.waitpid(agent.pid, os.WUNTRACED)[1]):
    os.kill(os.getpid(), signal.SIGSTOP)
sys.exit(os.waitstatus_to_exitcode(status) % 256)
"""
AGENT = """
import os, sys
from pathlib import Path
from framestorm.hosts import fence
fence = fence.Fence(lambda: Path(sys.argv[1]).touch(), 1.0)
print(os.getpid(), fence._pid, flush=True)
sys.stdin.read(1)
fence.dismiss()
"""


@pytest.mark.parametrize(("number", "is_fenced"), [(signal.SIGKILL, True), (signal.SIGSTOP, True), (None, False)])
def test_the_host_becomes_idle_without_its_agent(
    number: signal.Signals | None, is_fenced: bool, tmp_path: Path
) -> None:
    made_idle = tmp_path / "idle"
    command = [sys.executable, "-c", SUDO, AGENT, made_idle]
    with subprocess.Popen(command, cwd=paths.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as sudo:
        assert sudo.stdout is not None and sudo.stdin is not None
        agent_pid = int(sudo.stdout.readline().split()[0])
        if number is None:
            sudo.stdin.close()
        else:
            os.kill(agent_pid, number)
        try:
            assert sudo.wait(30) == (-signal.SIGKILL % 256 if is_fenced else 0)
        finally:
            sudo.kill()
    assert wait_until(made_idle.exists, 30 if is_fenced else 0) == is_fenced
    assert wait_until(lambda: probe.stat(str(agent_pid))[:1] in ([], ["Z"]), 20)


def test_a_frozen_fence_holds_no_agent_back(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SUDO, AGENT, tmp_path / "idle"]
    with subprocess.Popen(command, cwd=paths.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as sudo:
        assert sudo.stdout is not None and sudo.stdin is not None
        _, fence_pid = map(int, sudo.stdout.readline().split())
        os.kill(fence_pid, signal.SIGSTOP)
        sudo.stdin.close()
        try:
            assert sudo.wait(30) == 0
        finally:
            if probe.stat(str(fence_pid)):
                os.kill(fence_pid, signal.SIGKILL)
            sudo.kill()
    assert not (tmp_path / "idle").exists()
