"""Runs made up by hand, in the very form in which JMeter, the frame client and the kit write them."""

import csv
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest

START_MS = 1_790_000_000_000
JTL_HEADER = [
    "timeStamp",
    "elapsed",
    "label",
    "responseCode",
    "responseMessage",
    "threadName",
    "dataType",
    "success",
    "failureMessage",
    "bytes",
    "sentBytes",
    "grpThreads",
    "allThreads",
    "URL",
    "Latency",
    "IdleTime",
    "Connect",
    "Hostname",
]
Line = dict[str, Any]


@dataclass
class FakeUser:
    """A user: its lines as the client says them, and what JMeter made of its process."""

    name: str
    start: Line
    frames: list[Line]
    end: Line | None
    thread: str
    host: str
    code: str = "0"
    message: str = "OK"

    @property
    def ok(self) -> bool:
        return self.end is not None and bool(self.end["ok"])

    @property
    def elapsed_ms(self) -> int:
        last = max((line["start_ms"] + line["rtt_ms"] for line in self.frames), default=self.start["start_ms"])
        return int(last - self.start["start_ms"]) + 150


@dataclass
class FakeRun:
    """A run's folder under construction; `write` puts the raw files there."""

    folder: Path
    users: list[FakeUser] = field(default_factory=list)
    run: Line = field(default_factory=dict)

    def user(
        self, frames: list[Line], *, host: str = "master", start_ms: float | None = None, end: bool = True
    ) -> FakeUser:
        """Add a user whose frames are given in part: rtt_ms, and what differs from a frame answered rightly."""
        number = len(self.users)
        at_ms = START_MS + 1000.0 * number if start_ms is None else start_ms
        name = f"{host}-{4000 + number}-{int(at_ms)}"
        start = {"type": "start", "user": name, "start_ms": at_ms, "frames": len(frames)}
        lines, clock_ms = [], at_ms + 100
        for index, given in enumerate(frames):
            lines.append(frame_line(name, index, clock_ms, **given))
            clock_ms += lines[-1]["rtt_ms"]
        causes: dict[str, int] = {}
        for line in lines:
            if line["cause"]:
                causes[line["cause"]] = causes.get(line["cause"], 0) + 1
        ok = sum(line["ok"] for line in lines)
        said = {
            "type": "user", "user": name, "start_ms": at_ms, "duration_ms": clock_ms - at_ms, "frames": len(lines),
            "frames_ok": ok, "ok": ok == len(lines), "cause": next(iter(causes), None), "causes": causes, "sleep_s": 0,
            "encoding": "png-base64", "video": "0123456789ab", "setup_ms": 80.0,
        }  # fmt: skip
        user = FakeUser(name, start, lines, said if end else None, f"user 1-{number + 1}", host)
        user.code, user.message = ("0", "OK") if user.ok else ("1", said["cause"] or "exit-1")
        self.users.append(user)
        return user

    def write(self, **run: Any) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        hosts = sorted({user.host for user in self.users}) or ["master"]
        last_ms = max((u.start["start_ms"] + u.elapsed_ms for u in self.users), default=START_MS)
        self.run = run_record(hosts, last_ms + 500) | run
        (self.folder / "run.json").write_text(json.dumps(self.run))
        (self.folder / "tree.xml").write_text(tree_xml(self.users), encoding="utf-8")
        write_jtl(self.folder / "samples.jtl", jtl_rows(self.users))
        write_journal(self.folder / "journal.jsonl", self.users)
        write_resources(self.folder / "resources.csv", hosts, last_ms)
        return self.folder


def frame_line(user: str, index: int, start_ms: float, **given: Any) -> Line:
    rtt_ms = float(given.pop("rtt_ms", 40.0))
    cause = given.get("cause")
    answered = cause is None
    line: Line = {
        "type": "frame", "user": user, "index": index, "intended_ms": start_ms, "start_ms": start_ms, "rtt_ms": rtt_ms,
        "handler_ms": round(rtt_ms * 0.8, 3) if answered else None,
        "model_ms": round(rtt_ms * 0.5, 3) if answered else None,
        "status": 200 if answered else None, "ok": answered, "cause": None, "censored": cause in ("timeout", "stopped"),
        "sent_bytes": 300_000, "received_bytes": 310_000 if answered else 0, "faces": 1 if answered else None,
        "cold": False if answered else None, "verified": answered,
    }  # fmt: skip
    return line | given


def run_record(hosts: list[str], ended_ms: float) -> Line:
    return {
        "format": 1,
        "kit": {"version": "0.1.0", "commit": "4f1d0c9a2b7e4f1d0c9a2b7e4f1d0c9a2b7e4f1d", "dirty": False},
        "plan": "jmx/video-per-user.jmx",
        "command": ["./run.sh", "-t", "jmx/video-per-user.jmx", "-Jusers=3"],
        "state": "complete",
        "reason": None,
        "started_ms": START_MS,
        "ended_ms": ended_ms,
        "properties": {
            "users": "3",
            "frames": "37",
            "sleep_s": "0",
            "timeout_s": "25",
            "url": "http://127.0.0.1:8080/function/face-blur",
        },
        "given": {"users": "3"},
        "criteria": [],
        "default_criteria": True,
        "target": {"kind": "embedded", "url": "http://127.0.0.1:8080/function/face-blur", "workers": 1},
        "hosts": [
            {
                "name": name,
                "address": "127.0.0.1",
                "cores": 2,
                "memory_bytes": 8_000_000_000,
                "role": "generator",
                "clock_offset_ms": 0,
            }
            for name in hosts
        ],
        "versions": {
            "jmeter": "5.5",
            "java": "17.0.12",
            "python": "3.11.2",
            "tensorflow": "2.17.0",
            "os": "Debian GNU/Linux 12 (bookworm)",
            "kernel": "6.1.0",
        },
        "jmeter": {"exit_code": 0, "arguments": ["-n"]},
    }


