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


def test_samples_are_followed_where_there_are_no_users(tmp_path: Path) -> None:
    (tmp_path / "samples.jtl").write_text(
        "timeStamp,elapsed,responseCode,responseMessage,success,allThreads\n"
        '1,10,200,OK,true,3\n2,10,429,"Too, many",false,2\nbroken\n'
    )
    with LiveView(tmp_path, has_users=False) as view:
        pass
    assert (view.tally.frames, view.tally.users_now) == (2, 2)
    assert view.tally.causes == {"Too, many": 1}
