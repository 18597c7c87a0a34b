"""A calibration measures its routes in turn: what a slower route adds is found, and what does not answer is said."""

from pathlib import Path

import pytest

from framestorm.platform.kubernetes import calibration, watch
from framestorm.platform.kubernetes.calibration import Found, Leg, measure
from framestorm.platform.kubernetes.observation import Workload
from framestorm.results.calibration import read_calibration
from tests.stand_in import StartServer

PARTS = {"function": Leg("direct"), "proxy": Leg("by-proxy", "direct"), "ingress": Leg("absent", "by-proxy")}


def found(url: str, host: str = "") -> Found:
    return Found(
        Workload("noop", "framestorm", "", watch.DEPLOYMENTS, "noop"), url, host, {"Knative-Serving-Revision": "r1"}
    )


def test_routes_are_measured_in_turn(stand_in: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "FOR_S", 0.0)
    monkeypatch.setattr(calibration, "TIMEOUT_S", 1.0)
    monkeypatch.setattr(calibration, "REQUESTS", 3)
    monkeypatch.setattr(calibration, "WARM_UP", 2)
    direct, proxy = stand_in({}), stand_in({"delay_s": 0.02})
    routes = {
        "direct": found(f"{direct.origin}/"),
        "by-proxy": found(f"{proxy.url}?y=1", "noop.example.test"),
        "absent": found("http://127.0.0.1:9/"),
    }
    measure(routes, PARTS, tmp_path)
    assert {request.headers["Host"] for request in proxy.received} == {"noop.example.test"}
    assert {request.headers["Knative-Serving-Revision"] for request in proxy.received} == {"r1"}
    assert {request.path for request in proxy.received} == {"/function/face-blur?y=1"}
    measured = read_calibration(tmp_path)
    assert measured is not None and measured.rounds == calibration.LEAST_ROUNDS
    function, by_proxy, absent = measured.parts
    assert (function.n, function.failed, by_proxy.n, by_proxy.failed) == (30, 0, 30, 0)
    assert by_proxy.adds is not None and by_proxy.adds.value > 15
    assert (absent.n, absent.failed, absent.adds) == (1, 1, None)
    assert absent.why.startswith("not reached from here: ") and "refused" in absent.why
