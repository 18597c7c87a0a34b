"""What the parts of a platform's path add, from the rows of a calibration."""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from framestorm.results.calibration import COLUMNS, FILE, Row, read_calibration

ROUNDS, REQUESTS = 40, 20
PARTS = {"handler": "function", "queue-proxy": "queue-proxy", "ingress": "ingress"}
WITHOUT = {"handler": "", "queue-proxy": "handler", "ingress": "queue-proxy"}


def rows(times_us: dict[str, float]) -> Iterable[Row]:
    """Requests by each route that vary by 10 %, on a machine whose speed changes from round to round."""
    noise = np.random.default_rng(1)
    for number in range(1, ROUNDS + 1):
        speed_us = noise.uniform(0, 200)
        for route in sorted(times_us, reverse=True):
            for _ in range(REQUESTS):
                yield Row(number, route, WITHOUT[route], times_us[route] * noise.uniform(0.9, 1.1) + speed_us, "")


def write(folder: Path, each: Iterable[Row]) -> None:
    with (folder / FILE).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("part", *COLUMNS))
        writer.writerows((PARTS[row.route], *row) for row in each)


def test_a_part_adds_the_difference_of_two_routes(tmp_path: Path) -> None:
    write(tmp_path, rows({"handler": 100, "queue-proxy": 300, "ingress": 540}))
    calibration = read_calibration(tmp_path)
    assert calibration is not None and calibration.rounds == ROUNDS
    assert [part.name for part in calibration.parts] == ["function", "queue-proxy", "ingress"], "in their order"
    assert all((part.n, part.failed) == (ROUNDS * REQUESTS, 0) for part in calibration.parts)
    assert calibration.parts[0].adds is None
    for part, added_ms in zip(calibration.parts[1:], (0.2, 0.24), strict=True):
        adds = part.adds
        assert adds is not None and adds.low is not None and adds.high is not None
        assert adds.low < added_ms < adds.high and adds.high - adds.low < 0.02, (
            "although the machine's speed varies by 0.2 ms"
        )


def test_what_failed_is_counted_and_not_timed(tmp_path: Path) -> None:
    failed = [Row(number, "ingress", "queue-proxy", 9e6, "status-503") for number in range(1, 6)]
    write(tmp_path, [*rows({"handler": 100, "queue-proxy": 300, "ingress": 540}), *failed])
    calibration = read_calibration(tmp_path)
    assert calibration is not None
    part = calibration.parts[-1]
    assert (part.n, part.failed, part.why) == (ROUNDS * REQUESTS + 5, 5, "status-503")
    assert part.adds is not None and part.adds.value == pytest.approx(0.24, abs=0.02)


def test_a_route_that_is_not_reached_leaves_the_others(tmp_path: Path) -> None:
    write(
        tmp_path,
        [Row(0, "handler", "", 0, "not reached from here: timed out"), *rows({"queue-proxy": 300, "ingress": 540})],
    )
    calibration = read_calibration(tmp_path)
    assert calibration is not None
    function, queue_proxy, ingress = calibration.parts
    assert (function.failed, function.median_ms, function.why) == (1, None, "not reached from here: timed out")
    assert queue_proxy.adds is None and ingress.adds is not None


@pytest.mark.parametrize(
    ("damaged", "rounds", "problem"),
    [
        (lambda whole: b"", None, []),
        (lambda whole: whole[:9], None, ["calibration.csv is damaged: nothing of it can be read."]),
        (lambda whole: b"\0" * 4096, None, ["calibration.csv is damaged: nothing of it can be read."]),
        (lambda whole: whole[:-9], ROUNDS, ["calibration.csv is damaged: 1 row of it cannot be read."]),
        (lambda whole: whole + b"\xff,x,\0\r\n", ROUNDS, ["calibration.csv is damaged: 1 row of it cannot be read."]),
    ],
)
def test_what_is_damaged_is_said_and_the_rest_is_used(
    damaged: Callable[[bytes], bytes], rounds: int | None, problem: list[str], tmp_path: Path
) -> None:
    write(tmp_path, rows({"handler": 100, "queue-proxy": 300}))
    (tmp_path / FILE).write_bytes(damaged((tmp_path / FILE).read_bytes()))
    problems: list[str] = []
    calibration = read_calibration(tmp_path, problems)
    assert (calibration and calibration.rounds, problems) == (rounds, problem)


def test_a_run_without_calibration_has_none(tmp_path: Path) -> None:
    assert read_calibration(tmp_path) is None
