"""Intervals of files that grow are, added up, the figures of the report on the finished run."""

import csv
import io
import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from framestorm.model.cause import TIMEOUTS
from framestorm.model.criteria import OF_TRANSACTION
from framestorm.model.run import Host, Record
from framestorm.model.sample import TRANSACTION
from framestorm.results.growing import GrowingRun
from framestorm.results.interval import Interval, Key, kept
from framestorm.results.reading import read_results
from tests.framestorm.results.conftest import START_MS, frame_line

START_S = START_MS / 1000
Figures = dict[tuple[str, int], Counter[str]]
HEADER = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,failureMessage,allThreads,URL,Hostname"
)
LABELS = ("log in", 'a, "b"', "two\nlines", "/home", "user", "all", "Käse ✓", "")


def record_of(folder: Path, **fields: Any) -> Record:
    fields = {"started_ms": START_MS - 1000, "ended_ms": START_MS + 60_000, "plan": "a.jmx", **fields}
    (folder / "run.json").write_text(json.dumps({"format": 2, "state": "complete", **fields}))
    hosts = tuple(Host(**host) for host in fields.pop("hosts", ()))
    return Record(hosts=hosts, **fields)


def added_up(intervals: Iterable[Interval]) -> tuple[Figures, Counter[float]]:
    """By label and second the samples and the causes of their errors; and the times of all."""
    figures: Figures = {}
    times = Counter[float]()
    labels = {interval.key.label for interval in intervals if interval.key.kind == "sampler"}
    for interval in intervals:
        second, label, kind, _ = interval.key
        name = label + OF_TRANSACTION if kind == TRANSACTION and label in labels else label
        if kind != "user":
            figures.setdefault((name, second), Counter()).update({"n": interval.n, **interval.causes})
            times.update(interval.times)
            times.update(interval.timeouts)
    return figures, times


def reported(folder: Path) -> tuple[Figures, Counter[float]]:
    """The same of the report's table."""
    figures: Figures = {}
    times = Counter[float]()
    every = read_results(folder).every.filter(pl.col("source") != "sub-result").collect()
    for row in every.iter_rows(named=True):
        second = int((row["start_ms"] + row["rtt_ms"]) / 1000)
        counts = Counter({"n": 1}) if row["ok"] else Counter({"n": 1, row["cause"]: 1})
        figures.setdefault((row["label"], second), Counter()).update(counts)
        if row["ok"] or row["cause"] in TIMEOUTS:
            times[kept(row["rtt_ms"])] += 1
    return figures, times


def grow(folder: Path, files: dict[str, bytes], run: GrowingRun, seed: int) -> list[Interval]:
    """Write the files in pieces that end anywhere, each file from its own moment on, and read after each piece."""
    chance = random.Random(seed)  # noqa: S311
    intervals: list[Interval] = []
    left = dict(files)
    while left:
        name = chance.choice(sorted(left))
        n = chance.choice((1, 40, 400, 2000))
        with (folder / name).open("ab") as file:
            file.write(left[name][:n])
        left[name] = left[name][n:]
        left = {name: rest for name, rest in left.items() if rest}
        if chance.random() < 0.3:
            intervals += run.read(START_S + 60)
    return intervals + run.read(START_S + 60)


def rows(seed: int, *, with_kinds: bool = True) -> bytes:
    """A samples.jtl with samples that come late, transactions, some named as their requests, and sub-results.

    with_kinds: it has the kit's own columns, which JMeter alone does not write.
    """
    n_columns = None if with_kinds else -2
    chance = random.Random(seed)  # noqa: S311
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*HEADER.split(","), "elapsed_us", "sample_kind"][:n_columns])
    timeout = ("Non HTTP response code: java.net.SocketTimeoutException", "Read timed out")
    for number in range(300):
        kind = chance.choice(("sample",) * 5 + ("transaction", "sub-result", "cut-transaction"))
        ok, us = chance.random() < 0.8, chance.randrange(900, 9_000_000)
        code, message = ("200", "OK") if ok else chance.choice((("503", "Busy"), ("200", "OK"), timeout))
        failure = "" if ok else 'Test failed: text expected, "yes"\nor /no/'
        if kind.endswith("transaction"):
            message = f"Number of samples in transaction : 2, number of failing samples : {int(not ok)}"
        cells = [
            int(START_MS) + number * 100 - chance.choice((0, 0, 0, 2500)), us // 1000, chance.choice(LABELS), code,
            message, f"threads 1-{number % 7}", str(ok).lower(), failure, 7,
            "null" if kind.endswith("transaction") else "http://h/", "host", us, kind,
        ]  # fmt: skip
        writer.writerow(cells[:n_columns])
    return text.getvalue().encode()


