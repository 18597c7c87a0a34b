"""A slave in a container, before it waits for conductors."""

import os
import socket
from pathlib import Path

import pytest

from framestorm.errors import FramestormError
from framestorm.hosts import container


@pytest.fixture(autouse=True)
def set_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(container.setup, "ensure", lambda pieces: None)
    monkeypatch.setattr(container, "STATE", tmp_path)
    monkeypatch.setattr(container, "SSHD", tmp_path)
    monkeypatch.setenv(container.KEYS, "ssh-ed25519 AAAA")


@pytest.mark.parametrize(
    ("address", "why"), [("127.0.1.1", "is 127.0.1.1, which no other host reaches"), (None, "is not known")]
)
def test_an_address_that_other_hosts_do_not_reach_is_refused(
    address: str | None, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that has its host's network: JMeter's server would tell it to the controller."""

    def look_up(name: str) -> str:
        if address is None:
            raise OSError("no such name")
        return address

    monkeypatch.setattr(socket, "gethostbyname", look_up)
    with pytest.raises(FramestormError, match=f"{why}.*give --address"):
        container.main([])


def test_a_user_without_a_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2**30)
    with pytest.raises(FramestormError, match=f"user {2**30} has no name here"):
        container.main(["--address", "192.0.2.1"])
