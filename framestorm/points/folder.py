"""A study's folder: what it was started with and its points, a line for each run that ended, and the runs."""

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.lock import locked
from framestorm.machine import kit, now_ms
from framestorm.model import files
from framestorm.model.files import FORMAT, FileError
from framestorm.model.run import Kit
from framestorm.model.study import DEFINITION, Study, Value
from framestorm.plain import note
from framestorm.platform.base import DEFAULT_PORT, PODS, Site
from framestorm.platform.base import FILES as OF_PLATFORMS
from framestorm.platform.registry import AnySettings

FILE = "study.json"
RUNS = "runs.jsonl"
LOG = "study.log"
# What is beside a study's page.
FILES = {
    "results.csv": "a row per point and repetition, with every metric",
    "summary.json": "every figure of this page",
    DEFINITION: "the study as it was defined",
    FILE: "the study as it was run: seed, points, versions",
    RUNS: "one line per run, with how it ended",
    "junit.xml": "a test case per hypothesis and per point, for CI",
    LOG: "what was done, with times",
}
# Published results cannot have these names.
OWN_FILES = (*FILES, "runs", "index.html", *OF_PLATFORMS)
MAX_NAME_LENGTH = 120


@dataclass(frozen=True)
class Point:
    """One cell of the matrix: its level of each factor, and the plan, properties and target that this comes to.

    load_s: how long the load of a run takes, as run_s estimates it.
    """

    id: str
    factors: dict[str, Value]
    plan: str
    properties: dict[str, str]
    target: AnySettings
    load_s: float = 0


COMPLETE: Literal["complete"] = "complete"
FAILED: Literal["failed"] = "failed"
# States of a whole study; "running" also if the conductor was killed, "partial" if runs failed.
RUNNING: Literal["running"] = "running"
STOPPED: Literal["stopped"] = "stopped"
PARTIAL: Literal["partial"] = "partial"


@dataclass(frozen=True)
class RunLine:
    """A run that ended, a line of runs.jsonl: times are epoch ms, `engine_ms` what the engine itself took for it."""

    point: str
    repetition: int
    run: str
    state: Literal["complete", "failed"]
    reason: str | None
    started_ms: int
    ended_ms: int
    engine_ms: int
    order: int


@dataclass(frozen=True)
class Overrides:
    """What the command line changed in the study: properties (-J) and --repetitions."""

    properties: dict[str, str]
    repetitions: int | None = None


@dataclass(frozen=True)
class Resumption:
    """When a study was resumed, and by which version."""

    time_ms: int
    kit: Kit


@dataclass(frozen=True)
class StudyRecord:
    """The content of study.json: a study as it was started. Times are epoch ms.

    definition: the study in the form that is run: --quick, -J and --repetitions applied.
    file: the study.yml that it was started with, whose copy had the hash `file_sha256`.
    working_dir: where it was started, which the files of its properties are relative to.
    rejudged: keys of the definition that were changed after the runs; empty in study.json itself.
    """

    name: str
    kit: Kit
    started_ms: int
    definition: Study
    file_sha256: str
    points: tuple[Point, ...]
    seed: int
    inventory: str = ""
    port: int = DEFAULT_PORT
    format: int = FORMAT
    kind: Literal["study"] = "study"
    state: Literal["running", "complete", "stopped", "partial"] = RUNNING
    ended_ms: int | None = None
    quick: bool = False
    command: tuple[str, ...] = ()
    file: str = ""
    only: tuple[str, ...] = ()
    overrides: Overrides = Overrides({})
    gateway: str | None = None
    context: str | None = None
    ingress: str | None = None
    slaves: str | None = None
    working_dir: str = ""
    resumed: tuple[Resumption, ...] = ()
    rejudged: tuple[str, ...] = ()

    @classmethod
    def begin(cls, file: Path, definition: Study, points: Sequence[Point], **settings: Any) -> Self:
        """Create the record of a new study from `file`; `settings` are the other fields of the record."""
        return cls(
            name=definition.name,
            kit=kit(),
            started_ms=now_ms(),
            definition=definition,
            file_sha256=file_sha256(file),
            points=tuple(points),
            file=str(file),
            **settings,
        )

    @property
    def site(self) -> Site:
        """Where the study's functions run."""
        return Site(
            self.port,
            self.gateway,
            over_slaves=self.slaves is not None,
            by_pods=self.has_pods,
            context=self.context,
            ingress=self.ingress,
        )

    @property
    def has_pods(self) -> bool:
        """Return whether pods make the load."""
        return self.slaves is not None and self.slaves.startswith(PODS)


