"""How runs end that do not end by themselves: nothing stays behind, and what was measured is reported."""

import html
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from framestorm.machine import wait_until
from tests.runs import Running, RunSh
from tests.stand_in import StartServer

LONG = ("-Jusers=2", "-Jramp_s=0", "-Jhold_s=120")


def started(run_sh: RunSh, *words: str, file: str = "journal.jsonl") -> Running:
    """A run whose users send."""
    running = run_sh.start(*words)
    running.until_lines(file)
    return running


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("-t jmx/face-blur.jmx -Jusers=2 -Jsleep_s=0.2 -Jhold_s=120", "journal.jsonl"),
        ("-t jmx/face-blur-http.jmx -Jurl=URL -Jrate_per_s=5 -Jhold_s=120 -Jencoding=jpeg", "samples.jtl"),
        ("-t jmx/requests.jmx -Jurl=URL -Jhold_s=120", "samples.jtl"),
        ("-t jmx/requests.jmx -Jurl=URL -Jload='2 users for 120 s'", "samples.jtl"),
        ("-t jmx/tasks.jmx -Jmode=local -Jtasks=2000 -Jtask_s=0.2 -Jworkers=2", "journal.jsonl"),
    ],
    ids=lambda words: words.split(".jmx")[0].removeprefix("-t jmx/"),
)
def test_one_interrupt_stops_gently_and_reports(run_sh: RunSh, stand_in: StartServer, words: str, file: str) -> None:
    running = started(run_sh, *shlex.split(words.replace("URL", stand_in({"body": b"ok"}).url)), file=file)
    running.interrupt()
    done = running.ended(4)
    assert "stopping gently" in done.stderr
    assert "StopTestNow is asked for by a file" not in done.text("jmeter.log"), "it ends by itself"
    assert run_sh.left_running() == []
    (reason,) = done.json("summary.json")["missing"]
    assert "SIGINT" in reason and "SIGINT" in done.text("index.html")
    # Every sample that was sent is in the report, also those of users that were stopped; the pool has all tasks in
    # hand, of which those not done are told as cut off.
    sent = done.text(file).count('"sample"') if file == "journal.jsonl" else done.lines(file)
    assert len(done.rows("samples.csv")) == (2000 if "tasks" in words else sent)


def test_a_second_interrupt_ends_it_at_once(run_sh: RunSh) -> None:
    running = started(run_sh, *LONG)
    running.interrupt()
    running.until((running.folder / "stop").exists)
    running.interrupt()
    running.ended(4)
    assert run_sh.left_running() == []


def test_a_killed_conductor_leaves_nothing_running(run_sh: RunSh) -> None:
    running = started(run_sh, *LONG)
    running.process.kill()
    assert wait_until(lambda: not run_sh.left_running(), 20)
    run_sh("report", str(running.folder), out="", status=4)
    assert len(running.rows("samples.csv")) >= running.text("journal.jsonl").count('"sample"') > 0
    assert (running.folder / "index.html").exists()


def test_a_target_that_dies_makes_the_run_partial(run_sh: RunSh) -> None:
    running = started(run_sh, *LONG)
    target = re.compile(rf"^\S+python\S* \S*app\.py .*--port {run_sh.port}")
    [process] = [
        each for each in psutil.process_iter(["cmdline"]) if target.search(" ".join(each.info["cmdline"] or ()))
    ]
    process.kill()
    assert "target ended during the run" in running.ended(4).text("index.html")


