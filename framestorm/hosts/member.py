"""One host of a running fleet: the agent on it, what it last said, and the files it sends as they grow."""

import base64
import contextlib
import hashlib
import inspect
import io
import json
import queue
import shlex
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from framestorm import client_server, connections, probe
from framestorm.errors import FramestormError
from framestorm.hosts import account, agent, controller, fence, followed, messages, server
from framestorm.hosts.remote import RemoteHost

# Reads as many bytes as the first line says, modules by their names, and runs the last one: the agent needs no
# installation and is never out of date. Compressed, a pipe takes them at once, and hosts are connected to together.
BOOTSTRAP = """
import json, sys, types, zlib
size, sources = int(sys.stdin.buffer.raw.readline()), b""
while len(sources) < size:
    sources += sys.stdin.buffer.raw.read(size - len(sources))
for name, source in json.loads(zlib.decompress(sources)).items():
    parent, _, own_name = name.rpartition(".")
    module = sys.modules[name] = types.ModuleType(name)
    setattr(sys.modules.setdefault(parent, types.ModuleType(parent)), own_name, module)
    exec(compile(source, name, "exec"), module.__dict__)
module.main()
"""
MODULES = (probe, connections, messages, client_server, fence, followed, server, account, controller, agent)
NAME = "framestorm-agent"  # as it is seen among the host's processes
PING_EVERY_S = 2.0
LOOK_EVERY_S = 0.5
LOST_AFTER_S = 10.0
FROZEN_AFTER_S = 5.0
READ_WITHIN_S = 5.0
ANSWER_WITHIN_S = 20.0
HAND_IN_WITHIN_S = 1800.0
BEGIN_WITHIN_S = 300.0  # what the plan sends is made there
# A file goes in pieces, each of which is acknowledged: so many are under way, for a network with a long delay, and a
# slow one has so long for the next of them.
PIECES_UNDER_WAY = 16
PIECE_WITHIN_S = 60.0
# An agent says little. One that says more is not listened to until that is read, and its beats are not all kept.
ANSWERS_AT_MOST = 1000
BEATS_AT_MOST_PER_S = 10
# A host that has been taken over must not fill this machine's disk.
FILE_AT_MOST_BYTES = 64 << 30
CLOCK_TRIES = 5
T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A", bound=messages.Answer)
# What comes from another machine is checked: it may have been taken over.
_ANSWERS = {name: TypeAdapter[messages.Answer](kind) for name, kind in messages.ANSWERS.items()}


class HostError(FramestormError):
    """A host cannot take part, or is lost; the message names it."""


@dataclass(frozen=True)
class Delivery:
    """The files that a host gets for a run, by their path in the run's folder; each is a local file or its content."""

    open: messages.Open
    files: Mapping[str, Path | bytes]
    begin: messages.Begin


