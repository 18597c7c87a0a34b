"""What JMeter runs, the kit runs; what a run would refuse, `--check` refuses."""

import re
from pathlib import Path

import pytest

from framestorm import cli
from tests.stand_in import StartServer

CASES = Path(__file__).parent


def case(name: str, folder: Path, port: int) -> str:
    """A plan of this folder in another one, against a server on that port."""
    text = re.sub(r"(?<=[>,])(21001|21040|23000)(?=[<)])", str(port), (CASES / name).read_text())
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_blanks_around_a_property_are_left_out(
    stand_in: StartServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = case("blank-users.jmx", tmp_path, stand_in().server_port)
    (tmp_path / "users.properties").write_text("users=3 \n")
    for words in (["-Jusers= 3\t"], ["-q", "users.properties"]):
        assert cli.main(["-t", plan, "--check", *words]) == 0
        assert "property: users=3" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("words", "variable"),
    [
        ("-H 127.0.0.1 -P {port}", ""),
        ("-Dhttp.proxyHost=127.0.0.1 -D http.proxyPort={port}", ""),
        ("-S proxy.properties", ""),
        ("", "JVM_ARGS"),
        ("", "JMETER_OPTS"),
        ("", "JAVA_TOOL_OPTIONS"),
    ],
)
def test_the_host_behind_a_proxy_is_not_looked_up(
    words: str, variable: str, stand_in: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    server = stand_in()
    plan = case("proxy-any-host.jmx", tmp_path, server.server_port)
    (tmp_path / "proxy.properties").write_text(f"http.proxyHost=127.0.0.1\nhttp.proxyPort: {server.server_port}\n")
    monkeypatch.setenv(variable or "NONE", f"-Xss1m -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={server.server_port}")
    given = words.format(port=server.server_port).split()
    assert cli.main(["-t", plan, "--check", *given]) == 0
    assert f"by the proxy 127.0.0.1:{server.server_port}" in capsys.readouterr().out
    # Nor is it called by the proxy if JMeter calls it without.
    assert cli.main(["-t", plan, "--check", *given, "-N", "*.invalid"]) == 1
    assert "shop.invalid:80" in capsys.readouterr().err
    assert server.received == []


def test_a_sampler_s_own_proxy(stand_in: StartServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = stand_in()
    plan = case("proxy-in-sampler.jmx", tmp_path, server.server_port)
    assert cli.main(["-t", plan, "--check", "-H", "other.invalid", "-P", "1"]) == 0
    assert f"by the proxy 127.0.0.1:{server.server_port}" in capsys.readouterr().out
    plan = case("proxy-any-host.jmx", tmp_path, server.server_port)
    assert cli.main(["-t", plan, "--check", "-Jhttp.proxyHost=127.0.0.1"]) == 1
    shown = capsys.readouterr().err
    assert "http.proxyHost: JMeter takes a proxy from -H and -P" in shown and "shop.invalid:80" in shown
    assert cli.main(["-t", plan, "--check", "-H", "127.0.0.1", "-P", "9"]) == 1
    assert "nothing answers at the proxy 127.0.0.1:9" in capsys.readouterr().err


def test_a_proxy_gets_the_plan_s_requests_alone(stand_in: StartServer, tmp_path: Path) -> None:
    server = stand_in({"body": b"ok"})
    plan = case("proxy-any-host.jmx", tmp_path, server.server_port)
    (tmp_path / "proxy.properties").write_text(f"http.proxyHost=127.0.0.1\nhttp.proxyPort={server.server_port}\n")
    assert cli.main(["-t", plan, "-S", "proxy.properties", "-o", str(tmp_path / "run")]) == 0
    assert [one.path for one in server.received] == ["http://shop.invalid/via"] * 3
