import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framestorm.model.files import read
from framestorm.model.function_summary import Range
from framestorm.model.metric import METRICS, RESULT_COLUMNS
from framestorm.model.study import Study
from framestorm.model.summary import Facts, Summary
from framestorm.points.folder import StudyFolder
from framestorm.points.results_csv import write_rows
from framestorm.points.run_figures import figures_of_run, figures_or_why_not, result_rows
from framestorm.report import build as build_run
from framestorm.results.samples import read_samples
from tests.framestorm.conftest import function_of
from tests.framestorm.study.conftest import PLAIN, FakeResult, frames_of, timed_out

Frames = list[dict[str, Any]]


@pytest.fixture
def run_of(fake_study: Any) -> Callable[..., Path]:
    """The folder of a single run with these frames."""

    def make(frames: Frames, summary: dict[str, Any] | None = None, **properties: str) -> Path:
        result = FakeResult(frames, summary or {}, properties)
        folder = fake_study.make(lambda point, _: result, {"factors": {"users": [1]}, "repetitions": 1})
        return next((folder / "runs").iterdir())

    return make


def metrics_of_run(run_dir: Path, warm_up_s: float, temperature: str) -> dict[str, Any]:
    return figures_of_run(run_dir, warm_up_s, temperature).metrics


def rows_of(folder: Path) -> list[dict[str, str]]:
    where = StudyFolder(folder)
    with write_rows(folder, where.record, result_rows(where)).open(newline="") as file:
        return list(csv.DictReader(file))


def test_has_every_metric_and_no_other(run_of: Any) -> None:
    assert tuple(metrics_of_run(run_of(frames_of([10.0, 20.0])), 0, "any")) == METRICS


def test_what_says_no_figure_is_of_the_row(fake_study: Any) -> None:
    folder = fake_study.make(lambda *_: None, {"factors": {"users": [1]}})
    columns = write_rows(folder, StudyFolder(folder).record, []).read_text().strip().split(",")
    assert tuple(name for name in columns if name not in METRICS) == RESULT_COLUMNS


def test_times_are_exact(run_of: Any) -> None:
    found = metrics_of_run(run_of(frames_of([10.0, 20.0, 30.0, 60.0])), 0, "any")
    assert {name: found[name] for name in ("n", "ok", "failed", "timed_out", "success")} == {
        "n": 4, "ok": 4, "failed": 0, "timed_out": 0, "success": 1.0,
    }  # fmt: skip
    assert (found["mean_ms"], found["median_ms"], found["p95_ms"], found["max_ms"]) == (30.0, 20.0, 60.0, 60.0)
    assert found["sd_ms"] == pytest.approx(21.602468994692867, rel=1e-12)
    assert (found["handler_mean_ms"], found["model_mean_ms"]) == (24.0, 15.0)
    assert found["outside_mean_ms"] == pytest.approx(6.0)
    assert found["mean_is_lower_bound"] is False


def test_agrees_with_the_report_of_the_run(tmp_path: Path) -> None:
    """Of two users in a journal, one with a refusal and one with a time-out."""
    lines: list[dict[str, Any]] = []
    for name, times in (("vm-1-1", [1.0, *range(40, 70)]), ("vm-2-1", [25_000.0] + [50.0] * 9)):
        start_ms = 1_790_000_000_000.0
        lines.append({"type": "start", "user": name, "start_ms": start_ms, "samples": len(times)})
        for frame in frames_of(times, start_ms=start_ms, user=name, ok=True, censored=False, cold=False):
            lines.append(frame | {"type": "sample", "label": "frame", "cause": None})
            del lines[-1]["host"], lines[-1]["source"]
        cause = "status-429" if name == "vm-1-1" else "timeout"
        first = lines[-len(times)]
        first |= {"ok": False, "cause": cause, "censored": cause == "timeout", "handler_ms": None, "model_ms": None}
        end = {
            "frames": len(times),
            "ok": False,
            "cause": cause,
            "causes": {cause: 1},
            "duration_ms": sum(times) + 90.0,
        }
        lines.append({"type": "user", "user": name, "start_ms": start_ms} | end)
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    build_run(tmp_path)
    summary = read(tmp_path / "summary.json", Summary)
    found, bounds = metrics_of_run(tmp_path, 0, "any"), figures_of_run(tmp_path, 0, "any").bounds
    times = summary.main.times
    assert (found["n"], found["ok"], found["timed_out"]) == (41, 39, 1)
    for metric, figure in (("mean_ms", "mean"), ("median_ms", "p50"), ("p95_ms", "p95"), ("p99_ms", "p99")):
        estimate = getattr(times["rtt"], figure)
        assert found[metric] == estimate.value
        assert (bounds.get(metric) == "lower") == (estimate.bound == "lower")
    assert found["handler_mean_ms"] == times["handler"].mean.value
    assert found["user_median_ms"] == summary.users.times["duration"].p50.value
    assert found["served_per_s"] == pytest.approx(summary.main.rate_per_s, rel=1e-12)
    assert found["warnings"] == len(summary.warnings)