class Member:
    """The conductor's end of one agent."""

    def __init__(self, host: RemoteHost, run_dir: Path) -> None:
        self.host = host
        self.facts = messages.HostFacts()
        self.share: dict[str, str] = {}
        self.clock_offset_ms = 0.0
        self.lost: str | None = None
        self.lost_ms: int | None = None  # its last sign of life, by this machine's clock
        self.lines: dict[str, int] | None = None
        self.exit_status: int | None = None
        self.unwritable: str | None = None  # why what it sends cannot be kept here, which is not its fault
        self.free_bytes: int | None = None  # of its disk, as the last beat says
        self.beats: list[messages.Beat] = []
        self._run_dir = run_dir
        self._files: frozenset[str] = frozenset()  # that it was ordered to send
        self._frozen_since_s: float | None = None
        self._answers: queue.Queue[messages.Answer] = queue.Queue(ANSWERS_AT_MOST)
        self._begun_s = time.monotonic()
        self._agent = subprocess.Popen(
            host.command(f"python3 -u -c {shlex.quote(BOOTSTRAP)} {NAME}"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._agent.stdout is not None  # noqa: S101 - it is a pipe
        self._lines = messages.DescriptorLines(self._agent.stdout.fileno())
        self._sizes: dict[str, int] = {}
        self._send_lock = threading.Lock()
        self._closed = threading.Event()  # no more orders
        self._done = threading.Event()  # nor answers
        modules = {module.__name__: inspect.getsource(module) for module in MODULES}
        sources = zlib.compress(json.dumps(modules).encode())
        self._send(f"{len(sources)}\n".encode() + sources)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        # Read all the time: ssh or kubectl that tells much, as ssh -vvv, would wait for a reader.
        self._last_words = ""
        self._reader = threading.Thread(target=self._read_words, daemon=True)
        self._threads = (self._listener, self._reader, threading.Thread(target=self._ping, daemon=True))
        for thread in self._threads:
            thread.start()

    def order(self, order: messages.Order) -> None:
        """Send an order; to a host that is lost it is silently not sent."""
        if isinstance(order, messages.Begin):
            self._files = frozenset(order.follow)
        self._send(messages.line(order))

    def ask(self, order: messages.Order, kind: type[A], timeout_s: float) -> A:
        """Send an order and wait for its answer.

        Raises:
            HostError: the agent says it cannot, cannot be reached, or does not answer in time.
        """
        self.order(order)
        return self._answer(kind, timeout_s)

    def _answer(self, kind: type[A], timeout_s: float) -> A:
        deadline_s = time.monotonic() + timeout_s
        while (left_s := deadline_s - time.monotonic()) > 0:
            try:
                answer = self._answers.get(timeout=min(left_s, 0.2))
            except queue.Empty:
                if self._has_ended() and self._answers.empty():
                    break
                continue
            if isinstance(answer, kind):
                return answer
            if isinstance(answer, messages.Failed):
                raise HostError(f"{self.host.name}: {answer.error}")
        raise HostError(f"{self.host.name} ({self.host.place}): {self._why_silent(f'no answer in {timeout_s:.0f} s')}")

    def deliver(self, delivery: Delivery) -> None:
        """Send the files of a run in pieces, then have it begin.

        Raises:
            HostError: the host cannot, has no room for the files, or takes no more of them.
        """
        sizes = [len(each) if isinstance(each, bytes) else each.stat().st_size for each in delivery.files.values()]
        if sum(sizes) > self.facts.free_bytes:
            raise HostError(
                f"{self.host.name}: the run's files need {sum(sizes) >> 20} MiB, but only "
                f"{self.facts.free_bytes >> 20} MiB of its disk are free; make room"
            )
        self.ask(delivery.open, messages.Ready, ANSWER_WITHIN_S)
        under_way = 0
        for piece in (piece for name, source in delivery.files.items() for piece in _pieces(name, source)):
            if under_way == PIECES_UNDER_WAY:
                self._answer(messages.Got, PIECE_WITHIN_S)
                under_way -= 1
            self.order(piece)
            under_way += 1
        for _ in range(under_way):
            self._answer(messages.Got, PIECE_WITHIN_S)
        self.ask(delivery.begin, messages.Ready, BEGIN_WITHIN_S)

    def learn(self, kit_files: Sequence[str]) -> None:
        """Ask the host for its facts and measure its clock; for `kit_files` see messages.TellFacts."""
        self.facts = self.ask(messages.TellFacts(list(kit_files)), messages.HostFacts, ANSWER_WITHIN_S)
        self.measure_clock()

    def why_unreached(self, target: str) -> str | None:
        """Return why host:port takes no connection from the host; None if it does."""
        return self.ask(messages.Connect(target), messages.Connected, ANSWER_WITHIN_S).error

    def addresses(self, hosts: Iterable[str], port: int) -> dict[str, str | None]:
        """The addresses of hosts as the host sees them (connections.addresses)."""
        return self.ask(messages.Resolve([*hosts], port), messages.Resolved, ANSWER_WITHIN_S).addresses

    def measure_clock(self) -> None:
        """How far the host's clock is ahead of this one's, by the try with the shortest way there and back.

        Measured again, the greater one counts: the clock may have been set in between.
        """
        shortest_ms, offset_ms = float("inf"), 0.0
        for _ in range(CLOCK_TRIES):
            sent_ms = time.time() * 1000
            told_ms = self.ask(messages.Do("tell_time"), messages.Ready, ANSWER_WITHIN_S).time_ms
            got_ms = time.time() * 1000
            if got_ms - sent_ms < shortest_ms:
                shortest_ms, offset_ms = got_ms - sent_ms, told_ms - (sent_ms + got_ms) / 2
        self.clock_offset_ms = max(self.clock_offset_ms, offset_ms, key=abs)

    def look(self) -> str | None:
        """Why the host is to be counted as lost from now on, None while it is well or when that is known already."""
        if self.lost is not None:
            return None
        reason, since_s = None, self._lines.heard_s
        silent_s = time.monotonic() - since_s
        has_ended = self.lines is None and self._has_ended()
        with contextlib.suppress(queue.Empty):
            while True:
                answer = self._answers.get_nowait()
                if isinstance(answer, messages.Failed):
                    reason = answer.error
        if reason is None and has_ended and self.lines is None:
            reason = self._why_silent("the connection ended")
        elif reason is None and silent_s > LOST_AFTER_S:
            reason = f"no sign of life for {silent_s:.0f} s"
        elif reason is None and self._frozen_since_s and time.monotonic() - self._frozen_since_s > FROZEN_AFTER_S:
            reason, since_s = "JMeter is frozen (stopped by a signal)", self._frozen_since_s
        if reason is not None:
            self.lost, self.lost_ms = reason, int((time.time() - (time.monotonic() - since_s)) * 1000)
        return reason

    def handed_in(self, timeout_s: float) -> bool:
        """Whether the host has sent the rest of its files and their counts; given up after a silence of `timeout_s`.

        Over a slow network the rest may take long, but it comes piece by piece. A host that talks on and on is given up
        too.
        """
        began_s = self._lines.heard_s = time.monotonic()
        while self.lines is None and not self._has_ended():
            now_s = time.monotonic()
            if now_s - self._lines.heard_s > timeout_s or now_s - began_s > HAND_IN_WITHIN_S:
                break
            time.sleep(0.1)
        return self.lines is not None

    def close(self) -> None:
        """Let go of the agent, which then sees to its host; the ssh process is waited for, then ended."""
        self._closed.set()
        with contextlib.suppress(OSError):
            if self._agent.stdin is not None:
                self._agent.stdin.close()
        try:
            self._agent.wait(1 if self.lost else 15)
        except subprocess.TimeoutExpired:
            self._agent.kill()
            self._agent.wait()
        # What ssh left behind to share its connection may hold the pipes open.
        self._done.set()
        for thread in self._threads:
            thread.join(2 * LOOK_EVERY_S)
        for pipe in (self._agent.stdout, self._agent.stderr):
            if pipe is not None and not any(thread.is_alive() for thread in self._threads):
                pipe.close()

    def _has_ended(self) -> bool:
        """Return whether the agent has ended, and what it said last is read."""
        if self._agent.poll() is None:
            return False
        self._listener.join(READ_WITHIN_S)
        return True

    def _read_words(self) -> None:
        assert self._agent.stderr is not None  # noqa: S101 - it is a pipe
        lines = messages.DescriptorLines(self._agent.stderr.fileno())
        with contextlib.suppress(OSError, ValueError):  # closed under way, or a line without end
            while not lines.ended and not self._done.is_set():
                for line in filter(bytes.strip, lines.wait(LOOK_EVERY_S)):
                    self._last_words = line.decode(errors="replace").strip()

    def _send(self, data: bytes) -> None:
        with contextlib.suppress(OSError, ValueError), self._send_lock:
            if self._agent.stdin is not None:
                self._agent.stdin.write(data)
                self._agent.stdin.flush()

    def _ping(self) -> None:
        """Tell the agent that the conductor lives, from its first moment on."""
        while not self._closed.wait(PING_EVERY_S):
            self.order(messages.Do("ping"))

    def _listen(self) -> None:
        for line in self._heard():
            try:
                fields = json.loads(line, parse_int=_whole, parse_float=_number, parse_constant=_number)
                self._take(_ANSWERS[fields.pop("type")].validate_python(fields))
            except OSError as error:
                self.unwritable = f"{error.filename} cannot be written: {error.strerror}"
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                self._answers.put(messages.Failed(f"its agent said {line[:200]!r}"))
                return

    def _heard(self) -> Iterator[bytes]:
        while not self._lines.ended and not self._done.is_set():
            try:
                yield from self._lines.wait(LOOK_EVERY_S)
            except (OSError, ValueError) as error:  # closed under way, or a line without end
                self._answers.put(messages.Failed(f"its agent cannot be understood: {error}"))
                return

    def _take(self, answer: messages.Answer) -> None:
        if isinstance(answer, messages.Chunk):
            # Any other name could be a path out of the run's folder.
            if answer.file not in self._files:
                raise ValueError(f"{answer.file!r} was not asked for")
            data = base64.b64decode(answer.data)
            self._sizes[answer.file] = self._sizes.get(answer.file, 0) + len(data)
            if self._sizes[answer.file] > FILE_AT_MOST_BYTES:
                raise ValueError(f"{answer.file} has over {FILE_AT_MOST_BYTES >> 30} GiB")
            path = self._run_dir / answer.file
            try:
                with path.open("ab") as file:
                    file.write(data)
            except OSError as error:  # of a write it has no name
                raise OSError(error.errno, error.strerror, str(path)) from None
        elif isinstance(answer, messages.Beat):
            if len(self.beats) < (time.monotonic() - self._begun_s + 60) * BEATS_AT_MOST_PER_S:
                self.beats.append(answer)
            frozen_since_s = self._frozen_since_s or time.monotonic()
            self._frozen_since_s = frozen_since_s if answer.frozen else None
            if answer.exit_status is not None:
                self.exit_status = answer.exit_status
            self.free_bytes = answer.free_bytes
        else:
            if isinstance(answer, messages.Done):
                if not self._files.issuperset(answer.lines) or min(answer.lines.values(), default=0) < 0:
                    raise ValueError("its counts are not those of the files that it was asked for")
                self.lines = answer.lines
            self._answers.put(answer)

    def _why_silent(self, otherwise: str) -> str:
        if self._agent.poll() is None:
            return otherwise
        self._reader.join(2 * LOOK_EVERY_S)  # what ssh left behind to share its connection may hold the pipe open
        return f"{self.host.by} says: {self._last_words}" if self._last_words else otherwise


def _number(text: str) -> float:
    """A number of a message; raises ValueError for NaN, infinity, and what is too large to be counted exactly."""
    if not abs(number := float(text)) < 2**53:
        raise ValueError(f"{text} is not a number of a host")
    return number


def _whole(text: str) -> int:
    return int(_number(text))


def _pieces(name: str, source: Path | bytes) -> Iterator[messages.FilePiece]:
    """Yield a file in pieces, the last one with the digest of the whole; an empty file is one empty piece."""
    digest = hashlib.sha256()
    with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
        data = file.read(messages.PIECE_BYTES)
        while True:
            digest.update(data)
            following = file.read(messages.PIECE_BYTES)
            yield messages.FilePiece(name, base64.b64encode(data).decode(), "" if following else digest.hexdigest())
            if not following:
                return
            data = following


def together(do: Callable[[T], R], each: Sequence[T]) -> list[R]:
    """Do it for all at once; the first failure is raised when all are through, and an interrupt without waiting."""
    pool, waits = ThreadPoolExecutor(max(1, len(each))), True
    try:
        return list(pool.map(do, each))
    except KeyboardInterrupt:
        waits = False
        raise
    finally:
        pool.shutdown(wait=waits)
