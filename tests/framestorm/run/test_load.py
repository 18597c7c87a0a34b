"""The load of a run on this machine, with a stand-in for JMeter."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.machine import wait_until
from framestorm.platform.base import Reading, Site
from framestorm.platform.registry import NoPlatform
from framestorm.run import jmeter
from framestorm.run.load import LocalLoad, save_metrics
from framestorm.run.options import What
from framestorm.run.preparation import prepare

# A user's process of a plan of its own: told to end, it hands in what it has.
CLIENT = """
import pathlib, signal, sys, time
def hand_in(*_):
    pathlib.Path("handed-in").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, hand_in)
pathlib.Path("started").touch()
time.sleep(60)
"""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], LocalLoad]]:
    """Start a load whose JMeter is this shell script, in the run's folder."""
    loads = []

    def make(script: str) -> LocalLoad:
        run_dir = tmp_path / "run"
        monkeypatch.setattr(jmeter, "run_command", lambda *_, **__: ["sh", "-c", f"cd {run_dir}; {script}"])
        run_dir.mkdir()
        prepared = prepare(What(paths.JMX / "tasks.jmx"), run_dir.with_name("other"))
        loads.append(LocalLoad(type(prepared)(**{**vars(prepared), "run_dir": run_dir})))
        loads[-1].start()
        return loads[-1]

    yield make
    for load in loads:
        load.close()


def test_any_client_is_told_to_stop_and_hands_in_what_it_has(start: Callable[[str], LocalLoad], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CLIENT)
    load = start(f"timeout 60 {sys.executable} {tmp_path}/mine.py; exit 0")
    run_dir = tmp_path / "run"
    assert wait_until((run_dir / "started").exists, 20)
    load.stop_gently()
    assert (run_dir / "stop").exists()
    assert load.wait(20) == 0
    assert (run_dir / "handed-in").exists()
    assert load.collect() == []
    assert not (run_dir / "stop").exists()


def test_what_does_not_hear_it_goes_on(start: Callable[[str], LocalLoad]) -> None:
    load = start("sleep 60")
    load.stop_gently()
    assert load.wait(0.5) is None
    load.stop()
    assert load.exit_status() == 143
    assert [host.role for host in load.hosts()] == ["generator"]
    assert (load.rmi(), load.losses()) == (None, ())


class Observed(NoPlatform):
    """A platform with these readings, or with an error instead."""

    readings: list[Reading] | FramestormError | None = None

    def metrics(self, start_ms: float, end_ms: float) -> list[Reading] | None:
        if isinstance(self.readings, FramestormError):
            raise self.readings
        return self.readings


@pytest.mark.parametrize(
    ("readings", "missing", "lines"),
    [
        (None, [], None),
        ([], [], 1),
        ([Reading(5, "in_flight", "noop", "noop-1", 2.5)], [], 2),
        (FramestormError("it does not answer"), ["it does not answer"], None),
    ],
)
def test_metrics_are_kept_as_the_platform_measured_them(
    readings: list[Reading] | FramestormError | None, missing: list[str], lines: int | None, tmp_path: Path
) -> None:
    platform = Observed(Site())
    platform.readings = readings
    assert save_metrics(platform, tmp_path, 0, 1) == missing
    path = tmp_path / "metrics.csv"
    assert (len(path.read_text().splitlines()) if path.exists() else None) == lines
    if lines == 2:
        assert path.read_text().split() == ["time_ms,metric,function,detail,value", "5,in_flight,noop,noop-1,2.5"]
