from pathlib import Path

import pytest

from framestorm import paths, properties
from framestorm.errors import UsageError

PLAN = """<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2"><hashTree>
  <TestPlan testname="plan">
    <elementProp name="sleep_s" elementType="Argument">
      <stringProp name="Argument.value">${__P(sleep_s,0.5)}</stringProp>
      <stringProp name="Argument.desc">pause before each frame, in seconds</stringProp>
    </elementProp>
    <elementProp name="encoding" elementType="Argument">
      <stringProp name="Argument.value">${__P(encoding,png-base64)}</stringProp>
    </elementProp>
  </TestPlan>
  <ThreadGroup testname="users">
    <stringProp name="TestPlan.comments">virtual users, in all</stringProp>
    <stringProp name="ThreadGroup.num_threads">${__P(users,2)}</stringProp>
    <stringProp name="verify">${__P(verify_share,1)} ${__P(video,)}</stringProp>
  </ThreadGroup>
</hashTree></jmeterTestPlan>
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.jmx"
    path.write_text(PLAN)
    return path


def test_knobs_have_default_and_meaning(plan: Path) -> None:
    knobs = properties.read_plan(plan)
    assert list(knobs) == ["sleep_s", "encoding", "users", "verify_share", "video"]
    assert knobs["sleep_s"] == properties.Knob("sleep_s", "0.5", "pause before each frame, in seconds")
    assert knobs["users"] == properties.Knob("users", "2", "virtual users, in all")
    assert knobs["video"].default == ""


def test_given_values_win_over_defaults(plan: Path) -> None:
    values = properties.effective(properties.read_plan(plan), {"users": "7", "jmeter.save.saveservice.url": "false"})
    assert values == {"sleep_s": "0.5", "encoding": "png-base64", "users": "7", "verify_share": "1", "video": ""}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"user": "5"}, ["-Juser=5", "did you mean users?", "sleep_s"]),
        ({"users": "five"}, ["users is a whole number"]),
        ({"users": "2.5"}, ["users is a whole number"]),
        ({"users": "0"}, ["at least 1"]),
        ({"sleep_s": "-1"}, ["at least 0"]),
        ({"sleep_s": "nan"}, ["at least 0"]),
        ({"sleep_s": "inf"}, ["at least 0"]),
        ({"verify_share": "1.5"}, ["at most 1"]),
        ({"encoding": "gif"}, ["png-base64, png, jpeg"]),
    ],
)
def test_wrong_properties_are_refused_with_what_is_right(plan: Path, given: dict[str, str], words: list[str]) -> None:
    with pytest.raises(UsageError) as refused:
        properties.effective(properties.read_plan(plan), given)
    for word in words:
        assert word in str(refused.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mode": "sideways"}, "local, push, pull"),
        ({"workers": "0"}, "at least 1"),
        ({"workers": "1.5"}, "whole number"),
        ({"tasks": "0"}, "at least 1"),
        ({"task_s": "-1"}, "at least 0"),
    ],
)
def test_properties_of_tasks(given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        properties.effective(properties.read_plan(paths.JMX / "tasks.jmx"), given)


def test_what_the_plans_count() -> None:
    assert {plan.stem: properties.unit(plan) for plan in paths.JMX.glob("*.jmx")} == {
        "face-blur": "frame",
        "face-blur-http": "frame",
        "video-per-user": "frame",
        "requests": "request",
        "request-rate": "request",
        "tasks": "task",
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "no plan at"), ("<jmeterTestPlan", "cannot be read"), ("<project/>", "<project>"), ("", "cannot be read")],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, content: str | None, words: str) -> None:
    plan = tmp_path / "x.jmx"
    if content is not None:
        plan.write_text(content)
    with pytest.raises(UsageError, match=words):
        properties.read_plan(plan)


def test_assignments() -> None:
    assert properties.parse_assignments(["users=1", "url=http://h/?a=b", "users=2", "video="]) == {
        "users": "2",
        "url": "http://h/?a=b",
        "video": "",
    }
    for word in ("users", "=5"):
        with pytest.raises(UsageError, match="name=value"):
            properties.parse_assignments([word])


def test_jmeters_own_properties_are_known() -> None:
    given = {"jmeter.save.saveservice.output_format": "xml", "jmeter.save.savservice.url": "x", "users": "1"}
    assert properties.unknown_to_jmeter(given) == ["jmeter.save.savservice.url"]
