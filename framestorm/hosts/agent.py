"""Watches a slave or the function's host, or runs JMeter's controller on the master, for the length of one run.

Sent over ssh, with `probe` and `messages`, and run there by the host's own Python (3.10 or later) as root; it needs
nothing installed and leaves nothing behind. It reads orders on its standard input and answers on its standard output.
When its orders end, because the run does or because the conductor or the network to it is gone, it stops what the run
started on this host and has JMeter's server ready for the next run.
"""

import base64
import contextlib
import fcntl
import json
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

from framestorm import probe
from framestorm.hosts import messages

TICK_S = 0.5
BEAT_S = 1.0
# The conductor speaks every two seconds; silent for so long, it is gone, or the network to it is.
SILENCE_S = 12.0
READY_WITHIN_S = 40.0
END_WITHIN_S = 10.0
CHUNK_BYTES = 1 << 20
DESCRIPTION = Path("/etc/framestorm/host.json")  # left by the playbook
ENVIRONMENT = Path("/run/framestorm/run.env")  # read by the server's unit at each start
LOCK = Path("/run/framestorm.lock")


class CannotError(Exception):
    """This host cannot do its part; the message says why and what to do."""


class Agent:
    """The orders of one run, one after the other."""

    def __init__(self) -> None:
        self.host = messages.Description()
        self.running = False
        self.watching = False
        self.stopping = False
        self.run_dir: Path | None = None
        self.main_pid = ""  # of JMeter's server
        self.controller: subprocess.Popen[bytes] | None = None
        self.lock: TextIO | None = None
        self.stopped_clients: set[int] = set()
        self.follow: dict[str, Path] = {}
        self.followed: dict[str, BinaryIO] = {}
        self.before = probe.Usage(0, 0, 0, 0, 0, 0)

    def obey(self, order: messages.Order) -> None:
        """Do what an order says."""
        if isinstance(order, messages.TellFacts):
            self.tell_facts(order)
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
            self.host = messages.Description(**json.loads(DESCRIPTION.read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise CannotError(f"its {DESCRIPTION} cannot be read ({error}); run ./run.sh deploy") from None
        facts = messages.Facts(
            described=self.host,
            hostname=socket.gethostname(),
            java=probe.java_version(),
            jmeter=probe.jmeter_version(Path(self.host.jmeter or "/nowhere")),
            kit=probe.digest(Path(self.host.folder or "/nowhere"), order.kit_files),
            unit=probe.show(self.host.unit, "LoadState"),
            cores=os.cpu_count(),
            memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            free_bytes=shutil.disk_usage(Path(self.host.runs).parent).free,
            busy_with=probe.lock_holder(LOCK),
        )
        answer(facts)

    def watch(self) -> None:
        """Tell how busy this host is and do nothing else: it is the function's."""
        self.watching = True
        self.before = probe.usage(probe.processes(self.host.user))
        self.tell_time()

    def begin(self, order: messages.Begin) -> None:
        """Make the run's folder; start JMeter's server with this host's share, or JMeter's controller."""
        self._take_lock(order.controller)
        self.running = self.watching = True
        self.run_dir = Path(self.host.runs) / order.run
        with self._as_account():
            # What is left of a run whose end this host did not see is of no more use.
            shutil.rmtree(self.run_dir, ignore_errors=True)
            try:
                self.run_dir.mkdir()
                for name, content in order.files.items():
                    path = self.run_dir / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(base64.b64decode(content))
            except OSError as error:
                raise CannotError(f"the run's folder cannot be made: {error}") from None
        # A path that is absolute stays as it is.
        self.follow = {name: self.run_dir / path for name, path in order.follow.items()}
        if order.command:
            self._start_controller(order.command, self.run_dir)
        else:
            if order.cut:
                self._cut(order.cut, self.run_dir)
            self._start_server()
        self.before = probe.usage(probe.processes(self.host.user))
        self.tell_time()

    def stop(self) -> None:
        """Stop gently: nobody new starts, users under way write down what they have."""
        self.stopping = True
        if self.run_dir is not None:
            with self._as_account():
                (self.run_dir / "stop").touch()
        probe.stop_clients(probe.processes(self.host.user), self.stopped_clients)

    def interrupt(self) -> None:
        """End the controller; its files stay as far as they are written."""
        if self.controller is not None and self.controller.poll() is None:
            self.controller.terminate()

    def end(self) -> None:
        """Become idle, hand in the rest of the files and how many lines each has, then go."""
        self.become_idle()
        self._send_growth()
        answer(messages.Done({name: probe.count_lines(file) for name, file in self.followed.items()}))
        if self.run_dir is not None:
            with self._as_account():
                shutil.rmtree(self.run_dir, ignore_errors=True)
        raise SystemExit(0)

    def become_idle(self) -> None:
        """Stop what the run started here, and have the server wait for the next run."""
        if not self.running:
            return
        self.running = self.watching = False
        if self.controller is not None:
            self.controller.terminate()
            try:
                self.controller.wait(END_WITHIN_S)
            except subprocess.TimeoutExpired:
                self.controller.kill()
                self.controller.wait()
        else:
            ENVIRONMENT.unlink(missing_ok=True)
            # Ends the engine and every user that it started: they are processes of the unit.
            _systemctl("restart", self.host.unit)

    def serve(self) -> None:
        """Take orders until they end; whatever ends them, leave the host idle."""
        lines = Lines(sys.stdin.fileno())
        beaten_s = time.monotonic()
        try:
            while True:
                orders = lines.wait(TICK_S)
                # Asked after a look at what came: to send a file's growth over a slow network may have taken long.
                if lines.ended or time.monotonic() - lines.heard_s > SILENCE_S:
                    break
                for line in orders:
                    fields = json.loads(line)
                    self.obey(messages.ORDERS[fields.pop("type")](**fields))
                    # What took long here was no silence of the conductor.
                    lines.heard_s = time.monotonic()
                if self.stopping:
                    probe.stop_clients(probe.processes(self.host.user), self.stopped_clients)
                if self.watching and time.monotonic() - beaten_s >= BEAT_S:
                    beaten_s = time.monotonic()
                    self._send_growth()
                    self._beat()
        except CannotError as error:
            with contextlib.suppress(OSError):
                self._send_growth()
                answer(messages.Failed(str(error)))
        finally:
            self.become_idle()

    @contextlib.contextmanager
    def _as_account(self) -> Iterator[None]:
        """Touch the run's files as the account that owns them: as root, a link put among them would lead anywhere."""
        owner = pwd.getpwnam(self.host.user)
        is_root = os.geteuid() == 0
        if is_root:
            os.setegid(owner.pw_gid)
            os.seteuid(owner.pw_uid)
        try:
            yield
        finally:
            if is_root:
                os.seteuid(0)
                os.setegid(0)

    def _take_lock(self, run: str) -> None:
        self.lock = LOCK.open("a+")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotError(
                f"it is busy with the run {LOCK.read_text()}; wait for its end, or end it there"
            ) from None
        self.lock.truncate(0)
        self.lock.write(run)
        self.lock.flush()

    def _cut(self, words: list[str], run_dir: Path) -> None:
        """Have the frames ready before any user starts, and tell the plan where they are."""
        command = ["setpriv", "--reuid", self.host.user, "--regid", self.host.user, "--init-groups"]
        command += [self.host.python, f"{self.host.folder}/client/frames.py", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotError(f"the video cannot be used: {done.stderr.strip()}")
        with self._as_account(), (run_dir / "run.properties").open("a") as file:
            file.write(f"frame_dir={json.loads(done.stdout)['folder']}\n")

    def _start_server(self) -> None:
        ENVIRONMENT.parent.mkdir(parents=True, exist_ok=True)
        ENVIRONMENT.write_text(f"FRAMESTORM_RUN=--addprop {self.run_dir}/run.properties\n")
        log = Path(self.host.log)
        _systemctl("restart", self.host.unit)
        deadline_s = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline_s:
            # Its port opens earlier, also where the start then fails. The log is a new one at each start.
            with contextlib.suppress(FileNotFoundError):
                if "Bound to RMI registry" in log.read_text(errors="replace"):
                    return
            time.sleep(0.1)
        log_end = probe.output("journalctl", "--no-pager", "--lines=5", "--output=cat", f"--unit={self.host.unit}")
        raise CannotError(f"JMeter's server was not ready in {READY_WITHIN_S:.0f} s (see {log} there): {log_end}")

    def _start_controller(self, command: list[str], run_dir: Path) -> None:
        owner = pwd.getpwnam(self.host.user)
        with self._as_account():
            log = (run_dir / "jmeter.out").open("wb")
        with log:
            self.controller = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=run_dir,
                user=owner.pw_uid,
                group=owner.pw_gid,
                start_new_session=True,
            )

    def _send_growth(self) -> None:
        """Send what has been added to each followed file since the last time."""
        for name, path in self.follow.items():
            if name not in self.followed:
                try:
                    # Held open: a restart of the server, also the one that makes it idle, puts its log aside.
                    with self._as_account():
                        self.followed[name] = path.open("rb")
                except FileNotFoundError:
                    continue
            while data := self.followed[name].read(CHUNK_BYTES):
                answer(messages.Chunk(name, base64.b64encode(data).decode()))

    def _beat(self) -> None:
        """Answer with the state of things; this being there at all is half of the message."""
        if self.running and self.controller is None:
            self._check_server()
        exit_status = self.controller.poll() if self.controller else None
        if exit_status is not None:
            self._send_growth()  # what it wrote last
        before, self.before = self.before, probe.usage(probe.processes(self.host.user))
        elapsed_s = max(self.before.at_s - before.at_s, 1e-3)
        beat = messages.Beat(
            time_ms=time.time() * 1000,
            # A process that ended unwaited for takes its time with it: never show that as negative work.
            cpu_percent=max(0.0, self.before.cpu_s - before.cpu_s) / elapsed_s * 100,
            rss_bytes=self.before.rss_bytes,
            processes=self.before.processes,
            host_cpu_percent=max(0.0, self.before.host_cpu_s - before.host_cpu_s) / elapsed_s * 100,
            host_memory_bytes=self.before.host_memory_bytes,
            load=os.getloadavg()[0],
            frozen=probe.stat(self.main_pid)[:1] in (["T"], ["t"]),
            exit_status=exit_status,
        )
        answer(beat)

    def _check_server(self) -> None:
        pid = probe.show(self.host.unit, "MainPID")
        if pid in {"", "0"}:
            raise CannotError(f"JMeter's server ended (see {self.host.log} there)")
        if self.main_pid and pid != self.main_pid:
            raise CannotError("JMeter's server was restarted during the run; its users are lost")
        self.main_pid = pid


class Lines:
    """The lines of a descriptor, as they come."""

    def __init__(self, descriptor: int) -> None:
        self.ended = False
        self.heard_s = time.monotonic()  # when something came last, if only a part of a line
        self._descriptor = descriptor
        self._parts: list[bytes] = []

    def wait(self, timeout_s: float) -> list[bytes]:
        """The whole lines that are there, waited for up to `timeout_s`."""
        if not select.select([self._descriptor], [], [], timeout_s)[0]:
            return []
        data = os.read(self._descriptor, CHUNK_BYTES)
        self.ended, self.heard_s = not data, time.monotonic()
        self._parts.append(data)
        # A video is one long line: put together once, and not for each of its parts.
        if b"\n" not in data:
            return []
        *lines, rest = b"".join(self._parts).split(b"\n")
        self._parts = [rest]
        return lines


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


def _systemctl(*words: str) -> None:
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotError(f"`systemctl {' '.join(words)}` failed: {done.stderr.strip()}")


def main() -> None:
    """Serve one run."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # sshd's, when the connection is lost: becoming idle comes first
    Agent().serve()
