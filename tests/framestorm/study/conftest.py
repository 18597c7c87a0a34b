"""Studies made up by hand: a study.yml, and runs as the report leaves them, with figures that are known."""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from framestorm.report.frames import FRAME_FIELDS
from framestorm.study.design import matrix, reading
from framestorm.study.design.folder import RunLine, StudyFolder
from framestorm.study.design.matrix import Point

START_MS = 1_790_000_000_000
# Less would not be a study; tests say what they change of it.
PLAIN: dict[str, Any] = {
    "title": "A made-up study",
    "question": "Does it work?",
    "plan": "jmx/face-blur.jmx",
    "target": {"kind": "embedded"},
    "factors": {"users": [1, 2]},
    "run_s": 1,
    "metrics": ["mean_ms", "success"],
}
Frame = dict[str, Any]


@dataclass
class FakeResult:
    """What a run leaves: its frames, and what differs in the summary; or why there is nothing."""

    frames: Sequence[Frame] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None


def frames_of(times_ms: Iterable[float], *, start_ms: float = START_MS, **given: Any) -> list[Frame]:
    """Frames of one user, one after the other, answered rightly unless `given` says otherwise."""
    frames, clock_ms = [], start_ms
    for index, rtt_ms in enumerate(times_ms):
        frame: Frame = {
            "user": "u1", "index": index, "start_ms": clock_ms, "rtt_ms": rtt_ms, "handler_ms": 0.8 * rtt_ms,
            "model_ms": 0.5 * rtt_ms, "status": 200, "ok": "true", "censored": "false", "cold": "false",
            "verified": "true", "host": "master", "source": "tree",
        }  # fmt: skip
        frames.append(frame | given)
        clock_ms += rtt_ms
    return frames


def timed_out(frame: Frame) -> Frame:
    empty = {"handler_ms": "", "model_ms": "", "status": "", "cold": ""}
    return frame | empty | {"ok": "false", "cause": "timeout", "censored": "true"}


def write_run(folder: Path, result: FakeResult) -> None:
    folder.mkdir(parents=True)
    columns = list(dict.fromkeys([*FRAME_FIELDS, "worker"]))
    with (folder / "frames.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(result.frames)
    summary = {"warnings": [], "users": None, "facts": {"arrivals": None}, "openfaas": [], "machines": []}
    (folder / "summary.json").write_text(json.dumps(summary | dict(result.summary)))
    host = {"name": "master", "role": "generator+target", "cores": 2, "memory_bytes": 8_000_000_000}
    versions = {"jmeter": "5.5", "java": "17.0.12", "python": "3.11.2", "os": "Debian GNU/Linux 12 (bookworm)"}
    made = {"format": 1, "state": "complete", "properties": dict(result.properties)}
    (folder / "run.json").write_text(json.dumps(made | {"hosts": [host], "versions": versions}))
    (folder / "index.html").write_text("<!doctype html><title>a run</title>")


class FakeStudy:
    """Make a study's folder: points by study.yml, each run as `simulate` gives it, None for one not yet run."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path

    def make(
        self,
        simulate: Callable[[Point, int], FakeResult | None],
        content: Mapping[str, Any] | Path | None = None,
        *,
        quick: bool = False,
        published: str | None = None,
        **settings: Any,
    ) -> Path:
        """`content` overrides PLAIN, or is a study.yml."""
        file = content if isinstance(content, Path) else self._write(content or {}, published)
        study = reading.load(file, quick)
        points = matrix.points(study)
        chosen = {"quick": quick, "seed": 17, "command": ["./run.sh", "study", study.name], "only": {}} | settings
        folder = StudyFolder.create(self.tmp_path / f"{study.name}-20260101T000000Z", file, study, points, **chosen)
        order = 0
        for repetition in range(1, study.repetitions + 1):
            for point in points:
                order += 1
                result = simulate(point, repetition)
                if result is None:
                    continue
                run = folder.new_run(order, point, repetition)
                write_run(run, result)
                state, at_ms = "failed" if result.reason else "complete", START_MS + 10_000 * order
                line = (point.id, repetition, f"runs/{run.name}", state, result.reason, at_ms, at_ms + 9000, 800, order)
                folder.append(RunLine(*line))
        return folder.path

    def _write(self, content: Mapping[str, Any], published: str | None) -> Path:
        file = self.tmp_path / "made-up" / "study.yml"
        file.parent.mkdir()
        file.write_text(yaml.safe_dump({**PLAIN, **content}, sort_keys=False))
        if published is not None:
            (file.parent / "published.csv").write_text(published)
        return file


@pytest.fixture
def fake_study(tmp_path: Path) -> FakeStudy:
    return FakeStudy(tmp_path)


@pytest.fixture
def make_frames() -> Callable[..., list[Frame]]:
    return frames_of


@pytest.fixture
def cut_off() -> Callable[[Frame], Frame]:
    return timed_out


@pytest.fixture
def make_result() -> type[FakeResult]:
    return FakeResult
