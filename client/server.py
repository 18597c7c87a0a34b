"""The client server: imports everything once, then starts each user of a run by a fork of itself.

    python server.py NAME

Listens on the abstract Unix socket NAME. launch.pl, which JMeter starts for each user, asks for a user by `start`: a
process of its own, with the launcher's arguments, environment, working directory and outputs. Whoever watches the
server asks by `ping` whether it still works. When a launcher ends, its user is killed; when the server or the process
that started it ends, all users are.
"""
# ruff: noqa: E402 - what is imported must find no hooks of a fork

import os

# Those of threading, logging and random renew what a fork of this process cannot break: it has no other threads, and
# no user needs chance. Each user would copy 0.2 MB for them.
os.register_at_fork = lambda **_: None

import contextlib
import ctypes
import errno
import gc
import io
import resource
import selectors
import signal
import socket
import struct
import sys
import time
import traceback
from argparse import Namespace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

import chat
import client
import infer
from headers import VARIABLE
from interrupt import Interrupts
from lines import complain

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
# See mallopt(3). Fixed limits, so that the memory of a frame and of its answer is given back for the pause.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, GIVE_BACK_BYTES = -1, -2, -3, 64 * 1024
# Where memory runs out, the kernel shall end a user rather than the server or JMeter.
USERS_OOM_SCORE = b"500"
NOT_STARTED = 126  # exit status, as of a shell; jmx/java/plan/User.java reads it
# Options of users are kept; there are more of them than a plan has samplers only where each user has its own.
KEPT_OPTIONS = 100


class ClientProgram(Protocol):
    """A client: a module whose user may be started by a fork."""

    def parse_options(self, arguments: list[str] | None = None, /) -> Namespace:
        """Read the words of a command line."""

    def new_sender(self, options: Namespace, /) -> Any:
        """Return the connection of a user with these options; raise ValueError for a URL that cannot be asked."""

    def find_input(self, options: Namespace, /) -> Any:
        """Return what the user sends, None if it has to look for that itself."""

    def run(
        self,
        options: Namespace,
        interrupts: Interrupts,
        process_start: tuple[float, float],
        sender: Any = None,
        input_: Any = None,
        /,
    ) -> int:
        """Be the user with these options, and return the exit status."""


# By the path of what a launcher would start.
PROGRAMS: dict[str, ClientProgram] = {
    str(Path(__file__).absolute().with_name(f"{program.__name__}.py")): program for program in (client, chat, infer)
}


class Shared(NamedTuple):
    """What a user need not make itself, because it was made before the fork; None: the user makes it, or fails to."""

    options: Namespace | None = None
    sender: Any = None


class Order(NamedTuple):
    """What a user is started with, read from its launcher's folder in /proc."""

    program: ClientProgram
    words: tuple[str, ...]
    environment: dict[bytes, bytes]  # what it has otherwise than the server
    surplus: set[bytes]  # what only the server has
    working_dir: str
    outputs: tuple[int, int]


class ClientConnection:
    """A connection from a launcher or a watcher; `user` is the process id of the launcher's user while it runs."""

    def __init__(self, stream: socket.socket) -> None:
        """Accept the connection and ask the kernel which process opened it."""
        stream.setblocking(False)
        self.stream = stream
        self.user = 0
        peer = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        self.process, self.account, _ = struct.unpack("3i", peer)

    def answer(self, line: str) -> None:
        """Write a line; whoever is gone needs none."""
        with contextlib.suppress(OSError):
            self.stream.send(line.encode() + b"\n")


