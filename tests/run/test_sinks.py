"""`--sink`: the figures of a real run in a real Prometheus and a real InfluxDB, and what Grafana asks them for."""

import json
import math
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import requests

from framestorm import paths
from framestorm.machine import wait_until
from tests.runs import Done, RunSh
from tests.stand_in import Answer, StandIn, serving

DASHBOARD, OF_INFLUX = paths.DASHBOARDS / "grafana-runs.json", paths.DASHBOARDS / "grafana-runs-influxdb.json"
INFLUX = """\
reporting-disabled = true
bind-address = "127.0.0.1:{rpc}"
[meta]
dir = "{folder}/meta"
[data]
dir = "{folder}/data"
wal-dir = "{folder}/wal"
[http]
bind-address = "127.0.0.1:{port}"
"""


class Services:
    """Prometheus and InfluxDB, as Debian packs them, each with an empty store."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        prometheus, influx, rpc = (RunSh(folder).port for _ in range(3))
        self.prometheus, self.influx = (f"http://127.0.0.1:{port}" for port in (prometheus, influx))
        (folder / "prometheus.yml").write_text("global: {scrape_interval: 15s}\n")
        (folder / "influxdb.conf").write_text(INFLUX.format(folder=folder, port=influx, rpc=rpc))
        for command in (
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
             f"--web.listen-address=127.0.0.1:{prometheus}", "--web.enable-remote-write-receiver"],
            ["influxd", "-config", str(folder / "influxdb.conf")],
        ):  # fmt: skip
            with (folder / f"{command[0]}.log").open("w") as log:
                process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
        for address in (f"{self.prometheus}/-/ready", f"{self.influx}/ping"):
            assert wait_until(lambda: _answers(address), 60), address  # noqa: B023 - called in this round only
        requests.post(f"{self.influx}/query", params={"q": "create database jmeter"}, timeout=10)

    def of_prometheus(self, query: str, at_s: float | None = None) -> dict[str, float]:
        """The values that a query has at a time, or now, by label."""
        asked = {"query": query} | ({} if at_s is None else {"time": f"{at_s:.3f}"})
        answer = requests.get(f"{self.prometheus}/api/v1/query", params=asked, timeout=10).json()
        assert answer["status"] == "success", answer
        return {each["metric"].get("label", ""): float(each["value"][1]) for each in answer["data"]["result"]}

    def of_influx(self, query: str) -> dict[str, Any]:
        """The last column of the first row that a query has, by transaction."""
        series = self.series_of_influx(query)
        return {each.get("tags", {}).get("transaction", ""): each["values"][0][-1] for each in series}

    def series_of_influx(self, query: str) -> list[dict[str, Any]]:
        """The series that a query has, each with its tags and its rows."""
        answer = requests.get(f"{self.influx}/query", params={"db": "jmeter", "q": query}, timeout=10).json()
        (result,) = answer["results"]
        assert "error" not in result, result
        series: list[dict[str, Any]] = result.get("series", [])
        return series


def _answers(address: str) -> bool:
    try:
        return requests.get(address, timeout=5).ok
    except requests.ConnectionError:
        return False


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with ExitStack() as stack:
        yield Services(tmp_path_factory.mktemp("services"), stack)


@pytest.fixture(scope="module")
def done(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """A run whose users are processes, and a service of OpenTelemetry that is not there."""
    caller = RunSh(tmp_path_factory.mktemp("run"))
    function = StandIn([Answer(), Answer(), Answer(status=503)])
    with serving(server=function):
        yield caller(
            "-t", "jmx/video-per-user.jmx", f"-Jurl={function.url}", "-Jverify_share=0", "-Jusers=3", "-Jframes=10",
            "--sink", f"prometheus:{services.prometheus}/api/v1/write",
            "--influxdb", f"{services.influx}/write?db=jmeter",
            "--sink", "otlp:http://127.0.0.1:1/v1/metrics", status=3,
        )  # fmt: skip
    caller.close()


def test_each_sample_is_counted_once(services: Services, done: Done) -> None:
    frames = [row["ok"] for row in done.rows("samples.csv")]
    n, failed = len(frames), frames.count("false")
    assert (n, failed) == (30, 10)
    assert services.of_prometheus("framestorm_samples_total") == {"frame": 30, "user": 3}
    assert services.of_prometheus('sum by (label) (framestorm_errors_total{cause="status-503"})')["frame"] == 10
    assert services.of_prometheus('framestorm_response_time_seconds_count{label="frame"}') == {"frame": 20}
    assert services.of_influx("""select sum("count") from jmeter where statut = 'all' group by "transaction" """) == {
        "all": 30, "frame": 30, "user": 3,
    }  # fmt: skip
    assert (
        services.of_influx("""select sum("count") from jmeter where statut = 'ko' group by "transaction" """)["frame"]
        == 10
    )
    assert services.of_influx("select count(text) from events") == {"": 2}


def test_what_did_not_get_the_figures_is_said(done: Done) -> None:
    sinks = done.json("run.json")["sinks"]
    assert [(each["sink"].partition(":")[0], each["missed"], each["problem"]) for each in sinks[:2]] == [
        ("prometheus", 0, None), ("influxdb", 0, None),
    ]  # fmt: skip
    otlp = sinks[2]
    assert otlp["missed"] == otlp["intervals"] > 0
    note = f"otlp:http://127.0.0.1:1/v1/metrics did not get {otlp['missed']} of {otlp['intervals']} updates"
    (on_page,) = [each for each in done.json("summary.json")["notes"] if each.startswith(note)]
    assert on_page in done.text("index.html").replace("&#39;", "'")
    assert done.stderr.count("note: --sink otlp:") == 1


def expressions() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


@pytest.mark.parametrize("expression", expressions())
def test_each_query_of_the_dashboard_has_an_answer(expression: str, services: Services, done: Done) -> None:
    """As Grafana sends them, with its variables replaced."""
    for variable, value in {"$run": "run", "$label": ".+", "$__rate_interval": "1m"}.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression
    values = services.of_prometheus(expression, at_s=done.json("run.json")["ended_ms"] / 1000)
    assert any(math.isfinite(value) for value in values.values()), values


def test_the_dashboard_names_series_that_runs_have(services: Services, done: Done) -> None:
    names = {name for each in expressions() for name in re.findall(r"framestorm_\w+", each)}
    answer = requests.get(f"{services.prometheus}/api/v1/label/__name__/values", timeout=10).json()
    own = {name for name in answer["data"] if name.startswith("framestorm_")}
    assert names == own - {"framestorm_response_time_seconds_sum", "framestorm_response_time_seconds_count"}


def panels_of_influx() -> dict[str, str]:
    return {each["title"]: each["targets"][0]["query"] for each in json.loads(OF_INFLUX.read_text())["panels"]}


def as_grafana_sends(query: str, done: Done) -> str:
    """A query of the dashboard for InfluxDB, with its variables replaced."""
    record = done.json("run.json")
    during = f"time >= {record['started_ms']:.0f}ms AND time <= {record['ended_ms'] + 1000:.0f}ms"
    values = {
        "$run": "run", "$label": ".+", "$__interval_ms": "1000", "$__interval": "1s", "$timeFilter": during,
    }  # fmt: skip
    for variable, value in values.items():
        query = query.replace(variable, value)
    # A $ is left where a regular expression ends.
    assert re.findall(r"\$(?!/)", query) == []
    return query


@pytest.mark.parametrize("title", panels_of_influx())
def test_each_query_of_the_dashboard_for_influxdb_has_an_answer(title: str, services: Services, done: Done) -> None:
    series = services.series_of_influx(as_grafana_sends(panels_of_influx()[title], done))
    assert any(row[-1] is not None for each in series for row in each["values"])
    sums = {"".join(each.get("tags", {}).values()): sum(row[-1] or 0 for row in each["values"]) for each in series}
    if title == "Samples per second":
        assert sums == {"frame": 30, "user": 3}
    elif title == "Errors per second":
        assert sums["status-503"] == 13, "ten frames, and the users that had them"


def test_the_variables_of_the_dashboard_for_influxdb_are_the_run_and_its_labels(services: Services, done: Done) -> None:
    run, label = (each for each in json.loads(OF_INFLUX.read_text())["templating"]["list"] if each["type"] == "query")
    (runs,) = services.series_of_influx(run["query"])
    assert [value for _, value in runs["values"]] == ["run"]
    (labels,) = services.series_of_influx(label["query"].replace("$run", "run"))
    known = re.compile(label["regex"].strip("/"))
    assert {value for _, value in labels["values"] if known.match(value)} == {"frame", "user"}
