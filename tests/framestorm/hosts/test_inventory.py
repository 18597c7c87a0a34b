import subprocess
from pathlib import Path

import pytest

from framestorm.hosts.inventory import Host, Hosts


def host(name: str, address: str, ssh_host: str = "203.0.113.9") -> Host:
    return Host(name, (), ssh_host, address)


SLAVE, FUNCTION = host("slave1", "10.0.0.11"), host("function1", "10.0.0.3", "203.0.113.3")


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://10.0.0.3:8080/function/face-blur", FUNCTION),
        ("http://203.0.113.3:8080/function/face-blur", FUNCTION),
        ("http://function1/function/face-blur", FUNCTION),
        ("http://10.0.0.11:8080/function/face-blur", None),
        ("http://10.0.0.99:8080/function/face-blur", None),
        ("", None),
    ],
)
def test_the_functions_host_is_known_by_the_url(url: str, found: Host | None) -> None:
    hosts = Hosts([SLAVE], None, [FUNCTION, SLAVE])
    assert hosts.function_at(url) == found
    assert hosts.function_url == "http://10.0.0.3:8080/function/face-blur"


def test_an_empty_group_has_no_url() -> None:
    assert Hosts([SLAVE], None, []).function_url is None


def test_an_address_is_no_option_of_ssh(tmp_path: Path) -> None:
    made = tmp_path / "made"
    command = Host("slave1", (), f"-oProxyCommand=touch {made}").ssh("localhost")
    assert subprocess.run(command, capture_output=True, timeout=20, check=False).returncode != 0
    assert not made.exists()
