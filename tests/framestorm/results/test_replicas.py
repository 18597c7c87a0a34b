"""metrics.csv: what replicas did under load, where some were missing, and what is drawn of them."""

import re
from pathlib import Path

import pytest

from framestorm.model.function_summary import FunctionSummary, Range, ShortOfReplicas
from framestorm.model.series import ReplicasOverTime
from framestorm.results.replicas import MAX_BINS, function_of, read_metrics, replicas_over_time, summarise_replicas
from tests.framestorm.results.conftest import START_MS, write_metrics

URL = "http://gateway:8080/function/face-blur"
FOREVER = (-10.0, 1e9)
THREE = {"k1-1": FOREVER, "k1-2": FOREVER, "k1-3": FOREVER}
HEADER = "time_ms,metric,function,detail,value\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.csv"


def of_run(
    path: Path, *, url: str = URL, length_s: float = 120
) -> tuple[list[FunctionSummary], ReplicasOverTime | None]:
    """The functions and the series of a run of that length."""
    span = (START_MS, START_MS + 1000 * length_s)
    metrics = read_metrics(path, url, span)
    functions = summarise_replicas(metrics, span, START_MS)
    return functions, replicas_over_time(metrics, functions, START_MS)


def add_counters(path: Path, *rows: tuple[float, int, float]) -> None:
    """What the provider itself counted: seconds since the start, replicas lost, seconds short of them."""
    with path.open("a") as file:
        for at_s, lost, short_s in rows:
            time_ms = START_MS + at_s * 1000
            file.write(f"{time_ms},replicas_lost,face-blur,,{lost}\n{time_ms},replicas_short_s,face-blur,,{short_s}\n")


def test_what_replicas_used(path: Path) -> None:
    write_metrics(path, THREE, lambda _: 3, length_s=120)
    (row,), series = of_run(path)
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
    assert series
    metrics = "in_flight cpu_cores cpu_throttled_share memory_bytes network_bytes_per_s"
    assert " ".join(series.use) == metrics
    lines = series.use["network_bytes_per_s"].lines
    assert [line.name for line in lines] == ["k1-1", "k1-2", "k1-3"]
    assert lines[1].y[10] == pytest.approx(60_000 * 1.05)


def test_use_is_of_the_load_alone_however_short(path: Path) -> None:
    """Six seconds of load after a minute of idling, of which rates over the last 10 s would still tell."""
    rows = []
    for at_s in range(-60, 20):
        loaded_s = min(max(at_s, 0), 6)
        for metric, value in {"cpu_s": 7 + 1.5 * loaded_s, "cpu_throttled_s": 0.25 * loaded_s, "in_flight": 1}.items():
            rows.append(f"{START_MS + 1000 * at_s},{metric},face-blur,face-blur-k1-1,{value}\n")
    path.write_text(HEADER + "".join(rows))
    (row,), _ = of_run(path, length_s=6)
    assert (row.cores_mean, row.cores_max, row.throttled_mean) == (
        pytest.approx(1.5),
        row.cores_mean,
        pytest.approx(0.25),
    )
    assert (row.received_bytes_per_s, row.sent_bytes_per_s) == (None, None), "without a network of its own"


def test_requests_past_the_provider_are_not_none_under_way(path: Path) -> None:
    write_metrics(path, THREE, lambda _: 3, length_s=120)
    path.write_text(re.sub(r"(,in_flight,.*),[\d.]+", r"\1,0", path.read_text()))
    (row,), series = of_run(path)
    assert row.in_flight_max is None
    assert series and "in_flight" not in series.use


def test_a_vanished_replica_is_seen(path: Path) -> None:
    write_metrics(path, THREE | {"k1-2": (-10.0, 41.0), "k1-4": (55.0, 1e9)}, lambda _: 3, length_s=120)
    (row,), series = of_run(path)
    (gone,) = row.vanished
    assert (gone.replicas, gone.names) == (1, ["face-blur-k1-2"])
    assert 41 <= gone.at_s <= 43
    assert (row.short_s, row.short_worst, row.seen) == (14.0, ShortOfReplicas(2, 3), 4)
    assert series
    assert [value for value in series.counts["face-blur"]["short"] if value is not None] == [2.0] * 7
    line = next(line for line in series.use["in_flight"].lines if line.name == "k1-2")
    assert line.y[20] is not None
    assert set(line.y[21:]) == {None}


