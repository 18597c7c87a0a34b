"""Bad input: a clear error, the right exit status, and nothing half-written."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["-t", "jmx/none.jmx"], 2, ["no plan at", "jmx/face-blur.jmx"]),
        (["-t", "README.md"], 2, ["cannot be read as a JMeter plan"]),
        (["-Juser=5"], 2, ["no property user", "did you mean users"]),
        (["-Jusers=some"], 2, ["whole number"]),
        (["-J", "users"], 2, ["name=value"]),
        (["--fail-if", "frame p95 > soon"], 2, ["soon", "^"]),
        (["--no-such-option"], 2, ["--no-such-option"]),
        (["-t", "jmx/requests.jmx"], 2, ["requests.jmx needs -Jurl="]),
        (["-t", "jmx/tasks.jmx", "-Jmode=push"], 2, ["tasks.jmx", "-Jurl="]),
        (["-t", "jmx/tasks.jmx", "-Jworkers=0"], 2, ["-Jworkers=0", "whole number >= 1"]),
        (["-t", "jmx/tasks.jmx", "--fail-if", "frame p95 > 2 s"], 2, ["tasks.jmx", "user and task"]),
        (["-t", "jmx/face-blur-http.jmx", "--fail-if", "user p95 > 2 s"], 2, ["face-blur-http.jmx", "frame"]),
        (["-Jvideo=/none.mp4"], 1, ["/none.mp4"]),
        (["-Jvideo=README.md"], 1, ["README.md"]),
        (["-Jurl=ftp://127.0.0.1/"], 2, ["http://"]),
        (["-Jurl=http://127.0.0.1:9/function/face-blur"], 1, ["127.0.0.1:9"]),
    ],
)
def test_is_refused(run_sh: Callable[..., Any], words: list[str], status: int, said: list[str]) -> None:
    done = run_sh(*words)
    assert done.status == status, done.stderr
    for word in said:
        assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.run_dir.exists()


def test_a_taken_port_is_named_with_who_has_it(run_sh: Callable[..., Any], port: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        done = run_sh()
    assert done.status == 1
    assert f"port {port}" in done.stderr
    assert f"pid {os.getpid()}" in done.stderr
    assert not done.run_dir.exists()


def test_a_run_never_writes_into_an_existing_folder(run_sh: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert run_sh().status == 2
    assert list((tmp_path / "run").iterdir()) == []


def test_samples_are_never_written_over(run_sh: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "samples.jtl").write_text("mine")
    done = run_sh("-l", str(tmp_path / "samples.jtl"))
    assert done.status == 2
    assert (tmp_path / "samples.jtl").read_text() == "mine"


def test_an_unwritable_place_is_named(run_sh: Callable[..., Any]) -> None:
    # /proc takes no new folders from anyone, root included.
    done = run_sh("-o", "/proc/framestorm/run", output=False)
    assert done.status == 1
    assert "/proc" in done.stderr and "-o" in done.stderr


def test_what_is_no_run_is_not_reported_on(run_sh: Callable[..., Any], tmp_path: Path) -> None:
    done = run_sh("report", str(tmp_path), output=False)
    assert done.status == 2
    assert "no run.json" in done.stderr


def test_a_target_that_cannot_start_leaves_its_last_words(
    run_sh: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "face.pb").write_bytes(b"not a graph")
    monkeypatch.setenv("FACE_MODEL", str(tmp_path / "face.pb"))
    done = run_sh()
    assert done.status == 1
    assert "face.pb" in done.stderr
    assert not done.run_dir.exists()
