"""When the cluster of this checkout is kept, and when it is made again; the programs beside the kit are stand-ins."""

from pathlib import Path

import pytest

from framestorm.errors import FramestormError
from framestorm.platform.kubernetes import engine, kind


class MadeAgainError(Exception):
    """The kit began to make a cluster."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cluster whose engine and node run, and whose API server is too busy to answer."""
    for program, script in {
        "docker": f'[ "$1" != ps ] || echo {kind.CONTROL_PLANE}',
        "kubectl": "echo 'net/http: TLS handshake timeout' >&2; exit 1",
    }.items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for name in ("KUBECONFIG", "UNFINISHED"):
        monkeypatch.setattr(kind, name, tmp_path / name)
    (tmp_path / "KUBECONFIG").touch()
    (tmp_path / "socket").touch()
    monkeypatch.setattr(kind, "HOME", tmp_path)
    monkeypatch.setattr(engine, "SOCKET", tmp_path / "socket")
    monkeypatch.setattr(kind, "READY_WITHIN_S", 0.5)
    for module, name in ((kind.paths, "check_plain"), (kind.packages, "install"), (kind.setup, "ensure")):
        monkeypatch.setattr(module, name, lambda *_: None)

    def begin(nodes: int) -> None:
        raise MadeAgainError

    monkeypatch.setattr(kind, "_make", begin)
    monkeypatch.setattr(kind, "_end", (tmp_path / "ended").touch)
    return tmp_path


def test_a_cluster_that_is_too_busy_to_answer_is_kept(home: Path) -> None:
    with pytest.raises(FramestormError, match=r"is there, and has not answered .*TLS handshake timeout; try again"):
        kind.up()
    assert not (home / "ended").exists()


def test_a_cluster_that_was_not_finished_is_made_again(home: Path) -> None:
    kind.UNFINISHED.touch()
    with pytest.raises(MadeAgainError):
        kind.up()
    assert (home / "ended").exists()


def test_a_cluster_whose_node_has_ended_is_made_again(home: Path) -> None:
    (home / "docker").write_text("#!/bin/sh\n")
    with pytest.raises(MadeAgainError):
        kind.up()
