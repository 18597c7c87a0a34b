"""A host of a run, whichever way the conductor reaches it."""

from typing import Protocol


class RemoteHost(Protocol):
    """Where an agent is started: a host of the inventory, by ssh, or a pod, by kubectl."""

    @property
    def name(self) -> str:
        """Return its name in reports."""

    @property
    def address(self) -> str:
        """Return the address by which the other hosts of the run reach it."""

    @property
    def place(self) -> str:
        """Return where it is, for messages."""

    @property
    def by(self) -> str:
        """Return the program that reaches it."""

    @property
    def set_up(self) -> str:
        """Return what sets it up again, for messages."""

    def command(self, remote: str) -> list[str]:
        """Return the command that runs another on it, as the agent's user."""
