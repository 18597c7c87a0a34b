import json
import time
from pathlib import Path

import pytest

from framestorm.live import LiveView, Tally


def test_recent_figures_are_of_answered_frames_of_the_last_seconds() -> None:
    tally = Tally()
    for rtt_ms in range(1, 101):
        tally.frame(1000.0, rtt_ms, None)
    tally.frame(1000.0, 25_000, "timeout")
    assert tally.recent(1005.0) == (10.0, 51, 96)
    assert tally.recent(1011.0) == (0.0, None, None)
    assert tally.frames == 101
    assert tally.causes == {"timeout": 1}


def test_a_journal_is_followed_as_it_grows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "journal.jsonl"
    now_ms = time.time() * 1000
    frame = {"type": "frame", "start_ms": now_ms, "rtt_ms": 20.0, "cause": None}
    with LiveView(tmp_path, has_users=True) as view:
        lines = [{"type": "start"}, {"type": "start"}, frame, {**frame, "cause": "status-500"}]
        journal.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"type": "fra')
    tally = view.tally
    assert (tally.users_now, tally.users_done, tally.frames) == (2, 0, 2)
    with LiveView(tmp_path, has_users=True) as view, journal.open("a") as file:
        file.write('me", "start_ms": 1, "rtt_ms": 1, "cause": null}\nnot json\n{"type": "user", "ok": false}\n')
    assert (view.tally.users_now, view.tally.users_failed, view.tally.frames) == (1, 1, 3)


def test_slaves_have_a_line_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = [
        {"name": "vm-7", "inventory_name": "slave1", "role": "slave", "cores": 2},
        {"name": "vm-8", "inventory_name": "slave2", "role": "slave", "cores": 4},
        {"name": "vm-9", "inventory_name": "function1", "role": "target", "cores": 8},
    ]
    (tmp_path / "run.json").write_text(json.dumps({"hosts": hosts}))
    (tmp_path / "samples.jtl").write_text(
        "timeStamp,elapsed,responseCode,responseMessage,success,allThreads,Hostname\n"
        "1,10,200,OK,true,3,vm-7\n2,10,200,OK,true,4,vm-8\n3,10,500,Oh,false,5,vm-8\n"
    )
    (tmp_path / "resources.csv").write_text(
        "time_ms,host,part,cpu_percent,rss_bytes,processes,load\n"
        "1,vm-7,generator,90.0,1,1,\n1,vm-7,host,150.0,1,,2.00\n2,vm-9,host,720.0,1,,9.00\n"
    )
    with LiveView(tmp_path, has_users=False) as view:
        pass
    assert {name: (tally.frames, tally.users_now) for name, tally in view.by_slave.items()} == {
        "slave1": (1, 3), "slave2": (2, 5),
    }  # fmt: skip
    assert (view.tally.frames, view.tally.users_now) == (3, 8)
    line = view._line()
    assert "slave1: 3 threads, 1 frames, 0 errors, 1.5 of 2 cores" in line
    assert "slave2: 5 threads, 2 frames, 1 errors  |" in line
    assert line.endswith("function1: 7.2 of 8 cores")
    table = view._table()
    assert [list(column.cells)[-2:] for column in (table.columns[0], table.columns[-1])] == [
        ["slave2", "function1"], ["", "7.2 of 8"],
    ]  # fmt: skip


def test_samples_are_followed_where_there_are_no_users(tmp_path: Path) -> None:
    (tmp_path / "samples.jtl").write_text(
        "timeStamp,elapsed,responseCode,responseMessage,success,allThreads\n"
        '1,10,200,OK,true,3\n2,10,429,"Too, many",false,2\nbroken\n'
    )
    with LiveView(tmp_path, has_users=False) as view:
        pass
    assert (view.tally.frames, view.tally.users_now) == (2, 2)
    assert view.tally.causes == {"Too, many": 1}
