"""Runs and studies made up by hand, as `compare` finds them on disk."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framestorm.cli import main
from framestorm.model.files import write
from framestorm.report import build
from tests.framestorm.conftest import summary_of

START_MS = 1_790_000_000_000.0
FIELDS = (
    "label", "user", "index", "intended_ms", "start_ms", "rtt_ms", "handler_ms", "model_ms", "status", "ok", "cause",
    "censored", "sent_bytes", "received_bytes", "faces", "cold", "verified", "host", "thread", "source",
)  # fmt: skip
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
        name: str, rtt_ms: list[float], *, cut: tuple[int, ...] = (), refused: tuple[int, ...] = (), **more: Any
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        clock_ms = START_MS
        with (folder / "samples.csv").open("w", newline="") as file:
            rows = csv.DictWriter(file, FIELDS)
            rows.writeheader()
            for index, rtt in enumerate(rtt_ms):
                ok = index not in cut and index not in refused
                cause = "" if ok else "timeout" if index in cut else "status-429"
                rows.writerow({
                    "label": "frame", "user": "u-1", "index": index, "start_ms": round(clock_ms, 3), "rtt_ms": rtt,
                    "handler_ms": round(0.8 * rtt, 3) if ok else "", "status": 200 if ok else "",
                    "ok": str(ok).lower(), "cause": cause, "censored": str(index in cut).lower(), "cold": "false",
                    "verified": "true", "host": "vm", "source": "tree",
                })  # fmt: skip
                clock_ms += rtt
        (folder / "samples.jtl").write_text(f"{JTL_HEADER}\n{START_MS:.0f},5000,user,0,OK,t 1-1,true,,vm\n")
        (folder / "run.json").write_text(json.dumps(record(**more)))
        write(folder / "summary.json", summary_of(len(rtt_ms), warnings=["The machine was busy."]))
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
        points = [
            {
                "id": f"way={way},users={n}", "factors": {"way": way, "users": n}, "plan": "jmx/video-per-user.jmx",
                "properties": {"users": str(n)},
                "target": {"function": "face-blur-fork" if way == "fork" else "face-blur"},
            }
            for way in ("fork", "kept-alive")
            for n in users
        ]  # fmt: skip
        definition = {
            "name": "ways", "title": "Ways", "question": "Which?", "plan": "jmx/video-per-user.jmx", "run_s": 1,
            "factors": {"way": {"fork": {}, "kept-alive": {}}, "users": users},
            "metrics": ["mean_ms", "success"], "order": "randomised", "repetitions": repetitions,
        }  # fmt: skip
        (folder / "study.json").write_text(
            json.dumps({
                "format": 2, "kind": "study", "name": "ways", "quick": False, "seed": seed, "gateway": None,
                "started_ms": 1, "file_sha256": "", "inventory": "inventory.ini", "port": 8080,
                "kit": record()["kit"], "points": points, "definition": definition, **more,
            })
        )  # fmt: skip
        names = ("n", "ok", "mean_ms", "p95_ms", "median_ms", "success", "cut_off")
        with (folder / "results.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["study", "point", "way", "users", "repetition", "run", "state", "reason", *names])
            for point in points:
                for repetition in range(1, repetitions + 1):
                    way, n = point["factors"]["way"], point["factors"]["users"]
                    found = values(way, n, repetition)
                    state = "failed" if found is None else "complete"
                    metrics = {"n": 37, "ok": 37, "success": 1.0} | (found or {})
                    cells = [metrics.get(each, "") for each in names] if found is not None else [""] * len(names)
                    rows.writerow(["ways", point["id"], way, n, repetition, "runs/none", state, "", *cells])
        return folder

    return make
