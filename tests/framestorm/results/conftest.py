"""Runs made up by hand, in the very form in which JMeter, the frame client and the kit write them."""

import csv
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest

START_MS = 1_790_000_000_000
JTL_HEADER = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,"
    "grpThreads,allThreads,URL,Latency,IdleTime,Connect,Hostname"
)
# Of rows that a test writes as text.
JTL_OF_LABELS = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,failureMessage"
# Of rows that write_rows writes.
SHORT_HEADER = ("timeStamp", "elapsed", "label", "responseCode", "responseMessage", "success", "failureMessage")
URL = "http://127.0.0.1:8080/function/face-blur"
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
    arrived: bool = True

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

    def user(
        self,
        frames: list[Line],
        *,
        host: str = "master",
        start_ms: float | None = None,
        end: bool = True,
        arrived: bool = True,
    ) -> FakeUser:
        """Add a user whose frames are given in part: rtt_ms, and what differs from a frame answered correctly.

        What never arrived at JMeter's controller is in the journal only.
        """
        number = len(self.users)
        at_ms = START_MS + 1000.0 * number if start_ms is None else start_ms
        name = f"{host}-{4000 + number}-{int(at_ms)}"
        start = {"type": "start", "user": name, "start_ms": at_ms, "samples": len(frames)}
        lines, clock_ms = [], at_ms + 100
        for index, given in enumerate(frames):
            lines.append(frame_line(name, index, clock_ms, **given))
            clock_ms += lines[-1]["rtt_ms"]
        causes = Counter(line["cause"] for line in lines if line["cause"])
        ok = sum(line["ok"] for line in lines)
        said = {
            "type": "user", "user": name, "start_ms": at_ms, "duration_ms": clock_ms - at_ms, "samples": len(lines),
            "samples_ok": ok, "ok": ok == len(lines), "cause": next(iter(causes), None), "causes": causes, "sleep_s": 0,
            "encoding": "png-base64", "video": "0123456789ab", "setup_ms": 80.0,
        }  # fmt: skip
        user = FakeUser(name, start, lines, said if end else None, f"user 1-{number + 1}", host, arrived=arrived)
        user.code, user.message = ("0", "OK") if user.ok else ("1", said["cause"] or "exit-1")
        self.users.append(user)
        return user

    def write(self, **run: Any) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        hosts = sorted({user.host for user in self.users}) or ["master"]
        last_ms = max((u.start["start_ms"] + u.elapsed_ms for u in self.users), default=START_MS)
        (self.folder / "run.json").write_text(json.dumps(run_record(hosts, last_ms + 500) | run))
        arrived = [user for user in self.users if user.arrived]
        (self.folder / "tree.xml").write_text(tree_xml(arrived), encoding="utf-8")
        write_jtl(self.folder / "samples.jtl", jtl_rows(arrived))
        write_journal(self.folder / "journal.jsonl", self.users)
        parts = ("generator,45.0,700000000,3,", "target,80.0,700000000,3,", "host,140.0,700000000,3,")
        write_resources(self.folder / "resources.csv", dict.fromkeys(hosts, last_ms), *parts)
        return self.folder

    def write_slaves(self, shares: dict[str, str], lost_s: dict[str, float], **run: Any) -> Path:
        """As a run over slaves leaves it: shares of the users by host, and when hosts were lost."""
        last_ms = max(user.start["start_ms"] + user.elapsed_ms for user in self.users)
        slaves = [slave_record(name, number, share) for number, (name, share) in enumerate(shares.items(), 1)]
        losses = [
            {key: host[key] for key in ("address", "share")}
            | {"host": host["name"], "reason": "no sign of life for 11 s"}
            | {"time_ms": int(START_MS + 1000 * lost_s[host["name"]])}
            for host in slaves
            if host["name"] in lost_s
        ]
        users = str(sum(map(int, shares.values())))
        url = "http://198.18.0.21:8080/function/face-blur"
        reasons = "; ".join(f"{loss['host']} was lost at 10:11:12 UTC: {loss['reason']}" for loss in losses)
        slaves_record = {"hosts": slaves, "losses": losses, "state": "failed" if losses else "complete"}
        target = {"target": {"kind": "url", "url": url}, "properties": {"users": users, "frames": "37", "url": url}}
        self.write(**{**slaves_record, **target, "reason": reasons or None, **run})
        (self.folder / "journal.jsonl").unlink()
        for name in shares:
            write_journal(self.folder / f"journal-{name}.jsonl", [user for user in self.users if user.host == name])
            (self.folder / f"client-{name}.log").touch()
        ends = {name: START_MS + 1000 * lost_s[name] if name in lost_s else last_ms for name in shares}
        parts = ("generator,60.0,300000000,3,", "host,95.0,2000000000,,3.25")
        write_resources(self.folder / "resources.csv", ends, *parts)
        return self.folder


