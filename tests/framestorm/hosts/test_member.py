"""An agent on this machine, spoken to as to one on another."""

import hashlib
import json
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from framestorm.hosts import member as member_module
from framestorm.hosts import messages
from framestorm.hosts.inventory import InventoryHost
from framestorm.hosts.member import Delivery, HostError, Member
from framestorm.hosts.messages import Begin, Chunk, Done, Failed, HostFacts, Open
from tests import fuzz

LISTEN = Member._listen


@dataclass(frozen=True)
class Here(InventoryHost):
    """This machine as a host, reached without ssh and without root; `instead` takes the place of the agent."""

    instead: tuple[str, ...] = ()

    def ssh(self, remote_command: str) -> list[str]:
        return list(self.instead or ("sh", "-c", f"id() {{ echo 0; }}; {remote_command}"))


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    member = Member(Here("slave1", ("slaves",), "127.0.0.1"), tmp_path)
    yield member
    member.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Callable[..., Member]]:
    """Return what makes a member that runs a command in place of the agent; its files go to the folder `run`."""
    members = []
    (tmp_path / "run").mkdir()

    def run(*command: str) -> Member:
        members.append(Member(Here("slave1", ("slaves",), "127.0.0.1", instead=command), tmp_path / "run"))
        return members[-1]

    yield run
    for member in members:
        member._agent.kill()
        member.close()


def test_the_agent_starts_from_what_is_sent(member: Member) -> None:
    member.measure_clock()
    assert abs(member.clock_offset_ms) < 1000
    # A clock that was set is set back: what was in between counts.
    now_s = time.time
    for step_s in (-5.0, 0.0):
        with pytest.MonkeyPatch.context() as clock:
            clock.setattr(time, "time", lambda step_s=step_s: now_s() + step_s)
            member.measure_clock()
        assert abs(member.clock_offset_ms - 5000) < 1000
    # Its name among the host's processes.
    assert "framestorm-agent" in shlex.split(" ".join(map(str, member._agent.args)))[-1]  # type: ignore[union-attr]


def test_root_needs_no_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, program in {"sh": "/bin/sh", "python3": sys.executable}.items():
        (tmp_path / name).symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path))
    member = Member(Here("slave1", ("slaves",), "127.0.0.1"), tmp_path)
    member.measure_clock()
    member.close()


def test_a_host_that_was_not_deployed_says_so(member: Member) -> None:
    if Path("/etc/framestorm/host.json").exists():
        pytest.skip("this machine is a host of a deployment")
    with pytest.raises(HostError, match=r"slave1: its /etc/framestorm/host.json cannot be read.*run ./run.sh deploy"):
        member.ask(messages.TellFacts([]), HostFacts, 20)


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


@pytest.mark.parametrize(
    ("silent_s", "frozen_s", "reason", "since_s"),
    [
        (9, 4, None, None),
        (11, None, "no sign of life for 11 s", 11),
        (11, 6, "no sign of life for 11 s", 11),
        (0, 6, "JMeter is frozen (stopped by a signal)", 6),
    ],
)
def test_a_host_is_lost_if_it_is_silent_or_frozen_for_long(
    silent_s: float, frozen_s: float | None, reason: str | None, since_s: float | None, member: Member
) -> None:
    member.measure_clock()
    member._lines.heard_s = time.monotonic() - silent_s
    member._frozen_since_s = None if frozen_s is None else time.monotonic() - frozen_s
    assert member.look() == member.lost == reason
    if since_s is None:
        assert member.lost_ms is None
    else:
        assert member.lost_ms == pytest.approx((time.time() - since_s) * 1000, abs=900)


def test_a_server_is_frozen_from_the_first_beat_that_says_so(member: Member) -> None:
    beat = messages.Beat(0.0, 0.0, 0, 0, 0.0, 0, 0.0)
    since_s = []
    for is_frozen in (True, True, False):
        member._take(replace(beat, frozen=is_frozen, exit_status=3 if is_frozen else None))
        since_s.append(member._frozen_since_s)
    assert since_s[0] is not None and since_s == [since_s[0], since_s[0], None]
    assert member.exit_status == 3 and len(member.beats) == 3


