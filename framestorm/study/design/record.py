"""What a study's folder records: its points, each run that ended, and the study as it was started."""

from dataclasses import dataclass
from typing import Literal

from framestorm.model.files import FORMAT
from framestorm.model.run import Kit
from framestorm.model.study import Study, Value
from framestorm.platform.registry import AnySettings


@dataclass(frozen=True)
class Point:
    """One cell of the matrix: its level of each factor, and the plan, properties and target that this comes to."""

    id: str
    factors: dict[str, Value]
    plan: str
    properties: dict[str, str]
    target: AnySettings


COMPLETE: Literal["complete"] = "complete"
FAILED: Literal["failed"] = "failed"
# Of a study as a whole; "running" also where the conductor was killed, "partial" where runs failed.
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
    """What the command line changed of the study: properties by -J, and --repetitions."""

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
    rejudged: keys of the definition that were changed after the runs; empty in study.json itself.
    """

    name: str
    kit: Kit
    started_ms: int
    definition: Study
    file_sha256: str
    points: tuple[Point, ...]
    seed: int
    inventory: str
    port: int
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
    slaves: str | None = None
    resumed: tuple[Resumption, ...] = ()
    rejudged: tuple[str, ...] = ()
