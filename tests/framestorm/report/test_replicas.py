import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framestorm.model.files import read
from framestorm.model.summary import Range, ShortOfReplicas, Summary
from framestorm.report import build
from framestorm.report.charts import charts
from framestorm.report.figure import Chart
from framestorm.results.replicas import MAX_BINS, function_of

FOREVER = (-10.0, 1e9)
THREE = {"k1-1": FOREVER, "k1-2": FOREVER, "k1-3": FOREVER}
Make = Callable[..., None]


def load(folder: Path) -> Summary:
    return read(folder / "summary.json", Summary)


def drawn(folder: Path) -> dict[str, Chart]:
    return {chart.name: chart for chart in charts(load(folder)) if chart.name.startswith("replicas")}


@pytest.fixture
def folder(fake_run: Any) -> Path:
    """A run of two minutes against face-blur."""
    for number in range(2):
        fake_run.user([{"rtt_ms": 1000.0} for _ in range(120)], start_ms=1_790_000_000_000.0 + number)
    made: Path = fake_run.write()
    return made


def test_a_table_and_charts(folder: Path, make_metrics: Make) -> None:
    make_metrics(folder / "metrics.csv", THREE, lambda _: 3, length_s=120)
    assert build(folder).word == "pass"
    (row,) = load(folder).functions
    assert (row.function, row.wanted, row.ready, row.seen) == ("face-blur", Range(3, 3), Range(3, 3), 3)
    assert row.in_flight_max == pytest.approx(2 + 2.1 + 2.2)
    assert (row.cores_mean, row.cores_max) == (pytest.approx(2.52), pytest.approx(2.52))
    assert row.memory_max_bytes == pytest.approx(715e6)
    assert (row.received_bytes_per_s, row.sent_bytes_per_s) == (pytest.approx(126e3), pytest.approx(63e3))
    assert (row.throttled_mean, row.short_s, row.vanished) == (0, 0, [])
    assert [(each.name, each.cores_mean, each.sent_bytes_per_s) for each in row.replicas] == [
        (f"face-blur-k1-{n + 1}", pytest.approx(0.8 * (1 + 0.05 * n)), pytest.approx(20e3 * (1 + 0.05 * n)))
        for n in range(3)
    ]
    made = drawn(folder)
    names = ("over-time", "in-flight", "cpu-cores", "memory-bytes", "network-bytes-per-s")
    assert list(made) == [f"replicas-{name}" for name in names], "nothing was throttled"
    assert made["replicas-network-bytes-per-s"].traces[1]["y"][10] == pytest.approx(60 * 1.05), "kB/s"
    assert "None was throttled by a CPU limit" in made["replicas-cpu-cores"].caption
    lines = [trace["name"] for trace in made["replicas-memory-bytes"].traces]
    assert lines == ["k1-1", "k1-2", "k1-3", "sum of all"]
    assert not any("replica" in text for text in load(folder).warnings)
    page = (folder / "index.html").read_text()
    assert "<h2>Function and replicas</h2>" in page
    assert '<a href="metrics.csv">' in page


def test_use_is_of_the_load_alone_however_short(fake_run: Any) -> None:
    """Six seconds of load after a minute of idling, of which rates over the last 10 s would still tell."""
    for number in range(2):
        fake_run.user([{"rtt_ms": 1000.0} for _ in range(6)], start_ms=1_790_000_000_000.0 + number)
    folder: Path = fake_run.write()
    rows = ["time_ms,metric,function,detail,value"]
    for at_s in range(-60, 20):
        loaded_s = min(max(at_s, 0), 6)
        for metric, value in {"cpu_s": 7 + 1.5 * loaded_s, "cpu_throttled_s": 0.25 * loaded_s, "in_flight": 1}.items():
            rows.append(f"{1_790_000_000_000 + 1000 * at_s},{metric},face-blur,face-blur-k1-1,{value}")
    (folder / "metrics.csv").write_text("\n".join(rows) + "\n")
    build(folder)
    (row,) = load(folder).functions
    assert (row.cores_mean, row.throttled_mean) == (pytest.approx(1.5), pytest.approx(0.25))
    assert (row.received_bytes_per_s, row.sent_bytes_per_s) == (None, None), "without a network of its own"


def test_requests_past_the_provider_are_not_none_under_way(folder: Path, make_metrics: Make) -> None:
    make_metrics(folder / "metrics.csv", THREE, lambda _: 3, length_s=120)
    text = (folder / "metrics.csv").read_text()
    (folder / "metrics.csv").write_text(re.sub(r"(,in_flight,.*),[\d.]+", r"\1,0", text))
    build(folder)
    assert load(folder).functions[0].in_flight_max is None
    assert "replicas-in-flight" not in drawn(folder)


