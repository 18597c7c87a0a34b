"""One run: check everything, start the target and JMeter, watch them, end them, and have the report made."""

import contextlib
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Set
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import psutil

from framestorm import jmeter, paths, properties, target, video
from framestorm.errors import FramestormError, UsageError
from framestorm.guarded import Guarded
from framestorm.live import LiveView
from framestorm.record import RunRecord, now_ms
from framestorm.resources import ResourceLog

DEFAULT_PLAN = paths.JMX / "face-blur.jmx"
NEEDED_DISK_BYTES = 200 * 2**20
POLL_S = 0.2
# How long a gentle stop may take before JMeter is told to interrupt its users, then is ended.
INTERRUPT_AFTER_S = 15.0
END_AFTER_S = 25.0


@dataclass(frozen=True)
class RunOptions:
    """What the command line asked for."""

    plan: Path = DEFAULT_PLAN
    given: Mapping[str, str] = field(default_factory=dict)
    criteria: tuple[str, ...] = ()
    run_dir: Path | None = None
    samples_copy: Path | None = None
    port: int = target.DEFAULT_PORT
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """A run that passed every check and has not started."""

    values: Mapping[str, str]
    passed_on: Mapping[str, str]
    is_embedded: bool
    has_users: bool


class Interrupts:
    """Counts the signals that ask to stop: the first stops gently, the second at once."""

    def __init__(self) -> None:
        self.count = 0
        self.name = ""

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = [signal.signal(number, self._note) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.name = signal.Signals(number).name
        if self.count == 1:
            print("\nstopping gently, the report follows; once more ends it at once", file=sys.stderr, flush=True)


def run(options: RunOptions) -> Path:
    """Make one run.

    Returns:
        The run's folder, raw files complete as far as they got.

    Raises:
        UsageError: plan, properties or folder are wrong; nothing was started or written.
        FramestormError: the run could not start; nothing of it is left.
    """
    run_dir = choose_run_dir(options)
    prepared = prepare(options, run_dir)
    interrupts = Interrupts()
    with interrupts.caught(), ExitStack() as stack:
        run_dir.mkdir(parents=True)
        try:
            record = _open_record(options, prepared, run_dir)
            embedded = stack.enter_context(embedded_target(options, prepared, run_dir))
            if interrupts.count:
                raise FramestormError(f"stopped by {interrupts.name} before the run began; nothing is left of it")
        except FramestormError:
            shutil.rmtree(run_dir)
            raise
        stop_port = jmeter.free_udp_port()
        command = jmeter.run_command(options.plan, prepared.passed_on, run_dir, stop_port)
        record.update(started_ms=now_ms(), jmeter={"exit_code": None, "arguments": command[1:]})
        storm = stack.enter_context(Guarded(command, run_dir / "jmeter.out", jmeter.environment()))
        parts = {"generator": storm} | ({"target": embedded} if embedded else {})
        with ResourceLog(run_dir / "resources.csv", socket.gethostname(), parts), LiveView(run_dir, prepared.has_users):
            state, reason = _watch(storm, embedded, run_dir / "stop", stop_port, interrupts)
        record.update(
            state=state,
            reason=reason,
            ended_ms=now_ms(),
            jmeter={"exit_code": storm.exit_status(), "arguments": command[1:]},
        )
    (run_dir / "stop").unlink(missing_ok=True)
    if options.samples_copy is not None and (run_dir / "samples.jtl").exists():
        shutil.copyfile(run_dir / "samples.jtl", options.samples_copy)
    return run_dir


def prepare(options: RunOptions, run_dir: Path) -> Prepared:
    """Every check that can be made before anything starts, and the values of all properties."""
    knobs = properties.read_plan(options.plan)
    values = properties.effective(knobs, options.given)
    for name in properties.unknown_to_jmeter(options.given):
        print(f"note: -J{name}: JMeter's own property files do not mention it; passed on as it is", file=sys.stderr)
    _check_output(options, run_dir)
    is_embedded = "url" in knobs and "url" not in options.given
    if is_embedded:
        target.check_port_free(options.port)
        values["url"] = target.embedded_url(options.port)
    elif "url" in values:
        target.check_reachable(values["url"])
    values |= _kit_values(values, options.given, run_dir)
    known = {name: value for name, value in values.items() if name in knobs}
    dotted = {name: value for name, value in options.given.items() if "." in name}
    return Prepared(known, known | dotted, is_embedded, properties.has_users(options.plan))


def _kit_values(values: Mapping[str, str], given: Mapping[str, str], run_dir: Path) -> dict[str, str]:
    """The properties that only the kit can know: where its parts, the video's frames and the run's files are."""
    kit = {
        "python": str(paths.CLIENT_PYTHON),
        "client": str(paths.CLIENT / "client.py"),
        "client_log": str(run_dir / "client.log"),
        "cache": str(paths.FRAME_CACHE),
        "journal": str(run_dir / "journal.jsonl"),
        "tree": str(run_dir / "tree.xml"),
        "stop": str(run_dir / "stop"),
    }
    if "video" in values:
        source = Path(given.get("video", paths.SAMPLE_VIDEO)).expanduser().absolute()
        cut = video.prepare(source, values.get("encoding", "png-base64"), paths.FRAME_CACHE)
        kit |= {"video": str(source), "frame_dir": str(cut.frame_dir)}
    return kit


def choose_run_dir(options: RunOptions, suffix: str = "") -> Path:
    """The folder asked for, else one named after the plan and the time."""
    if options.run_dir is not None:
        return options.run_dir.absolute()
    return paths.DASHBOARDS / f"{options.plan.stem}{suffix}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"


def _check_output(options: RunOptions, run_dir: Path) -> None:
    if run_dir.exists():
        raise UsageError(f"{run_dir} exists; a run's folder is made new, choose another by -o")
    if options.samples_copy is not None and options.samples_copy.exists():
        raise UsageError(f"-l {options.samples_copy}: the file exists; results are never appended to or overwritten")
    parent = next(folder for folder in run_dir.parents if folder.exists())
    try:
        probe = parent / f".{run_dir.name}.probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise FramestormError(
            f"nothing can be written to {parent}: {error.strerror}; free it, or choose another folder by -o"
        ) from None
    free_bytes = shutil.disk_usage(parent).free
    if free_bytes < NEEDED_DISK_BYTES:
        raise FramestormError(
            f"{parent} has {free_bytes / 2**20:.0f} MiB left and a run wants {NEEDED_DISK_BYTES / 2**20:.0f}; make room"
        )