class StudyFolder:
    """The folder of one study; one process at a time may run it."""

    def __init__(self, path: Path) -> None:
        """Open a folder that exists.

        Raises:
            UsageError: it is not a study's folder, or has a format that this version does not read.
        """
        self.path = path
        try:
            self.record = files.read(path / FILE, StudyRecord)
        except FileError as error:
            raise UsageError(f"{paths.shown(path)} cannot be used as a study's folder: {error}") from None
        if lost := [name for name in (RUNS, "runs") if not (path / name).exists()]:
            raise UsageError(
                f"{paths.shown(path)} has no {' and no '.join(lost)}: restore what is missing, or run the study again"
            )

    @classmethod
    def create(cls, path: Path, study: StudyRecord) -> Self:
        """Make a new study's folder, with its study.yml and the published results beside that one.

        Raises:
            UsageError: the folder exists, or cannot be made.
        """
        try:
            path.mkdir(parents=True)
        except OSError as error:
            raise UsageError(f"{path} cannot be made: {error.strerror}; choose a new folder by -o") from None
        file = Path(study.file)
        shutil.copyfile(file, path / DEFINITION)
        if published := study.definition.published:
            shutil.copyfile(file.parent / published, path / published)
        (path / "runs").mkdir()
        (path / RUNS).touch()
        files.write(path / FILE, study, indent=2)
        files.sync_all(path)
        return cls(path)

    def update(self, **fields: Any) -> None:
        """Change fields of the record; when this returns, the file is on disk, written completely or not at all."""
        self.record = replace(self.record, **fields)
        files.write(self.path / FILE, self.record, indent=2)

    def locked(self) -> AbstractContextManager[None]:
        """Keep other processes from running this study; the lock is released when the process ends.

        Raises:
            FramestormError: another process is running it.
        """
        return locked(self.path / RUNS)

    def lines(self) -> dict[tuple[str, int], RunLine]:
        """Return the last line of each point and repetition; an incomplete line, left by a crash, is ignored."""
        return {(line.point, line.repetition): line for line in self._all()}

    def repeated(self) -> list[RunLine]:
        """Return the runs that were made again, because they failed or their files were lost: no figure has them."""
        lines = self._all()
        last = {(line.point, line.repetition): number for number, line in enumerate(lines)}
        return [line for number, line in enumerate(lines) if last[line.point, line.repetition] != number]

    def append(self, line: RunLine) -> None:
        """Add a line; it is on disk when this returns."""
        file = self.path / RUNS
        with file.open("r+b") as out:
            end = out.seek(0, os.SEEK_END)
            if end:
                out.seek(end - 1)
                # An incomplete line, left by a crash, stays a separate line.
                out.write(b"\n" if out.read(1) != b"\n" else b"")
                out.seek(0, os.SEEK_END)
            out.write(files.dump(line).encode() + b"\n")
            out.flush()
            os.fsync(out.fileno())

    def new_run(self, order: int, point: Point, repetition: int) -> Path:
        """Return the folder for a run, named so that folders are in the order of running; it is not made."""
        name = re.sub(r"[^A-Za-z0-9._=,+-]", "_", point.id)
        if len(name) > MAX_NAME_LENGTH:
            name = f"{name[:MAX_NAME_LENGTH]}-{hashlib.sha256(point.id.encode()).hexdigest()[:8]}"
        plain = self.path / "runs" / f"{order:04}-{name}-r{repetition}"
        return _free(plain, "retry")

    def set_aside(self) -> list[Path]:
        """Rename the runs that a crash interrupted (they have no line), and return their new names."""
        finished = {line.run for line in self._all()}
        moved = []
        for run in sorted((self.path / "runs").iterdir()):
            if run.is_dir() and f"runs/{run.name}" not in finished and not re.search(r"-aborted-\d+$", run.name):
                moved.append(run.rename(_free(run.with_name(f"{run.name}-aborted-1"), "aborted")))
        return moved

    def _all(self) -> list[RunLine]:
        """Return every complete line, including those of runs that were repeated later."""
        lines = []
        # A reason may have characters at which splitlines() splits.
        for text in (self.path / RUNS).read_text(errors="replace").split("\n"):
            try:
                lines.append(files.parse(text, RunLine))
            except FileError:
                continue
        return lines


def file_sha256(file: Path) -> str:
    """SHA-256 of the current content of a study.yml."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def newest_unfinished(study_file: Path, quick: bool) -> StudyFolder:
    """The newest folder of the study in `study_file` that still has runs to do; with `quick` only of its small form.

    A folder with the same study name but another study.yml belongs to another study, unless that file no longer exists.

    Raises:
        UsageError: there is none.
    """
    name = study_file.parent.name
    records: list[tuple[StudyRecord, Path]] = []
    for file in paths.DASHBOARDS.glob(f"*/{FILE}"):
        try:
            each = files.read(file, StudyRecord)
        except FileError as error:
            note(f"{error}; --resume ignores it")
            continue
        is_it = Path(each.file) == study_file or (each.name == name and not Path(each.file).exists())
        if is_it and (each.quick or not quick):
            records.append((each, file.parent))
    unfinished = [(each.started_ms, folder) for each, folder in records if each.state != COMPLETE]
    if not unfinished:
        finished = ", ".join(sorted(paths.shown(folder) for _, folder in records)) or "none"
        kind = "--quick " if quick else ""
        raise UsageError(
            f"--resume: dashboards/ has no unfinished {kind}{name} (finished: {finished}); start without --resume"
        )
    return StudyFolder(max(unfinished)[1])


def _free(path: Path, word: str) -> Path:
    """Return the path or, if it exists, the path with the next free number."""
    base = re.sub(rf"-{word}-\d+$", "", path.name)
    number = 1
    while path.exists():
        number += 1
        path = path.with_name(f"{base}-{word}-{number}")
    return path
