"""Connections to names with several addresses, some of which take none and do not say so."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from framestorm import connections
from framestorm.endpoint import check_reachable
from framestorm.errors import FramestormError

SILENT = [f"127.0.0.{number}" for number in range(2, 22)]
WELL = "127.0.0.99"


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A port that one address answers at, while the others drop what comes, as some firewalls do."""
    monkeypatch.setattr(connections, "CONNECT_WITHIN_S", 2.0)
    monkeypatch.setattr(connections, "LEAST_SHARE_S", 0.08)
    with ExitStack() as stack:
        port = stack.enter_context(socket.create_server((WELL, 0))).getsockname()[1]
        for address in SILENT:
            stack.enter_context(socket.create_server((address, port), backlog=0))
            # The kernel has room for one that nobody accepts; what comes then is not answered.
            stack.enter_context(socket.create_connection((address, port)))
        yield port


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each connection may take."""
    waits = []
    connect = socket.create_connection

    def noted(place: tuple[str, int], timeout_s: float) -> socket.socket:
        waits.append(timeout_s)
        return connect(place, timeout_s)

    monkeypatch.setattr(socket, "create_connection", noted)
    return waits


def named(monkeypatch: pytest.MonkeyPatch, addresses: list[str]) -> None:
    look_up = socket.getaddrinfo

    def found(host: str, *words: object, **named: object) -> list[object]:
        places = addresses if host == "shop.example" else [host]
        return [each for place in places for each in look_up(place, *words, **named)]  # type: ignore[call-overload]

    monkeypatch.setattr(socket, "getaddrinfo", found)


def test_all_addresses_of_a_name_share_the_time(port: int, waits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """A slave has to answer in time, whatever the name of the function leads to."""
    named(monkeypatch, SILENT)
    assert connections.why_unreached(f"shop.example:{port}") == "timed out"
    assert len(waits) == len(SILENT) and waits[0] == pytest.approx(2.0 / len(SILENT), rel=0.1)
    with pytest.raises(FramestormError, match=f"nothing answers at shop.example:{port} .timed out."):
        check_reachable(f"http://shop.example:{port}/", hosts=SILENT[:3])


def test_no_address_has_too_little_time_for_a_slow_network(
    port: int, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LEAST_SHARE_S", 0.2)
    named(monkeypatch, SILENT)
    assert connections.why_unreached(f"shop.example:{port}") == "timed out"
    assert waits == [0.2] * len(SILENT)


def test_a_name_is_reached_if_one_of_its_addresses_is(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, [*SILENT[:3], WELL])
    assert connections.why_unreached(f"shop.example:{port}") is None
    check_reachable(f"http://shop.example:{port}/")
    check_reachable(f"http://a..b:{port}/", hosts=["a..b", WELL])
    with connections.connection(("shop.example",), port) as connected:
        assert connected.getpeername() == (WELL, port)
        assert connected.gettimeout() == 2.0


def test_each_address_of_many_is_tried(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, [WELL, *SILENT])
    reached = connections.addresses(["shop.example", "a..b"], port)
    assert [*reached] == [WELL, *SILENT]
    assert reached == {WELL: None, **dict.fromkeys(SILENT, "timed out")}
