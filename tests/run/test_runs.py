"""Whole runs: real JMeter, real clients, the real function, as the pages' commands make them."""

import shutil
from pathlib import Path

from tests.runs import RunSh
from tests.stand_in import StartServer


def test_the_main_job_and_its_report(run_sh: RunSh) -> None:
    done = run_sh("./run.sh -Jusers=2 -Jhold_s=20 -o dashboards/first", "-Jhold_s=6", "-Jframes=6")
    assert run_sh.left_running() == []
    run = done.json("run.json")
    assert (run["state"], run["properties"]["users"]) == ("complete", "2")
    assert done.json("summary.json")["verdict"]["word"] == "pass"
    counted = done.count("label")
    assert counted["frame",] == counted["user",] * 6 >= 12
    frames = done.rows("samples.csv")
    assert len(frames) == counted["frame",]
    assert all(float(frame["rtt_ms"]) >= float(frame["handler_ms"]) >= float(frame["model_ms"]) > 0 for frame in frames)
    assert {frame["faces"] for frame in frames} == {"1"}
    assert {row["part"] for row in done.rows("resources.csv")} == {"generator", "target", "host"}
    for name in ("junit.xml", "jmeter/index.html", "tree.xml", "jmeter.log", "target.log"):
        assert (done.folder / name).stat().st_size > 0

    before = {name: (done.folder / name).read_bytes() for name in ("index.html", "summary.json", "samples.csv")}
    for name in (*before, "junit.xml"):
        (done.folder / name).unlink()
    run_sh("./run.sh report dashboards/first".replace("dashboards/first", str(done.folder)), out="")
    assert {name: (done.folder / name).read_bytes() for name in before} == before
    judge = "./run.sh report dashboards/first --fail-if 'frame p99 > 5 s' --fail-if 'user success < 99 %'"
    run_sh(judge.replace("dashboards/first", str(done.folder)), out="")
    failed = run_sh("report", str(done.folder), "--fail-if", "frame p99 > 1 ms", out="", status=3)
    assert "no dashboard" not in failed.stderr


def test_requests_at_a_rate_to_any_function(run_sh: RunSh, stand_in: StartServer) -> None:
    url = stand_in({"delay_s": 1}).url
    load = (f"-Jurl={url}", "-Jrate_per_s=10", "-Jhold_s=3", "-Jconcurrency_limit=2")
    criteria = ("--fail-if", "request success < 100 %", "--fail-if", "p95 > 60 s")
    done = run_sh("-t", "jmx/request-rate.jmx", *load, *criteria, dashboard=True)
    summary = done.json("summary.json")
    sent = summary["labels"]["request"]["n"]
    assert (summary["label"], summary["facts"]["arrivals"]) == ("request", 30)
    assert 2 <= sent <= 8, "two at a time, a second each, for three seconds"
    assert summary["warnings"][0].startswith(f"{30 - sent} of 30 arrivals were dropped")
    assert all(float(row["intended_ms"]) >= 0 for row in done.rows("samples.csv"))
    assert set(done.json("jmeter/statistics.json")) == {"request", "Total"}


def test_tasks_of_a_local_pool_need_no_function(run_sh: RunSh) -> None:
    done = run_sh("-t", "jmx/tasks.jmx", "-Jworkers=2", "-Jtasks=6", "-Jtask_s=0.05")
    assert done.count("label") == {("user",): 1, ("task",): 6}
    assert done.json("run.json")["target"] == {"kind": "none", "url": None, "settings": {}}
    assert done.json("summary.json")["verdict"]["text"] == "both criteria passed, on 6 tasks of 1 user"
    assert "what the plan itself calls or runs" in done.text("index.html")


def test_wrong_answers_are_failures_with_a_cause(run_sh: RunSh, stand_in: StartServer, tmp_path: Path) -> None:
    url = stand_in({"body": b"all is well"}, {}, {"status": 500}, {"delay_s": 60}).url
    load = (f"-Jurl={url}", "-Jusers=4", "-Jramp_s=0", "-Jframes=1", "-Jtimeout_s=5")
    words = ("-t", "jmx/video-per-user.jmx", *load, "-l", str(tmp_path / "new" / "copy.jtl"))
    done = run_sh(*words, status=3, dashboard=True)
    frames = done.rows("samples.csv")
    assert sorted(frame["cause"] for frame in frames) == ["not-blurred", "not-json", "status-500", "timeout"]
    assert {frame["ok"] for frame in frames} == {"false"}
    statistics = done.json("jmeter/statistics.json")
    assert {label: statistics[label]["errorCount"] for label in ("user", "frame")} == {"user": 4, "frame": 4}
    assert (tmp_path / "new" / "copy.jtl").read_bytes() == (done.folder / "samples.jtl").read_bytes()


def test_a_plan_made_in_jmeter_is_judged_by_label(run_sh: RunSh, stand_in: StartServer, tmp_path: Path) -> None:
    server = stand_in({"body": b"ok", "content_type": "text/plain"})
    shutil.copy(Path(__file__).with_name("shop.jmx"), tmp_path)
    (tmp_path / "names.csv").write_text("ada\nbo\n")
    criteria = ("--fail-if", "'log in' errors > 0", "--fail-if", "* p95 > 60 s", "--fail-if", "all errors > 50 %")
    command = "./run.sh -n -t shop.jmx -l shop.jtl -Jvisits=3"
    done = run_sh(command.replace("shop.j", f"{tmp_path}/shop.j"), f"-Jurl={server.url}", *criteria, status=3)
    assert (tmp_path / "shop.jtl").read_bytes() == (done.folder / "samples.jtl").read_bytes()
    assert {sent.path.rpartition("/")[2] for sent in server.received} == {"ada", "bo", "search"}
    summary = done.json("summary.json")
    figures = {name: (of["n"], of["failed"], of["kind"]) for name, of in summary["labels"].items()}
    assert figures == {
        "all": (12, 6, "sampler"), "log in": (6, 0, "sampler"), "search": (6, 6, "sampler"),
        "whole visit": (6, 6, "transaction"),
    }  # fmt: skip
    assert [each["state"] for each in summary["criteria"]] == ["passed", "passed", "unjudged", "passed"]
    assert (summary["facts"]["self_check"]["counted"], summary["facts"]["self_check"]["rows"]) == (12, 12)
    (cause,) = summary["labels"]["search"]["causes"]
    assert cause.startswith("failed-check: Test failed: text expected to contain /results/")
    assert {"rtt", "latency", "connect"} <= summary["labels"]["log in"]["times"].keys()
    assert summary["labels"]["log in"]["received_bytes_per_s"] > 0
    assert '"log in"' in done.text("junit.xml") or "&quot;log in&quot;" in done.text("junit.xml")
    assert done.json("run.json")["target"]["kind"] == "none"
    assert (done.folder / "jmeter" / "index.html").exists()