def test_warm_up_is_rejected_and_counted(run_of: Any) -> None:
    found = metrics_of_run(run_of(frames_of([500.0, 500.0, 10.0, 10.0])), 0.75, "any")
    assert (found["n_sent"], found["n"], found["rejected_warm_up"]) == (4, 2, 2)
    assert (found["mean_ms"], found["total_s"]) == (10.0, 0.02)


@pytest.mark.parametrize(
    ("temperature", "n", "rejected_cold", "rejected_warm"), [("any", 4, 0, 0), ("warm", 3, 1, 0), ("cold", 2, 0, 2)]
)
def test_samples_of_the_other_temperature_are_rejected(
    run_of: Any, temperature: str, n: int, rejected_cold: int, rejected_warm: int
) -> None:
    frames = frames_of([100.0, 10.0, 10.0, 10.0])
    frames[0]["cold"], frames[1]["cold"] = "true", ""
    found = metrics_of_run(run_of(frames), 0, temperature)
    assert (found["n"], found["rejected_cold"], found["rejected_warm"]) == (n, rejected_cold, rejected_warm)
    assert found["n_sent"] == 4
    assert found["total_s"] == 0.13, "a rejected sample was load all the same"


def test_time_outs_are_lower_bounds_and_other_failures_no_times(run_of: Any) -> None:
    frames = frames_of([10.0, 20.0, 25_000.0, 1.0])
    frames[2] = timed_out(frames[2])
    frames[3] |= {"ok": "false", "cause": "status-429", "handler_ms": "", "model_ms": ""}
    folder = run_of(frames)
    found, bounds = metrics_of_run(folder, 0, "any"), figures_of_run(folder, 0, "any").bounds
    assert (found["n"], found["ok"], found["failed"], found["timed_out"]) == (4, 2, 2, 1)
    assert found["mean_ms"] == pytest.approx(25_030 / 3)
    assert found["mean_is_lower_bound"] is True
    assert (found["median_ms"], found["max_ms"]) == (20.0, 25_000.0)
    assert bounds == {"mean_ms": "lower", "p95_ms": "lower", "p99_ms": "lower", "max_ms": "lower", "sd_ms": "unsure"}


def test_rates(run_of: Any) -> None:
    frames = [frames_of([50.0], start_ms=1_790_000_000_000 + 100 * number)[0] for number in range(11)]
    frames[10] |= {"ok": "false", "cause": "status-500"}
    found = metrics_of_run(run_of(frames, {"facts": Facts(0, 0, arrivals=15, dropped=0)}, rate_per_s="10"), 0, "any")
    assert (found["asked_per_s"], found["dropped_arrivals"]) == (10.0, 0)
    assert found["offered_per_s"] == pytest.approx(10.0)
    assert found["served_per_s"] == pytest.approx(10 * 10 / 11), "one in eleven failed"


def test_served_where_arrivals_were_dropped(run_of: Any) -> None:
    """From the first start to the last end: ten together are not ten in the moment in which they are answered."""
    frames = [frames_of([5000.0], start_ms=1_790_000_000_000 + number)[0] for number in range(10)]
    found = metrics_of_run(run_of(frames, {"facts": Facts(0, 0, arrivals=99, dropped=89)}, rate_per_s="99"), 0, "any")
    assert found["dropped_arrivals"] == 89
    assert found["served_per_s"] == pytest.approx(10 / 5.009)


@pytest.mark.parametrize(
    ("asked", "rtt_ms", "served"),
    [
        ({"rate_per_s": "20"}, 50.0, 20),
        ({"rate_per_s": "20"}, 2000.0, 20),
        ({}, 2000.0, 30 / (29 / 20 + 2)),  # closed loop: from the first start to the last end
    ],
)
def test_a_rate_that_is_kept_is_served(run_of: Any, asked: dict[str, str], rtt_ms: float, served: float) -> None:
    """However long a request takes, and however short the run is."""
    frames = [frames_of([rtt_ms], start_ms=1_790_000_000_000 + 50 * number)[0] for number in range(30)]
    facts = Facts(0, 0, arrivals=30)
    assert metrics_of_run(run_of(frames, {"facts": facts}, **asked), 0, "any")["served_per_s"] == pytest.approx(served)


def test_latency_from_the_intended_start(run_of: Any) -> None:
    """Which a sample without an intended start does not have."""
    frames = frames_of([10.0, 10.0, 10.0])
    for frame, late_ms in zip(frames, (0, 30), strict=False):
        frame["intended_ms"] = frame["start_ms"] - late_ms
    found = metrics_of_run(run_of(frames), 0, "any")
    assert (found["open_mean_ms"], found["open_p99_ms"], found["mean_ms"]) == (25.0, 40.0, 10.0)


