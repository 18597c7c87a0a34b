"""The platforms as the rest of the kit meets them, and a fourth one that fits without a change anywhere else."""

import csv
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import pytest

from framestorm import conductor, paths
from framestorm.errors import UsageError
from framestorm.guard import Guarded
from framestorm.model import files
from framestorm.model.run import Record
from framestorm.model.study import Study
from framestorm.platform import registry
from framestorm.platform.base import Check, Count, Platform, Reading, SettingError, Site, TargetSettings
from framestorm.platform.kubernetes import address
from framestorm.platform.registry import Platforms
from framestorm.points.folder import StudyFolder, StudyRecord
from framestorm.run import jmeter
from framestorm.run.options import Output, RunOptions, What
from framestorm.study import readiness
from framestorm.study.design import matrix
from framestorm.study.engine import Engine
from tests.framestorm.study.conftest import PLAIN

TARGET = {"kind": "fake", "service": "echo"}
STUDY = PLAIN | {"target": TARGET, "factors": {"target.scale": [1, 2]}, "repetitions": 1}


class FakeSettings(TargetSettings):
    kind: Literal["fake"] = "fake"
    service: str
    scale: Count = 1


class Fake(Platform[FakeSettings]):
    kind = "fake"
    settings = FakeSettings
    calls: ClassVar[list[object]] = []
    broken: ClassVar[str | None] = None

    @classmethod
    def at(cls, url: str, site: Site, host: str = "") -> Self | None:
        return cls(Site()) if "fake.invalid" in url else None

    def checks(self, points: Mapping[str, FakeSettings], usual: Mapping[str, object]) -> Iterator[Check]:
        yield Check("fake", True, f"{len(points)} points, {usual['service']}")

    def _bring_to(self, settings: FakeSettings) -> str:
        self.calls.append(("prepare", settings.service, settings.scale))
        return "http://127.0.0.1:9/echo"

    @contextmanager
    def serving(self, run_dir: Path) -> Iterator[Mapping[str, Guarded]]:
        self.calls.append("serving")
        yield {}

    def trouble(self) -> str | None:
        return self.broken

    def metrics(self, start_ms: float, end_ms: float) -> list[Reading]:
        assert start_ms < end_ms
        return [Reading(int(end_ms), "replicas_ready", "echo", "", 2.0)]

    def close(self) -> str:
        self.calls.append("close")
        return "fake runs on"


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> type[Fake]:
    monkeypatch.setitem(registry.PLATFORMS, "fake", Fake)
    monkeypatch.setattr(Fake, "calls", [])
    # Nothing listens where it says it does.
    monkeypatch.setattr("framestorm.run.target.check_reachable", lambda *_: None)
    return Fake


def run_with(platform: Platform[Any], run_dir: Path, monkeypatch: pytest.MonkeyPatch, seconds: float = 0.5) -> Record:
    """A run whose JMeter only waits."""
    command = [sys.executable, "-c", f"import time; time.sleep({seconds})"]
    monkeypatch.setattr(jmeter, "run_command", lambda *_, **__: command)
    options = RunOptions(What(paths.JMX / "requests.jmx", platform=platform), output=Output(run_dir))
    return files.read(conductor.run(options) / "run.json", Record)


def test_a_run_against_a_fourth_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    platforms = Platforms(Site(), tmp_path)
    platform = platforms.prepare(FakeSettings(service="echo", scale=2))
    record = run_with(platform, tmp_path / "run", monkeypatch)
    assert (record.state, record.target.kind, record.target.url) == ("complete", "fake", "http://127.0.0.1:9/echo")
    assert record.target.settings == {"service": "echo", "scale": "2"}
    with (tmp_path / "run" / "metrics.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["metric"], row["function"], row["value"]) == ("replicas_ready", "echo", "2.0")
    assert platforms.close() == ["fake runs on"]
    assert Fake.calls == [("prepare", "echo", 2), "serving", "close"]


def test_trouble_of_the_platform_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fake, "broken", "the autoscaler is gone")
    platform = Platforms(Site(), tmp_path).prepare(FakeSettings(service="echo"))
    monkeypatch.setattr(conductor, "END_AFTER_S", 0.0)
    record = run_with(platform, tmp_path / "run", monkeypatch, seconds=60)
    assert record.state == "failed"
    assert "the autoscaler is gone" in (record.reason or "")


