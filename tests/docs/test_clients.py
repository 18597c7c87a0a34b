"""The examples of docs/clients.md, run as the page shows them."""

import re
from pathlib import Path

import pytest

from framestorm.paths import ROOT
from tests.docs.test_pages import shown
from tests.runs import RunSh
from tests.stand_in import StartServer

PAGE = (ROOT / "docs" / "clients.md").read_text()
CHAT, OCR = shown("clients.md")
LOAD = ("-Jusers=2", "-Jramp_s=0", "-Jhold_s=1")


def example(language: str) -> str:
    (text,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    return str(text)


def test_a_streaming_answer_in_python(
    run_sh: RunSh, stand_in: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chat.py").write_text(example("python"))
    monkeypatch.setenv("CHAT_TOKEN", "t0k")
    server = stand_in({"body": b"a\nb\nc\n", "pause_s": 0.1, "authorization": "Bearer t0k"})
    command = CHAT.replace("chat.py", str(tmp_path / "chat.py"))
    done = run_sh(command.replace("http://127.0.0.1:8080/function/chat", server.url), *LOAD)
    rows = done.rows("samples.csv")
    assert len(rows) == len(server.received) >= 4
    assert {(row["label"], row["ok"], row["tokens"]) for row in rows} == {("chat", "true", "3")}
    for row in rows:
        assert 0 < float(row["ttft_ms"]) <= float(row["rtt_ms"])
        assert float(row["tokens_per_s"]) == pytest.approx(3000 / float(row["rtt_ms"]))
    # A machine that is busy may read the first token late, but not each time.
    assert any(float(row["ttft_ms"]) < float(row["rtt_ms"]) - 150 for row in rows)
    summary = done.json("summary.json")
    assert (summary["label"], summary["missing"], summary["verdict"]["word"]) == ("chat", [], "pass")
    assert summary["labels"]["chat"]["times"]["ttft"]["n"] == len(rows)

    monkeypatch.setenv("CHAT_TOKEN", "wrong")
    command = command.replace("http://127.0.0.1:8080/function/chat", server.url)
    denied = run_sh(command, *LOAD, "--fail-if", "chat success < 100 %", out="denied", status=3)
    (cause,) = denied.json("summary.json")["labels"]["chat"]["causes"]
    assert "401" in cause, "the client's own words"


def test_curl_in_a_shell(run_sh: RunSh, stand_in: StartServer, tmp_path: Path) -> None:
    script = tmp_path / "ocr.sh"
    script.write_text(example("bash").replace("@scan.png", f"@{script}"))
    script.chmod(0o755)
    server = stand_in({"body": b"text"}, {"status": 503})
    command = OCR.replace("./ocr.sh", str(script)).replace("http://127.0.0.1:8080/function/ocr", server.url)
    done = run_sh(command, "-Jusers=2", "-Jramp_s=0", "-Jhold_s=4", status=3)
    label = done.json("summary.json")["labels"]["ocr"]
    assert label["n"] == len(server.received) >= 2
    assert label["causes"] == {"status-503": label["n"] // 2}
    assert label["times"]["first_byte"]["n"] == label["ok"]
