"""A calibration: what each part of a cluster's path adds to a no-op, measured over its routes in turn."""

import csv
import http.client
import random
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from framestorm.machine import wait_until
from framestorm.platform.kubernetes.observation import Workload
from framestorm.results.calibration import COLUMNS, FILE, Row

FOR_S = 10.0
LEAST_ROUNDS = 10
# Of a route in a round; and before the first round, so that nothing is measured that is done once.
REQUESTS, WARM_UP = 50, 100
TIMEOUT_S = 5.0
BODY = b"{}"


@dataclass(frozen=True)
class Found:
    """A function that is on the cluster, by the address that it has there.

    url: to which requests are sent; host: that they name, empty for that of the URL. headers: that they have beside.
    """

    workload: Workload
    url: str
    host: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Leg:
    """What lies on a route and not on another: it adds the difference of their times."""

    route: str
    without: str = ""


class Connection:
    """A kept connection to one route."""

    def __init__(self, found: Found) -> None:
        parts = urllib.parse.urlsplit(found.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
        self._path = parts._replace(scheme="", netloc="").geturl() or "/"
        host = {"Host": found.host} if found.host else {}
        self._headers = {"Content-Type": "application/json", **host, **found.headers}

    def call(self) -> tuple[float, str]:
        """Send one request; returns its time in us, and what went wrong, empty if nothing did."""
        begin_ns = time.perf_counter_ns()
        try:
            self._connection.request("POST", self._path, BODY, self._headers)
            with closing(self._connection.getresponse()) as answer:
                answer.read()
                error = "" if answer.status == http.HTTPStatus.OK else f"status-{answer.status}"
        except (OSError, http.client.HTTPException) as failure:
            self.close()
            error = str(failure) or type(failure).__name__
        return (time.perf_counter_ns() - begin_ns) / 1000, error

    def close(self) -> None:
        """Close it; the next call opens it again."""
        self._connection.close()


def measure(routes: Mapping[str, Found], parts: Mapping[str, Leg], folder: Path, seed: int = 1) -> None:
    """Measure routes to a no-op for about ten seconds, and write each request to calibration.csv.

    In each round, every route has its turn, in an order by chance: what changes meanwhile changes them all.

    Args:
        routes: by name.
        parts: the part of each route, by the name of the part, in their order on the page.
        folder: where the file is written.
        seed: of the order.
    """
    connections = {name: Connection(found) for name, found in routes.items()}
    try:
        without = {part.route: part.without for part in parts.values()}
        refusals = {name: why for name, each in connections.items() if (why := _why_unreached(each))}
        rows = [Row(0, name, without[name], 0.0, f"not reached from here: {why}") for name, why in refusals.items()]
        reached = {name: each for name, each in connections.items() if name not in refusals}
        rows += _rounds(reached, without, seed)
    finally:
        for each in connections.values():
            each.close()
    with (folder / FILE).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("part", *COLUMNS))
        names = {part.route: name for name, part in parts.items()}
        writer.writerows((names[row.route], *row) for row in rows)


def _why_unreached(connection: Connection) -> str:
    """Return why a route does not answer, empty if it does; a new address may take a moment."""
    wait_until(lambda: not connection.call()[1], TIMEOUT_S)
    _, error = connection.call()
    for _ in range(0 if error else WARM_UP):
        connection.call()
    return error


def _rounds(connections: Mapping[str, Connection], without: Mapping[str, str], seed: int) -> Iterator[Row]:
    order, chance = list(connections), random.Random(seed)  # noqa: S311 - an order, no secret
    begin_s, number = time.monotonic(), 0
    while order and (number < LEAST_ROUNDS or time.monotonic() - begin_s < FOR_S):
        number += 1
        chance.shuffle(order)
        for name in order:
            for _ in range(REQUESTS):
                time_us, error = connections[name].call()
                yield Row(number, name, without[name], round(time_us, 1), error)
