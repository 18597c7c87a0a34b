from typing import Any

import pytest

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.preparation import RunOptions
from framestorm.run import _check_for_slaves
from framestorm.slaves.inventory import Host, Hosts


def hosts(count: int, functions: int = 1) -> Hosts:
    def host(name: str) -> Host:
        return Host(name, (), name, "192.0.2.1", {})

    return Hosts([host(f"slave{number}") for number in range(count)], None, [host("function1")] * functions)


@pytest.mark.parametrize(
    ("plan", "given", "there", "words"),
    [
        ("tasks", {}, hosts(2), r"one user, who cannot be on 2 slaves \(slave0, slave1\)"),
        ("face-blur", {}, hosts(2, functions=0), r"\[function\] of .* is empty"),
        ("tasks", {}, hosts(1), None),
        ("requests", {"url": "http://192.0.2.1/"}, hosts(2, functions=0), None),
        ("face-blur", {}, hosts(2), None),
    ],
)
def test_what_slaves_cannot_take(plan: str, given: dict[str, str], there: Hosts, words: str | None) -> None:
    options = RunOptions(plan=paths.JMX / f"{plan}.jmx", given=given, slaves="slaves")
    if words is None:
        _check_for_slaves(options, there)
    else:
        with pytest.raises(UsageError, match=words):
            _check_for_slaves(options, there)


def test_the_functions_address_is_not_guessed_for_a_plan_of_any_function(tmp_path: Any) -> None:
    from framestorm.preparation import prepare

    options = RunOptions(plan=paths.JMX / "requests.jmx", slaves="slaves")
    with pytest.raises(UsageError, match="say to which"):
        prepare(options, tmp_path / "run", "http://192.0.2.1:8080/function/face-blur")
