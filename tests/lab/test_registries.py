"""Which registries the lab's hosts are let through to, by this machine's own settings."""

from pathlib import Path

import pytest

from lab import network, registries
from lab.hosts import LabHost

MAVEN = """<settings><!-- <mirror><url>http://commented.example/</url></mirror> --><mirrors>
<mirror><id>ours</id><mirrorOf>*</mirrorOf><url>https://maven.example/all</url></mirror>
<mirror><id>blocker</id><mirrorOf>external:http:*</mirrorOf><url>http://0.0.0.0/</url><blocked>true</blocked></mirror>
</mirrors></settings>"""


@pytest.fixture
def maven_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "settings.xml"
    monkeypatch.setattr(registries, "_MAVEN_SETTINGS", (path,))
    monkeypatch.setattr(registries.shutil, "which", lambda name: None)
    return path


def test_settings_of_pip_and_maven_are_followed(maven_settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven_settings.write_text(MAVEN)
    monkeypatch.setenv("PIP_INDEX_URL", "https://pip.example/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://one.example/ https://two.example/")
    assert sorted(registries.urls()) == [
        "https://maven.example/all",
        "https://one.example/",
        "https://pip.example/simple",
        "https://two.example/",
    ]


def test_without_settings_pip_uses_its_own_index(maven_settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registries, "_pip_settings", lambda: {})
    assert [url.startswith("https://") for url in registries.urls()] == [True, True]


def test_a_host_gets_the_proxy_and_the_same_registries(
    maven_settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maven_settings.write_text(MAVEN)
    monkeypatch.setenv("PIP_INDEX_URL", "https://pip.example/simple")
    monkeypatch.setattr(LabHost, "folder", tmp_path)
    monkeypatch.setattr(registries.shutil, "chown", lambda *_: None)
    registries.configure(LabHost("master1"))
    pip = (tmp_path / "disk/etc/pip.conf").read_text().splitlines()
    assert {"proxy = http://198.18.0.254:3128", "index-url = https://pip.example/simple"} < set(pip)
    maven = (tmp_path / "disk/home/tester/.m2/settings.xml").read_text()
    assert maven.count("<host>198.18.0.254</host><port>3128</port>") == 2
    assert "https://maven.example/all" in maven and "blocked" not in maven


def test_indexes_on_lines_of_their_own_and_hosts_without_https_are_followed(
    maven_settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ("[global]", "extra-index-url =", "  http://one.example/", "  https://two.example:8443/")
    (tmp_path / "pip.conf").write_text("\n".join([*lines, "trusted-host = one.example", ""]))
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_INDEX_URL", "https://pip.example/simple")
    assert registries.urls() == ["https://pip.example/simple", "http://one.example/", "https://two.example:8443/"]
    monkeypatch.setattr(LabHost, "folder", tmp_path)
    monkeypatch.setattr(registries.shutil, "chown", lambda *_: None)
    registries.configure(LabHost("master1"))
    pip = (tmp_path / "disk/etc/pip.conf").read_text().splitlines()
    indexes = "extra-index-url = http://one.example/ https://two.example:8443/"
    assert {indexes, "trusted-host = one.example"} < set(pip)


@pytest.fixture
def proxy_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings of a proxy that is not started, on a machine whose apt has none."""
    monkeypatch.setattr(network, "ALLOWED", tmp_path / "allowed")
    monkeypatch.setattr(network, "SETTINGS", tmp_path / "proxy.conf")
    monkeypatch.setattr(network, "execute", lambda *_: "")
    monkeypatch.setattr(network, "_answers", lambda: True)
    for name in ("start", "end"):
        monkeypatch.setattr(network.groups, name, lambda *_: None)
    return tmp_path / "proxy.conf"


def ports(settings: Path) -> set[str]:
    return {line.split()[1] for line in settings.read_text().splitlines() if line.startswith("ConnectPort ")}


def test_the_proxy_connects_to_the_ports_of_the_registries(proxy_settings: Path) -> None:
    network.proxy_up(["http://deb.example:8080/"])
    assert ports(proxy_settings) == {"443"}
    network.proxy_up(["https://two.example:8443/"])
    network.proxy_up(["https://deb.example/"])
    assert ports(proxy_settings) == {"443", "8443"}


def test_the_proxy_goes_by_that_of_the_environment(proxy_settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://user:secret@above.example:3128/")
    network.proxy_up(["https://one.example/"])
    assert "Upstream http user:secret@above.example:3128" in proxy_settings.read_text().splitlines()
    assert proxy_settings.stat().st_mode & 0o077 == 0
