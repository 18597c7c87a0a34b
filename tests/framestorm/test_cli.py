"""What the command line answers before anything is set up."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from framestorm import conductor, paths
from framestorm.cli import main
from framestorm.errors import FramestormError
from framestorm.run import load
from framestorm.run.options import RunOptions
from framestorm.run.plan_options import LEVELS, PROXY_PASSWORD
from framestorm.setup import packages, pieces
from framestorm.verbs import VERBS


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


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
def test_what_nobody_can_read_any_more_stops_nothing(kind: str) -> None:
    """As after `… 2>&1 | head`, and in a window that was closed."""
    script = "import sys; from framestorm import plain; plain.note('a'); plain.tell('b'); plain.say('c'); sys.exit(4)"
    reader, writer = os.pipe() if kind == "pipe" else os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", f"import os; os.read(0, 1); {script}"],
        stdin=subprocess.PIPE, stdout=writer, stderr=writer, cwd=paths.ROOT,
    ) as process:  # fmt: skip
        os.close(writer)
        os.close(reader)
        process.communicate(b"x", timeout=60)
    assert process.returncode == 4


def test_a_verb_that_is_broken_off_by_a_closed_output_has_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> int:
        raise BrokenPipeError

    monkeypatch.setattr("framestorm.verbs.new.main", broken)
    with Path(os.devnull).open("w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main(["new"]) == FramestormError.exit_status


@pytest.mark.parametrize("verb", ["find", "audit", "new", "report", "test"])
def test_the_list_of_verbs_says_what_a_verb_says_of_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _main(verb, "--help") == 0
    assert VERBS[verb].does in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("words", [["deploy", "-i", "/none"], ["gui", "--none"], ["target", "openfoss"], ["target"]])
def test_wrong_words_set_nothing_up(words: list[str]) -> None:
    assert _main(*words) == 2


@pytest.mark.parametrize(("verb", "needed"), [("test", pieces.TEST_VENV), ("deploy", pieces.ANSIBLE_VENV)])
def test_options_of_other_programs_are_checked_before_the_rest_is_set_up(
    verb: str, needed: pieces.Piece, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[pieces.Piece] = []
    monkeypatch.setattr(pieces, "ensure", made.extend)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert _main(verb, "--hlep") == 2
    assert f"unrecognized arguments: --hlep; ./run.sh {verb} --help" in capsys.readouterr().err
    assert made == [needed]


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


def test_criteria_may_stand_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = tmp_path / "criteria.txt"
    listed.write_text("# nightly\np95 > 2 s\n\n  errors > 1 apples\n", encoding="utf-8")
    plan = ("--check", "-t", "jmx/requests.jmx", "-Jurl=http://127.0.0.1:9/")
    assert _main(*plan, "--fail-if", f"@{listed}") == 2
    assert "errors > 1 apples\n" in capsys.readouterr().err, "the one that is wrong, as it stands there"
    listed.write_text("# none\n", encoding="utf-8")
    assert _main(*plan, "--fail-if", f"@{listed}") == 2
    assert "there is no criterion in the file" in capsys.readouterr().err
    assert _main("report", str(tmp_path), "--fail-if", f"@{tmp_path}/absent") == 2
    assert "absent cannot be read: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("--fail-iff x", "--fail-iff is not an option; did you mean --fail-if? ./run.sh --help lists them"),
        ("-n --qqqqq=1", "--qqqqq is not an option; ./run.sh --help lists them"),
        ("-Jusers=2 5", "5 is not an option; ./run.sh --help lists them"),
        ("-t", "argument -t/--testfile: expected one argument; ./run.sh --help lists the options"),
        ("gui --prot=3", "--prot is not an option; did you mean --port? ./run.sh gui --help lists them"),
        ("study --quik", "--quik is not an option; did you mean --quick? ./run.sh study --help lists them"),
        ("-L org.x=debug", f"-L org.x=debug: 'debug' is not a level; there are {', '.join(LEVELS)}"),
        (
            "find --probe-s 601",
            "argument --probe-s: '601' is not a number from 1 to 600; ./run.sh find --help lists the options",
        ),
        (
            "lab up --slaves 51",
            "argument --slaves: '51' is not a whole number from 0 to 50; ./run.sh lab up --help lists the options",
        ),
        ("report", "the following arguments are required: RUN; ./run.sh report --help lists the options"),
        ("lab up --slvaes 3", "--slvaes is not an option; did you mean --slaves? ./run.sh lab up --help lists them"),
        (
            "target openfaas --backed docker",
            "--backed is not an option; did you mean --backend? ./run.sh target openfaas --help lists them",
        ),
    ],
)
def test_a_wrong_option_is_one_line(words: str, error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _main(*words.split()) == 2
    assert capsys.readouterr().err == f"framestorm: {error}\n"


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "1e400", "1_0", "9" * 5000, "\u0663"])
@pytest.mark.parametrize(
    "words",
    [
        "--port", "-P", "--live", "find --at-least", "find --probe-s", "find --drain-s", "audit --users",
        "audit --seed", "study --repetitions", "study --seed", "study --port", "slave --port", "target kind --nodes",
        "target scale f", "target balance swarm-mesh f --workers", "lab up --slaves", "lab swarm --hosts",
    ],
)  # fmt: skip
def test_an_option_that_is_a_number_takes_no_other(words: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _main(*words.split(), text) == 2
    assert f"{text[:40]!r} is not a " in capsys.readouterr().err


def test_no_option_is_read_by_python_s_own_int_or_float() -> None:
    files = (paths.ROOT / "framestorm").rglob("*.py")
    assert [str(file) for file in files if re.search(r"\btype=(?:int|float)\b", file.read_text())] == []


@pytest.mark.parametrize(
    ("words", "again"),
    [
        ("-u x -a x", "-u x -a {}"),
        ("-ax --password=x", "-a{} --password={}"),
        ("gui --password x", "gui --password {}"),
        ("--pass=x", None),
        ("-nax", None),
    ],
)
def test_a_password_leaves_the_list_of_processes(
    words: str, again: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(_: str, command: list[str], environment: dict[str, str]) -> None:
        assert environment[PROXY_PASSWORD] == "x"
        raise SystemExit(" ".join(command[command.index("framestorm") + 1 :]))

    monkeypatch.setattr(os, "execve", start)
    if again is None:
        assert _main(*words.split()) == 2, "not without an end"
        assert "=x" not in capsys.readouterr().err
    else:
        with pytest.raises(SystemExit) as started:
            main(words.split())
        assert started.value.code == again.format(*[f"${{env:{PROXY_PASSWORD}}}"] * 2)


def test_after_a_new_plan_comes_the_command_that_runs_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "my scan.jmx"
    assert _main("new", str(plan), "--curl", "curl -d x http://127.0.0.1:9/") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert shlex.split(last.removeprefix("run it: ")) == ["./run.sh", "-t", str(plan)]


def test_a_disk_that_is_full_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(words: object) -> int:
        raise OSError(28, "No space left on device", "run.json")

    monkeypatch.setitem(VERBS, "lab", fail)
    assert _main("lab") == 1
    said = capsys.readouterr().err
    assert said.startswith("framestorm: run.json: No space left on device; make room") and said.count("\n") == 1


def test_what_a_start_by_sudo_left_is_said_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_words: object) -> int:
        raise PermissionError(13, "Permission denied", str(paths.LOCAL / "lock"))

    monkeypatch.setitem(VERBS, "lab", fail)
    assert _main("lab") == 1
    said = capsys.readouterr().err
    assert f"{paths.LOCAL}/lock: Permission denied; " in said and f"`sudo rm -r {paths.LOCAL}`" in said


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


def test_a_ctrl_c_is_not_lost_in_a_module_that_is_loaded_later(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import os\ntry:\n    os.kill(os.getpid(), 2)\nexcept BaseException: ...\n")
    program = (
        "import runpy, signal, sys, types\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "cli = sys.modules['framestorm.cli'] = types.ModuleType('framestorm.cli')\n"
        f"sys.path.insert(1, {str(tmp_path)!r})\n"
        "cli.main = lambda words: __import__('slow') and 0\n"
        "runpy.run_module('framestorm', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=paths.ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"\nframestorm: stopped\n")


def test_a_terminal_that_lacks_a_character_gets_its_number() -> None:
    program = (
        "import runpy, sys, types\n"
        "cli = sys.modules['framestorm.cli'] = types.ModuleType('framestorm.cli')\n"
        "cli.main = lambda words: print('p99 3 s\u2020')\n"
        "runpy.run_module('framestorm', run_name='__main__')"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=paths.ROOT, env=environment, capture_output=True, check=True
    )
    assert done.stdout == b"p99 3 s\\u2020\n"


def test_the_gui_alone_needs_java_s_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[pieces.Piece] = []
    monkeypatch.setattr(pieces, "ensure", asked.extend)
    monkeypatch.setattr(load, "open_gui", lambda _: None)
    assert _main("gui", "-t", "jmx/requests.jmx", "-Jurl=http://127.0.0.1:9/") == 0
    assert {*pieces.FOR_A_RUN, pieces.FOR_WINDOWS} <= {*asked}
    assert pieces.FOR_WINDOWS not in pieces.FOR_A_RUN


@pytest.mark.parametrize("record", ["find.json", "audit.json", "study.json"])
def test_what_judges_one_run_is_refused_of_several(
    record: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / record).write_text("{}")
    summary = tmp_path / "summary.md"
    assert main(["report", str(tmp_path), "--steady", "--summary", str(summary)]) == 2
    assert "--steady and --summary are for a run; give the folder of one of the" in capsys.readouterr().err
    assert not summary.exists()


@pytest.mark.parametrize(
    ("words", "slaves"),
    [
        ([], "slaves"),
        (["-q", "own.properties"], "slaves"),
        (["-p", "own.properties"], "slaves"),
        (["-p", "own.properties", "-q", "two.properties"], "slave1,slave2"),
        (["-p", "two.properties"], "slave1,slave2"),
        (["-p", "two.properties", "-Jremote_hosts=slave3"], "slave3"),
        (["-p", "own.properties", "-Jremote_hosts=127.0.0.1"], "127.0.0.1"),
        (["-Jremote_hosts="], "slaves"),
    ],
)
def test_jmeters_default_of_remote_hosts_names_no_slave(
    words: list[str], slaves: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.properties").write_text((paths.JMETER_HOME / "bin" / "jmeter.properties").read_text())
    (tmp_path / "two.properties").write_text("remote_hosts=slave1,slave2\n")
    runs: list[RunOptions] = []
    monkeypatch.setattr(pieces, "ensure", lambda _: None)
    monkeypatch.setattr(conductor, "check", lambda run: runs.append(run) or [])
    monkeypatch.chdir(tmp_path)
    assert main(["-t", "jmx/requests.jmx", "-r", "--check", *words]) == 0
    assert [run.where.slaves for run in runs] == [slaves]
