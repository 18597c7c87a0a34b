import csv
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from framestorm.run.live import LiveView, Tally

HOSTS = [
    {"name": "vm-7", "inventory_name": "slave1", "role": "slave", "cores": 2},
    {"name": "vm-8", "inventory_name": "slave2", "role": "slave", "cores": 4},
    {"name": "vm-9", "inventory_name": "function1", "role": "target", "cores": 8},
]
JTL = ("timeStamp", "elapsed", "responseCode", "responseMessage", "success", "allThreads", "Hostname")


def write_samples(folder: Path, *rows: tuple[Any, ...]) -> None:
    with (folder / "samples.jtl").open("w", newline="") as file:
        csv.writer(file).writerows([JTL, *rows])


def write_run(folder: Path, **fields: Any) -> None:
    (folder / "run.json").write_text(json.dumps(fields))


def shown(view: LiveView, width: int = 200) -> str:
    """What a terminal gets."""
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(view.screen())
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


@pytest.mark.parametrize(
    ("times", "p50", "p95"), [(range(1, 101), 50, 95), (range(1, 21), 10, 19), (range(1, 4), 2, 3), ([7], 7, 7)]
)
def test_recent_percentiles_are_nearest_ranks_as_in_the_report(times: Any, p50: float, p95: float) -> None:
    tally = Tally()
    for rtt_ms in times:
        tally.sample(1000.0, rtt_ms, None)
    assert tally.recent(1005.0) == (len(times) / 10, p50, p95)


def test_recent_figures_are_of_samples_without_error_of_the_last_seconds() -> None:
    tally = Tally()
    tally.sample(1000.0, 5, None)
    tally.sample(1000.0, 25_000, "timeout")
    assert tally.recent(1010.0) == (0.1, 5, 5)
    assert tally.recent(1010.1) == (0.0, None, None)
    assert (tally.samples, tally.causes) == (2, {"timeout": 1})


