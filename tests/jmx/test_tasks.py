"""The plan of tasks, run by JMeter itself with the real client."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

RunPlan = Callable[..., Any]
StartServer = Callable[..., Any]


@pytest.mark.parametrize("mode", ["local", "push"])
def test_tasks_of_one_user(mode: str, run_plan: RunPlan, stand_in: StartServer, tmp_path: Path) -> None:
    server = stand_in({"body": b"ok", "headers": (("X-Worker", "replica-1"),)})
    url = server.url if mode == "push" else ""
    run = run_plan("tasks", mode=mode, url=url, workers=2, tasks=8, task_s=0.01)
    assert run.count("label", "success", "responseMessage") == {("user", "true", "OK"): 1, ("task", "true", "OK"): 8}
    assert {body for _, body in server.requests} == ({b"0.01"} if mode == "push" else set())
    assert sorted((line["label"], line["index"]) for line in run.lines()) == [("task", n) for n in range(8)]
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == 10
    assert run.errors() == []


def test_tasks_that_take_too_long_are_ended(run_plan: RunPlan, tmp_path: Path) -> None:
    # On a busy machine the client alone takes seconds to start, and one that has not is ended without a task.
    run = run_plan("tasks", mode="local", workers=2, tasks=4, task_s=60, user_timeout_s=25)
    assert run.count("label", "responseMessage") == {("user", "user-timeout"): 1, ("task", "stopped"): 4}
    running = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert not [line for line in running if "tasks.py" in line and str(tmp_path) in line]