def test_a_disk_that_fills_up_ends_the_run_while_there_is_room_for_its_report(
    run_sh: RunSh, stand_in: StartServer, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", disk], check=True)
    try:
        url = stand_in({"body": b"ok"}).url
        words = f"-t jmx/request-rate.jmx -Jurl={url} -Jrate_per_s=20 -Jhold_s=120".split()
        running = run_sh.start(*words, out="disk/run")
        running.until_lines("samples.jtl")
        with (disk / "other").open("wb") as other:
            os.posix_fallocate(other.fileno(), 0, shutil.disk_usage(disk).free - (24 << 20))
        done = running.ended(4)
        assert "has less than 32 MiB left" in done.json("run.json")["reason"]
        assert "has less than 32 MiB left" in done.text("index.html")
        assert len(done.rows("samples.csv")) == done.lines("samples.jtl") < 20 * 120
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def processes_of(running: Running, program: str) -> list[psutil.Process]:
    """The run's processes of client/server.py or client/launch.pl, by the client server's name among their words."""
    each_words = {each: each.info["cmdline"] or [] for each in psutil.process_iter(["cmdline"])}
    end = str(running.folder)[-40:]
    return [
        each for each, words in each_words.items()
        if any(word.endswith(end) for word in words) and words[1].endswith(program)
    ]  # fmt: skip


def test_users_that_are_killed_fail_and_all_do_with_the_client_server(run_sh: RunSh, stand_in: StartServer) -> None:
    load = ("-Jusers=4", "-Jramp_s=0", "-Jhold_s=120", "-Jsleep_s=0.2")
    running = started(run_sh, *load, f"-Jurl={stand_in().url}", "-Jverify_share=0")
    server = min(processes_of(running, "/server.py"), key=psutil.Process.create_time)  # the others are its forks
    running.until(lambda: len(server.children()) == 4 == len(processes_of(running, "/launch.pl")))
    users, launchers = server.children(), processes_of(running, "/launch.pl")
    users[0].kill()
    running.until(lambda: sum(each.is_running() for each in launchers) == 3)
    next(each for each in launchers if each.is_running()).kill()
    running.until(lambda: sum(each.is_running() for each in users) == 2)
    running.until(lambda: running.count("label", "responseMessage")["user", "exit-137"] == 2)
    server.kill()
    done = running.ended(4)
    assert run_sh.left_running() == []
    assert wait_until(lambda: not any(each.is_running() for each in users), 20)
    causes = done.count("label", "responseMessage")
    assert causes["user", "exit-137"] == 2 and causes["user", "client-server-ended"] >= 2
    assert "client server ended" in " ".join(done.json("summary.json")["missing"])


def test_a_stop_rule_ends_the_load_and_fails_the_run(run_sh: RunSh, stand_in: StartServer) -> None:
    quick = stand_in({"body": b"ok", "delay_s": 0.2}).url
    rule = ("--stop-if", "all p95 > 100 ms for 3 s", "--stop-if", "errors > 50 % over 9 s")
    for words in (
        f"-t jmx/requests.jmx -Jusers=3 -Jurl={quick}",
        f"-t jmx/request-rate.jmx -Jurl={quick} -Jrate_per_s=9",
    ):
        name = words.split()[1].split("/")[1]
        done = run_sh(*words.split(), "-Jhold_s=120", *rule, out=name, status=3)
        run, summary = done.json("run.json"), done.json("summary.json")
        assert (run["state"], run["decision"]["option"], run["decision"]["label"]) == ("decided", "--stop-if", "all")
        assert (summary["verdict"]["word"], summary["missing"]) == ("fail", [])
        ended = " ".join(summary["verdict"]["text"].partition(" after the start")[0].split())
        assert ended.startswith("--stop-if 'all p95 > 100 ms for 3 s' ended the load ")
        page = " ".join(html.unescape(done.text("index.html")).split())
        assert ended in page and ended in done.stdout
        assert [each["state"] for each in summary["criteria"][:2]] == ["failed", "passed"]
        assert 'failures="1"' in done.text("junit.xml") and ended in " ".join(
            html.unescape(done.text("junit.xml")).split()
        )
        # Each of the requests was answered, and the last was sent before the decision had reached JMeter.
        assert summary["labels"]["request"]["failed"] == 0
        assert max(int(row["timeStamp"]) for row in done.rows()) < run["decision"]["at_ms"] + 3000


def test_a_run_that_was_long_enough_is_complete(run_sh: RunSh, stand_in: StartServer) -> None:
    """Its users are processes, which are told to stop."""
    load = ("-Jusers=4", "-Jramp_s=0", "-Jsleep_s=0", "-Jverify_share=0", "-Jhold_s=200")
    done = run_sh(*load, f"-Jurl={stand_in({'delay_s': 0.2}).url}", "--stop-when", "mean within 50 %")
    run, summary = done.json("run.json"), done.json("summary.json")
    assert (run["state"], run["decision"]["option"]) == ("complete", "--stop-when")
    assert (summary["verdict"]["word"], summary["missing"]) == ("pass", [])
    assert summary["notes"][0].startswith("--stop-when 'mean within 50 %' ended the load ")
    assert summary["load"]["duration_ms"] < 150_000
