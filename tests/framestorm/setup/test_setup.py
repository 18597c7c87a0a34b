import fcntl
import hashlib
import queue
import re
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.run import jmeter, output
from framestorm.setup import golang, log
from framestorm.setup import pieces as setup


@pytest.fixture
def piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> setup.Piece:
    monkeypatch.setattr(paths, "LOCAL", tmp_path)
    monkeypatch.setattr(setup, "STAMPS", tmp_path / "stamps")
    (tmp_path / "input").write_text("one")

    def make(piece: setup.Piece) -> None:
        with piece.output.open("a") as made:
            made.write(f"made from {piece.inputs[0].read_text()}\n")

    return setup.Piece("piece", "a piece", (tmp_path / "input",), tmp_path / "output", make)


def test_a_piece_is_made_once_and_again_when_its_input_changes_or_its_output_is_gone(
    piece: setup.Piece, capsys: pytest.CaptureFixture[str]
) -> None:
    setup.ensure([piece])
    assert "1/1: a piece" in capsys.readouterr().err
    setup.ensure([piece])
    assert (piece.output.read_text(), capsys.readouterr().err) == ("made from one\n", "")
    piece.inputs[0].write_text("two")
    setup.ensure([piece])
    assert piece.output.read_text() == "made from one\nmade from two\n"
    piece.output.unlink()
    setup.ensure([piece])
    assert piece.output.read_text() == "made from two\n"


def test_a_piece_of_another_account_is_named_before_anything_is_made(
    piece: setup.Piece, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup.ensure([piece])
    piece.inputs[0].write_text("two")
    monkeypatch.setattr(setup.os, "access", lambda path, mode, **_: path != piece.output)
    other = replace(piece, name="other", output=piece.output.with_name("other"))
    with pytest.raises(PermissionError) as refusal:
        setup.ensure([other, piece])
    assert refusal.value.filename == str(piece.output) and not other.output.exists()


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


def test_set_up_that_waits_for_another_says_so(piece: setup.Piece, monkeypatch: pytest.MonkeyPatch) -> None:
    messages: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(setup, "say", messages.put)
    with (paths.LOCAL / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = threading.Thread(target=setup.ensure, args=([piece],))
        waiting.start()
        assert "waiting for another set-up" in messages.get(timeout=60)
        assert not piece.output.exists()
    waiting.join()
    assert piece.output.exists()


def test_a_java_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "JAVA_HOME", tmp_path)
    with pytest.raises(FramestormError, match="no Java at"):
        jmeter.run_command(tmp_path / "plan.jmx", {}, tmp_path)


def test_a_full_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = output.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(output.shutil, "disk_usage", lambda path: usage._replace(free=1 << 20))
    with pytest.raises(FramestormError, match="1 MiB left"):
        output.check_output(tmp_path / "run", None, None)


def test_pieces_are_made_side_by_side_but_after_what_they_need(piece: setup.Piece) -> None:
    together = threading.Barrier(2, timeout=60)
    order = []

    def make(made: setup.Piece) -> None:
        if made.name != "last":
            together.wait()
        order.append(made.name)
        made.output.touch()

    def another(name: str, *needs: setup.Piece) -> setup.Piece:
        return setup.Piece(name, name, (), piece.output.with_name(name), make, needs)

    first, second = another("first"), another("second")
    setup.ensure([another("last", first, second), first, second])
    assert sorted(order[:2]) == ["first", "second"] and order[2] == "last"


def test_what_a_piece_needs_is_made_too_and_what_it_only_follows_is_not(piece: setup.Piece) -> None:
    def another(name: str, **order: tuple[setup.Piece, ...]) -> setup.Piece:
        return setup.Piece(name, name, (), piece.output.with_name(name), lambda made: made.output.touch(), **order)

    compiler, neighbour = another("compiler"), another("neighbour")
    tool = another("tool", needs=(compiler,))
    program = another("program", needs=(tool,), after=(neighbour,))
    setup.ensure([program])
    assert [each.output.exists() for each in (compiler, tool, program, neighbour)] == [True, True, True, False]


def test_a_piece_that_fails_ends_the_set_up_and_those_that_need_it_are_not_made(piece: setup.Piece) -> None:
    def fail(_: setup.Piece) -> None:
        raise FramestormError("no space left")

    broken = setup.Piece("broken", "broken", (), piece.output.with_name("broken"), fail)
    dependent = setup.Piece("piece", "a piece", piece.inputs, piece.output, piece.make, (broken,))
    with pytest.raises(FramestormError, match="no space left"):
        setup.ensure([dependent])
    assert not piece.output.exists()


def test_pieces_that_wait_for_each_other_are_named(piece: setup.Piece) -> None:
    """As where two have the same name: nothing would ever be made."""
    other = setup.Piece("other", "other", (), piece.output.with_name("other"), piece.make, (piece,))
    namesake = setup.Piece("piece", "a piece", (), piece.output.with_name("namesake"), piece.make, (other,))
    with pytest.raises(ValueError, match="wait for each other: other, piece"):
        setup.ensure([other, namesake])


def test_a_lock_holds_when_a_newer_release_of_a_package_with_extras_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wheel(name: str, version: str, *metadata: str) -> str:
        path, info = tmp_path / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *metadata, ""]
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"{info}/METADATA", "\n".join(lines))
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")
        return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"

    pinned = wheel("engine", "1.0", "Provides-Extra: fast") + wheel("car", "1.0", "Requires-Dist: engine[fast]>=1")
    wheel("engine", "1.1", "Provides-Extra: fast")
    lock = tmp_path / "lock.txt"
    lock.write_text(pinned)
    monkeypatch.setattr(log, "LOG", tmp_path / "log")
    setup.pip_install(
        Path(sys.executable), lock, "--no-index", "--find-links", tmp_path, "--target", tmp_path / "there"
    )
    assert {path.name for path in (tmp_path / "there").iterdir()} == {"car-1.0.dist-info", "engine-1.0.dist-info"}


