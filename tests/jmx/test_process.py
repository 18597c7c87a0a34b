"""What becomes of the lines of any program that is a virtual user."""

import json
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from framestorm.errors import UsageError
from framestorm.paths import JMX
from framestorm.results.reading import read_results
from framestorm.results.table import causes
from framestorm.run.options import What
from framestorm.run.preparation import prepare
from tests.jmx.conftest import RunPlan

# Prints one of the files of a folder, and ends with the status that its name begins with.
CLIENT = """
import os, pathlib, sys
for script in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    try:
        text = script.read_bytes()
        script.unlink()
    except FileNotFoundError:
        continue
    os.write(1, text)
    sys.exit(int(script.name.partition("-")[0]))
sys.exit(9)
"""


def line(**fields: Any) -> str:
    now_ms = time.time() * 1000
    return json.dumps({"label": "a b", "start_ms": now_ms, "rtt_ms": 5, "ok": True} | fields) + "\n"


def test_every_line_is_counted_or_said(run_plan: RunPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = {
        "0-good": line(tokens=7, who="é", status=200) + "\n" + line(type="sample"),
        "0-own-cause": line(ok=False, cause="no\nidea") + line(ok=False),
        "3-status": line(),
        "124-as-of-timeout": "",
        "0-nothing": "",
        "0-chatter": "loading…\n" + line(),
        "0-seconds": line(start_ms=time.time()),
        "0-nanoseconds": line(rtt_ms=5_000_000_000),
        "0-no-rtt": line(rtt_ms=None) + line(),
        "0-name": line(TTFT=5) + line(host="x"),
        "0-numbered": line(index=7) + line(index=7, user="ann"),
        "0-whole": line(type="sample", label="sample", user="ann", index=0),
        "0-labels": line(label="user") + line(label="all"),
        "0-nested": line(usage={"tokens": 5}),
        "0-bytes": "\x00\x1b[2J\n",
        "0-deep": line() + "[" * 100_000 + "\n" + line(deep=0).replace("0}", "[" * 100_000 + "]" * 100_000 + "}"),
        "0-half": "no JSON\n" + json.dumps({"type": "user", "user": 5, "x": "\ud800", "causes": {"timeout": 1}}) + "\n",
        "0-words": line() + json.dumps({"type": "user", "cause": "no\x1b[2J\nidea" + "x" * 1000}) + "\n",
        "1-cut": line()[:-9],
    }
    folder = tmp_path / "scripts"
    folder.mkdir()
    for name, text in scripts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (tmp_path / "client.py").write_text(CLIENT)
    monkeypatch.setenv("SCRIPTS", str(folder))
    run = run_plan(
        "process", command=sys.executable, arguments=f"'{tmp_path}/client.py' \"$SCRIPTS\"", users=4,
        ramp_s=0, hold_s=8,
    )  # fmt: skip
    results = read_results(tmp_path)
    of_users, _ = causes(results.users.lazy())
    of_users.pop("exit-9", None)  # those that found no file
    words = f"no?[2J idea{'x' * 189}"
    assert of_users == {
        "not-json-lines": 11, "failed-sample": 1, "exit-3": 1, "exit-124": 1, "no-samples": 1, "exit-1": 1, words: 1
    }  # fmt: skip
    n_of = {name: of.n for name, of in results.labels.items()}
    assert n_of == {"a b": 2 + 2 + 1 + 1 + 1 + 2 + 1 + 2 + 1 + 1, "user (label)": 1, "all (label)": 1, "sample": 1}
    assert causes(results.samples) == ({"no idea": 1, "unknown": 1}, {})
    assert [row["tokens"] for row in run.rows("samples.csv") if row["tokens"]] == ["7"]
    assert results.clients.bad_lines["the clients' output"] == 14
    assert results.clients.bad_line.startswith("line ")
    assert "has no rtt_ms with a number" in run.text("jmeter.log")
    assert not {"\x00", "\x1b"} & set(run.text("jmeter.log")), "what a terminal would obey"
    assert results.clients.twice == {}


# The first user does not end, and the others leave behind what does not end.
ENDLESS = """
echo 'LINE'
if mkdir "$0.first"; then trap '' TERM; while :; do sleep 1; done; fi
sleep 600 &
setsid sleep 600 &
cat
exit 3
"""


def test_a_program_that_does_not_end_is_killed_and_what_one_leaves_holds_no_user(
    run_plan: RunPlan, tmp_path: Path
) -> None:
    (tmp_path / "client.sh").write_text(ENDLESS.replace("LINE", line().strip()))
    of_user = {"arguments": f"{tmp_path}/client.sh", "user_timeout_s": 5}
    run = run_plan("process", command="sh", **of_user, users=2, ramp_s=0, hold_s=1)
    ends = run.count("label", "responseMessage")
    assert set(ends) == {("user", "user-timeout"), ("user", "exit-3"), ("a b", "OK")}
    assert ends["user", "user-timeout"] == 1 and ends["a b", "OK"] == ends["user", "exit-3"] + 1


def test_a_user_without_a_timeout_has_not_exceeded_it(run_plan: RunPlan, tmp_path: Path) -> None:
    (tmp_path / "client.sh").write_text("sleep 0.2; exit 137")
    of_user = {"arguments": f"{tmp_path}/client.sh", "user_timeout_s": 0}
    run = run_plan("process", command="sh", **of_user, users=1, ramp_s=0, hold_s=1)
    assert set(run.count("label", "responseMessage")) == {("user", "exit-137")}


def test_output_without_end_is_cut_and_the_run_says_so(run_plan: RunPlan, tmp_path: Path) -> None:
    printed = line()
    (tmp_path / "client.sh").write_text(f"while :; do echo '{printed.strip()}'; done")
    kept = {"framestorm.output_bytes": 20 * len(printed) + 9}
    of_user = {"arguments": f"{tmp_path}/client.sh", "user_timeout_s": 2}
    run = run_plan("process", command="sh", **of_user, **kept, users=1, ramp_s=0, hold_s=1)
    assert run.count("label", "responseMessage") == {("user", "not-json-lines"): 1, ("a b", "OK"): 20}
    assert read_results(tmp_path).clients.bad_lines["the clients' output"] == 2
    assert "output beyond" in run.text("jmeter.log")


@pytest.mark.parametrize(
    ("first", "why"),
    [("#!/bin/sh -e\r", "Windows"), ("#! /no/such/sh -e", "'/no/such/sh'"), ("#!/usr/bin/env sh", None), ("", None)],
)
def test_a_script_without_its_interpreter_is_refused(first: str, why: str | None, tmp_path: Path) -> None:
    script = tmp_path / "client.sh"
    script.write_bytes(f"{first}\nexit 0\n".encode())
    script.chmod(0o755)
    with pytest.raises(UsageError, match=why) if why else nullcontext():
        prepare(What(JMX / "process.jmx", {"command": str(script)}), tmp_path / "run")


def test_a_program_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for command in ("no-such-program", "./no-such-program", str(Path(__file__))):
        what = What(JMX / "process.jmx", {"command": command})
        with pytest.raises(UsageError, match="no executable program"):
            prepare(what, tmp_path / "run")
    what = What(JMX / "process.jmx", {"command": "sh", "arguments": "-c ${env:HOME}"})
    with pytest.raises(UsageError, match="read HOME from its environment"):
        prepare(what, tmp_path / "run")
