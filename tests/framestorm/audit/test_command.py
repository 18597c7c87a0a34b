"""How an audit ends; its runs are made up."""

import argparse
import json
import os
import signal
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.audit import command
from framestorm.errors import FramestormError
from framestorm.run.options import RunOptions, What

REFUSED = FramestormError("stopped by SIGINT before the run began; nothing is left of it")


@pytest.mark.parametrize(
    ("second", "state"),
    [
        (True, "complete"),  # the signal came after its load
        (False, "stopped"),
        (REFUSED, "stopped"),
    ],
)
def test_a_signal_stops_an_audit_only_before_its_end(
    second: bool | FramestormError, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = [True, second]

    def run(*_: object) -> bool:
        outcome = outcomes.pop(0)
        if not outcomes:
            os.kill(os.getpid(), signal.SIGINT)
        if isinstance(outcome, FramestormError):
            raise outcome
        return outcome

    monkeypatch.setattr(command, "_run", run)
    monkeypatch.setattr(command, "show", lambda _: 0)
    monkeypatch.setattr(command.conductor, "check", lambda _: [])
    monkeypatch.setattr(command.setup, "ensure", lambda _: None)
    (tmp_path / "texts.jsonl").write_text("".join(f'{{"text": {n}}}\n' for n in range(30)))
    given = {"url": "http://127.0.0.1:9/", "rows": f"@{tmp_path / 'texts.jsonl'}", "body": "{text}"}
    own = argparse.Namespace(load_users=2, seed=1, folder=tmp_path / "audit")
    command.audit(RunOptions(What(paths.JMX / "requests.jmx", given)), (), own)
    assert json.loads((tmp_path / "audit" / "audit.json").read_text())["state"] == state
