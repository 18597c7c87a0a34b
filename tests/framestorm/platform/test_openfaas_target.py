"""What of a point a gateway elsewhere can be asked for, and the stack file that the local OpenFaaS gets."""

import pytest
from ruamel.yaml import YAML

from framestorm.platform.openfaas.target import OpenFaasSettings, stack_functions


def target(**values: object) -> OpenFaasSettings:
    return OpenFaasSettings.read({"function": "noop", **values})


@pytest.mark.parametrize(
    ("values", "usual", "refused"),
    [
        ({}, {}, None),
        ({"route": "queue"}, {}, None),
        ({"route": "direct"}, {}, "route direct"),
        ({"replicas": 3}, {}, "replicas 3"),
        # The same in all points: taken as it is there.
        ({"replicas": 3, "cpu": "250m"}, {"replicas": 3, "cpu": "250m"}, None),
        ({"replicas": 5, "cpu": "250m"}, {"replicas": 3, "cpu": "250m"}, "replicas 5"),
        ({"replicas": 1}, {"replicas": "=users"}, None),
        ({"replicas": 2}, {"replicas": "=users"}, "replicas 2"),
        ({"autoscale": True}, {}, "autoscale True"),
        ({"concurrency_limit": 8}, {"concurrency_limit": 0}, "concurrency_limit 8"),
        ({"environment": {"a": "1"}}, {}, "environment {'a': '1'}"),
    ],
)
def test_of_a_gateway_elsewhere(values: dict[str, object], usual: dict[str, object], refused: str | None) -> None:
    assert target(**values).refused_by_gateway_elsewhere(usual) == refused


def test_a_stack_file_has_just_the_function_as_the_point_wants_it() -> None:
    wanted = target(
        function="noop-fork", replicas=2, autoscale=True, concurrency_limit=8, cpu="250m",
        environment={"read_timeout": "9s"},
    )  # fmt: skip
    content = YAML(typ="safe").load(wanted.stack_file())
    assert list(content["functions"]) == ["noop-fork"]
    entry = content["functions"]["noop-fork"]
    before = stack_functions()["noop-fork"]
    assert entry["image"] == before["image"]
    assert entry["environment"] == {**before["environment"], "read_timeout": "9s", "max_inflight": "8"}
    assert entry["limits"] == {"cpu": "250m"}
    assert entry["labels"] == {"com.openfaas.scale.min": "2", "com.openfaas.scale.max": "5"}


def test_without_autoscaling_the_replicas_stay_as_many() -> None:
    content = YAML(typ="safe").load(target(replicas=3).stack_file())
    assert content["functions"]["noop"]["labels"] == {"com.openfaas.scale.min": "3", "com.openfaas.scale.max": "3"}
    assert "limits" not in content["functions"]["noop"]