def _open_record(options: RunOptions, prepared: Prepared, run_dir: Path) -> RunRecord:
    plan_is_own = options.plan.resolve().is_relative_to(paths.ROOT)
    return RunRecord(
        run_dir,
        plan=paths.shown(options.plan.resolve()) if plan_is_own else str(options.plan),
        has_users=prepared.has_users,
        command=list(options.command),
        properties=dict(prepared.values),
        given=dict(options.given),
        criteria=list(options.criteria),
        default_criteria=not options.criteria,
        target={"kind": "embedded" if prepared.is_embedded else "url", "url": prepared.values.get("url")},
    )


@contextlib.contextmanager
def embedded_target(options: RunOptions, prepared: Prepared, run_dir: Path) -> Iterator[Guarded | None]:
    if not prepared.is_embedded:
        yield None
        return
    log_path = run_dir / "target.log"
    print("starting the embedded target …", file=sys.stderr, flush=True)
    with target.start_embedded(options.port, log_path) as embedded:
        target.wait_until_ready(embedded, options.port, log_path)
        yield embedded


def _watch(
    storm: Guarded, embedded: Guarded | None, stop_file: Path, stop_port: int, interrupts: Interrupts
) -> tuple[str, str | None]:
    """Wait for JMeter's end, stopping it where asked to or where the target is gone; the run's state and reason."""
    reason: str | None = None
    stopping_since_s: float | None = None
    interrupted = False
    asked: set[psutil.Process] = set()
    while storm.wait(POLL_S) is None:
        if stopping_since_s is None:
            if interrupts.count:
                reason = f"stopped by {interrupts.name}"
            elif embedded is not None and (status := embedded.exit_status()) is not None:
                reason = f"the embedded target ended in mid-run with status {status}; see target.log"
            if reason is not None:
                # The plan's own stop: nobody new starts, users under way hand in what they have.
                stop_file.touch()
                stopping_since_s = time.monotonic()
            continue
        waited_s = time.monotonic() - stopping_since_s
        if interrupts.count > 1 or waited_s > END_AFTER_S:
            storm.stop()
            break
        if waited_s > INTERRUPT_AFTER_S and not interrupted:
            jmeter.interrupt(stop_port)
            interrupted = True
        # Again at each turn: a user may start between JMeter's last look and its end.
        asked |= _stop_clients(storm, asked)
    if interrupts.count:
        return "stopped", f"stopped by {interrupts.name}"
    if reason is None and storm.exit_status() != 0:
        reason = f"JMeter ended with status {storm.exit_status()}; see jmeter.log and jmeter.out"
    return ("complete", None) if reason is None else ("failed", reason)


def _stop_clients(storm: Guarded, already_asked: Set[psutil.Process]) -> set[psutil.Process]:
    """Ask each frame client to stop: it writes down the frame under way as cut off, and its user's line."""
    asked = set()
    for process in storm.processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process not in already_asked and str(paths.CLIENT / "client.py") in process.cmdline():
                process.terminate()
                asked.add(process)
    return asked