def test_pip_has_the_same_options_in_run_sh() -> None:
    command = re.search(r"-m pip install (.*?) -r ", (paths.ROOT / "run.sh").read_text(), re.DOTALL)
    assert command is not None and {*setup.PIP_OPTIONS} <= {*command[1].split()}


@pytest.mark.parametrize(
    "name", ["ansible/pack.py", "client/sample_clip.py", "function/face-blur/graph/build_graph.py"]
)
def test_pip_has_the_same_options_where_other_pythons_call_it(name: str) -> None:
    text = (paths.ROOT / name).read_text()
    assert [word for word in ("-P", *setup.PIP_OPTIONS) if f'"{word}"' not in text] == []


def test_the_log_of_a_set_up_says_when_each_command_began_and_how_long_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "LOG", tmp_path / "log")
    log.call(["echo", "made"])
    with pytest.raises(FramestormError, match=r"failed in `sh …`, whole output in .*log:\nwhy$"):
        log.call(["sh", "-c", "echo why; exit 3"])
    lines = log.LOG.read_text().splitlines()
    when = r"  # \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}, \d+\.\d s"
    assert re.fullmatch(rf"\$ echo made{when}", lines[0]) and re.fullmatch(rf"\$ sh -c .*{when}", lines[2])
    assert (lines[1], lines[3]) == ("made", "why")


def test_a_go_is_as_new_as_it_is_without_fetching_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = tmp_path / "go"
    go.write_text('#!/bin/sh\n[ "$GOTOOLCHAIN" = local ] && echo go1.21.3 || echo go1.99.0\n')
    go.chmod(0o755)
    monkeypatch.delenv("GOTOOLCHAIN", raising=False)
    assert golang._version(str(go)) == (1, 21)


def test_settings_of_go_for_other_modules_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, other = tmp_path / "module", tmp_path / "other"
    for folder in (module, other):
        folder.mkdir()
        (folder / "go.mod").write_text(f"module {folder.name}\n\ngo 1.25\n")
    (module / "main.go").write_text("package main\n\nfunc main() {}\n")
    (tmp_path / "go.work").write_text("go 1.25\n\nuse ./other\n")
    monkeypatch.setenv("GO111MODULE", "off")
    done = subprocess.run(golang.command(module, "list", "."), capture_output=True, text=True, check=False)
    assert done.stdout == "module\n", done.stderr


def make_java(home: Path, *files: Path, modules: str = "java.base jdk.compiler") -> None:
    for file in (Path("bin", "java"), *files):
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).touch()
    (home / "release").write_text(f'JAVA_VERSION="17.0.9"\nMODULES="{modules}"\n')


def test_a_java_without_a_compiler_is_passed_over(
    piece: setup.Piece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_java(tmp_path / "runtime", modules="java.base java.desktop")
    make_java(tmp_path / "jvm" / "java-17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "runtime"))
    monkeypatch.setattr(setup, "JVMS", tmp_path / "jvm")
    monkeypatch.setattr(setup.packages, "install", lambda names: None)
    monkeypatch.setattr(paths, "JAVA_HOME", tmp_path / "java")
    setup.ensure([replace(setup.JAVA, output=tmp_path / "java")])
    assert (tmp_path / "java").resolve().name == "java-17"


def test_a_run_needs_no_java_with_windows_and_the_gui_finds_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_java(tmp_path / "headless")
    make_java(tmp_path / "full", setup.JAVA_WINDOWS)
    link = tmp_path / "java"
    monkeypatch.setattr(paths, "LOCAL", tmp_path)
    monkeypatch.setattr(paths, "JAVA_HOME", link)
    monkeypatch.setattr(setup, "STAMPS", tmp_path / "stamps")
    # The packages, in place of apt: what is asked for is there afterwards.
    monkeypatch.setattr(setup.packages, "install", lambda names: monkeypatch.setenv("JAVA_HOME", str(homes[names[0]])))
    homes = {"openjdk-17-jre-headless": tmp_path / "headless", "openjdk-17-jre": tmp_path / "full"}
    monkeypatch.setattr(setup, "JVMS", tmp_path / "none")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    for_windows = replace(setup.FOR_WINDOWS, output=link / setup.JAVA_WINDOWS)
    java = replace(setup.JAVA, output=link)
    setup.ensure([java])
    assert link.resolve().name == "headless"
    setup.ensure([java, for_windows])
    assert link.resolve().name == "full"
    capsys.readouterr()
    setup.ensure([java, for_windows])
    assert not capsys.readouterr().err
