"""JMeter's server on a slave: a unit of systemd on a host, a process of the agent's in a container.

This file is sent to the host with the agent, so like the agent it needs only the host's Python (3.10 or later).
"""

import contextlib
import os
import re
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from framestorm import probe
from framestorm.hosts.messages import CannotError, Description

READY_WITHIN_S = 40.0
END_WITHIN_S = 10.0
ENVIRONMENT = Path("/run/framestorm/run.env")  # read by the unit at each start
PLAN = "plan"  # the folder of the plan's files, in that of the run
PID = "server.pid"
OUTPUT = "server.out"
SCRIPT = "jmx/jmeter-server"  # of the kit


class Server(ABC):
    """JMeter's server of one slave; a run starts it anew, and has it idle when the run is over."""

    def __init__(self, described: Description) -> None:
        self.described = described

    def start(self, run_dir: Path, variables: Mapping[str, str]) -> None:
        """Start it with a run's properties and environment, and wait until it is ready.

        Raises:
            CannotError: it was not ready in time; the message has what it printed last.
        """
        words = ["--addprop", f"{run_dir}/run.properties"]
        if (run_dir / "system.properties").exists():
            words += ["--systemPropertyFile", f"{run_dir}/system.properties"]
        log = Path(self.described.log)
        self._start(run_dir, words, variables)
        deadline_s = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline_s:
            # Its port opens earlier, also where the start then fails. The log is a new one at each start.
            with contextlib.suppress(FileNotFoundError):
                if "Bound to RMI registry" in log.read_text(errors="replace"):
                    return
            time.sleep(0.1)
        said = self.said_last(run_dir)
        raise CannotError(f"JMeter's server was not ready in {READY_WITHIN_S:.0f} s (see {log} there): {said}")

    @abstractmethod
    def _start(self, run_dir: Path, words: list[str], variables: Mapping[str, str]) -> None:
        """Start it; JMeter looks for the plan's files from the folder that it is started in."""

    @abstractmethod
    def make_idle(self, run_dir: Path) -> None:
        """End the run's engine and every process that it started."""

    @abstractmethod
    def processes(self) -> list[int]:
        """Return the ids of the run's processes: the server, and the users wherever they were started."""

    @abstractmethod
    def pid(self) -> str:
        """Return its process id; empty while there is none."""

    def limits(self) -> probe.Limits:
        """Return what is left for it: a unit has limits of its own, not those of this login."""
        with contextlib.suppress(OSError):
            return probe.limits(self.pid() or "self")
        return probe.Limits()

    @abstractmethod
    def said_last(self, run_dir: Path) -> str:
        """Return the last lines that it printed."""


class Unit(Server):
    """JMeter's server as a systemd unit, which the playbook installs: it always runs, and restarts for each run."""

    _environment_fd: int | None = None

    def _start(self, run_dir: Path, words: list[str], variables: Mapping[str, str]) -> None:
        self._set_environment({**variables, "FRAMESTORM_RUN": " ".join(words)})
        link = Path(self.described.folder) / PLAN
        link.unlink(missing_ok=True)
        link.symlink_to(f"{run_dir}/{PLAN}")
        self._systemctl("restart")

    def make_idle(self, run_dir: Path) -> None:
        """Have it wait for the next run: the processes that the run started are of the unit, and end with it."""
        ENVIRONMENT.unlink(missing_ok=True)
        (Path(self.described.folder) / PLAN).unlink(missing_ok=True)
        self._systemctl("restart")

    def processes(self) -> list[int]:
        """Return those of the account, without those of its other units, such as a function that the host has too."""
        return [pid for pid in probe.processes(self.described.user) if probe.unit_of(pid) in ("", self.described.unit)]

    def pid(self) -> str:
        """Return the process id of the unit's program."""
        pid = probe.show(self.described.unit, "MainPID")
        return "" if pid == "0" else pid

    def said_last(self, run_dir: Path) -> str:
        return probe.output("journalctl", "--no-pager", "--lines=5", "--output=cat", f"--unit={self.described.unit}")

    def _set_environment(self, variables: Mapping[str, str]) -> None:
        """Have the unit's next start read these variables from this process's memory: they may be secret.

        With this process they are gone, so a server that systemd starts after its death is an idle one.
        """
        self._environment_fd = os.memfd_create("framestorm-run")
        quoted = {name: re.sub(r'([\\"$`])', r"\\\1", value) for name, value in variables.items()}
        os.write(self._environment_fd, "".join(f'{name}="{value}"\n' for name, value in quoted.items()).encode())
        ENVIRONMENT.parent.mkdir(parents=True, exist_ok=True)
        ENVIRONMENT.unlink(missing_ok=True)
        ENVIRONMENT.symlink_to(f"/proc/{os.getpid()}/fd/{self._environment_fd}")

    def _systemctl(self, word: str) -> None:
        command = ["systemctl", word, self.described.unit]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")


