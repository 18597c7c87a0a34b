"""Whole runs: real JMeter, real clients, the real function, as README's commands make them."""

import csv
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest


def labels(path: Any) -> Counter[str]:
    with path.open(newline="") as file:
        return Counter(row["label"] for row in csv.DictReader(file))


def test_the_main_job(run_sh: Callable[..., Any], left_running: Callable[[], list[str]]) -> None:
    done = run_sh("-Jusers=2", "-Jhold_s=6", "-Jframes=6")
    assert done.status == 0, done.stderr
    assert left_running() == []
    run = done.json("run.json")
    assert run["state"] == "complete"
    assert run["properties"]["users"] == "2"
    summary = done.json("summary.json")
    assert summary["verdict"]["word"] == "pass"
    counted = labels(done.run_dir / "samples.jtl")
    assert counted["user"] >= 2
    assert counted["frame"] == counted["user"] * 6
    with (done.run_dir / "samples.csv").open(newline="") as file:
        frames = list(csv.DictReader(file))
    assert len(frames) == counted["frame"]
    assert all(float(frame["rtt_ms"]) >= float(frame["handler_ms"]) >= float(frame["model_ms"]) > 0 for frame in frames)
    assert {frame["faces"] for frame in frames} == {"1"}
    with (done.run_dir / "resources.csv").open(newline="") as file:
        parts = Counter(row["part"] for row in csv.DictReader(file))
    assert set(parts) == {"generator", "target", "host"}
    for name in ("index.html", "junit.xml", "jmeter/index.html", "tree.xml", "jmeter.log", "target.log"):
        assert (done.run_dir / name).stat().st_size > 0


def test_each_user_sends_the_video_once(run_sh: Callable[..., Any]) -> None:
    done = run_sh("-t", "jmx/video-per-user.jmx", "-Jusers=3", "-Jramp_s=1", "-Jsleep_s=0.05", "-Jframes=37")
    assert done.status == 0, done.stderr
    assert labels(done.run_dir / "samples.jtl") == {"user": 3, "frame": 111}
    statistics = done.json("jmeter/statistics.json")
    assert {label: statistics[label]["sampleCount"] for label in ("user", "frame")} == {"user": 3, "frame": 111}
    users = ET.parse(done.run_dir / "tree.xml").getroot().findall("sample")  # noqa: S314
    assert [user.get("lb") for user in users] == ["user"] * 3
    assert [[frame.get("lb") for frame in user.findall("sample")] for user in users] == [["frame"] * 37] * 3


def test_a_fixed_rate_without_processes(run_sh: Callable[..., Any]) -> None:
    done = run_sh("-t", "jmx/face-blur-http.jmx", "-Jrate_per_s=5", "-Jhold_s=6", "-Jencoding=jpeg")
    assert done.status == 0, done.stderr
    counted = labels(done.run_dir / "samples.jtl")
    assert set(counted) == {"frame"}
    assert 20 <= counted["frame"] <= 40
    summary = done.json("summary.json")
    assert summary["verdict"]["word"] == "pass"
    assert summary["labels"]["frame"]["times"]["model"]["n"] == counted["frame"]


def test_arrivals_that_found_no_thread_are_told(run_sh: Callable[..., Any], faulty: Callable[[str], str]) -> None:
    words = ("-t", "jmx/face-blur-http.jmx", f"-Jurl={faulty('hang')}", "-Jrate_per_s=5", "-Jhold_s=4")
    done = run_sh(*words, "-Jencoding=jpeg", "-Jtimeout_s=2", "-Jconcurrency_limit=1")
    assert done.status == 3, done.stderr
    summary = done.json("summary.json")
    sent, due = summary["labels"]["frame"]["n"], summary["facts"]["arrivals"]
    assert 20 <= due <= 21
    assert 1 <= sent <= 4
    assert summary["warnings"][0].startswith(f"{due - sent} of {due} arrivals were dropped")


def test_requests_at_a_rate_to_any_function(run_sh: Callable[..., Any], faulty: Callable[[str], str]) -> None:
    words = ("-t", "jmx/request-rate.jmx", f"-Jurl={faulty('garbage')}", "-Jrate_per_s=10", "-Jhold_s=3")
    done = run_sh(*words, "--fail-if", "request success < 100 %", "--fail-if", "p95 > 60 s")
    assert done.status == 0, done.stderr
    summary = done.json("summary.json")
    assert (summary["label"], summary["labels"]["request"]["n"], summary["facts"]["arrivals"]) == ("request", 30, 30)
    assert done.json("run.json")["label"] == "request"
    with (done.run_dir / "samples.csv").open(newline="") as file:
        due_ms = sorted(float(row["intended_ms"]) for row in csv.DictReader(file))
    assert due_ms[-1] - due_ms[0] == pytest.approx(2900, abs=100)
    assert set(done.json("jmeter/statistics.json")) == {"request", "Total"}


def test_tasks_of_a_local_pool_need_no_function(run_sh: Callable[..., Any]) -> None:
    done = run_sh("-t", "jmx/tasks.jmx", "-Jworkers=2", "-Jtasks=6", "-Jtask_s=0.05")
    assert done.status == 0, done.stderr
    assert labels(done.run_dir / "samples.jtl") == {"user": 1, "task": 6}
    assert done.json("run.json")["target"] == {"kind": "none", "url": None, "settings": {}}
    assert done.json("summary.json")["verdict"]["text"] == "all 2 criteria were met, on 6 tasks of 1 user"
    assert "a pool of processes on the generator" in (done.run_dir / "index.html").read_text()


@pytest.mark.parametrize(
    ("fault", "cause"),
    [("garbage", "not-json"), ("unblurred", "not-blurred"), ("error", "status-500"), ("hang", "timeout")],
)
def test_wrong_answers_are_failures_with_a_cause(
    run_sh: Callable[..., Any], faulty: Callable[[str], str], fault: str, cause: str
) -> None:
    url = faulty(fault)
    done = run_sh(
        "-t", "jmx/video-per-user.jmx", f"-Jurl={url}", "-Jusers=2", "-Jramp_s=0", "-Jframes=2", "-Jtimeout_s=2"
    )
    assert done.status == 3, done.stderr
    with (done.run_dir / "samples.csv").open(newline="") as file:
        frames = list(csv.DictReader(file))
    assert [frame["cause"] for frame in frames] == [cause] * 4
    assert [frame["ok"] for frame in frames] == ["false"] * 4
    assert labels(done.run_dir / "samples.jtl") == {"user": 2, "frame": 4}
    statistics = done.json("jmeter/statistics.json")
    assert statistics["frame"]["errorCount"] == 4
    assert statistics["user"]["errorCount"] == 2


def test_samples_are_copied_where_asked(
    run_sh: Callable[..., Any], faulty: Callable[[str], str], tmp_path: Any
) -> None:
    done = run_sh(
        *("-t", "jmx/video-per-user.jmx", f"-Jurl={faulty('error')}", "-Jusers=1", "-Jframes=1"),
        *("-l", str(tmp_path / "copy.jtl"), "--fail-if", "frame success < 0 %"),
    )
    assert done.status == 0, done.stderr
    assert (tmp_path / "copy.jtl").read_bytes() == (done.run_dir / "samples.jtl").read_bytes()
