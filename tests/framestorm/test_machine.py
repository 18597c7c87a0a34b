"""Requests to parts on this machine, which no proxy gets."""

import pytest

from framestorm import machine
from framestorm.errors import FramestormError
from tests.stand_in import serving


def test_a_proxy_gets_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    with serving({"body": b"{}"}) as part, serving() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert machine.request("GET", part.url, auth=("admin", "secret")).json() == {}
        assert machine.answers(part.url)
    assert proxy.received == []
    assert part.received[0].headers["Authorization"].startswith("Basic ")


def test_what_does_not_answer_is_named() -> None:
    assert not machine.answers("http://127.0.0.1:1/healthz")
    with pytest.raises(FramestormError, match=r"GET http://127\.0\.0\.1:1/"):
        machine.request("GET", "http://127.0.0.1:1/")
