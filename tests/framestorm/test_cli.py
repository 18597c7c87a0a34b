"""What the command line answers before anything is set up."""

import signal
import subprocess
import sys

import pytest

from framestorm import paths
from framestorm.cli import VERBS, main
from framestorm.setup import packages, pieces


@pytest.fixture(autouse=True)
def _no_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("this must not set anything up")

    monkeypatch.setattr(pieces, "ensure", refuse)
    monkeypatch.setattr(packages, "install", refuse)


def _main(*words: str) -> int:
    try:
        return main(words)
    except SystemExit as exit_:
        return int(exit_.code or 0)


@pytest.mark.parametrize("verb", [*VERBS, "target openfaas", "target deploy", "lab up", "help", "help gui"])
def test_help_sets_nothing_up(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = verb.split()
    assert _main(*words, *(() if words[:1] == ["help"] else ("--help",))) == 0
    usage = capsys.readouterr().out.splitlines()[0]
    assert usage.startswith(f"usage: ./run.sh {verb.removeprefix('help').strip()}".rstrip())


@pytest.mark.parametrize("words", [["deploy", "-i", "/none"], ["gui", "--none"], ["target", "openfoss"], ["target"]])
def test_wrong_words_set_nothing_up(words: list[str]) -> None:
    assert _main(*words) == 2


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("targt", "'target'"),
        ("reprot", "'report'"),
        ("xyz", "./run.sh --help"),
        ("jmx/my.jmx", "./run.sh -t jmx/my.jmx"),
    ],
)
def test_an_unknown_verb_is_refused_with_a_hint(word: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _main(word) == 2
    message = capsys.readouterr().err
    assert repr(word) in message and hint in message


def test_a_disk_that_is_full_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(words: object) -> int:
        raise OSError(28, "No space left on device", "run.json")

    monkeypatch.setitem(VERBS, "lab", fail)
    assert _main("lab") == 1
    assert capsys.readouterr().err == "framestorm: run.json: No space left on device\n"


def test_a_ctrl_c_while_it_is_being_loaded_leaves_no_traceback() -> None:
    program = (
        "import os, runpy, signal, sys, types\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "cli = sys.modules['framestorm.cli'] = types.ModuleType('framestorm.cli')\n"
        "cli.__getattr__ = lambda name: os.kill(os.getpid(), signal.SIGINT)\n"
        "runpy.run_module('framestorm', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=paths.ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")