def test_replaced_between_two_looks(path: Path) -> None:
    """Always three ready, and yet one was lost."""
    write_metrics(path, THREE | {"k1-3": (0, 41.0), "k1-4": (41.0, 1e9)}, lambda _: 3, length_s=120)
    (row,), _ = of_run(path)
    assert (row.short_s, row.lost, len(row.vanished)) == (0, 1, 1)


def test_the_providers_own_count_goes_before_the_scrapes(path: Path) -> None:
    write_metrics(path, THREE, lambda _: 3, length_s=120)
    add_counters(path, (2, 1, 7.5), (60, 2, 7.9), (110, 2, 8.0))
    (row,), _ = of_run(path)
    assert (row.lost, row.vanished, row.short_s) == (1, [], pytest.approx(0.5))


def test_a_deployment_before_the_run_is_no_loss(path: Path) -> None:
    """Prometheus still told of the old one's replicas, and its counters begin anew."""
    old = {"k0-1": (-10.0, 2.0), "k0-2": (-10.0, 2.0)}
    write_metrics(path, old | {"k1-1": (2.0, 1e9)}, lambda at_s: 2 if at_s < 2 else 1, length_s=120)
    add_counters(path, (1, 3, 7.5), (4, 0, 0.1), (110, 0, 0.1))
    (row,), _ = of_run(path)
    assert (row.lost, row.vanished, row.short_s) == (0, [], 0)


@pytest.mark.parametrize("drain_s", [0, 10])
def test_scaling_down_is_no_loss(path: Path, drain_s: float) -> None:
    replicas = {"k1-1": FOREVER, "k1-2": (0, 60.0 + drain_s), "k1-3": (0, 60.0 + drain_s)}
    write_metrics(path, replicas, lambda at_s: 3 if at_s < 60 else 1, length_s=120)
    (row,), _ = of_run(path)
    assert (row.vanished, row.short_s, row.wanted) == ([], 0, Range(1, 3))


@pytest.mark.parametrize(
    ("replicas", "short"),
    [
        ({"k1-1": FOREVER, "k1-2": (70.0, 1e9)}, (0, None, 0)),
        ({"k1-1": (-10.0, 63.0), "k1-2": (70.0, 1e9), "k1-3": (72.0, 1e9)}, (12.0, ShortOfReplicas(0, 2), 1)),
        ({"k1-1": FOREVER}, (60.0, ShortOfReplicas(1, 2), 0)),
    ],
    ids=["started", "one of before is lost", "never ready"],
)
def test_scaling_up_is_no_lack(path: Path, replicas: dict[str, tuple[float, float]], short: tuple[object, ...]) -> None:
    write_metrics(path, replicas, lambda at_s: 1 if at_s < 60 else 2, length_s=120)
    (row,), _ = of_run(path)
    assert (row.short_s, row.short_worst, row.lost) == short


def test_the_providers_count_leaves_scaling_up_out_too(path: Path) -> None:
    """7 s without the replica that starts, and half a second without one that was lost."""
    replicas = {"k1-1": FOREVER, "k1-2": (70.0, 1e9)}
    write_metrics(path, replicas, lambda at_s: 1 if at_s < 60 else 2, length_s=120)
    add_counters(path, (50, 0, 0), (61, 0, 1), (69, 0, 9), (71, 0, 10), (80, 0, 10), (90, 1, 10.5), (110, 1, 10.5))
    (row,), _ = of_run(path)
    assert (row.lost, row.short_s) == (1, pytest.approx(0.5))


def test_the_end_of_the_run_is_no_loss(path: Path) -> None:
    write_metrics(path, THREE | {"k1-1": (0, 125.0)}, lambda _: 3, length_s=400)
    (row,), _ = of_run(path)
    assert row.vanished == []


def test_many_replicas_are_capped(path: Path) -> None:
    replicas = {f"k1-{number}": FOREVER for number in range(40)} | {"k1-39": (0, 50.0)}
    write_metrics(path, replicas, lambda _: 40, length_s=120, throttled=0.25)
    _, series = of_run(path)
    assert series
    use = series.use["in_flight"]
    assert (use.replicas, len(use.lines), use.lines[0].name) == (40, 8, "k1-39"), "the one that vanished has a line"
    assert use.whole[0] == pytest.approx(sum(2 * (1 + 0.05 * number) for number in range(40)))
    throttled = series.use["cpu_throttled_share"]
    assert throttled.whole[5] == pytest.approx(0.25 * (1 + 0.05 * 19.5), abs=1e-4), "the mean, not the sum"


