"""Ends the load of a host whose agent has died or is frozen: no load goes on unwatched.

This file is sent to the host with the agent, so like the agent it needs only the host's Python (3.10 or later).
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable

from framestorm import probe

LOOK_EVERY_S = 0.5


class Fence:
    """A process of its own that makes the host idle when the agent, which starts it, dies or stays stopped."""

    def __init__(self, make_idle: Callable[[], None], frozen_at_most_s: float) -> None:
        read, self._write = os.pipe()
        agent_pid, sudo_pid = os.getpid(), os.getppid()
        self._pid = os.fork()
        if self._pid == 0:
            # Nothing of the agent's is run here: neither its cleaning-up nor its answers.
            status = 1
            with contextlib.suppress(BaseException):
                os.close(self._write)
                os.closerange(0, 3)  # or ssh would wait for this process
                self._watch(read, agent_pid, frozen_at_most_s)
                make_idle()
                # sudo stops itself when its command is stopped, and would never see that this has ended.
                os.kill(sudo_pid, signal.SIGCONT)
                status = 0
            os._exit(status)
        os.close(read)

    def dismiss(self) -> None:
        """End the watch: the host is idle."""
        os.kill(self._pid, signal.SIGKILL)  # it may be frozen
        os.waitpid(self._pid, 0)
        os.close(self._write)

    @staticmethod
    def _watch(read: int, agent_pid: int, frozen_at_most_s: float) -> None:
        """Wait until the agent ends, and kill it if it stays frozen."""
        ran_s = time.monotonic()
        while not select.select([read], [], [], LOOK_EVERY_S)[0]:
            if probe.stat(str(agent_pid))[:1] not in (["T"], ["t"]):
                ran_s = time.monotonic()
            elif time.monotonic() - ran_s > frozen_at_most_s:
                os.kill(agent_pid, signal.SIGKILL)
