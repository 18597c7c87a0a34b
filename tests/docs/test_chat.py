"""The commands of docs/chat.md, run as the page shows them, against a server that streams."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.client.test_chat import DONE, delta, events, sse, usage
from tests.docs.test_pages import shown
from tests.runs import RunSh
from tests.stand_in import StandIn, serving

SHORT = ("-Jusers=2", "-Jramp_s=0", "-Jhold_s=1")
LOADS = (SHORT, SHORT, ("-Jload=2 users for 1 s",), SHORT)


def test_the_commands_of_the_page(run_sh: RunSh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "s3cr3t-of-chat")
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "one"}\n"two"\n')
    pieces = (delta("a "), delta("b "), delta("c"), usage(4), DONE)
    commands = [command for command in shown("chat.md") if "chat.jmx" in command and "-Jurl=" in command]
    for number, (command, load) in enumerate(zip(commands, LOADS, strict=True)):
        words = command.replace("@prompts.jsonl", f"@{prompts}").partition(" -Jload=")[0]
        with serving(server=StandIn([events(sse(*pieces), pause_s=0.005)])) as server:
            words = words.replace("http://127.0.0.1:8000", server.origin).replace("-Jsleep_s=2", "-Jsleep_s=0.1")
            # On a busy machine gaps are longer.
            done = run_sh(words.replace("< 500", "< 5000").replace("< 50'", "< 5000'"), *load, out=str(number))
        rows = done.rows("samples.csv")
        assert len(rows) == len(server.received) >= 2
        assert {(row["label"], row["ok"], row["tokens"], row["counted_by"]) for row in rows} == {
            ("request", "true", "4", "server")
        }
        assert all(0 < float(row["ttft_ms"]) <= float(row["rtt_ms"]) for row in rows)
        summary = done.json("summary.json")
        assert (summary["label"], summary["missing"], summary["verdict"]["word"]) == ("request", [], "pass")
        assert {"ttft", "itl_mean", "itl_p99", "itl_max", "tpot"} <= summary["labels"]["request"]["times"].keys()
        if number == len(LOADS) - 1:
            assert (summary["goodput"]["good"], summary["goodput"]["share"]) == (len(rows), 1)
            assert summary["goodput"]["met"] == {"ttft_ms < 5000": len(rows), "itl_p99_ms < 5000": len(rows)}
        bodies = [json.loads(request.body) for request in server.received]
        check(number, bodies, [request.headers["Authorization"] for request in server.received])
        page = re.sub(r"<(script|style).*?</\1>", "", (done.folder / "index.html").read_text(), flags=re.DOTALL)
        assert not re.search(r"\bframes?\b|\bvideo", page)
        kept = b"".join(path.read_bytes() for path in done.folder.rglob("*.*") if path.is_file())
        assert b"s3cr3t-of-chat" not in kept


def check(number: int, bodies: list[dict[str, Any]], keys: list[str]) -> None:
    if number == 0:
        assert {(body["model"], body["max_tokens"]) for body in bodies} == {("llama", 128)}
        assert len({body["messages"][0]["content"] for body in bodies}) == len(bodies), "each has another prompt"
    elif number == 1:
        assert {body["prompt"] for body in bodies} == {"one", "two"}
        assert set(keys) == {"Bearer s3cr3t-of-chat"}
    elif number == 2:
        assert [len(body["messages"]) for body in bodies].count(5) == len(bodies) / 3


def test_the_embedded_model(run_sh: RunSh) -> None:
    (command,) = (command for command in shown("chat.md") if "-Jurl=" not in command)
    done = run_sh(command.replace("in 30 s", "in 1 s").replace("for 30 s", "for 1 s"))
    rows = done.rows("samples.csv")
    assert {(row["ok"], row["tokens"], row["pieces"], row["counted_by"]) for row in rows} == {
        ("true", "64", "64", "server")
    }
    record = done.json("run.json")
    assert record["target"]["kind"] == "embedded"
    assert record["target"]["url"].endswith("/function/chat/v1/chat/completions")


def test_requests_at_a_rate(run_sh: RunSh) -> None:
    (command,) = (command for command in shown("chat.md") if "chat-rate.jmx" in command)
    with serving(server=StandIn([events(sse(delta("a "), delta("b"), DONE), pause_s=0.005)])) as server:
        words = command.replace("http://127.0.0.1:8000", server.origin).replace("< 500", "< 5000")
        done = run_sh(words.replace("-Jhold_s=60", "-Jhold_s=4"), "-Jramp_s=0", "-Jprompt_words=5")
    rows = done.rows("samples.csv")
    assert len(rows) == len(server.received) == 16
    assert {(row["ok"], row["index"], row["tokens"]) for row in rows} == {("true", "0", "2")}
    assert len({row["user"] for row in rows}) == 16
    due_ms = sorted(float(row["intended_ms"]) for row in rows)
    assert all(240 < after - before < 260 for before, after in pairwise(due_ms))
    assert all(float(row["start_ms"]) >= float(row["intended_ms"]) for row in rows)
    assert len({json.loads(request.body)["messages"][0]["content"] for request in server.received}) == 16
    summary = done.json("summary.json")
    assert (summary["goodput"]["good"], summary["missing"], summary["verdict"]["word"]) == (16, [], "pass")
    (reached,) = summary["reached"]
    assert (reached["name"], reached["sent"]) == ("arrivals", 16)
    # Its users are processes: their samples name no thread group, and are those of the schedule all the same.
    rates = summary["facts"]["rates"]
    assert rates["sent_per_s"] is not None and 1 <= rates["in_flight"] <= 16
    assert [each["state"] for each in summary["criteria"] if each["metric"] == "overload"] == ["passed"]