def test_a_journal_is_followed_as_it_grows(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    sample = {"type": "sample", "start_ms": time.time() * 1000, "rtt_ms": 20.0, "cause": None}
    view = LiveView(tmp_path, has_journal=True, label="frame")
    view.read()
    lines = [{"type": "start"}, {"type": "start"}, sample, {**sample, "cause": "status-500"}]
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"type": "sam')
    view.read()
    tally = view.tally
    assert (tally.users_now, tally.users_done, tally.samples, tally.causes.total()) == (2, 0, 2, 1)
    with journal.open("a") as file:
        file.write('ple", "start_ms": 1, "rtt_ms": 1, "cause": null}\nnot json\n7\n{"type": "user", "ok": false}\n')
    view.read()
    assert (tally.users_now, tally.users_done, tally.users_failed, tally.samples) == (1, 1, 1, 3)


def test_slaves_have_a_row_of_their_own(tmp_path: Path) -> None:
    write_run(tmp_path, hosts=HOSTS)
    write_samples(
        tmp_path, (1, 10, 200, "OK", "true", 3, "vm-7"), (2, 10, 200, "OK", "true", 4, "vm-8"),
        (3, 10, 500, "Oh", "false", 5, "vm-8"),
    )  # fmt: skip
    (tmp_path / "resources.csv").write_text(
        "time_ms,host,part,cpu_percent,rss_bytes,processes,load\n"
        "1,vm-7,generator,90.0,1,1,\n1,vm-7,host,150.0,1,,2.00\n2,vm-9,host,720.0,1,,9.00\n"
    )
    view = LiveView(tmp_path, has_journal=False, label="request")
    view.read()
    assert {name: (tally.samples, tally.users_now, tally.causes.total()) for name, tally in view.by_slave.items()} == {
        "slave1": (1, 3, 0), "slave2": (2, 5, 1),
    }  # fmt: skip
    assert (view.tally.samples, view.tally.users_now) == (3, 8)
    assert view.busy_cores == {"vm-7": 1.5, "vm-9": 7.2}
    rows = {line.split()[0]: line.split()[-3:] for line in shown(view).splitlines()}
    assert rows["slave1"] == ["1.5", "of", "2"]
    assert rows["function1"] == ["7.2", "of", "8"]


@pytest.mark.parametrize(
    ("has_journal", "properties", "word"),
    [(True, {}, "users"), (False, {"users": "4"}, "users"), (False, {"rate_per_s": "4"}, "threads")],
)
def test_users_or_threads(tmp_path: Path, has_journal: bool, properties: dict[str, str], word: str) -> None:
    write_run(tmp_path, properties=properties)
    view = LiveView(tmp_path, has_journal=has_journal, label="request")
    assert f" {word} 0 now" in view.line() and "requests/s" in view.line()


@pytest.mark.parametrize(
    "message", ["Connect to h:80 [/127.0.0.1] failed", "[/x] [bold]b[/bold]", "\x1b[2J\x07\r\x9b0m"]
)
def test_messages_are_shown_as_text(tmp_path: Path, message: str) -> None:
    write_samples(tmp_path, (1, 10, 200, "OK", "true", 3, "h"), (2, 10, "x", f"Too, many {message}", "false", 2, "h"))
    view = LiveView(tmp_path, has_journal=False, label="request")
    view.read()
    assert (view.tally.samples, view.tally.users_now, view.tally.causes.total()) == (2, 2, 1)
    visible = "".join(character if character.isprintable() else "?" for character in message.replace("\r", " "))
    for text in (view.line(), shown(view)):
        assert f"Too, many {visible} 1" in text
        assert not set("\x1b\x07\r\x9b") & set(text)


def test_a_run_whose_record_is_not_there_yet(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"hosts": [')
    assert LiveView(tmp_path, has_journal=True, label="frame").by_slave == {}


def test_labels_have_a_row_each_as_far_as_there_is_room(tmp_path: Path) -> None:
    header = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,failureMessage,allThreads,URL"
    transaction = '"Number of samples in transaction : 2, number of failing samples : 1"'
    (tmp_path / "samples.jtl").write_text(
        f"{header},is_sub_result\n"
        "1000,40,log in,200,OK,t 1-1,true,,1,http://h/home,false\n"
        "1000,10,http://h/login,302,Found,t 1-1,true,,1,http://h/login,true\n"
        "1010,30,http://h/home,200,OK,t 1-1,true,,1,http://h/home,true\n"
        "1040,20,search,200,OK,t 1-1,false,text expected,1,http://h/search,false\n"
        f"1000,60,whole visit,,{transaction},t 1-1,false,,1,null,false\n"
        "1100,20,search,200,OK,t 1-1,true,,1,http://h/search,false\n"
    )
    view = LiveView(tmp_path, has_journal=False, label="sample")
    view.read()
    assert (view.tally.samples, view.tally.causes) == (3, {"failed-check: text expected": 1})
    assert {label: (of.samples, of.causes.total()) for label, of in view.by_label.items()} == {
        "log in": (1, 0), "search": (2, 1), "whole visit": (1, 1)
    }  # fmt: skip
    assert (view.table().row_count, view.table(height=5).row_count) == (4, 3)


def test_an_ordinary_terminal_shows_headings_and_causes_whole(tmp_path: Path) -> None:
    now_ms = int(time.time() * 1000)
    causes = ("status-503", "expect-not-met", "connect-timeout")
    write_samples(tmp_path, *((now_ms, 123, 500, cause, "false", 16, "vm-7") for cause in causes))
    write_run(tmp_path, hosts=[])
    view = LiveView(tmp_path, has_journal=False, label="request")
    view.read()
    headings, _, below = shown(view, width=80).splitlines()
    assert headings.split() == ["elapsed", "threads", "requests", "requests/s", "errors", "p50", "p95", "busy", "cores"]
    assert len(view.tally.causes) == 3 and all(f"{cause} 1" in below for cause in view.tally.causes)


@pytest.mark.parametrize(
    "line",
    ["[" * 100_000, '{"type":"sample","start_ms":1' + "0" * 400 + ',"rtt_ms":1,"cause":null}', "1" * 5000, '"a"'],
    ids=["deep", "late", "long number", "text"],
)
def test_what_a_slave_may_send_does_not_end_the_view(line: str, tmp_path: Path) -> None:
    sample = {"type": "sample", "start_ms": time.time() * 1000, "rtt_ms": 20.0, "cause": 5, "label": 7}
    (tmp_path / "journal-slave1.jsonl").write_text(f"{line}\n{json.dumps(sample)}\n")
    view = LiveView(tmp_path, has_journal=True, label="frame")
    view.read()
    assert view.tally.causes == {"5": 1} and "errors" in shown(view)


def test_a_row_longer_than_a_reader_takes_does_not_end_the_view(tmp_path: Path) -> None:
    write_samples(
        tmp_path, (1, 10, 500, "x" * 2**18, "false", 1, "vm-7"), (2, 10, 200, "OK", "true", 1, "vm-7")
    )  # fmt: skip
    view = LiveView(tmp_path, has_journal=False, label="sample")
    view.read()
    assert view.tally.samples >= 1 and "elapsed" in shown(view)
