"""A setting of a platform that a search varies: the words of --target, and what they may not be."""

import os
import signal
from pathlib import Path

import pytest

from framestorm.errors import UsageError
from framestorm.find import command
from framestorm.find.setting import PlatformSetting
from framestorm.platform.base import Site
from framestorm.platform.kubernetes.knative import KnativeSettings
from framestorm.platform.openfaas.platform import OpenFaasSettings
from tests.framestorm.find.conftest import SimulatedRuns


def test_the_words_are_settings_as_in_a_study() -> None:
    words = ["function=sleep", "concurrency_limit=1", "cpu=250m", "environment={tell_worker: '1'}"]
    settings = PlatformSetting("target.replicas", words, Site()).settings(3)
    assert isinstance(settings, OpenFaasSettings)
    assert (settings.function, settings.replicas, settings.concurrency_limit) == ("sleep", 3, 1)
    assert settings.environment == {"tell_worker": "1"}
    knative = PlatformSetting("target.concurrency_limit", ["kind=knative", "function=noop"], Site()).settings(2)
    assert isinstance(knative, KnativeSettings) and knative.concurrency_limit == 2


@pytest.mark.parametrize(
    ("name", "words", "why"),
    [
        ("target.replicas", [], "--target, --over target.replicas: a target needs its function on openfaas"),
        ("target.replicas", ["function=nope"], "unknown function 'nope'"),
        ("target.speed", ["function=noop"], "target.speed is not valid for kind openfaas"),
        ("target.replicas", ["kind=cloud", "function=noop"], "target.kind cannot be 'cloud'"),
        ("target.replicas", ["function"], "--target function: expected NAME=VALUE"),
        ("target.replicas", ["function=[a"], r"no value as in study\.yml"),
        ("target.replicas", ["function=noop", "replicas=2"], "give the same setting"),
    ],
)
def test_what_is_no_setting_is_refused(name: str, words: list[str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        PlatformSetting(name, words, Site()).settings(1)


def test_an_interrupt_ends_the_wait_for_a_setting(
    runs: SimulatedRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = []

    def bring_to(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        waited.append("for replicas to be ready")

    for name, done in (("needs", lambda *_: ()), ("begin", lambda *_: None), ("close", lambda _: None)):
        monkeypatch.setattr(PlatformSetting, name, done)
    monkeypatch.setattr(PlatformSetting, "bring_to", bring_to)
    words = ["--over", "target.replicas=1..8", "--target", "function=sleep", "--slo", "p95 < 100 ms"]
    words += ["-t", "jmx/request-rate.jmx", "-Jrate_per_s=5", "-o", str(tmp_path / "found")]
    assert command.main(words) == 4
    assert (waited, runs.given) == ([], [])