@pytest.mark.parametrize(
    ("url", "functions"),
    [
        (URL, ["face-blur"]),
        ("http://gateway:8080/function/another", ["face-blur", "noop"]),
    ],
)
def test_the_function_under_test(path: Path, url: str, functions: list[str]) -> None:
    for name in ("noop", "face-blur"):
        write_metrics(path, THREE, lambda _: 3, length_s=120, function=name)
    rows, series = of_run(path, url=url)
    assert [row.function for row in rows] == functions
    assert series and sorted(series.counts) == functions


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (None, ""),
        ("http://[", ""),
        ("http://gateway:8080/", ""),
        ("http://h/x/blur", "blur"),
        ("http://gateway:8080/async-function/face-blur.openfaas-fn/path?x=1", "face-blur"),
    ],
)
def test_function_of(url: str | None, name: str) -> None:
    assert function_of(url) == name


@pytest.mark.parametrize("content", [None, "", HEADER, "half a li", "a,b\n1,2\n"])
def test_a_file_that_says_nothing(path: Path, content: str | None) -> None:
    if content is not None:
        path.write_text(content)
    assert of_run(path) == ([], None)


def test_no_scrape_within_a_short_run(path: Path) -> None:
    path.write_text(HEADER + "".join(f"{START_MS + 1000 * n},requests_per_s,face-blur,200,4.2\n" for n in range(3)))
    (row,), series = of_run(path)
    assert (row.seen, series) == (0, None)


def test_broken_rows_are_left_out(path: Path) -> None:
    write_metrics(path, THREE, lambda _: 3, length_s=120)
    with path.open("a") as file:
        file.write(
            f"x,memory_bytes,face-blur,k,1\n17,in_flight,face-blur,k,3\n{START_MS + 5000},cpu_s,,k,3\n179000,mem"
        )
    (row,), _ = of_run(path, url="http://gateway/")
    assert row.seen == 3


def test_a_long_run_stays_small(path: Path) -> None:
    replicas = {f"k1-{number}": FOREVER for number in range(12)} | {"k1-3": (0, 5000.0), "k1-99": (5006.0, 1e9)}
    write_metrics(path, replicas, lambda _: 12, length_s=7200)
    _, series = of_run(path, length_s=7200)
    assert series
    assert len(series.x) <= MAX_BINS + 1
    ready = series.counts["face-blur"]["ready"]
    assert min(value for value in ready if value is not None) == 11, "a dip of six seconds is not averaged away"


def test_what_is_read_seldom_lies_on_a_line(path: Path) -> None:
    """As a kubelet measures: each replica every 12 s, at times of its own; together they use a core and a half."""
    counts = [
        f"{START_MS + 1000 * second},replicas_{what},face-blur,,2"
        for second in range(61)
        for what in ("wanted", "ready")
    ]
    use = [
        f"{START_MS + 1000 * at_s},{metric},face-blur,{replica},{value}"
        for replica, first_s, cores in (("k1-1", -4, 0.5), ("k1-2", 1, 1.0))
        for at_s in range(first_s, 66, 12)
        for metric, value in (("cpu_s", 100 + cores * at_s), ("memory_bytes", 1e6))
    ]
    path.write_text(HEADER + "\n".join((*counts, *use)) + "\n")
    (row,), series = of_run(path, length_s=60)
    assert row.throttled_mean is None and row.memory_max_bytes == 1e6
    assert row.cores_max == pytest.approx(1.5)
    assert series
    first, second = series.use["cpu_cores"].lines
    assert first.y[20:50] == [pytest.approx(0.5)] * 30 and second.y[20:50] == [pytest.approx(1.0)] * 30


def test_a_cluster_tells_the_end_of_a_replica_itself(path: Path) -> None:
    rows = [
        f"{START_MS + 1000 * second},replicas_{what},face-blur,,1"
        for second in range(31)
        for what in ("wanted", "ready")
    ]
    rows += [f"{START_MS + 1000 * second},memory_bytes,face-blur,k1-1,1e6" for second in range(10)]
    rows += [f"{START_MS + 1000 * second},replica_ready,face-blur,k1-1,1" for second in range(10)]
    path.write_text(HEADER + "\n".join(rows) + "\n")
    add_counters(path, (0, 0, 0), (20, 1, 0))
    (row,), _ = of_run(path)
    assert (row.lost, row.vanished) == (1, [])