def test_a_vanished_replica_is_seen(folder: Path, make_metrics: Make) -> None:
    replicas = THREE | {"k1-2": (-10.0, 41.0), "k1-4": (55.0, 1e9)}
    make_metrics(folder / "metrics.csv", replicas, lambda _: 3, length_s=120)
    build(folder)
    summary = load(folder)
    (row,) = summary.functions
    (gone,) = row.vanished
    assert (gone.replicas, gone.names) == (1, ["face-blur-k1-2"])
    assert 41 <= gone.at_s <= 43
    assert (row.short_s, row.short_worst, row.seen) == (14.0, ShortOfReplicas(2, 3), 4)
    assert summary.doubts == ["replica_lost", "replicas_short"]
    said = "\n".join(summary.warnings[:2]).replace("\u00a0", " ")
    assert "1 replica of face-blur (face-blur-k1-2) ended 42.1 s after the start" in said
    assert "fewer replicas ready than wanted for 14.0 s of the load, at worst 2 of 3" in said
    made = drawn(folder)
    short = next(trace for trace in made["replicas-over-time"].traces if trace["name"] == "fewer ready than wanted")
    assert len(short["x"]) == 7
    assert set(short["y"]) == {2.0}
    for chart in made.values():
        assert [label["text"] for label in chart.layout["annotations"]] == ["1 replica gone"]
    line = next(trace for trace in made["replicas-in-flight"].traces if trace["name"] == "k1-2")
    assert line["y"][20] is not None
    assert line["y"][21:] == [None] * len(line["y"][21:])


def add_counters(folder: Path, *rows: tuple[float, int, float]) -> None:
    """What the provider itself counted: seconds since the start, replicas lost, seconds short of them."""
    with (folder / "metrics.csv").open("a") as file:
        for at_s, lost, short_s in rows:
            time_ms = 1_790_000_000_000 + at_s * 1000
            file.write(f"{time_ms},replicas_lost,face-blur,,{lost}\n{time_ms},replicas_short_s,face-blur,,{short_s}\n")


def test_replaced_between_two_looks(folder: Path, make_metrics: Make) -> None:
    """Always three ready, and yet one was lost."""
    make_metrics(folder / "metrics.csv", THREE | {"k1-3": (0, 41.0), "k1-4": (41.0, 1e9)}, lambda _: 3, length_s=120)
    build(folder)
    (row,) = load(folder).functions
    assert (row.short_s, len(row.vanished)) == (0, 1)
    assert load(folder).doubts == ["replica_lost"]


def test_the_providers_own_count_goes_before_the_scrapes(folder: Path, make_metrics: Make) -> None:
    make_metrics(folder / "metrics.csv", THREE, lambda _: 3, length_s=120)
    add_counters(folder, (2, 1, 7.5), (60, 2, 7.9), (110, 2, 8.0))
    build(folder)
    (row,) = load(folder).functions
    assert (row.lost, row.vanished, row.short_s) == (1, [], pytest.approx(0.5))
    said = "\n".join(load(folder).warnings).replace("\u00a0", " ")
    assert "1 replica of face-blur ended without being scaled down, replaced between" in said
    assert "fewer replicas ready than wanted for 500 ms of the load:" in said


def test_a_deployment_before_the_run_is_no_loss(folder: Path, make_metrics: Make) -> None:
    """Prometheus still told of the old one's replicas, and its counters begin anew."""
    old = {"k0-1": (-10.0, 2.0), "k0-2": (-10.0, 2.0)}
    make_metrics(folder / "metrics.csv", old | {"k1-1": (2.0, 1e9)}, lambda at_s: 2 if at_s < 2 else 1, length_s=120)
    add_counters(folder, (1, 3, 7.5), (4, 0, 0.1), (110, 0, 0.1))
    build(folder)
    (row,) = load(folder).functions
    assert (row.lost, row.vanished, row.short_s) == (0, [], 0)


@pytest.mark.parametrize("drain_s", [0, 10])
def test_scaling_down_is_no_loss(folder: Path, make_metrics: Make, drain_s: float) -> None:
    replicas = {"k1-1": FOREVER, "k1-2": (0, 60.0 + drain_s), "k1-3": (0, 60.0 + drain_s)}
    make_metrics(folder / "metrics.csv", replicas, lambda at_s: 3 if at_s < 60 else 1, length_s=120)
    build(folder)
    (row,) = load(folder).functions
    assert (row.vanished, row.short_s, row.wanted) == ([], 0, Range(1, 3))


def test_the_end_of_the_run_is_no_loss(folder: Path, make_metrics: Make) -> None:
    make_metrics(folder / "metrics.csv", THREE | {"k1-1": (0, 125.0)}, lambda _: 3, length_s=400)
    build(folder)
    assert load(folder).functions[0].vanished == []