@pytest.mark.parametrize("with_kinds", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_intervals_of_rows_are_the_reports_counts(tmp_path: Path, seed: int, with_kinds: bool) -> None:
    run = GrowingRun(tmp_path, record_of(tmp_path, has_journal=False), has_journal=False)
    assert run.read(START_S) == [], "the file comes later"
    intervals = grow(tmp_path, {"samples.jtl": rows(seed, with_kinds=with_kinds)}, run, seed)
    assert added_up(intervals) == reported(tmp_path)
    assert sum(interval.n for interval in intervals) > 200 and run.users_now == {"": 7}
    assert min(interval.first_start_s for interval in intervals) == run.first_start_s


@pytest.mark.parametrize("seed", range(3))
def test_intervals_of_journals_are_the_reports_counts(tmp_path: Path, seed: int) -> None:
    """Those of several slaves, of which one writes its first line late; lines that cannot be read are in neither."""
    hosts = [{"name": f"vm-{number}", "inventory_name": f"slave{number}", "role": "slave"} for number in (1, 2)]
    run = GrowingRun(tmp_path, record_of(tmp_path, hosts=hosts, has_users=True), has_journal=True)
    chance = random.Random(seed)  # noqa: S311
    files: dict[str, bytes] = {}
    for number in (1, 2):
        lines: list[str] = []
        for user in range(5):
            name = f"vm-{number}-{user}-1"
            lines.append(json.dumps({"type": "start", "user": name, "start_ms": START_MS, "samples": 30}))
            for index in range(30):
                line = frame_line(name, index, START_MS + index * 200 + user) | {
                    "rtt_ms": chance.randrange(1, 90_000) / 9
                }
                if chance.random() < 0.2:
                    line |= {"ok": False, "cause": chance.choice(("status-503", "timeout"))}
                lines.append(json.dumps(line | {"label": chance.choice(LABELS[:4])}))
            lines += ["{", '{"type":"sample","label":"frame"}', "\x00"]
            if user:
                lines.append(
                    json.dumps({"type": "user", "user": name, "start_ms": START_MS, "duration_ms": 9, "ok": False})
                )
        files[f"journal-slave{number}.jsonl"] = "".join(f"{line}\n" for line in lines).encode()
    intervals = grow(tmp_path, files, run, seed)
    assert added_up(intervals) == reported(tmp_path)
    of_slaves = Counter[str]()
    for interval in intervals:
        of_slaves[interval.key.slave, interval.key.kind] += interval.n  # type: ignore[index]
    assert of_slaves == {(f"slave{n}", kind): of for n in (1, 2) for kind, of in (("sampler", 150), ("user", 4))}
    assert run.users_now == {"slave1": 1, "slave2": 1}


def test_a_file_that_begins_again_is_read_from_its_beginning(tmp_path: Path) -> None:
    run = GrowingRun(tmp_path, record_of(tmp_path, has_journal=False), has_journal=False)
    row = f"{int(START_MS)},40,a,200,OK,t 1-1,true,,1,null,h\n"
    for n in (3, 1):
        (tmp_path / "samples.jtl").write_text(f"{HEADER}\n{row * n}")
        assert [interval.n for interval in run.read(START_S + 60)] == [n]


def test_intervals_of_one_key_add_up() -> None:
    samples = [(START_S + number, 40.0 + number, (None, "timeout", "reset")[number % 3]) for number in range(9)]
    whole, parts = Interval(Key(1, "a", "sampler", "")), [Interval(Key(1, "a", "sampler", "")) for _ in range(3)]
    for number, sample in enumerate(samples):
        whole.add(*sample)
        parts[number // 3].add(*sample)
    together = Interval(Key(1, "a", "sampler", ""))
    for part in parts:
        together.merge(part)
    assert together == whole
