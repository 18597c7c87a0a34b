"""The words of other tools lead to the properties of a plan, before words that only look alike."""

from typing import Any

import pytest

from framestorm import paths
from framestorm.cli import main
from framestorm.errors import UsageError
from framestorm.load import text
from framestorm.model import plan as plans
from framestorm.model.aliases import WORDS


@pytest.mark.parametrize(
    ("plan", "word", "hint"),
    [
        ("requests", "threads", "did you mean users?"),
        ("requests", "vus", "did you mean users?"),
        ("requests", "Concurrency", "did you mean users?"),
        ("requests", "num_threads", "did you mean users?"),
        ("requests", "duration", "did you mean hold_s?"),
        ("requests", "duration_s", "did you mean hold_s?"),
        ("requests", "hold-for", "did you mean hold_s?"),
        ("requests", "ramp_up", "did you mean ramp_s?"),
        ("requests", "think_time", "did you mean sleep_s?"),
        ("requests", "data", "did you mean body?"),
        ("requests", "payload", "did you mean body?"),
        ("requests", "assert", "did you mean expect?"),
        ("requests", "host", "did you mean url?"),
        ("requests", "timeout", "did you mean timeout_s?"),
        ("requests", "bdoy", "did you mean body?"),
        ("requests", "rps", "; rate_per_s is a property of jmx/request-rate.jmx."),
        ("requests", "rate", "; rate_per_s is a property of jmx/request-rate.jmx."),
        ("requests", "stages", "did you mean load?"),
        ("request-rate", "stages", "did you mean load?"),
        ("request-rate", "rps", "did you mean rate_per_s?"),
        ("request-rate", "users", "; users is a property of jmx/requests.jmx."),
        ("request-rate", "vus", "did you mean concurrency_limit?"),
        ("tasks", "iterations", "did you mean tasks?"),
        ("tasks", "threads", "did you mean workers?"),
        ("face-blur", "iterations", "did you mean hold_s?"),
    ],
)
def test_words_of_other_tools(plan: str, word: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        plans.read(paths.JMX / f"{plan}.jmx").check(word, "5")
    assert f"has no property {word}" in str(refused.value) and hint in str(refused.value)


@pytest.mark.parametrize(
    ("plan", "name", "model"), [("request-rate", "rate_per_s", "arrivals"), ("requests", "users", "users")]
)
def test_several_rates_or_numbers_of_users_lead_to_a_load_in_words(plan: str, name: str, model: Any) -> None:
    with pytest.raises(UsageError) as refused:
        plans.read(paths.JMX / f"{plan}.jmx").check(name, "5,60")
    example = str(refused.value).partition("-Jload='")[2].rstrip("'")
    assert text.parse(example, model), "an example that can be run as it stands"


def test_each_leads_to_a_property_that_there_is() -> None:
    known = {name for path in paths.JMX.glob("*.jmx") for name in plans.read(path).settable}
    assert WORDS.keys() <= known


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("--vus", "did you mean -Jusers=…?"),
        ("--duration=30", "did you mean -Jhold_s=…?"),
        ("--rps", "did you mean -Jrate_per_s=…?"),
        ("--data", "did you mean -Jbody=…?"),
        ("--fail-fi", "did you mean --fail-if?"),
    ],
)
def test_options_of_other_tools(option: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([option, "10"]) == 2
    assert hint in capsys.readouterr().err


def test_another_command_has_no_properties(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "a", "b", "--duration", "3"]) == 2
    assert "-J" not in capsys.readouterr().err
