from collections.abc import Callable

import pytest

from framestorm.slaves import fleet
from framestorm.slaves.inventory import own_addresses


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str | None]:
    """Whether a URL leads to this machine's OpenFaaS, where its gateway's port does."""
    monkeypatch.setattr(fleet.routes, "leads_here", lambda url: url.startswith("http://127.0.0.1:8080/"))
    return fleet._local_openfaas


def test_this_machines_openfaas_is_known_by_all_of_its_addresses(asked: Callable[[str], str | None]) -> None:
    seen = "http://127.0.0.1:8080/function/face-blur"
    for address in own_addresses():
        if ":" not in address:
            assert asked(f"http://{address}:8080/function/face-blur") == seen


@pytest.mark.parametrize("url", ["http://203.0.113.1:8080/function/noop", "http://127.0.0.1:9090/function/noop", ""])
def test_other_functions_have_metrics_elsewhere(asked: Callable[[str], str | None], url: str) -> None:
    assert asked(url) is None
