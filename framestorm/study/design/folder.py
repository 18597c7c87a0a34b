"""A study's folder: what was asked for, a line for each run that ended, and the runs themselves."""

import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from framestorm import __version__, paths, record
from framestorm.errors import FramestormError, UsageError
from framestorm.report.files import write_text
from framestorm.study.design.definition import FILE as DEFINITION
from framestorm.study.design.definition import Study
from framestorm.study.design.matrix import Point

FORMAT = 1
KIND = "study"
FILE = "study.json"
RUNS = "runs.jsonl"
LOG = "study.log"
# What a study's folder has of its own; published results go beside it.
OWN_FILES = (
    DEFINITION, FILE, RUNS, LOG, "runs", "results.csv", "summary.json", "junit.xml", "index.html", "openfaas.json",
    "stack.yml",
)  # fmt: skip
COMPLETE, FAILED = "complete", "failed"
# Of a study as a whole; "running" also where the conductor was killed, "partial" where runs failed.
RUNNING, STOPPED, PARTIAL = "running", "stopped", "partial"
MAX_NAME_LENGTH = 120


@dataclass(frozen=True)
class RunLine:
    """A run that ended: state complete or failed, times in ms, `engine_ms` what the engine itself took for it."""

    point: str
    repetition: int
    run: str
    state: str
    reason: str | None
    started_ms: int
    ended_ms: int
    engine_ms: int
    order: int