def slave_record(name: str, number: int, users: str) -> Line:
    of_slave = {"inventory_name": name, "clock_offset_ms": 0.125 * number, "share": {"users": users}}
    return host_record(name, "slave", f"198.18.0.{10 + number}") | of_slave


def host_record(name: str, role: str, address: str) -> Line:
    return {"name": name, "role": role, "address": address, "cores": 2, "memory_bytes": 8_000_000_000}


def frame_line(user: str, index: int, start_ms: float, **given: Any) -> Line:
    rtt_ms = float(given.pop("rtt_ms", 40.0))
    cause = given.get("cause")
    answered = cause is None
    line: Line = {
        "type": "sample", "label": "frame", "user": user, "index": index,
        "intended_ms": start_ms, "start_ms": start_ms, "rtt_ms": rtt_ms,
        "handler_ms": round(rtt_ms * 0.8, 3) if answered else None,
        "model_ms": round(rtt_ms * 0.5, 3) if answered else None,
        "status": 200 if answered else None, "ok": answered, "cause": None, "censored": cause in ("timeout", "stopped"),
        "sent_bytes": 300_000, "received_bytes": 310_000 if answered else 0, "faces": 1 if answered else None,
        "cold": False if answered else None, "verified": answered,
    }  # fmt: skip
    return line | given


