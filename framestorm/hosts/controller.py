"""JMeter's controller on the master, a process that ends with its agent.

This file is sent to the host with the agent, so like the agent it needs only the host's Python (3.10 or later).
"""

import ctypes
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from framestorm.hosts.account import HostAccount

END_WITHIN_S = 10.0
KEYS = ".local"  # with SSL JMeter's key is below it, and is looked for from the folder that JMeter was started in
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38


class Controller(subprocess.Popen[bytes]):
    """JMeter's controller, which runs in a run's folder as the account that owns that folder."""

    def __init__(self, command: Sequence[str], run_dir: Path, account: HostAccount, kit: Path) -> None:
        with account.acting():
            log = (run_dir / "jmeter.out").open("wb")
            if (kit / KEYS).exists():
                (run_dir / KEYS).symlink_to(kit / KEYS)
        with log:
            super().__init__(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=run_dir,
                user=account.entry.pw_uid,
                group=account.entry.pw_gid,
                extra_groups=account.groups,
                start_new_session=True,
                preexec_fn=_end_with_agent,
            )

    def end(self) -> None:
        """End it, by force if it does not end in time; its files stay as far as they are written."""
        self.terminate()
        try:
            self.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
            self.wait()


def _end_with_agent() -> None:
    """In a child of the agent: be killed when the agent dies, and never get more rights."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
