"""The account of a host that owns a run's files and runs its programs.

This file is sent to the host with the agent, so like the agent it needs only the host's Python (3.10 or later).
"""

import contextlib
import os
import pwd
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class HostAccount:
    """An account by its name; the agent is root, or, in a container, has this account itself."""

    name: str

    @property
    def entry(self) -> pwd.struct_passwd:
        """Return its line of the host's list of accounts."""
        return pwd.getpwnam(self.name)

    @property
    def groups(self) -> list[int] | None:
        """Return the groups that its processes get in place of the agent's; None where the agent may not set them."""
        return os.getgrouplist(self.name, self.entry.pw_gid) if os.geteuid() == 0 else None

    @contextlib.contextmanager
    def acting(self) -> Iterator[None]:
        """Touch the run's files as this account: as root, a link put among them would lead anywhere."""
        owner = self.entry
        is_root = os.geteuid() == 0
        groups = os.getgroups()
        if is_root:
            os.setgroups([])
            os.setegid(owner.pw_gid)
            os.seteuid(owner.pw_uid)
        try:
            yield
        finally:
            if is_root:
                os.seteuid(0)
                os.setegid(0)
                os.setgroups(groups)

    def command(self, *words: str) -> list[str]:
        """Return the command by which this account runs `words`."""
        if os.geteuid() != 0:
            return [*words]
        return ["setpriv", "--reuid", self.name, "--regid", self.name, "--init-groups", "--no-new-privs", *words]
