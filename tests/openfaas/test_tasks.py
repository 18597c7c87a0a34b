"""The task client against the real gateway and the real queue."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from framestorm import paths
from framestorm.platform.openfaas import gateway, stack
from framestorm.platform.openfaas.layout import GATEWAY_URL, STACK

WORKERS = 3


@pytest.fixture(scope="module")
def dispatch(openfaas: Callable[..., Any]) -> Callable[..., list[dict[str, Any]]]:
    """Dispatch tasks to the sleep function on three replicas; all that the client says."""
    words = (f"com.openfaas.scale.max={WORKERS}", f"com.openfaas.scale.min={WORKERS}")
    labels = [word for label in words for word in ("--label", label)]
    assert openfaas("deploy", "-f", STACK, "--filter", "sleep", *labels).returncode == 0
    gateway.wait_for_replicas("sleep", WORKERS)

    def run(mode: str, tasks: int, task_s: float, during: Callable[[], object] = lambda: None) -> list[dict[str, Any]]:
        command = [paths.CLIENT_PYTHON, paths.CLIENT / "tasks.py", "--mode", mode, "--workers", WORKERS]
        command += ["--tasks", tasks, "--task-s", task_s, "--url", f"{GATEWAY_URL}/function/sleep"]
        words = [str(word) for word in command]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            during()
            stdout, stderr = process.communicate(timeout=120)
        assert (process.returncode, stderr) == (0, "")
        return [json.loads(line) for line in stdout.splitlines()]

    return run


@pytest.mark.parametrize("mode", ["push", "pull"])
def test_tasks_are_done_by_all_replicas(dispatch: Callable[..., list[dict[str, Any]]], mode: str) -> None:
    *tasks, user = dispatch(mode, 15, 0.1)
    assert sorted(task["index"] for task in tasks) == list(range(15))
    assert (user["ok"], user["repeated"]) == (True, 0)
    assert all(task["rtt_ms"] >= 100 for task in tasks)
    assert len({task["worker"] for task in tasks}) == WORKERS
    if mode == "pull":
        assert all(task["rtt_ms"] >= task["handler_ms"] >= 100 for task in tasks)
        assert all(task["start_ms"] <= task["accepted_at_ms"] for task in tasks)


def test_nothing_is_lost_over_a_restart_of_the_queue_worker(dispatch: Callable[..., list[dict[str, Any]]]) -> None:
    *tasks, user = dispatch("pull", 100, 0.05, during=lambda: stack.restart("queue-worker"))
    assert sorted(task["index"] for task in tasks) == list(range(100))
    assert user["samples_ok"] == 100
