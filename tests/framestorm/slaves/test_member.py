"""An agent on this machine, spoken to as to one on another."""

import os
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from framestorm.slaves.inventory import Host
from framestorm.slaves.member import HostError, Member


@dataclass(frozen=True)
class Here(Host):
    """This machine as a host, reached without ssh and without root."""

    def ssh(self, remote_command: str) -> list[str]:
        return ["sh", "-c", remote_command.replace("sudo -n ", "")]


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    member = Member(Here("slave1", ("slaves",), "127.0.0.1", "127.0.0.1", {}), tmp_path)
    yield member
    member.close()


def test_the_agent_starts_from_what_is_sent(member: Member) -> None:
    member.measure_clock()
    assert abs(member.clock_offset_ms) < 1000


def test_a_host_that_was_not_deployed_says_so(member: Member) -> None:
    if Path("/etc/framestorm/host.json").exists():
        pytest.skip("this machine is a host of a deployment")
    with pytest.raises(HostError, match=r"slave1: it has no /etc/framestorm/host.json; run ./run.sh deploy"):
        member.ask("facts", "facts", 20, kit_files=[])


def test_a_host_is_lost_from_its_last_sign_of_life_on(member: Member) -> None:
    member.measure_clock()
    heard_ms = time.time() * 1000
    assert member.look() is None
    os.kill(member._agent.pid, 9)
    member._agent.wait()
    time.sleep(2)
    assert member.look() == "the connection ended"
    assert member.lost_ms is not None
    assert abs(member.lost_ms - heard_ms) < 1500
    assert member.look() is None, "said once"


@pytest.fixture
def last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Member]]:
    """Return what makes a member whose agent says this, read only after its end was seen, as on a busy machine."""
    listen = Member._listen
    monkeypatch.setattr(Member, "_listen", lambda member: (time.sleep(1), listen(member)))
    members = []

    def end_with(words: str) -> Member:
        class EndsAtOnce(Here):
            def ssh(self, remote_command: str) -> list[str]:
                return ["sh", "-c", f"echo {shlex.quote(words)}"]

        members.append(Member(EndsAtOnce("slave1", ("slaves",), "127.0.0.1", "127.0.0.1", {}), tmp_path))
        members[-1]._agent.wait()
        return members[-1]

    yield end_with
    for member in members:
        member.close()


def test_files_handed_in_last_are_waited_for(last_words: Callable[[str], Member]) -> None:
    member = last_words('{"type": "done", "lines": {"journal.jsonl": 3}}')
    assert member.handed_in(20)
    assert member.lines == {"journal.jsonl": 3}


def test_a_loss_is_told_in_the_agent_s_own_words(last_words: Callable[[str], Member]) -> None:
    failed = '{"type": "failed", "error": "the disk is full"}'
    assert last_words(failed).look() == "the disk is full"
    with pytest.raises(HostError, match="slave1: the disk is full"):
        last_words(failed).ask("facts", "facts", 20)


def test_the_agent_is_seen_by_its_name(member: Member) -> None:
    member.measure_clock()
    assert "framestorm-agent" in shlex.split(" ".join(map(str, member._agent.args)))[-1]  # type: ignore[union-attr]