def test_a_clock_is_measured_by_the_quickest_try(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    told_ms = iter([5000.0, 150.0, 160.0, 5000.0, 5000.0])
    times_s = (time_s for way_s in (0.4, 0.1, 0.2, 0.3, 0.1) for time_s in (0.0, way_s))
    monkeypatch.setattr(member, "ask", lambda *_: messages.Ready(next(told_ms)))
    with monkeypatch.context() as clock:
        clock.setattr(time, "time", lambda: next(times_s))
        member.measure_clock()
    assert member.clock_offset_ms == pytest.approx(100)


@pytest.fixture
def saying(running: Callable[..., Member], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Member]:
    """Return what makes a member whose agent says this, read only after its end was seen, as on a busy machine."""
    listen = Member._listen
    monkeypatch.setattr(Member, "_listen", lambda member: (time.sleep(0.5), listen(member)))

    def end_with(*answers: messages.Answer | bytes, ordered: str = "journal.jsonl") -> Member:
        words = b"".join(each if isinstance(each, bytes) else messages.line(each) for each in answers).decode()
        member = running("printf", "%s", words)
        member.order(Begin({ordered: "journal.jsonl"}))
        member._agent.wait()
        return member

    return end_with


def test_files_handed_in_last_are_waited_for(saying: Callable[..., Member], tmp_path: Path) -> None:
    member = saying(Chunk("journal.jsonl", "YQpiCg=="), Done({"journal.jsonl": 2}))
    assert member.handed_in(20)
    assert member.lines == {"journal.jsonl": 2}
    assert (tmp_path / "run" / "journal.jsonl").read_text() == "a\nb\n"


OBEYS = """
import base64, hashlib, json, sys
sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))  # the agent's source
arrived = hashlib.sha256()
for line in sys.stdin.buffer:
    order = json.loads(line)
    answer = {"Open": "Ready", "FilePiece": "Got", "Begin": "Ready"}.get(order["type"])
    if answer is None:
        continue
    if answer == "Got":
        arrived.update(base64.b64decode(order["data"]))
        assert not order["digest"] or order["digest"] == arrived.hexdigest()
    print(json.dumps({"type": answer, **({"file": order["file"]} if answer == "Got" else {"time_ms": 0})}), flush=True)
"""


@pytest.mark.parametrize("pieces", [0.0, 0.5, 1.0, 40.3])
def test_a_file_goes_in_pieces_of_bounded_size(
    pieces: float, running: Callable[..., Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    video = tmp_path / "video"
    video.write_bytes(os.urandom(int(pieces * messages.PIECE_BYTES)))
    sizes: list[int] = []
    line = messages.line
    digests: list[str] = []

    def sent(order: messages.Order) -> bytes:
        sizes.append(len(line(order)))
        digests.extend([order.digest] if isinstance(order, messages.FilePiece) else [])
        return line(order)

    monkeypatch.setattr(messages, "line", sent)
    member = running(sys.executable, "-c", OBEYS)
    size = video.stat().st_size
    member.facts = HostFacts(free_bytes=max(0, size - 1))
    match = f"files need {size >> 20} MiB, but only {max(0, size - 1) >> 20} MiB of its disk are free"
    with pytest.raises(HostError, match=match) if pieces else nullcontext():
        member.deliver(Delivery(Open("run", "me"), {"video": video}, Begin({})))
    member.facts = HostFacts(free_bytes=size)
    member.deliver(Delivery(Open("run", "me"), {"video": video}, Begin({})))
    assert max(sizes) < 2 * messages.PIECE_BYTES
    assert digests[-1] == hashlib.sha256(video.read_bytes()).hexdigest()


def test_a_slow_host_is_waited_for_while_it_sends(running: Callable[..., Member]) -> None:
    member = running("sh", "-c", "for n in 1 2 3 4 5 6; do printf %s x; sleep 0.5; done; echo; exec sleep 60")
    begun_s = time.monotonic()
    assert not member.handed_in(1.5)
    assert time.monotonic() - begun_s > 2.5, "a part of a line is a sign of life"


def test_a_host_that_never_stops_talking_is_given_up(
    running: Callable[..., Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member_module, "HAND_IN_WITHIN_S", 1.0)
    member = running("sh", "-c", 'while sleep 0.05; do printf \'{"type":"Ready","time_ms":1}\\n\'; done')
    assert not member.handed_in(30)
    assert member.look() is None, "it is alive"


def test_a_loss_is_told_in_the_agent_s_own_words(saying: Callable[..., Member]) -> None:
    failed = Failed("the disk is full")
    assert saying(failed).look() == "the disk is full"
    with pytest.raises(HostError, match="slave1: the disk is full"):
        saying(failed).ask(messages.TellFacts([]), HostFacts, 20)


def test_who_reaches_the_host_may_say_much_beside(running: Callable[..., Member]) -> None:
    """As ssh -vvv does, for as long as the run lasts."""
    much = "yes 'debug1: channel 0' | head -c 1000000 >&2"
    member = running("sh", "-c", f"""{much}; echo '{{"type":"Ready","time_ms":1}}'; exec sleep 60""")
    assert member._answer(messages.Ready, 20).time_ms == 1
    assert member._why_silent("it is alive") == "it is alive"


def test_a_host_that_is_not_reached_is_told_in_the_words_of_ssh(running: Callable[..., Member]) -> None:
    member = running("sh", "-c", "echo 'Warning: new key' >&2; echo 'No route to host' >&2; exit 255")
    member._agent.wait()
    assert member.look() == "ssh says: No route to host"


def test_a_connection_that_ssh_shares_does_not_hide_why_it_ended(running: Callable[..., Member]) -> None:
    """With ControlPersist, a process that stays in the background has the pipe too."""
    member = running("sh", "-c", "sleep 300 >/dev/null & echo 'Connection reset' >&2; exit 255")
    member._agent.wait()
    assert member.look() == "ssh says: Connection reset"
    os.killpg(member._agent.pid, signal.SIGKILL)


def test_a_host_cannot_fill_the_disk(
    saying: Callable[..., Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member_module, "FILE_AT_MOST_BYTES", 2)
    one = Chunk("journal.jsonl", "YQ==")
    assert saying(one, one).look() == "the connection ended"
    assert (tmp_path / "run" / "journal.jsonl").read_text() == "aa"
    assert "its agent said" in (saying(one, one, one).look() or "")


def test_the_largest_number_is_understood(saying: Callable[..., Member]) -> None:
    assert saying(b'{"type": "Ready", "time_ms": %d}\n' % (2**53 - 1)).look() == "the connection ended"


@pytest.mark.parametrize("name", ["../escaped", "/tmp/framestorm-escaped", "run.json", "samples.jtl"])
def test_only_files_that_were_ordered_are_taken(name: str, saying: Callable[..., Member], tmp_path: Path) -> None:
    for answers in ((Chunk(name, "YQ=="), Done()), (Done({name: 1}),)):
        member = saying(*answers)
        assert "its agent said" in (member.look() or "")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []
    assert not Path("/tmp/framestorm-escaped").exists()


@pytest.mark.parametrize(
    "answer",
    [
        HostFacts(cores=0),
        HostFacts(cores=-5),
        HostFacts(memory_bytes=-1),
        messages.Beat(1.0, 1.0, 1, -1, 1.0, 1, 1.0),
        messages.Beat(1.0, -1.0, 1, 1, 1.0, 1, 1.0),
        Done({"journal.jsonl": -1}),
    ],
)
def test_counts_that_cannot_be_are_not_taken(answer: messages.Answer, saying: Callable[..., Member]) -> None:
    member = saying(answer)
    assert "its agent said" in (member.look() or "")
    assert (member.beats, member.lines) == ([], None)


def test_a_disk_that_is_full_here_is_no_loss_of_the_host(saying: Callable[..., Member], tmp_path: Path) -> None:
    (tmp_path / "run" / "journal.jsonl").mkdir()
    member = saying(Chunk("journal.jsonl", "YQ=="), Done({"journal.jsonl": 1}))
    assert member.handed_in(20)
    assert member.look() is None
    assert "journal.jsonl cannot be written" in (member.unwritable or "")


def test_a_file_that_the_full_disk_does_not_take_is_told(saying: Callable[..., Member], tmp_path: Path) -> None:
    (tmp_path / "run" / "journal.jsonl").symlink_to("/dev/full")
    member = saying(Chunk("journal.jsonl", "YQ=="), Done({"journal.jsonl": 1}))
    assert member.handed_in(20)
    assert member.unwritable == f"{tmp_path}/run/journal.jsonl cannot be written: No space left on device"


@pytest.mark.parametrize(
    "answer",
    [b"no JSON\n", b"[]\n", b'{"type": "Nonsense"}\n', b'{"type": "Beat"}\n',
     b'{"type": "HostFacts", "described": {"rmi_port": "many"}}\n',
     *(b'{"type": "Ready", "time_ms": %s}\n' % number
       for number in (b"NaN", b"-Infinity", b"1e999", b"9" * 400, b"%d" % 2**53, b"-%d" % 2**53))],
)  # fmt: skip
def test_an_answer_of_another_form_is_a_fault_of_its_host(answer: bytes, saying: Callable[..., Member]) -> None:
    assert "its agent said" in (saying(answer).look() or "")


def test_a_conductor_outlives_every_answer_with_its_memory(
    saying: Callable[..., Member], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [
        HostFacts(),
        messages.Ready(1.0),
        messages.Got("x"),
        Failed("x"),
        Chunk("journal.jsonl", "YQ=="),
        Done({"x": 1}),
    ]
    whole.append(messages.Beat(1.0, 1.0, 1, 1, 1.0, 1, 1.0))
    lines = list(fuzz.messages(7, [json.loads(messages.line(answer)) for answer in whole]))
    member = saying()
    process, before = psutil.Process(), 0
    for number, line in enumerate(lines * 5):
        monkeypatch.setattr(member, "_heard", lambda line=line: iter([line]))
        LISTEN(member)
        if member._answers.full() or number % 100 == 0:
            member.lost = None
            member.look()
        if number == 500:
            before = process.memory_info().rss
    assert process.memory_info().rss - before < 20 << 20
    assert len(member.beats) < 60 * 10 + 100
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["journal.jsonl"]


def test_an_interrupt_waits_for_no_host() -> None:
    """Such as one whose files are still being sent; the connections are closed next."""
    is_over, waited_for = threading.Event(), []

    def wait(number: int) -> None:
        if number == 0:
            os.kill(os.getpid(), signal.SIGINT)
        elif not is_over.wait(20):
            waited_for.append(number)

    with pytest.raises(KeyboardInterrupt):
        member_module.together(wait, range(3))
    is_over.set()
    assert waited_for == []