class StudyFolder:
    """The folder of one study; one process at a time may run it."""

    def __init__(self, path: Path) -> None:
        """Open a folder that is there.

        Raises:
            UsageError: it is no study's folder, or one of a format that this version does not know.
        """
        self.path = path
        try:
            self.settings: dict[str, Any] = json.loads((path / FILE).read_text())
            kind, form = self.settings["kind"], self.settings["format"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{paths.shown(path)} is no study's folder: {FILE} cannot be read ({error})") from None
        if kind != KIND or form != FORMAT:
            wrote = (self.settings.get("kit") or {}).get("version", "of unknown version")
            raise UsageError(
                f"{paths.shown(path)} was written by framestorm {wrote}, as {kind} of format {form}; "
                f"this is {__version__}, which reads format {FORMAT}. "
                f"Use it with framestorm {wrote}, or run the study again"
            )
        if lost := [name for name in (RUNS, "runs") if not (path / name).exists()]:
            raise UsageError(f"{paths.shown(path)} has no {' and no '.join(lost)}: put that back, or run it again")

    @classmethod
    def create(cls, path: Path, study_file: Path, study: Study, points: Sequence[Point], **settings: Any) -> Self:
        """Make a new study's folder.

        Args:
            path: where; it must not be there yet.
            study_file: the study.yml that is copied into it, with the published results beside it.
            study: what is run, in its final form.
            points: the points that are run.
            settings: quick, seed, command, file, only, overrides, gateway, slaves, inventory, port.

        Raises:
            UsageError: the folder is there, or cannot be made.
        """
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            raise UsageError(f"{path} exists; a study's folder is made new, choose another by -o") from None
        except OSError as error:
            raise UsageError(f"{path} cannot be made: {error.strerror}; choose another folder by -o") from None
        shutil.copyfile(study_file, path / DEFINITION)
        if study.published:
            shutil.copyfile(study_file.parent / study.published, path / study.published)
        (path / "runs").mkdir()
        (path / RUNS).touch()
        content = {
            "format": FORMAT,
            "kind": KIND,
            "name": study.name,
            "kit": record.kit(),
            "state": RUNNING,
            "started_ms": record.now_ms(),
            "ended_ms": None,
            "definition": study.as_json(),
            "file_sha256": file_sha256(path / DEFINITION),
            "points": [point.as_json() for point in points],
            **settings,
        }
        write_text(path / FILE, json.dumps(content, indent=2) + "\n")
        return cls(path)

    @property
    def points(self) -> list[Point]:
        """The points of the study, as they were when it began."""
        return [Point(**point) for point in self.settings["points"]]

    def update(self, **settings: Any) -> None:
        """Change settings; on disk when this returns, whole or not at all."""
        self.settings.update(settings)
        write_text(self.path / FILE, json.dumps(self.settings, indent=2) + "\n")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from running this study; the lock goes with the process that holds it.

        Raises:
            FramestormError: another does.
        """
        with (self.path / RUNS).open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                shown = paths.shown(self.path)
                raise FramestormError(f"{shown} is being run by another process; wait for it, or end it") from None
            yield

    def lines(self) -> dict[tuple[str, int], RunLine]:
        """The last line of each point and repetition; half a line, which a crash leaves, is none."""
        return {(line.point, line.repetition): line for line in self._all()}

    def append(self, line: RunLine) -> None:
        """Add a line; it is on disk when this returns."""
        file = self.path / RUNS
        with file.open("r+b") as out:
            end = out.seek(0, os.SEEK_END)
            if end:
                out.seek(end - 1)
                # Half a line that a crash left stays one of its own.
                out.write(b"\n" if out.read(1) != b"\n" else b"")
                out.seek(0, os.SEEK_END)
            out.write(json.dumps(asdict(line)).encode() + b"\n")
            out.flush()
            os.fsync(out.fileno())

    def new_run(self, order: int, point: Point, repetition: int) -> Path:
        """The folder for a run, named so that folders are in the order of running; it is not made."""
        name = re.sub(r"[^A-Za-z0-9._=,+-]", "_", point.id)
        if len(name) > MAX_NAME_LENGTH:
            name = f"{name[:MAX_NAME_LENGTH]}-{hashlib.sha256(point.id.encode()).hexdigest()[:8]}"
        plain = self.path / "runs" / f"{order:04}-{name}-r{repetition}"
        return _free(plain, "retry")

    def set_aside(self) -> list[Path]:
        """Rename the runs without a line, which a crash left half-done; their new names."""
        known = {line.run for line in self._all()}
        moved = []
        for run in sorted((self.path / "runs").iterdir()):
            if run.is_dir() and f"runs/{run.name}" not in known and not re.search(r"-aborted-\d+$", run.name):
                moved.append(run.rename(_free(run.with_name(f"{run.name}-aborted-1"), "aborted")))
        return moved

    def _all(self) -> list[RunLine]:
        """Every whole line, also of what was tried again."""
        found = []
        for text in (self.path / RUNS).read_text(errors="replace").splitlines():
            try:
                found.append(RunLine(**json.loads(text)))
            except (ValueError, TypeError):
                continue
        return found


def file_sha256(file: Path) -> str:
    """SHA-256 of a study.yml as it stands."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def new_path(name: str, quick: bool) -> Path:
    """Where a study that begins now goes."""
    return paths.DASHBOARDS / f"{name}{'-quick' if quick else ''}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"


def newest_unfinished(study_file: Path, quick: bool) -> StudyFolder:
    """The newest folder of the study of this file that has runs left to do.

    A study of the same name is another one, unless the file that it was begun with is no longer there.

    Raises:
        UsageError: there is none.
    """
    name, found = study_file.parent.name, []
    for file in paths.DASHBOARDS.glob(f"*/{FILE}"):
        try:
            settings = json.loads(file.read_text())
            begun_with = Path(settings["file"])
            is_it = begun_with == study_file or (settings["name"] == name and not begun_with.exists())
            if is_it and settings["quick"] == quick:
                found.append((settings["started_ms"], settings["state"], file.parent))
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"note: {paths.shown(file)} cannot be read ({error}); --resume passes it over", file=sys.stderr)
    unfinished = [folder for _, state, folder in sorted(found, key=lambda each: each[0]) if state != COMPLETE]
    if not unfinished:
        seen = ", ".join(paths.shown(folder) for _, _, folder in sorted(found)) or "none"
        kind = "--quick " if quick else ""
        raise UsageError(f"--resume: dashboards/ has no unfinished {kind}{name} (finished: {seen}); start without it")
    return StudyFolder(unfinished[-1])


def _free(path: Path, word: str) -> Path:
    """The path, or the next one of its kind that is not there yet."""
    base = re.sub(rf"-{word}-\d+$", "", path.name)
    number = 1
    while path.exists():
        number += 1
        path = path.with_name(f"{base}-{word}-{number}")
    return path
