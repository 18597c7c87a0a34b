"""Settings of functions on a cluster that are refused before anything is made there."""

from typing import Any

import pytest

from framestorm.platform import registry
from framestorm.platform.base import SettingError


@pytest.mark.parametrize(
    ("kind", "values", "name"),
    [
        ("kubernetes", {"max_scale": 3}, "max_scale"),
        ("kubernetes", {"autoscaler": "hpa", "min_scale": 3, "max_scale": 2}, "min_scale"),
        ("kubernetes", {"route": "pod", "min_scale": 2}, "route"),
        ("kubernetes", {"min_scale": 0}, "min_scale"),
        ("kubernetes", {"target": 0, "autoscaler": "hpa"}, "target"),
        ("knative", {"route": "queue-proxy"}, "route"),
        ("knative", {"from_zero": True, "min_scale": 1}, "from_zero"),
        ("knative", {"autoscaler": "hpa"}, "min_scale"),
        ("knative", {"min_scale": 3, "max_scale": 2}, "min_scale"),
        ("knative", {"cpu_request": "0"}, "cpu_request"),
        ("knative", {"port": 70000}, "port"),
        ("knative", {"path": "invoke"}, "path"),
        ("kserve", {"protocol": "grpc"}, "path"),
        ("knative", {"image": None}, "image"),
        ("knative", {"function": "Echo"}, "function"),
        ("kserve", {"mode": "raw", "min_scale": 0}, "min_scale"),
        ("kserve", {"mode": "raw", "concurrency_limit": 1}, "concurrency_limit"),
        ("kserve", {"from_zero": True}, "from_zero"),
        ("kserve", {"min_scale": 3, "max_scale": 2}, "min_scale"),
        ("kserve", {"mode": "knative"}, "mode"),
    ],
)
def test_settings_that_cannot_be(kind: str, values: dict[str, Any], name: str) -> None:
    with pytest.raises(SettingError) as refusal:
        registry.read({"kind": kind, "function": "echo", "image": "example.com/echo:1", **values})
    assert refusal.value.name == name
