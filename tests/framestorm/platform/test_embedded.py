"""The embedded target: which function of the kit a plan means, and what a study may choose."""

import pytest

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.model import plan as plans
from framestorm.platform.base import Site
from framestorm.platform.embedded import FUNCTIONS, Embedded, EmbeddedSettings, function_at
from framestorm.run import pieces
from framestorm.run.options import What
from framestorm.run.target import find_platform
from framestorm.setup.pieces import CHAT_VENV, FACE_GRAPH, FUNCTION_VENV


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://127.0.0.1:8080/function/chat/v1/chat/completions", "chat"),
        ("http://127.0.0.1:8080/function/chat", "chat"),
        ("http://127.0.0.1:8080/function/face-blur", "face-blur"),
        ("http://127.0.0.1:8080/function/chatter", "face-blur"),
        ("", "face-blur"),
        (None, "face-blur"),
    ],
)
def test_a_plan_means_the_function_of_its_default(url: str | None, name: str) -> None:
    assert function_at(url) == name


@pytest.mark.parametrize("plan", [path.stem for path in sorted(paths.JMX.glob("*.jmx"))])
def test_the_default_of_a_plan_is_the_address_of_its_embedded_function(
    plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Embedded, "_check_port", lambda *_: None)
    of_plan = plans.read(paths.JMX / f"{plan}.jmx")
    platform = find_platform(of_plan, {}, Site())
    if isinstance(platform, Embedded):
        assert platform.prepare(EmbeddedSettings(function=platform.function)) == of_plan.url.default
        assert (FUNCTIONS[platform.function].folder / "app.py").exists()
    else:
        assert plan not in ("chat", "face-blur")


def test_a_run_of_the_model_installs_nothing_of_face_blur() -> None:
    needed = pieces.of_run(What(paths.JMX / "chat.jmx"))
    assert CHAT_VENV in needed
    assert not {FUNCTION_VENV, FACE_GRAPH} & set(needed)


def test_a_study_may_choose_the_function() -> None:
    assert EmbeddedSettings.read({"kind": "embedded", "function": "chat"}).texts() == {"function": "chat"}
    assert EmbeddedSettings.read({"kind": "embedded"}).texts() == {}
    with pytest.raises(FramestormError, match="noop"):
        EmbeddedSettings.read({"kind": "embedded", "function": "noop"})