def _attributes(**values: Any) -> str:
    return "".join(f" {name}={quoteattr(str(value))}" for name, value in values.items())


def _data(text: str) -> str:
    return f'<responseData class="java.lang.String">{escape(text)}</responseData>\n'


def tree_xml(users: list[FakeUser]) -> str:
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n<testResults version="1.2">\n']
    for user in users:
        common = {"tn": user.thread, "dt": "text", "ng": 1, "na": 1, "hn": user.host}
        head = _attributes(t=user.elapsed_ms, it=0, lt=0, ct=0, ts=int(user.start["start_ms"]), s=str(user.ok).lower(),
                           lb="user", rc=user.code, rm=user.message, sc=1, ec=0, **common)  # fmt: skip
        parts.append(f"<sample{head}>\n")
        for line in user.frames:
            head = _attributes(t=round(line["rtt_ms"]), it=0, lt=0, ct=0, ts=int(line["start_ms"]),
                               s=str(line["ok"]).lower(), lb="frame", rc=line["status"] or "",
                               rm=line["cause"] or "OK", **common)  # fmt: skip
            parts.append(f"  <sample{head}>\n    {_data(json.dumps(line))}  </sample>\n")
        said = [*user.frames, *([user.end] if user.end else [])]
        parts.append(f"  {_data(''.join(json.dumps(line) + chr(10) for line in said))}")
        parts.append('  <samplerData class="java.lang.String">python client.py</samplerData>\n</sample>\n')
    return "".join([*parts, "</testResults>\n"])


def jtl_rows(users: list[FakeUser]) -> list[dict[str, Any]]:
    rows = []
    for user in users:
        common = {
            "threadName": user.thread,
            "dataType": "text",
            "grpThreads": 1,
            "allThreads": 1,
            "URL": "null",
            "Hostname": user.host,
        }
        rows.append(common | {"timeStamp": int(user.start["start_ms"]), "elapsed": user.elapsed_ms, "label": "user",
                              "responseCode": user.code, "responseMessage": user.message,
                              "success": str(user.ok).lower()})  # fmt: skip
        rows += [
            common | {"timeStamp": int(line["start_ms"]), "elapsed": round(line["rtt_ms"]), "label": "frame",
                      "responseCode": line["status"] or "", "responseMessage": line["cause"] or "OK",
                      "success": str(line["ok"]).lower(), "bytes": line["received_bytes"],
                      "sentBytes": line["sent_bytes"]}
            for line in user.frames
        ]  # fmt: skip
    return rows


def write_jtl(path: Path, rows: list[dict[str, Any]], extra: tuple[str, ...] = ()) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join([*JTL_HEADER, *(f'"{name}"' for name in extra)]) + "\n")
        writer = csv.DictWriter(file, [*JTL_HEADER, *extra], lineterminator="\n", restval="")
        writer.writerows(rows)


def write_journal(path: Path, users: list[FakeUser]) -> None:
    lines = [line for user in users for line in (user.start, *user.frames, *([user.end] if user.end else []))]
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def write_resources(
    path: Path, hosts: list[str], last_ms: float, cpu: tuple[float, float, float] = (45.0, 80.0, 140.0)
) -> None:
    rows = ["time_ms,host,part,cpu_percent,rss_bytes,processes"]
    noise = random.Random(1)  # noqa: S311
    for at_ms in range(START_MS, int(last_ms) + 1000, 1000):
        for host in hosts:
            for part, percent in zip(("generator", "target", "host"), cpu, strict=True):
                rows.append(f"{at_ms},{host},{part},{percent + noise.uniform(-8, 8):.1f},{700_000_000},{3}")
    path.write_text("\n".join(rows) + "\n")


@pytest.fixture
def fake_run(tmp_path: Path) -> FakeRun:
    return FakeRun(tmp_path / "video-per-user-20260920T120000Z")


@pytest.fixture
def three_users(fake_run: FakeRun) -> FakeRun:
    """Three users with 37 frames each: one cold frame, one time-out, two refusals."""
    noise = random.Random(7)  # noqa: S311
    for user in range(3):
        frames: list[Line] = [{"rtt_ms": round(38 + noise.gammavariate(2, 4), 3)} for _ in range(37)]
        if user == 0:
            frames[0] = {"rtt_ms": 1900.0, "cold": True}
        if user == 1:
            frames[20] = {"rtt_ms": 25_000.0, "cause": "timeout"}
        if user == 2:
            frames[5] = frames[6] = {"rtt_ms": 1.5, "cause": "status-429", "status": 429}
        fake_run.user(frames)
    return fake_run


@pytest.fixture
def make_jtl() -> Callable[..., None]:
    return write_jtl