class ClientServer:
    """Waits for launchers, and for users to end. It has no threads: a fork takes nothing along that is half done."""

    def __init__(self, name: str) -> None:
        """Listen, then import and run once what users need: a launcher that comes early waits."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(b"\0" + os.fsencode(name))
        self._listener.listen(socket.SOMAXCONN)
        self._selector = selectors.DefaultSelector()
        self._watch_listener()
        self._pid = os.getpid()
        self._shared: dict[tuple[ClientProgram, tuple[str, ...]], Shared] = {}
        # Each user takes two.
        self._open_files, self._most_open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._most_open_files, self._most_open_files))
        from warm import warm_up  # imported here: takes 100 ms and more

        LIBC.mallopt(M_TRIM_THRESHOLD, GIVE_BACK_BYTES)
        LIBC.mallopt(M_TOP_PAD, 0)
        LIBC.mallopt(M_MMAP_THRESHOLD, GIVE_BACK_BYTES)
        warm_up()
        gc.collect()
        gc.freeze()  # a collection in a user would write to each of these objects, and so copy its page

    def serve(self) -> NoReturn:
        """Start users until the process is ended."""
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    self._accept()
                elif key.fileobj is key.data.stream:
                    self._read(key.data)
                else:
                    self._end(key.data, key.fd)

    def _watch_listener(self) -> None:
        if self._listener not in self._selector.get_map():
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _accept(self) -> None:
        try:
            connection = ClientConnection(self._listener.accept()[0])
        except OSError as error:
            complain(f"server: a launcher cannot be accepted: {error}")
            if error.errno in {errno.EMFILE, errno.ENFILE}:  # it waits, without select() telling of it all the time
                self._selector.unregister(self._listener)
            return
        if connection.account in {0, os.getuid()}:
            self._selector.register(connection.stream, selectors.EVENT_READ, connection)
        else:
            connection.stream.close()

    def _read(self, connection: ClientConnection) -> None:
        try:
            request = connection.stream.recv(64)
        except OSError:
            request = b""
        if request == b"start\n":
            self._start(connection)
        elif request:
            connection.answer("pong")
            self._watch_listener()
        else:
            self._close(connection)
            if connection.user:  # its launcher was killed
                _kill(connection.user)

    def _close(self, connection: ClientConnection) -> None:
        if connection.stream.fileno() >= 0:
            self._selector.unregister(connection.stream)
            connection.stream.close()
        self._watch_listener()  # there is a descriptor again

    def _start(self, connection: ClientConnection) -> None:
        try:
            order = _read_order(connection.process)
        except OSError as error:  # it is gone, or its output is a socket, which cannot be opened again
            complain(f"server: launcher {connection.process} is left to itself: {error}")
            connection.answer("plain")
            return
        if order is None:
            connection.answer("plain")
            return
        shared = self._find_shared(order)
        try:
            input_ = order.program.find_input(shared.options) if shared.options else None
            connection.user = os.fork()
            if not connection.user:
                self._become_user(order, shared, input_)
            self._selector.register(os.pidfd_open(connection.user), selectors.EVENT_READ, connection)
            connection.answer(f"pid {connection.user}")
        except OSError as error:
            complain(f"server: a user cannot be started: {error}")
            if connection.user:  # its end would not be seen
                _kill(connection.user)
                os.waitpid(connection.user, 0)
                connection.user = 0
            connection.answer(f"exit {NOT_STARTED}")
            self._close(connection)
        finally:
            for output in order.outputs:
                os.close(output)

    def _end(self, connection: ClientConnection, pidfd: int) -> None:
        user, connection.user = connection.user, 0
        _kill(user)  # its own children; itself it has ended and still holds its id
        _, status = os.waitpid(user, 0)
        self._selector.unregister(pidfd)
        os.close(pidfd)
        is_killed = os.WIFSIGNALED(status)
        connection.answer(f"signal {os.WTERMSIG(status)}" if is_killed else f"exit {os.WEXITSTATUS(status)}")
        self._close(connection)

    def _find_shared(self, order: Order) -> Shared:
        key = (order.program, order.words)
        shared = self._shared.get(key)
        if shared is None:
            if len(self._shared) >= KEPT_OPTIONS:
                self._shared.clear()
            shared = self._shared[key] = _make_shared(*key)
        return shared

    def _become_user(self, order: Order, shared: Shared, input_: Any) -> NoReturn:
        """Be the user, after the fork, to the end of this process."""
        start = time.time() * 1000, time.perf_counter()
        status = 1
        try:
            self._leave_server(order)
            options = shared.options or order.program.parse_options(list(order.words))
            status = order.program.run(options, Interrupts(), start, shared.sender, input_)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            # At once: to end the interpreter in order would write to all that is shared with the server.
            os._exit(status)

    def _leave_server(self, order: Order) -> None:
        os.setpgid(0, 0)
        _end_with_parent(self._pid)
        # By descriptors, and nothing that need not be done: each object that is used here is a page copied.
        taken = (os.open(os.devnull, os.O_RDONLY), *order.outputs)
        for standard, descriptor in enumerate(taken):
            os.dup2(descriptor, standard)
        os.closerange(3, self._most_open_files)
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(score, USERS_OOM_SCORE)
        os.close(score)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._open_files, self._most_open_files))
        os.chdir(order.working_dir)
        for name in order.surplus:
            del os.environb[name]
        for name, value in order.environment.items():
            os.environb[name] = value


def _make_shared(program: ClientProgram, words: tuple[str, ...]) -> Shared:
    """Read the words and prepare a sender by them; if they are wrong, the user says so itself."""
    unheard = io.StringIO()
    try:
        with contextlib.redirect_stdout(unheard), contextlib.redirect_stderr(unheard):
            options = program.parse_options(list(words))
        return Shared(options, program.new_sender(options))
    except (SystemExit, ValueError, OSError):
        return Shared()


def _read_order(launcher: int) -> Order | None:
    """Read the command line of a launcher, `perl launch.pl SERVER PYTHON PROGRAM [ARG ...]`.

    Return None if it is for another program or interpreter. Raise OSError if it is gone, or its outputs have no path.
    """
    folder = f"/proc/{launcher}"
    words = [os.fsdecode(word) for word in _read(f"{folder}/cmdline").split(b"\0")[:-1]]
    program = PROGRAMS.get(words[4]) if words[3:4] == [sys.executable] and len(words) > 4 else None
    if program is None:
        return None
    settings = _read(f"{folder}/environ").split(b"\0")
    environment = {name: value for name, equals, value in (each.partition(b"=") for each in settings) if equals}
    working_dir = os.readlink(f"{folder}/cwd")  # noqa: PTH115
    stdout = _open_output(f"{folder}/fd/1")
    try:
        stderr = _open_output(f"{folder}/fd/2")
    except OSError:
        os.close(stdout)
        raise
    other = {name: value for name, value in environment.items() if os.environb.get(name) != value}
    return Order(
        program, tuple(words[5:]), other, os.environb.keys() - environment.keys(), working_dir, (stdout, stderr)
    )


def _read(path: str) -> bytes:
    # By descriptors: all that is used between two forks is copied for a user too.
    descriptor, parts = os.open(path, os.O_RDONLY), []
    try:
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
    finally:
        os.close(descriptor)
    return b"".join(parts)


def _open_output(path: str) -> int:
    # Not waiting: a pipe that nobody reads any more would be waited for.
    output = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
    os.set_blocking(output, True)
    return output


def _end_with_parent(parent: int) -> None:
    """Have this process killed as soon as its parent has ended."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _kill(user: int) -> None:
    """Kill a user and all processes in its process group."""
    for kill in (os.kill, os.killpg):
        with contextlib.suppress(ProcessLookupError):
            kill(user, signal.SIGKILL)


def main() -> None:
    name, parent = sys.argv[1], os.getppid()
    _end_with_parent(parent)
    os.environ.pop(VARIABLE, None)  # each user has its launcher's; those of the warm-up need none
    ClientServer(name).serve()


if __name__ == "__main__":
    main()