def test_shares_of_the_workers(run_of: Any) -> None:
    frames = frames_of([10.0] * 4)
    for frame, worker in zip(frames, "aaab", strict=True):
        frame["worker"] = worker
    function = function_of(
        {"cores_mean": 0.3, "received_bytes_per_s": 900.0, "sent_bytes_per_s": 100.0},
        {"cores_mean": 0.2, "received_bytes_per_s": 500.0, "sent_bytes_per_s": 200.0},
        {}, ready=Range(1, 3), cores_mean=0.5, memory_max_bytes=1e6, throttled_mean=0.25,
    )  # fmt: skip
    found = metrics_of_run(run_of(frames, {"functions": [function]}), 0, "any")
    assert (found["workers_seen"], found["worker_share_max"]) == (2, 0.75)
    assert found["worker_share_min"] == 0.0, "the third had nothing to do"
    assert (found["replicas_max"], found["target_cores_mean"], found["throttled_mean"]) == (3.0, 0.5, 0.25)
    assert (found["worker_cores_max"], found["worker_cores_min"]) == (0.3, 0.2)
    assert (found["worker_network_max_bytes_per_s"], found["worker_network_min_bytes_per_s"]) == (1000.0, 700.0)


def test_a_row_a_point_and_repetition_with_numbers_that_round_trip(fake_study: Any) -> None:
    content = {"derived": {"share": "=outside_mean_ms / mean_ms"}, "repetitions": 2, "factors": {"users": [1, 2, 4]}}

    def simulate(point: Any, repetition: int) -> Any:
        if point.factors["users"] == 4:
            return FakeResult(reason="no gateway, at all") if repetition == 1 else None
        return FakeResult(frames_of([0.1 + repetition, 1 / 3]))

    folder = fake_study.make(simulate, content)
    rows = rows_of(folder)
    assert [(row["users"], row["repetition"], row["state"]) for row in rows] == [
        ("1", "1", "complete"), ("1", "2", "complete"), ("2", "1", "complete"), ("2", "2", "complete"),
        ("4", "1", "failed"),
    ]  # fmt: skip
    assert float(rows[0]["mean_ms"]) == (1.1 + 1 / 3) / 2
    assert float(rows[0]["share"]) == float(rows[0]["outside_mean_ms"]) / float(rows[0]["mean_ms"])
    assert (rows[4]["reason"], rows[4]["mean_ms"], rows[4]["n"]) == ("no gateway, at all", "", "")
    assert (folder / rows[0]["run"]).is_dir()
    assert len(set(rows[0])) == len(rows[0]), "each column once, though users is a factor and a metric"


def test_a_figure_against_that_of_another_point(fake_study: Any) -> None:
    content = {
        "factors": {"users": [1, 2], "mode": {"local": {}, "push": {}}},
        "repetitions": 2,
        "derived": {
            "overhead_ms": {"metric": "mean_ms", "against": {"mode": "local"}, "as": "difference"},
            "efficiency_percent": {"metric": "mean_ms", "against": {"mode": "local"}, "as": "inverse_ratio_percent"},
        },
    }

    def simulate(point: Any, repetition: int) -> Any:
        slow = 2.0 if point.factors["mode"] == "push" else 1.0
        return FakeResult(frames_of([slow * 10.0 * repetition * point.factors["users"]] * 2))

    rows = {(row["mode"], row["users"], row["repetition"]): row for row in rows_of(fake_study.make(simulate, content))}
    assert float(rows["push", "2", "2"]["overhead_ms"]) == 40.0
    assert float(rows["push", "1", "2"]["efficiency_percent"]) == 50.0
    assert float(rows["local", "1", "1"]["efficiency_percent"]) == 100.0


def cut_frames(run: Path) -> None:
    """As a full disk leaves them: whole lines, and not all of them."""
    file = run / "samples.csv"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:3]))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda run: (run / "samples.csv").unlink(), "samples.csv"),
        (lambda run: (run / "samples.csv").write_text(""), "samples.csv has 0 samples, and its report was made of 3"),
        (cut_frames, "samples.csv has 2 samples, and its report was made of 3"),
        (lambda run: (run / "summary.json").write_text("null"), "is not a JSON object"),
        (lambda run: (run / "summary.json").write_text("{}"), "summary.json: name: field required"),
    ],
)
def test_a_run_whose_files_are_lost_or_cut_has_no_figures(
    run_of: Any, harm: Callable[[Path], object], said: str
) -> None:
    run = run_of(frames_of([10.0, 20.0, 30.0]))
    assert figures_or_why_not(run, Study.model_validate(PLAIN))[1] is None
    read_samples.cache_clear()
    harm(run)
    figures, why = figures_or_why_not(run, Study.model_validate(PLAIN))
    assert figures.metrics == {} and str(why).startswith("the run's files cannot be read") and said in str(why)
    [row] = rows_of(run.parent.parent)
    assert row["state"] == "failed" and said in row["reason"]