def test_the_points_of_a_study_are_prepared_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study.model_validate({**STUDY, "name": "revisions"})
    points = matrix.points(study)
    assert [point.target.model_dump()["scale"] for point in points] == [1, 2]
    (tmp_path / "study.yml").write_text("")
    record = StudyRecord.begin(tmp_path / "study.yml", study, points, seed=1)
    checks = {check.what: check.words for check in readiness.checks(record, tmp_path)}
    assert checks["fake"] == "2 points, echo"
    folder = StudyFolder.create(tmp_path / "made", record)
    assert [point.target for point in folder.record.points] == [point.target for point in points]
    urls = []

    def run(_self: Engine, options: RunOptions) -> str:
        urls.append(options.what.platform.url if options.what.platform else None)
        options.output.run_dir.mkdir()
        return "measured nothing"

    monkeypatch.setattr(Engine, "_run", run)
    Engine(folder).run()
    assert urls == ["http://127.0.0.1:9/echo"] * 2
    assert sorted(call[2] for call in Fake.calls if call[0] == "prepare") == [1, 2]
    assert Fake.calls[-1] == "close"


def test_an_address_leads_to_its_platform() -> None:
    assert registry.at("http://fake.invalid/echo", Site()).kind == "fake"
    elsewhere = registry.at("http://192.0.2.1/echo", Site())
    assert (elsewhere.kind, elsewhere.url, elsewhere.metrics(0, 1), elsewhere.trouble()) == (
        "url", "http://192.0.2.1/echo", None, None,
    )  # fmt: skip
    for url in (
        "http://[::1",
        "http://h:99999",
        "http://h:x",
        "http://h:0",
        "h:80",
        "http://",
        "HTTP://h",
        "http://me:pw@h/",
    ):
        with pytest.raises(UsageError) as refusal:
            registry.at(url, Site())
        assert "pw" not in str(refusal.value)


def test_a_name_that_cannot_be_looked_up_leads_nowhere() -> None:
    assert not address.leads_somewhere("a..b")


@pytest.mark.parametrize(
    ("values", "name", "allowed"),
    [
        ({"kind": "fke"}, "kind", "fake"),
        ({"kind": "fake"}, "service", None),
        ({"kind": "fake", "service": "echo", "sclae": 2}, "sclae", "scale"),
        ({"kind": "fake", "service": "echo", "function": "noop"}, "function", "scale"),
        ({"kind": "fake", "service": "echo", "scale": 1.5}, "scale", None),
        ({"kind": "fake", "service": "echo", "scale": True}, "scale", None),
        ({"kind": "fake", "service": "echo", "scale": 0}, "scale", None),
        ({"kind": "openfaas", "function": "noop", "route": "nginy"}, "route", "nginx"),
        ({"kind": "openfaas", "function": "nop"}, "function", "noop"),
        ({"kind": "url"}, "url", None),
    ],
)
def test_a_wrong_setting_is_named(values: dict[str, object], name: str, allowed: str | None) -> None:
    with pytest.raises(SettingError) as caught:
        registry.read(values)
    assert caught.value.name == name
    assert allowed is None or allowed in caught.value.allowed


def test_whole_numbers_may_be_calculated() -> None:
    assert registry.read({"kind": "fake", "service": "echo", "scale": 4.0}) == FakeSettings(service="echo", scale=4)


def test_settings_survive_a_file() -> None:
    settings = registry.read({"function": "noop", "replicas": 2, "environment": {"a": "1"}})
    assert registry.typed(settings.model_dump()) == settings
    assert settings.texts()["environment.a"] == "1"
    assert settings.describe() == "openfaas, function noop, replicas 2, environment {'a': '1'}"
