"""The names of JMeter's classes in plans."""

from pathlib import Path

import pytest

from framestorm import paths
from framestorm.model.classes import short_name

SAMPLER = "org.apache.jmeter.protocol.http.sampler.HTTPSamplerProxy"


def test_names_are_known_as_soon_as_jmeter_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is read once before that, to know what it needs."""
    with monkeypatch.context() as before:
        before.setattr(paths, "JMETER_HOME", tmp_path)
        assert short_name(SAMPLER) == SAMPLER
    assert {short_name(name) for name in (SAMPLER, "HTTPSampler2", "HTTPSamplerProxy")} == {"HTTPSamplerProxy"}
    assert short_name("org.example.Unknown") == "org.example.Unknown"
