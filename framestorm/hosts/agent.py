"""Watches a slave or the function's host, or runs JMeter's controller on the master, for the length of one run.

Sent over ssh with the modules that it imports, and run there by the host's own Python (3.10 or later) as root; it
needs nothing installed and leaves nothing behind. It reads orders on its standard input and answers on its standard
output. When its orders end, because the run does or because the conductor or the network to it is gone, it stops what
the run started on this host and has JMeter's server ready for the next run.
"""

import base64
import contextlib
import fcntl
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TextIO

from framestorm import client_server, connections, probe
from framestorm.hosts import messages, server
from framestorm.hosts.account import HostAccount
from framestorm.hosts.controller import Controller
from framestorm.hosts.fence import Fence
from framestorm.hosts.followed import FollowedFiles
from framestorm.hosts.messages import CannotError
from framestorm.hosts.server import PLAN, Server

TICK_S = 0.5
BEAT_S = 1.0
# The conductor speaks every two seconds; silent for so long, it is gone, or the network to it is.
SILENCE_S = 12.0
DISK_AT_LEAST_BYTES = 1 << 20
DESCRIPTION = Path("/etc/framestorm/host.json")  # left by the playbook
LOCK = Path("/run/framestorm.lock")


class Agent:
    """The orders of one run, one after the other."""

    def __init__(self) -> None:
        self.running = False
        self.watching = False
        self.stopping = False
        self.run_dir: Path | None = None
        self.server: Server = server.of(messages.Description())
        self.server_pid = ""
        self.controller: Controller | None = None
        self.lock: TextIO | None = None
        self.client_server: subprocess.Popen[bytes] | None = None
        self.client_watch: client_server.Heartbeat | None = None
        self.stopped_clients: set[int] = set()
        self.fence: Fence | None = None
        self.followed = FollowedFiles({})
        self.before = probe.Usage(0, 0, 0, 0, 0, 0)

    @property
    def host(self) -> messages.Description:
        """Return how this host is described."""
        return self.server.described

    @property
    def account(self) -> HostAccount:
        """Return the account that owns the run's files."""
        return HostAccount(self.host.user)

    def obey(self, order: messages.Order) -> None:
        """Do what an order says."""
        if isinstance(order, messages.TellFacts):
            self.tell_facts(order)
        elif isinstance(order, messages.Connect):
            answer(messages.Connected(connections.why_unreached(order.target)))
        elif isinstance(order, messages.Resolve):
            answer(messages.Resolved(connections.addresses(order.hosts, order.port)))
        elif isinstance(order, messages.Open):
            self.open(order)
        elif isinstance(order, messages.FilePiece):
            self.take(order)
        elif isinstance(order, messages.Begin):
            self.begin(order)
        else:
            getattr(self, order.what)()

    def ping(self) -> None:
        """The conductor lives: that the order came says it all."""

    def tell_time(self) -> None:
        """Answer with the time of day."""
        answer(messages.Ready(time.time() * 1000))

    def tell_facts(self, order: messages.TellFacts) -> None:
        """Answer with what pre-flight judges this host by."""
        try:
            self.server = server.of(messages.Description(**json.loads(DESCRIPTION.read_text())))
        except (OSError, ValueError, TypeError) as error:
            raise CannotError(f"its {DESCRIPTION} cannot be read ({error}); run ./run.sh deploy") from None
        facts = messages.HostFacts(
            described=self.host,
            hostname=socket.gethostname(),
            java=probe.java_version(),
            jmeter=probe.jmeter_version(Path(self.host.jmeter or "/nowhere")),
            kit=probe.digest(Path(self.host.folder or "/nowhere"), order.kit_files),
            additions=probe.additions(Path(self.host.jmeter or "/nowhere")),
            unit=probe.show(self.host.unit, "LoadState") if self.host.unit else "",  # an image may have no systemctl
            cores=probe.cores(self.server.pid() or "self"),
            memory_bytes=probe.memory(self.server.pid() or "self")[0],
            free_bytes=self._free_bytes(),
            busy_with=probe.lock_holder(LOCK),
            limits=self.server.limits(),
        )
        answer(facts)

    def _free_bytes(self) -> int:
        return shutil.disk_usage(Path(self.host.runs).parent).free

    def watch(self) -> None:
        """Tell how busy this host is and do nothing else: it is the function's."""
        self.watching = True
        self.before = self._usage()
        self.tell_time()

    def _usage(self) -> probe.Usage:
        """Return what has been used so far, of the cores that JMeter's server may use, or without it this login."""
        return probe.usage(self._watched(), self.server_pid or "self")

    def _watched(self) -> list[int]:
        """Return the processes whose usage is reported: those of the run or, without a run, those of the function."""
        if self.running:
            return self.server.processes()
        of_server = self.host.unit or None
        return [pid for pid in probe.processes(self.host.user) if probe.unit_of(pid) != of_server]

    def open(self, order: messages.Open) -> None:
        """Make the run's folder and delete those of crashed runs: the lock ensures that no other run is in progress."""
        self._take_lock(order.controller)
        runs = Path(self.host.runs)
        self.run_dir = runs / order.run
        with self.account.acting():
            try:
                for left in list(runs.iterdir()):
                    if left.is_dir() and not left.is_symlink():
                        # Renamed first: a process that still writes there keeps it from being deleted as a whole.
                        shutil.rmtree(left.rename(runs / f".{secrets.token_hex(8)}"), ignore_errors=True)
                    else:
                        left.unlink()
                self.run_dir.mkdir(mode=0o700)
            except OSError as error:
                raise CannotError(f"the run's folder cannot be made: {error}") from None
        self.tell_time()

    def take(self, order: messages.FilePiece) -> None:
        """Add the next piece to a file of the run; after the last one, compare the whole with its digest."""
        run_dir = self._opened_dir()
        path = run_dir / order.file
        with self.account.acting():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("ab") as file:
                    file.write(base64.b64decode(order.data))
                if order.digest and probe.digest(run_dir, [order.file]) != order.digest:
                    raise CannotError(f"{order.file} arrived damaged")
            except OSError as error:
                raise CannotError(f"{order.file} cannot be written: {error}") from None
        answer(messages.Got(order.file))

    def begin(self, order: messages.Begin) -> None:
        """Start JMeter's server with this host's share, or JMeter's controller."""
        run_dir = self._opened_dir()
        self.running = self.watching = True
        # A path that is absolute stays as it is.
        self.followed = FollowedFiles({name: run_dir / path for name, path in order.follow.items()})
        if order.command:
            self.controller = Controller(order.command, run_dir, self.account, Path(self.host.folder))
        else:
            if order.cut:
                self._cut(order.cut, run_dir)
            self.fence = Fence(self._end_server, SILENCE_S)
            if order.client_server:
                self._start_client_server(order.client_server, run_dir)
            self._start_server(order.environment)
        self.before = self._usage()
        self.tell_time()

    def stop(self) -> None:
        """Stop gently: no new users start, and running users record what they have measured so far."""
        self.stopping = True
        if self.run_dir is not None:
            with self.account.acting():
                (self.run_dir / "stop").touch()
                probe.stop_jmeter(self.run_dir, is_now=False)
        probe.stop_clients(self.server.processes(), self.stopped_clients)

    def interrupt(self) -> None:
        """Have the controller interrupt the users of its slaves."""
        with self.account.acting():
            probe.stop_jmeter(self._opened_dir(), is_now=True)

    def kill(self) -> None:
        """End the controller; its files stay as far as they are written."""
        if self.controller is not None and self.controller.poll() is None:
            self.controller.terminate()

    def end(self) -> None:
        """Become idle, hand in the rest of the files and how many lines each has."""
        self.become_idle()
        while self._send_growth():
            pass
        answer(messages.Done(self.followed.count_lines()))

    def leave(self) -> None:
        """Go, and leave nothing here: the conductor has all. Without this order the files stay for the next run."""
        if self.run_dir is not None:
            with self.account.acting():
                shutil.rmtree(self.run_dir, ignore_errors=True)
        raise SystemExit(0)

    def become_idle(self) -> None:
        """Stop what the run started here, and have the server wait for the next run."""
        if not self.running:
            return
        self.running = self.watching = False
        if self.controller is not None:
            self.controller.end()
        else:
            self._end_server()
        if self.client_watch is not None:
            self.client_watch.close()
        if self.client_server is not None:
            self.client_server.kill()  # and by that its users
            self.client_server.wait()
        if self.fence is not None:
            self.fence.dismiss()

    def _end_server(self) -> None:
        self.server.make_idle(self._opened_dir())

    def serve(self) -> None:
        """Take orders until they end; whatever ends them, leave the host idle."""
        lines = messages.DescriptorLines(sys.stdin.fileno())
        beaten_s = time.monotonic()
        may_be_more = False
        try:
            while True:
                # A controller may write faster than is sent between two beats.
                orders = lines.wait(0 if may_be_more else TICK_S)
                # Asked after a look at what came: to send a file's growth over a slow network may have taken long.
                if lines.ended or time.monotonic() - lines.heard_s > SILENCE_S:
                    break
                for line in orders:
                    self.obey(messages.order(line))
                    # What took long here was not silence of the conductor.
                    lines.heard_s = time.monotonic()
                if self.stopping:
                    probe.stop_clients(self.server.processes(), self.stopped_clients)
                is_due = self.watching and time.monotonic() - beaten_s >= BEAT_S
                may_be_more = self.watching and (is_due or may_be_more) and self._send_growth()
                if is_due:
                    beaten_s = time.monotonic()
                    self._beat()
        except BrokenPipeError:
            pass  # nobody is there to be told
        except (CannotError, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            with contextlib.suppress(OSError, CannotError):
                self._send_growth()
            with contextlib.suppress(OSError):
                is_told = isinstance(error, CannotError | OSError)
                answer(messages.Failed(str(error) if is_told else repr(error)))
        finally:
            self.become_idle()
            self.followed.close()

    def _opened_dir(self) -> Path:
        """Return the run's folder."""
        if self.run_dir is None:
            raise CannotError("no run is open")
        return self.run_dir

    def _take_lock(self, run: str) -> None:
        self.lock = LOCK.open("a+")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotError(
                f"it is busy with the run {LOCK.read_text()}; wait until that ends, or stop it there"
            ) from None
        self.lock.truncate(0)
        self.lock.write(run)
        self.lock.flush()

    def _cut(self, words: list[str], run_dir: Path) -> None:
        """Cut the input before any user starts, and tell the plan where its parts are."""
        command = self.account.command(self.host.python, f"{self.host.folder}/client/frames.py", *words)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotError(f"the video cannot be used: {done.stderr.strip()}")
        with self.account.acting(), (run_dir / "run.properties").open("a") as file:
            file.write(f"frame_dir={json.loads(done.stdout)['folder']}\n")

    def _start_client_server(self, name: str, run_dir: Path) -> None:
        command = client_server.command(self.host.python, f"{self.host.folder}/client", name)
        with self.account.acting():
            log = (run_dir / "client.log").open("ab")
        with log:
            self.client_server = started = subprocess.Popen(
                self.account.command(*command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        try:
            account = self.account.entry.pw_uid
            self.client_watch = client_server.Heartbeat(name, lambda: started.poll() is not None, account)
        except OSError as error:
            raise CannotError(f"the client server cannot be started: {error}; see {run_dir}/client.log there") from None

    def _start_server(self, environment: dict[str, str]) -> None:
        run_dir = self._opened_dir()
        with self.account.acting():
            (run_dir / PLAN).mkdir(exist_ok=True)  # a plan may write there without having brought a file
        self.server.start(run_dir, environment)
        self.server_pid = self.server.pid()

    def _send_growth(self) -> bool:
        """Send what has been added to each followed file since the last time; whether there may be more."""
        if self.followed.are_missing:
            with self.account.acting():
                self.followed.open()
        return self.followed.send_growth(answer, lambda: self.controller is None or self.controller.poll() is not None)

    def _beat(self) -> None:
        """Answer with the state of things; this being there at all is half of the message."""
        if self.running and self.controller is None:
            self._check_server()
        exit_status = self.controller.poll() if self.controller else None
        while exit_status is not None and self._send_growth():
            pass  # what it wrote last
        before, self.before = self.before, self._usage()
        cpu_percent, host_cpu_percent = self.before.percents_since(before)
        jmeter = str(self.controller.pid) if self.controller else self.server_pid
        beat = messages.Beat(
            time_ms=time.time() * 1000,
            cpu_percent=cpu_percent,
            rss_bytes=self.before.rss_bytes,
            processes=self.before.processes,
            host_cpu_percent=host_cpu_percent,
            host_memory_bytes=self.before.host_memory_bytes,
            load=os.getloadavg()[0],
            free_bytes=self._free_bytes(),
            frozen=probe.stat(jmeter)[:1] in (["T"], ["t"]),
            exit_status=exit_status,
        )
        answer(beat)

    def _last_words(self) -> str:
        return " | ".join(self.server.said_last(self._opened_dir()).splitlines())

    def _check_server(self) -> None:
        pid = self.server.pid()
        if not pid:
            raise CannotError(f"JMeter's server ended (see {self.host.log} there): {self._last_words()}")
        if self.server_pid and pid != self.server_pid:
            what = "JMeter's server was restarted during the run, and its users were lost"
            raise CannotError(f"{what}; its last message: {self._last_words()}")
        self.server_pid = pid
        if self.client_watch is not None and (trouble := self.client_watch.trouble()):
            raise CannotError(trouble)
        if self.client_watch is not None and self._free_bytes() < DISK_AT_LEAST_BYTES:
            raise CannotError(
                f"the disk of {self.host.runs} is full: its users cannot write down what they send; make room"
            )


def answer(message: messages.Answer) -> None:
    """Write one answer.

    Raises:
        BrokenPipeError: nobody reads any more; when the network is cut, sshd holds the pipe open for minutes.
    """
    data = messages.line(message)
    descriptor = sys.stdout.fileno()
    while data:
        if not select.select([], [descriptor], [], SILENCE_S)[1]:
            raise BrokenPipeError(f"no answer was read for {SILENCE_S:.0f} s")
        # A pipe that is writable takes this much without blocking.
        data = data[os.write(descriptor, data[: select.PIPE_BUF]) :]


def main() -> None:
    """Serve one run."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # sshd's, when the connection is lost: becoming idle comes first
    try:
        Agent().serve()
    finally:
        # When this process was stopped, sudo stopped itself too; it does not go on with it, and would stay.
        os.kill(os.getppid(), signal.SIGCONT)
