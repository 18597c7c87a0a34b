"""`--live`: a page of the run that goes on, and at its end the report."""

import re
from typing import Any

import requests

from framestorm.machine import wait_until
from tests.runs import RunSh
from tests.stand_in import StartServer


def test_the_page_shows_the_run_and_then_its_report(run_sh: RunSh, stand_in: StartServer) -> None:
    server = stand_in({"delay_s": 0.02}, {"status": 503})
    port = RunSh(run_sh.folder).port
    origin = f"http://127.0.0.1:{port}"
    load = ("-t", "jmx/requests.jmx", f"-Jurl={server.url}", "-Jusers=3", "-Jramp_s=0", "-Jhold_s=10")
    running = run_sh.start(*load, "--live", str(port), "--title", "OCR, nightly")
    states: list[dict[str, Any]] = []

    def has_news(text: str) -> bool:
        try:
            states.append(requests.get(f"{origin}/state?viewer=test", timeout=10).json())
        except requests.ConnectionError:
            return False
        return text in states[-1]["main"]

    running.until(lambda: has_news("3 of 3</dd>"))
    running.until(lambda: has_news("status-503"))
    running.until(lambda: has_news("answered") and points(states[-1]) > 4)
    main, figures = states[-1]["main"], figures_of(states[-1])
    assert "<h1>OCR, nightly</h1>" in main and "Running" in main
    assert {"overview", "response-time-over-time", "throughput", "users-over-time", "processor-use"} <= figures.keys()
    assert max(figures["users-over-time"]["data"][0]["y"]) == 3
    assert max(value or 0 for value in figures["response-time-over-time"]["data"][0]["y"]) >= 20
    assert wait_until(lambda: has_news("Open its report"), 120)
    assert '<p class="word">Failed</p>' in states[-1]["main"] and states[-1]["has_report"]
    report = requests.get(f"{origin}/report?viewer=test", timeout=10).text
    done = running.ended(3)
    assert report == done.text("index.html")
    assert f"live page: {origin}/" in done.stderr
    # All that the page counted is in the raw files, and the other way round.
    rates = {trace["name"]: trace for trace in figures_of(states[-1])["overview"]["data"]}
    drawn = sum(rates["answered"]["y"]) + sum(rates["errors"]["y"])
    assert drawn > 0.8 * len(done.rows())


def points(state: dict[str, Any]) -> int:
    """How many points the first line of the first chart has."""
    return len(state["figures"][0]["data"][0]["x"]) if state["figures"] else 0


def figures_of(state: dict[str, Any]) -> dict[str, Any]:
    """The charts by their names."""
    return {each["name"]: each for each in state["figures"]}


def test_a_port_that_is_taken_is_said_before_the_load(run_sh: RunSh, stand_in: StartServer) -> None:
    server, other = stand_in(), stand_in()
    load = ("-t", "jmx/requests.jmx", f"-Jurl={server.url}")
    refused = run_sh(*load, "--live", str(other.server_port), status=2)
    assert re.search(rf"--live {other.server_port}: the port is taken by .*pid \d+", refused.stderr)
    assert not refused.folder.exists() and server.received == []


def test_a_check_tries_the_port_and_sends_nothing(run_sh: RunSh, stand_in: StartServer) -> None:
    server = stand_in()
    port = RunSh(run_sh.folder).port
    done = run_sh("-t", "jmx/requests.jmx", f"-Jurl={server.url}", "--live", str(port), "--check")
    assert f"live page: http://127.0.0.1:{port}/" in done.stdout.splitlines()
    assert server.received == [] and not done.folder.exists()
