"""Waiting for a new cluster, whose API server may be too busy to answer."""

from collections.abc import Callable

import pytest

from framestorm.platform.base import Check
from framestorm.platform.kubernetes import kind, needs
from framestorm.platform.kubernetes.cluster import Cluster, ClusterError
from framestorm.platform.kubernetes.layout import CONTEXT, KUBECONFIG


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """Return a function that waits for a cluster whose first answers fail, and returns the platforms asked about."""
    monkeypatch.setattr(kind, "READY_WITHIN_S", 0.2)
    monkeypatch.setattr(kind, "POLL_S", 0.01)

    def wait(unanswered: int) -> list[str]:
        asked: list[str] = []

        def checks(_cluster: Cluster, platform: str) -> list[Check]:
            asked.append(platform)
            if len(asked) <= unanswered:
                raise ClusterError("Unable to connect to the server")
            return []

        monkeypatch.setattr(needs, "checks", checks)
        kind._wait_for(Cluster(CONTEXT, KUBECONFIG), "knative")
        return asked

    return wait


def test_a_busy_api_server_is_asked_again(ask: Callable[[int], list[str]]) -> None:
    assert ask(2) == ["knative"] * 3


def test_one_that_never_answers_is_named_by_its_own_words(ask: Callable[[int], list[str]]) -> None:
    with pytest.raises(ClusterError, match="Unable to connect to the server"):
        ask(10**9)
