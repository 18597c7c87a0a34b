"""Names with several addresses: which of them a client goes to."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.model import plan as plans
from framestorm.run import http2, names
from framestorm.run.needs import Address, look
from framestorm.run.proxy import Proxies
from tests.run import foreign

V4, V6 = "127.0.0.1", "::1"


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a server on ::1 alone; the name two.example leads there and to 127.0.0.1."""
    system = socket.getaddrinfo

    def resolved(host: str, *words: object, **more: object) -> list[object]:
        every = [V6, V4] if host == "two.example" else [host]
        return [place for each in every for place in system(each, *words, **more)]  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    with socket.create_server((V6, 0), family=socket.AF_INET6) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("plan", "system", "is_java_client", "order", "says"),
    [
        ("requests", {}, False, [V4, V6], f"all requests go to {V6}, and each new connection tries {V4} first"),
        ("requests", {"java.net.preferIPv6Addresses": "true"}, False, [V6, V4], f"all requests go to {V6}\n"),
        ("requests", {"java.net.preferIPv6Addresses": "system"}, False, [V6, V4], f"all requests go to {V6}\n"),
        ("requests", {}, True, [V4, V6], f"tries only {V4}\n"),
        ("face-blur", {}, False, [V6, V4], f"all requests go to {V6}\n"),
    ],
)
def test_addresses_are_told_in_the_order_in_which_a_client_tries_them(
    plan: str,
    system: dict[str, str],
    is_java_client: bool,
    order: list[str],
    says: str,
    port: int,
) -> None:
    called = [Address(f"http://two.example:{port}", is_java_client=is_java_client)]
    (name,) = names.several(plans.read(paths.JMX / f"{plan}.jmx"), called, Proxies(system))
    assert list(name.addresses) == order
    told = name.before_load + "\n"
    assert f"1 of 2 addresses of two.example:{port} takes no connection: {V4} (" in told
    assert says in told


def test_one_address_or_none_that_counts_is_no_news(port: int) -> None:
    called = [
        Address(f"http://{V4}:{port}"),
        Address("http://no.invalid"),
        Address("http://two.example:words"),
        Address(f"http://two.example:{port}", is_of_resolver=True),
        Address(f"http://two.example:{port}", proxy=f"{V4}:3128"),
    ]
    assert names.several(plans.read(paths.JMX / "requests.jmx"), called, Proxies({})) == ()
    only_v4 = Proxies({"java.net.preferIPv4Stack": "true"})
    assert names.several(plans.read(paths.JMX / "requests.jmx"), [Address("http://two.example")], only_v4) == ()


@pytest.mark.parametrize(("port", "url"), [("0", "http://h"), ("80x", "http://h"), (" 8080 ", "http://h:8080")])
def test_a_port_is_as_jmeter_reads_it(port: str, url: str, tmp_path: Path) -> None:
    field = '<stringProp name="HTTPSampler.{}">{}</stringProp>'
    fields = field.format("domain", "h") + field.format("port", port) + field.format("path", "/f")
    request = foreign.REQUEST.format(url="").replace(field.format("path", ""), fields)
    needs = look(plans.read(foreign.write_plan(tmp_path / "theirs.jmx", request)), {})
    assert [address.url for address in needs.addresses] == [url]


def test_what_is_no_address_ends_no_run_by_a_proxy() -> None:
    called = [Address("https://h:99999"), Address("https://[h")]
    proxies = Proxies({"http.proxyHost": "proxy", "http.proxyPort": "3128"})
    assert names.several(plans.read(paths.JMX / "requests.jmx"), called, proxies) == ()
    http2.note_agreed(called, proxies)


@pytest.mark.parametrize("host", ["www..example.com", f"{'x' * 64}.example.com"])
def test_a_name_that_cannot_be_looked_up_speaks_no_http2(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    http2.note_agreed([Address(f"https://{host}")], Proxies({}))
    assert capsys.readouterr().err == ""