class Child(Server):
    """A server that lives for one run: without systemd, nothing listens between runs."""

    _process: subprocess.Popen[bytes] | None = None

    def __init__(self, described: Description) -> None:
        super().__init__(described)
        self._begun: set[int] = set()

    def _start(self, run_dir: Path, words: list[str], variables: Mapping[str, str]) -> None:
        command = ["/bin/sh", f"{self.described.folder}/{SCRIPT}", *words]
        Path(self.described.log).unlink(missing_ok=True)  # that of the run before says that it was ready, too
        with (run_dir / OUTPUT).open("wb") as output:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **self.described.server, **variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=run_dir,
                start_new_session=True,  # by which its users are known
            )
        # For the fence, which is another process.
        (run_dir / PID).write_text(f"{self._process.pid}")

    def make_idle(self, run_dir: Path) -> None:
        """End its session: the server with the users that it started."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            session = int((run_dir / PID).read_text())
            deadline_s = time.monotonic() + END_WITHIN_S
            self._signal(session, signal.SIGTERM)
            while self._signal(session, 0) and time.monotonic() < deadline_s:
                time.sleep(0.05)
            self._signal(session, signal.SIGKILL)

    def _signal(self, session: int, number: int) -> bool:
        """Send a signal to all processes of a session; returns whether there are any."""
        if self._process is not None:
            self._process.poll()
        members = [pid for pid, each in self._sessions().items() if each == session]
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return bool(members)

    def _sessions(self) -> dict[int, int]:
        """Return the session of each process of the account that has not ended."""
        stats = {pid: probe.stat(str(pid)) for pid in probe.processes(self.described.user)}
        return {pid: int(stat[3]) for pid, stat in stats.items() if stat and stat[0] != "Z"}

    def processes(self) -> list[int]:
        """Return those of the sessions that the agent has begun: the account has others, such as ssh's."""
        sessions = self._sessions()
        children = {pid for pid in sessions if probe.stat(str(pid))[1:2] == [str(os.getpid())]}
        self._begun |= {pid for pid in children if sessions[pid] == pid}
        return [pid for pid, session in sessions.items() if session in self._begun]

    def limits(self) -> probe.Limits:
        """Return the limits that JMeter's server will have, with the heap that its start sets."""
        option = f"\0-Xmx{self.described.server.get('HEAP', '')}\0"  # of jmx/jmeter-server
        return replace(super().limits(), heap_bytes=probe.heap_bytes(option.encode()))

    def pid(self) -> str:
        """Return the process id of the server that this run started."""
        return str(self._process.pid) if self._process is not None and self._process.poll() is None else ""

    def said_last(self, run_dir: Path) -> str:
        lines = (run_dir / OUTPUT).read_text(errors="replace").splitlines()[-5:]
        if (status := self._process.poll() if self._process else None) is not None:
            lines.append(f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}")
        return "\n".join(lines)


def of(described: Description) -> Server:
    """Return the server of a host."""
    return Child(described) if described.server else Unit(described)
