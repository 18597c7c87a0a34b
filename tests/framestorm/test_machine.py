"""Requests to parts on this machine, which no proxy gets, and work in the background."""

import subprocess
from pathlib import Path
from threading import Event

import pytest

from framestorm import machine, paths
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


def test_a_redirect_to_what_is_no_address_is_told() -> None:
    answer = {"status": 302, "body": b"", "headers": (("Location", "http://[::1"),)}
    with serving(answer) as part, pytest.raises(FramestormError, match="Invalid IPv6 URL"):
        machine.request("GET", part.url)


def test_work_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a limit the end of the block waits for ever."""
    monkeypatch.setattr(machine, "END_WITHIN_S", 0.05)
    is_released, has_ended = Event(), Event()

    def hang(is_over: Event) -> None:
        is_released.wait()
        has_ended.set()

    with machine.in_background(hang):
        pass
    assert not has_ended.is_set()
    is_released.set()
    assert has_ended.wait(10)


def test_a_copy_in_a_repository_of_somebody_else_s_has_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "tools" / "framestorm"
    copy.mkdir(parents=True)
    git = ["git", "-C", tmp_path, "-c", "user.name=me", "-c", "user.email=me@localhost"]
    for words in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "theirs"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(paths, "ROOT", copy)
    assert machine.kit().commit is None
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    assert machine.kit().commit
