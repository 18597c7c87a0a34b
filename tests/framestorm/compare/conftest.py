"""Runs and studies made up by hand, as `compare` finds them on disk."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framestorm.cli import main
from framestorm.model.files import write
from framestorm.model.run import Kit
from framestorm.model.study import Study
from framestorm.points.folder import RunLine, StudyRecord
from framestorm.points.results_csv import ResultRow, write_rows
from framestorm.report import build
from framestorm.study.design import matrix
from tests.framestorm.study.conftest import PLAIN, START_MS, FakeResult, frames_of, timed_out, write_run

JTL_HEADER = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,failureMessage,Hostname"
Make = Callable[..., Path]
HOST = {"name": "vm", "address": "127.0.0.1", "role": "generator", "cores": 2, "memory_bytes": 8_000_000_000}


def record(**more: Any) -> dict[str, Any]:
    return {
        "format": 2, "kit": {"version": "0.1.0", "commit": "a" * 40, "dirty": False}, "state": "complete",
        "plan": "jmx/face-blur.jmx", "properties": {"users": "2", "sleep_s": "0"}, "given": {},
        "target": {"kind": "url", "url": "http://gateway:8080/function/face-blur"}, "hosts": [HOST],
        "versions": {"jmeter": "5.5", "java": "17"}, **more,
    }  # fmt: skip


def steady(n: int, seed: int, factor: float = 1.0) -> list[float]:
    """Round trips in ms around 100, each like the one before."""
    random = np.random.default_rng(seed)
    noise = random.normal(size=n)
    for number in range(1, n):
        noise[number] = 0.5 * noise[number - 1] + 0.87 * noise[number]
    return [float(value) for value in np.round(factor * 100 * np.exp(0.1 * noise), 3)]


def compare(folder: Path, *words: str | Path) -> tuple[int, dict[str, Any]]:
    """The exit status of a comparison, and its comparison.json."""
    out = folder / "compared"
    status = main(["compare", *map(str, words), "-o", str(out)])
    made: dict[str, Any] = json.loads((out / "comparison.json").read_text())
    return status, made


@pytest.fixture
def make_run(tmp_path: Path) -> Make:
    """Write a run of frames sent one after the other; `cut` and `refused` are places of frames that failed."""

    def make(
        name: str, rtt_ms: list[float], *, cut: tuple[int, ...] = (), refused: tuple[int, ...] = (),
        doubts: tuple[str, ...] = (), **more: Any,
    ) -> Path:  # fmt: skip
        frames = frames_of(rtt_ms, label="frame", host="vm", model_ms="")
        for index in cut:
            frames[index] = timed_out(frames[index])
        for index in refused:
            frames[index] |= {"handler_ms": "", "status": "", "ok": "false", "cause": "status-429"}
        folder = tmp_path / name
        write_run(folder, FakeResult(frames, {"warnings": ["The machine was busy."], "doubts": list(doubts)}))
        (folder / "samples.jtl").write_text(f"{JTL_HEADER}\n{START_MS:.0f},5000,user,0,OK,t 1-1,true,,vm\n")
        (folder / "run.json").write_text(json.dumps(record(**more)))
        return folder

    return make


@pytest.fixture
def make_jtl_run(tmp_path: Path) -> Callable[..., Path]:
    """Write a run of JMeter's own samplers, each label's samples one after the other, with its report.

    tokens: samples carry that figure, which is their time.
    """

    def make(name: str, rtt_ms_by_label: dict[str, list[float]], *, tokens: bool = False) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        rows = []
        for number, (label, times) in enumerate(rtt_ms_by_label.items()):
            clock_ms = START_MS
            for rtt in times:
                figure = f",{rtt:.0f}" if tokens else ""
                rows.append(f"{clock_ms:.0f},{rtt:.0f},{label},200,OK,t 1-{number},true,,vm{figure}")
                clock_ms += round(rtt)
        (folder / "samples.jtl").write_text("\n".join([JTL_HEADER + (",tokens" if tokens else ""), *rows, ""]))
        (folder / "run.json").write_text(json.dumps(record(plan="shop.jmx")))
        build(folder)
        return folder

    return make


@pytest.fixture
def make_study(tmp_path: Path) -> Make:
    """Write a study of way by users; `values` gives a run's metrics by way, users and repetition."""

    def make(
        name: str,
        values: Callable[[str, int, int], dict[str, Any] | None],
        *,
        repetitions: int = 3,
        users: tuple[int, ...] = (1, 3, 9),
        seed: int = 1,
        **more: Any,
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        study = Study.model_validate({
            **PLAIN, "name": "ways", "plan": "jmx/video-per-user.jmx", "target": {"function": "face-blur"},
            "factors": {"way": {"fork": {"target": {"function": "face-blur-fork"}}, "kept-alive": {}}, "users": users},
            "repetitions": repetitions,
        })  # fmt: skip
        points = tuple(matrix.points(study))
        kit = Kit("0.1.0", "a" * 40)
        made = StudyRecord("ways", kit, 1, study, "", points, seed, **{"inventory": "inventory.ini", **more})
        rows = []
        for point in points:
            for number in range(1, repetitions + 1):
                way, n = point.factors["way"], point.factors["users"]
                found = values(str(way), int(n), number)
                state = "failed" if found is None else "complete"
                cut = {} if found is None else dict.fromkeys(found.pop("cut_off", "").split(), "lower")
                line = RunLine(point.id, number, "runs/none", state, None, 0, 0, 0, 1)
                metrics = {} if found is None else {"n": 37, "ok": 37, "success": 1.0} | found
                rows.append(ResultRow(point=point, line=line, metrics=metrics, bounds=cut))
        write(folder / "study.json", made)
        write_rows(folder, made, rows)
        return folder

    return make