def run_record(hosts: list[str], ended_ms: float) -> Line:
    return {
        "format": 2,
        "kit": {"version": "0.1.0", "commit": "4f1d0c9a2b7e4f1d0c9a2b7e4f1d0c9a2b7e4f1d", "dirty": False},
        "plan": "jmx/video-per-user.jmx",
        "has_users": True,
        "command": ["./run.sh", "-t", "jmx/video-per-user.jmx", "-Jusers=3"],
        "state": "complete",
        "started_ms": START_MS,
        "ended_ms": ended_ms,
        "properties": {"users": "3", "frames": "37", "sleep_s": "0", "timeout_s": "25", "url": URL},
        "given": {"users": "3"},
        "target": {"kind": "embedded", "url": URL, "workers": 1},
        "hosts": [host_record(name, "generator", "127.0.0.1") for name in hosts],
        "versions": {"jmeter": "5.5", "java": "17.0.12", "os": "Debian GNU/Linux 12 (bookworm)"},
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
            parts.append(f"  <sample{head}>\n    {_data(_line(line))}  </sample>\n")
        said = [*user.frames, *([user.end] if user.end else [])]
        parts.append(f"  {_data(''.join(_line(line) + chr(10) for line in said))}")
        parts.append('  <samplerData class="java.lang.String">python client.py</samplerData>\n</sample>\n')
    return "".join([*parts, "</testResults>\n"])


def _line(line: Line) -> str:
    return json.dumps(line, separators=(",", ":"))


def jtl_rows(users: list[FakeUser]) -> list[dict[str, Any]]:
    rows = []
    for user in users:
        common = {"threadName": user.thread, "dataType": "text", "URL": "null", "Hostname": user.host}
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
        file.write(",".join([JTL_HEADER, *(f'"{name}"' for name in extra)]) + "\n")
        writer = csv.DictWriter(file, [*JTL_HEADER.split(","), *extra], lineterminator="\n", restval="")
        writer.writerows(rows)


def write_journal(path: Path, users: list[FakeUser]) -> None:
    lines = [line for user in users for line in (user.start, *user.frames, *([user.end] if user.end else []))]
    path.write_text("".join(_line(line) + "\n" for line in lines))


def write_resources(path: Path, ends_ms: dict[str, float], *parts: str) -> None:
    """resources.csv, in which each host tells of its parts for as long as it is there."""
    rows = ["time_ms,host,part,cpu_percent,rss_bytes,processes,load"]
    for at_ms in range(START_MS, int(max(ends_ms.values())) + 1000, 1000):
        rows += [f"{at_ms},{host},{part}" for host, end_ms in ends_ms.items() if at_ms < end_ms for part in parts]
    path.write_text("\n".join(rows) + "\n")


def write_metrics(
    path: Path,
    replicas: dict[str, tuple[float, float]],
    wanted: Callable[[float], int],
    *,
    length_s: float,
    function: str = "face-blur",
    throttled: float = 0.0,
) -> None:
    """metrics.csv as it comes from Prometheus, by metric and series; `replicas`: from when to when each was there."""
    grid = [START_MS + 137 + 2000 * step for step in range(int(length_s / 2) + 1)]
    names = {f"{function}-{name}": span for name, span in replicas.items()}
    rows: list[tuple[Any, ...]] = [
        (at, "replicas_wanted", function, "", float(wanted((at - START_MS) / 1000))) for at in grid
    ]
    there = {at: [n for n, (a, b) in names.items() if a <= (at - START_MS) / 1000 < b] for at in grid}
    rows += [(at, "replicas_ready", function, "", float(len(there[at]))) for at in grid]
    gauges = {"in_flight": 2.0, "memory_bytes": 6.5e8}
    per_s = {"cpu_s": 0.8, "cpu_throttled_s": throttled, "received_bytes": 40e3, "sent_bytes": 20e3}
    for number, name in enumerate(names):
        some = [at for at in grid if name in there[at]]
        more = 1 + 0.05 * number
        rows += [(at, metric, function, name, value * more) for metric, value in gauges.items() for at in some]
        rows += [
            (at, metric, function, name, 5 + value * more * (at - some[0]) / 1000)
            for metric, value in per_s.items()
            for at in some
        ]
    # Not scraped but calculated, at times of their own.
    rows += [(at + 400, "requests_per_s", function, "200", 12.5) for at in grid]
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if is_new:
            writer.writerow(("time_ms", "metric", "function", "detail", "value"))
        writer.writerows(rows)


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
def slave_lost(fake_run: FakeRun) -> FakeRun:
    """Two slaves with two users each over 60 s, slave2 cut off after 30 s and counted as lost after 41 s."""
    noise = random.Random(3)  # noqa: S311
    for number in range(4):
        host = f"slave{1 + number % 2}"
        for turn in range(6):
            is_last = host == "slave2" and turn == 2
            if host == "slave2" and turn > 2:
                continue
            frames: list[Line] = [{"rtt_ms": round(230 + noise.gammavariate(2, 20), 3)} for _ in range(35)]
            start_ms = START_MS + 10_000.0 * turn + 300 * number
            user = fake_run.user(frames, host=host, start_ms=start_ms, end=not is_last, arrived=not is_last)
            user.start["samples"] = 37 if is_last else 35
    return fake_run


def write_rows(folder: Path, figures: tuple[str, ...], *rows: tuple[Any, ...]) -> None:
    """Write samples.jtl with the columns of SHORT_HEADER and further figures."""
    with (folder / "samples.jtl").open("w", newline="") as file:
        csv.writer(file).writerows([(*SHORT_HEADER, *figures), *rows])