def test_many_replicas_are_capped(folder: Path, make_metrics: Make) -> None:
    replicas = {f"k1-{number}": FOREVER for number in range(40)} | {"k1-39": (0, 50.0)}
    make_metrics(folder / "metrics.csv", replicas, lambda _: 40, length_s=120, throttled=0.25)
    build(folder)
    made = drawn(folder)
    names = [trace["name"] for trace in made["replicas-cpu-cores"].traces]
    assert (len(names), names[0], names[-1]) == (9, "k1-39", "sum of all"), "the one that vanished has a line"
    whole = made["replicas-in-flight"].traces[-1]["y"]
    assert whole[0] == pytest.approx(sum(2 * (1 + 0.05 * number) for number in range(40)))
    with_sum, alone = (choice[0]["visible"] for choice in made["replicas-cpu-cores"].figure()["choices"])
    assert (with_sum, alone) == ([True] * 9, [True] * 8 + [False])
    held_back = made["replicas-cpu-throttled-share"]
    assert held_back.traces[-1]["name"] == "mean of all"
    assert held_back.traces[0]["y"][5] == pytest.approx(100 * 0.25 * 2.95)
    assert "8 of 40 replicas are drawn" in held_back.caption


@pytest.mark.parametrize(
    ("url", "functions"),
    [
        ("http://gateway:8080/function/face-blur", ["face-blur"]),
        ("http://gateway:8080/async-function/face-blur.openfaas-fn/path?x=1", ["face-blur"]),
        ("http://gateway:8080/function/another", ["face-blur", "noop"]),
        ("http://gateway:8080/", ["face-blur", "noop"]),
    ],
)
def test_the_function_under_test(folder: Path, make_metrics: Make, url: str, functions: list[str]) -> None:
    for name in ("noop", "face-blur"):
        make_metrics(folder / "metrics.csv", THREE, lambda _: 3, length_s=120, function=name)
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(run | {"properties": {"url": url}}))
    build(folder)
    assert [row.function for row in load(folder).functions] == functions
    counted = [trace["name"] for trace in drawn(folder)["replicas-over-time"].traces]
    assert counted == (["ready", "wanted"] if len(functions) == 1 else [
        "face-blur ready", "face-blur wanted", "noop ready", "noop wanted",
    ])  # fmt: skip


@pytest.mark.parametrize(("url", "name"), [(None, ""), ("", ""), ("http://[", ""), ("http://h/x/blur", "blur")])
def test_function_of(url: str | None, name: str) -> None:
    assert function_of(url) == name


@pytest.mark.parametrize("content", ["", "time_ms,metric,function,detail,value\n", "half a li", "a,b\n1,2\n"])
def test_a_file_that_says_nothing(folder: Path, content: str) -> None:
    (folder / "metrics.csv").write_text(content)
    build(folder)
    summary = load(folder)
    assert summary.functions == []
    assert summary.series.replicas is None
    assert summary.warnings[0].startswith("metrics.csv has no figures")


def test_no_scrape_within_a_short_run(folder: Path) -> None:
    rows = [
        "time_ms,metric,function,detail,value",
        *(f"{1_790_000_000_000 + 1000 * n},requests_per_s,face-blur,200,4.2" for n in range(3)),
    ]
    (folder / "metrics.csv").write_text("\n".join(rows) + "\n")
    assert build(folder).word == "pass"
    assert drawn(folder) == {}


def test_broken_rows_are_left_out(folder: Path, make_metrics: Make) -> None:
    make_metrics(folder / "metrics.csv", THREE, lambda _: 3, length_s=120)
    with (folder / "metrics.csv").open("a") as file:
        file.write("x,memory_bytes,face-blur,k,1\n17,in_flight,face-blur,k,3\n1790000003,memory_byt")
    build(folder)
    assert load(folder).functions[0].seen == 3


def test_a_long_run_stays_small(fake_run: Any, make_metrics: Make) -> None:
    fake_run.user([{"rtt_ms": 3_600_000.0}, {"rtt_ms": 3_600_000.0}])
    folder = fake_run.write()
    replicas = {f"k1-{number}": FOREVER for number in range(12)} | {"k1-3": (0, 5000.0), "k1-99": (5006.0, 1e9)}
    make_metrics(folder / "metrics.csv", replicas, lambda _: 12, length_s=7200)
    build(folder)
    series = load(folder).series.replicas
    assert len(series.x) <= MAX_BINS + 1
    assert min(series.counts["face-blur"]["ready"]) == 11, "a dip of six seconds is not averaged away"
    assert (folder / "index.html").stat().st_size < 8_000_000
