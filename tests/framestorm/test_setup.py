from pathlib import Path

import pytest

from framestorm import jmeter, packages, paths, preparation, setup
from framestorm.errors import FramestormError


@pytest.fixture
def piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> setup.Piece:
    monkeypatch.setattr(paths, "LOCAL", tmp_path)
    monkeypatch.setattr(setup, "STAMPS", tmp_path / "stamps")
    (tmp_path / "input").write_text("one")

    def make(piece: setup.Piece) -> None:
        with piece.output.open("a") as made:
            made.write(f"made from {piece.inputs[0].read_text()}\n")

    return setup.Piece("piece", "a piece", (tmp_path / "input",), tmp_path / "output", make)


def test_a_piece_is_made_once(piece: setup.Piece, capsys: pytest.CaptureFixture[str]) -> None:
    setup.ensure([piece])
    assert "1/1: a piece" in capsys.readouterr().err
    setup.ensure([piece])
    assert piece.output.read_text() == "made from one\n"
    assert capsys.readouterr().err == ""


def test_a_piece_is_made_again_when_its_input_changes_or_its_output_is_gone(piece: setup.Piece) -> None:
    setup.ensure([piece])
    piece.inputs[0].write_text("two")
    setup.ensure([piece])
    assert piece.output.read_text() == "made from one\nmade from two\n"
    piece.output.unlink()
    setup.ensure([piece])
    assert piece.output.read_text() == "made from two\n"


def test_an_interrupted_piece_is_made_again(piece: setup.Piece) -> None:
    whole_make = piece.make

    def interrupted(piece: setup.Piece) -> None:
        whole_make(piece)
        raise KeyboardInterrupt

    setup.ensure([piece])
    piece.inputs[0].write_text("two")
    with pytest.raises(KeyboardInterrupt):
        setup.ensure([setup.Piece(piece.name, piece.title, piece.inputs, piece.output, interrupted)])
    setup.ensure([piece])
    assert piece.output.read_text() == "made from one\nmade from two\nmade from two\n"


def test_missing_packages_are_found() -> None:
    assert packages.missing(["bash", "no-such-package"]) == ["no-such-package"]


def test_a_user_who_may_not_install_is_told_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(packages, "_sudo_asks_nothing", lambda: False)
    monkeypatch.setattr(packages.sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(FramestormError, match="as root: apt-get install no-such-package"):
        packages.install(["no-such-package"])


def test_a_java_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "JAVA_HOME", tmp_path)
    with pytest.raises(FramestormError, match="no Java at"):
        jmeter.run_command(tmp_path / "plan.jmx", {}, tmp_path, 1)


def test_a_full_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = preparation.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(preparation.shutil, "disk_usage", lambda path: usage._replace(free=1 << 20))
    with pytest.raises(FramestormError, match="1 MiB left"):
        preparation.prepare(preparation.RunOptions(), tmp_path / "run")
