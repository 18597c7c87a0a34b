"""What a host has to have for the users of a plan, in figures."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from framestorm import paths, probe
from framestorm.errors import UsageError
from framestorm.guard import Guarded
from framestorm.load.reading import read_loads
from framestorm.model import plan as plans
from framestorm.probe import Limits
from framestorm.run import jmeter, preparation, target
from framestorm.run.capacity import GIB, MIB, Demand, asked_of, shortages
from framestorm.run.options import What, Where
from framestorm.run.preparation import prepare

ENOUGH = Limits(8 * GIB, 32_768, 20_000, 28_232)
FORKS = Demand(1_000, 1_000, 6 * MIB)


@pytest.mark.parametrize(
    ("plan", "values", "asked"),
    [
        ("face-blur", {"users": "300"}, Demand(300, 300, 6 * MIB)),
        ("video-per-user", {"users": "7"}, Demand(7, 7, 6 * MIB)),
        ("process", {"users": "300"}, Demand(300, 300)),
        ("infer", {"users": "300"}, Demand(300, 300, 7 * MIB, 11)),
        ("request-rate", {"concurrency_limit": "40"}, Demand(40)),
        ("requests", {"users": "many"}, Demand(1)),  # that of its setUp Thread Group
    ],
)
def test_users_are_counted_as_the_plan_starts_them(plan: str, values: dict[str, str], asked: Demand) -> None:
    read = plans.read(paths.JMX / f"{plan}.jmx")
    assert asked_of(read, read_loads(read, (), read.defaults | values)) == asked


@pytest.mark.parametrize(
    ("asked", "limits", "figures"),
    [
        (FORKS, ENOUGH, []),
        (FORKS, Limits(), []),  # nothing is known
        (FORKS, replace(ENOUGH, memory_bytes=4 * GIB), [("memory", "6.4 GiB", "4.0 GiB", "596")]),
        (FORKS, replace(ENOUGH, tasks=1_000), [("threads and processes", "6,060", "1,000", "156")]),
        (FORKS, replace(ENOUGH, open_files=1_024), [("open files", "2,250", "1,024", "387")]),
        (Demand(1_000), replace(ENOUGH, ports=500), [("ports", "1,000", "500", "500")]),
        (Demand(20_000), replace(ENOUGH, heap_bytes=GIB, open_files=0), [("heap", "2.5 GiB", "1.0 GiB", "6,553")]),
        (Demand(9_000), replace(ENOUGH, tasks=5_000, open_files=1_024), [("threads",), ("open files",)]),
    ],
)
def test_what_is_missing_comes_with_its_figures(asked: Demand, limits: Limits, figures: list[tuple[str, ...]]) -> None:
    reasons = shortages(asked, limits)
    assert len(reasons) == len(figures)
    for reason, parts in zip(reasons, figures, strict=True):
        assert all(part in reason for part in parts), reason


def test_each_slave_has_its_part() -> None:
    assert FORKS.of_each(3) == Demand(334, 334, 6 * MIB)


def test_too_many_users_are_refused_unless_asked_for_anyway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(preparation, "limits", lambda: ENOUGH)
    monkeypatch.setattr(target, "check_reachable", lambda *_: None)
    what = What(paths.JMX / "requests.jmx", given={"url": "http://h/f", "users": "30000"})
    with pytest.raises(UsageError, match=r"open files: 30,000 users need 60,250, but only 20,000 .*(?s:.)*--anyway"):
        prepare(what, tmp_path / "run")
    assert prepare(replace(what, anyway=True), tmp_path / "run").asked.threads == 30_000
    assert "open files" in capsys.readouterr().err
    # Slaves start them.
    assert prepare(what, tmp_path / "run", Where("slaves")).asked.threads == 30_000


def test_this_machine_tells_what_it_has() -> None:
    limits = probe.limits()
    assert all(value > 0 for value in (limits.memory_bytes, limits.tasks, limits.open_files, limits.ports))
    command = ["sh", "-c", "echo; read line", "-Xmx1g", "-Xmx3G", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout and server.stdout.readline()
        assert probe.limits(str(server.pid)).heap_bytes == 3 * GIB


@pytest.mark.parametrize(("user", "is_limited"), [("65534", True), ("0", False)])
def test_an_account_may_have_so_many_processes(user: str, is_limited: bool) -> None:
    """Root may have more."""
    command = ["prlimit", "--nproc=77", "setpriv", "--reuid", user, "sh", "-c", "echo; read line"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout and server.stdout.readline()
        tasks = probe.limits(str(server.pid)).tasks
        assert (0 < tasks < 77) if is_limited else tasks > 77


@pytest.mark.parametrize(("heap", "options"), [("", ["-Xms256m", "-Xmx1g", "-Xmx5256m"]), ("-Xmx2g", ["-Xmx2g"])])
def test_the_heap_follows_the_users_where_nobody_chose_one(
    heap: str, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEAP", heap)
    java_options = jmeter.under_load(Demand(10_000).heap_bytes)
    command = jmeter.run_command(Path("plan.jmx"), {}, Path("run"), None, java_options)
    assert [word for word in command if word.startswith("-Xm")] == options
    assert Demand(500).heap_bytes == GIB


def test_what_a_run_starts_may_open_as_many_files_as_the_machine_allows(tmp_path: Path) -> None:
    code = "import resource; a, b = resource.getrlimit(resource.RLIMIT_NOFILE); print(a == b)"
    with Guarded([sys.executable, "-c", code], tmp_path / "log", {}) as guarded:
        assert guarded.wait(20) == 0
    assert (tmp_path / "log").read_text() == "True\n"
