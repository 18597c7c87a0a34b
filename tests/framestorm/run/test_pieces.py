import pytest

from framestorm import paths
from framestorm.run import pieces
from framestorm.run.options import What, Where
from framestorm.setup.pieces import ANSIBLE_VENV, CLIENT_VENV, FACE_GRAPH, FOR_A_RUN, FUNCTION_VENV, SAMPLE_VIDEO, Piece

CLIENT, DEMO_FUNCTION = {CLIENT_VENV}, {FUNCTION_VENV, FACE_GRAPH}
URL = {"url": "http://127.0.0.1:1/"}


@pytest.mark.parametrize(
    ("plan", "given", "more"),
    [
        ("requests", URL, set()),
        ("request-rate", URL, set()),
        ("process", {}, set()),
        ("process", {"arguments": ".local/sample.mp4"}, {SAMPLE_VIDEO}),
        ("face-blur", {}, {*CLIENT, SAMPLE_VIDEO, *DEMO_FUNCTION}),
        ("face-blur", {"url": ""}, {*CLIENT, SAMPLE_VIDEO, *DEMO_FUNCTION}),
        ("face-blur", URL, {*CLIENT, SAMPLE_VIDEO}),
        ("face-blur", {**URL, "video": "/of/my/own.mp4"}, CLIENT),
        ("face-blur-http", {"video": "own.mp4"}, {*CLIENT, *DEMO_FUNCTION}),
        ("video-per-user", {**URL, "video": str(paths.SAMPLE_VIDEO)}, {*CLIENT, SAMPLE_VIDEO}),
        ("tasks", {"mode": "local"}, CLIENT),
        ("infer", {"url": "grpc://127.0.0.1:1/iris"}, CLIENT),
    ],
)
def test_a_run_needs_what_its_plan_and_its_target_name(plan: str, given: dict[str, str], more: set[Piece]) -> None:
    needed = pieces.of_run(What(paths.JMX / f"{plan}.jmx", given))
    assert {each.name for each in needed} == {each.name for each in {*FOR_A_RUN, *more}}


def test_a_file_of_the_kit_may_be_named_from_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(paths.LOCAL))
    assert SAMPLE_VIDEO in pieces.of_run(What(paths.JMX / "face-blur.jmx", {**URL, "video": "~/sample.mp4"}))


def test_over_slaves_the_function_is_elsewhere() -> None:
    needed = pieces.of_run(What(paths.JMX / "requests.jmx", URL), Where("slaves"))
    assert needed == [*FOR_A_RUN, ANSIBLE_VENV]
    demo = pieces.of_run(What(paths.JMX / "face-blur.jmx"), Where("slaves"))
    assert demo == [*FOR_A_RUN, CLIENT_VENV, SAMPLE_VIDEO, ANSIBLE_VENV]


def test_a_plan_of_ones_own_needs_jmeter_only() -> None:
    assert pieces.of_run(What(paths.ROOT / "tests" / "cases" / "blank-users.jmx")) == [*FOR_A_RUN]
