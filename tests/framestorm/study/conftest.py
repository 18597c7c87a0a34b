"""Studies made up by hand: a study.yml, and runs as the report leaves them, with figures that are known."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from framestorm.judge import claims
from framestorm.model.files import write
from framestorm.model.run import Host, Record
from framestorm.model.sample import COMMON, ORIGIN
from framestorm.model.study import Claim
from framestorm.model.study_summary import ClaimAnswer
from framestorm.points.folder import Point, RunLine, StudyFolder, StudyRecord
from framestorm.points.study_results import StudyResults
from framestorm.study.design import matrix, reading
from tests.framestorm.conftest import summary_of

BOTH = {"users": [1, 2], "way": {"fork": {}, "kept-alive": {}}}
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
    """Frames of one user, one after the other, answered correctly unless `given` says otherwise."""
    frames, clock_ms = [], start_ms
    for index, rtt_ms in enumerate(times_ms):
        frame: Frame = {
            "label": "frame", "user": "u1", "index": index, "start_ms": clock_ms, "rtt_ms": rtt_ms,
            "handler_ms": 0.8 * rtt_ms, "model_ms": 0.5 * rtt_ms, "status": 200, "ok": "true", "censored": "false",
            "cold": "false", "verified": "true", "host": "master", "source": "tree",
        }  # fmt: skip
        frames.append(frame | given)
        clock_ms += rtt_ms
    return frames


def timed_out(frame: Frame) -> Frame:
    empty = {"handler_ms": "", "model_ms": "", "status": "", "cold": ""}
    return frame | empty | {"ok": "false", "cause": "timeout", "censored": "true"}


def write_run(folder: Path, result: FakeResult) -> None:
    folder.mkdir(parents=True)
    usual = [*COMMON, *ORIGIN, "handler_ms", "model_ms", "cold", "verified", "worker"]
    columns = list(dict.fromkeys([*usual, *(name for frame in result.frames for name in frame)]))
    with (folder / "samples.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(result.frames)
    host = Host("master", "generator and target", cores=2, memory_bytes=8_000_000_000)
    versions = {"jmeter": "5.5", "java": "17.0.12", "python": "3.11.2", "os": "Debian GNU/Linux 12 (bookworm)"}
    properties = {name: str(text) for name, text in result.properties.items()}
    record = Record(state="complete", properties=properties, hosts=(host,), versions=versions)
    write(folder / "run.json", record)
    write(folder / "summary.json", summary_of(len(result.frames), run=record, **result.summary))
    (folder / "index.html").write_text("<!doctype html><title>a run</title>")


@dataclass
class FakeStudy:
    """Make a study's folder: points by study.yml, each run as `simulate` gives it, None for one not yet run."""

    tmp_path: Path

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
        chosen = {"seed": 17, "command": ("./run.sh", "study", study.name), "quick": quick} | settings
        record = StudyRecord.begin(file, study, points, **chosen)
        folder = StudyFolder.create(self.tmp_path / f"{study.name}-20260101T000000Z", record)
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


def judge(made: StudyResults, claim: Mapping[str, Any]) -> ClaimAnswer:
    return claims.judge(made, Claim.model_validate(claim))


@pytest.fixture
def fake_study(tmp_path: Path) -> FakeStudy:
    return FakeStudy(tmp_path)


@pytest.fixture
def study(fake_study: Any) -> Callable[..., StudyResults]:
    """A study of which each run has just the mean that `means` gives of its factors and repetition.

    Or these times, None for a sample that fails; or it fails for a reason, or is not there.
    """

    def make(
        means: Callable[[Mapping[str, Any], int], float | list[float | None] | str | None],
        factors: Mapping[str, Any] = BOTH,
        repetitions: int = 3,
        summary: Callable[[Mapping[str, Any], int], dict[str, Any]] = lambda factors, repetition: {},
        **content: Any,
    ) -> StudyResults:
        def simulate(point: Any, repetition: int) -> Any:
            mean = means(point.factors, repetition)
            if mean is None or isinstance(mean, str):
                return FakeResult(reason=mean) if mean else None
            times = mean if isinstance(mean, list) else [mean, mean]
            frames = frames_of([10.0 if time is None else time for time in times])
            for frame in (frame for frame, time in zip(frames, times, strict=True) if time is None):
                frame.update({"ok": "false", "cause": "status-500"})
            return FakeResult(frames, summary(point.factors, repetition))

        folder: Path = fake_study.make(simulate, {"factors": dict(factors), "repetitions": repetitions, **content})
        return StudyResults(StudyFolder(folder))

    return make
