"""The live page, in a real browser, and to whom it answers."""

import http.client
import json
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from framestorm.errors import UsageError
from framestorm.machine import wait_until
from framestorm.model.files import write
from framestorm.model.glance import Glance, KeyFigure
from framestorm.model.run import Host, Loss, Record
from framestorm.report.page import page_html
from framestorm.results.interval import Interval, Key
from framestorm.sinks.live_page import MAX_CONNECTIONS, LivePage
from framestorm.sinks.sink import Update, finish
from tests.framestorm.conftest import CHROMIUM_FLAGS, summary_of

BEGAN_S = 1_800_000_000.0


@pytest.fixture
def page() -> Iterator[LivePage]:
    """The page of a run that has begun."""
    hosts = (Host("vm-7", "slave", cores=2, inventory_name="slave1"),)
    record = Record(plan="jmx/requests.jmx", title="OCR <b>nightly</b>", started_ms=BEGAN_S * 1000, hosts=hosts)
    page = LivePage(0)
    page.begin("nightly-1", record, "request")
    yield page
    page.close()


def update(second: int, samples: int, *, label: str = "request", lost: tuple[Loss, ...] = ()) -> Update:
    """What became known in a second: its samples, and how many there were so far."""
    interval = Interval(Key(int(BEGAN_S) + second, label, "sampler", "slave1"))
    for number in range(10):
        interval.add(BEGAN_S + second + number / 20, 20.0 + number, "reset" if number == 9 else None)
    notes = [f"{loss.host} lost" for loss in lost]
    figures = [KeyFigure(str(samples), "requests"), KeyFigure("12 ms", "p95", is_name_first=True)]
    rows = [("slave1", ["10"]), (label, ["<i>7</i>"])]
    glance = Glance(f"{second} s of 60 s", figures, ["errors > 1 %: 10 %, not ok so far"], ["requests"], rows, notes)
    return Update(BEGAN_S + second + 1.6, [interval], 4, {"slave1": 1.5}, lost, glance)


def state(page: LivePage) -> Any:
    return json.loads(page.content())


def get(page: LivePage, path: str, host: str | None = None) -> http.client.HTTPResponse:
    """Ask the page for a path, by a name of the host."""
    connection = http.client.HTTPConnection("127.0.0.1", int(page.url.rsplit(":", 1)[1].rstrip("/")), timeout=20)
    connection.putrequest("GET", path, skip_host=True)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    return connection.getresponse()


def in_browser(page: LivePage, profile: Path, budget_ms: int) -> str:
    """The page as a browser has it once it has looked for so long, by its own clock."""
    flags = [flag for flag in CHROMIUM_FLAGS if "budget" not in flag]
    command = [
        "chromium",
        *flags,
        f"--virtual-time-budget={budget_ms}",
        f"--user-data-dir={profile}",
        "--dump-dom",
        page.url,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout


def test_the_page_follows_the_run_to_its_report_without_loading_again(page: LivePage, tmp_path: Path) -> None:
    """The run goes on as the page asks for news, so that the browser sees each of its steps."""
    asked, viewers, looks = 0, set[str](), page.looks

    def counted(viewer: str, *, has_report: bool) -> None:
        nonlocal asked
        asked += 1
        viewers.add(viewer)
        looks(viewer, has_report=has_report)

    page.looks = counted  # type: ignore[method-assign]
    summary = summary_of(9)
    write(tmp_path / "summary.json", summary)
    (tmp_path / "index.html").write_text(page_html(summary))
    ended: list[bool] = []

    def go_on() -> None:
        for second in range(5, 10):
            page.put(update(second, samples=10 * second, label="request" if second < 8 else "search"))
            seen = asked
            ended.append(wait_until(lambda: asked > seen + 1, 60))  # noqa: B023 - called in this round only
        finish([page])
        page.show_report(tmp_path)

    run = Thread(target=go_on)
    run.start()
    shown = in_browser(page, tmp_path / "profile", budget_ms=120_000)
    run.join(60)
    assert ended == [True] * 5
    main = shown[shown.index("<main>") : shown.index("</main>")]
    assert re.search(r'<a id="report" href="blob:http://127\.0\.0\.1:\d+/[^"]+">', main)
    assert '<p class="word">Passed</p>' in main and f"<code>{tmp_path}/index.html</code>" in main
    assert "OCR &lt;b&gt;nightly&lt;/b&gt;" in main and "&lt;i&gt;7&lt;/i&gt;" in main
    # Each chart in sight is drawn once, and those of the second label came while the page was open.
    figures = re.findall(r'<figure id="chart-([^"]+)"(?: data-label="\d")?( hidden="")?>', main)
    names = [name for name, hidden in figures]
    assert names[:2] == ["overview", "response-time-by-label"] and "throughput-1" in names
    drawn = main.split("<figure ")[1:]
    assert ["main-svg" in figure for figure in drawn] == [not hidden for _, hidden in figures]
    assert len(viewers) == 1  # a page that is loaded again is another one


READER = b"""<script>
  // Chooses the second label when there is one, and the other scale of a chart, and looks whether these stay.
  let list, choice;
  setInterval(() => {
    if (!list && (list = document.querySelector("#label"))) {
      list.focus();
      list.value = "1";
      list.dispatchEvent(new Event("change", { bubbles: true }));
      choice = document.querySelector('.choice[aria-pressed="false"]');
      choice.click();
    }
    const is_kept = list && document.activeElement === list && list.value === "1" && choice.isConnected;
    document.body.dataset.kept = Boolean(is_kept && choice.getAttribute("aria-pressed") === "true");
  }, 100);
</script>"""


def test_what_a_reader_chose_stays_while_the_figures_change(page: LivePage, tmp_path: Path) -> None:
    """A list that was replaced each second closed when it was opened, and lost the focus."""
    page._server.html += READER
    asked, looks = 0, page.looks

    def counted(viewer: str, *, has_report: bool) -> None:
        nonlocal asked
        asked += 1
        if asked < 12:
            page.put(update(5 + asked, samples=10 * asked, label=("request", "search", "buy")[asked // 4]))
        looks(viewer, has_report=has_report)

    page.looks = counted  # type: ignore[method-assign]
    shown = in_browser(page, tmp_path / "profile", budget_ms=30_000)
    assert re.search('<body[^>]* data-kept="true"', shown)
    figures = dict(re.findall(r'<figure id="(chart-[^"]+)" data-label="(\d)"(?: hidden="")?>', shown))
    hidden = set(re.findall(r'<figure id="(chart-[^"]+)" data-label="\d" hidden="">', shown))
    assert set(figures.values()) == {"0", "1", "2", "3"}
    assert {name for name, label in figures.items() if label != "1"} == hidden


def test_a_browser_says_that_nobody_answers(page: LivePage, tmp_path: Path) -> None:
    page.put(update(5, samples=50))

    def leave() -> None:
        assert wait_until(lambda: page._viewers, 60)
        page.close()

    leaving = Thread(target=leave)
    leaving.start()
    shown = in_browser(page, tmp_path / "profile", budget_ms=60_000)
    leaving.join(60)
    assert '<p class="word">Framestorm does not answer: the run is over, or was ended</p>' in shown


def test_the_state_has_figures_charts_and_who_is_lost(page: LivePage) -> None:
    page.put(update(5, samples=50))
    lost = Loss("vm-7", (BEGAN_S + 6) * 1000, "no word for 10 s")
    page.put(update(7, samples=70, lost=(lost,)))
    assert wait_until(lambda: "7 s of 60 s" in page.content(), 20)
    main = state(page)["main"]
    assert "<dt>requests</dt><dd>70</dd>" in main and "<dt>p95</dt><dd>12 ms</dd>" in main
    assert '<p class="bad lost">vm-7 lost</p>' in main and "not ok so far" in main
    assert "Marked: vm-7 lost at 1 s" in main
    assert [figure["name"] for figure in state(page)["figures"]][:2] == ["overview", "response-time-over-time"]
    assert not state(page)["has_report"]
    finish([page])
    assert "The load has ended. The report is being made." in state(page)["main"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "evil.example:{port}", "127.0.0.1:1", None])
@pytest.mark.parametrize("path", ["/", "/state", "/report"])
def test_a_name_that_is_not_its_own_gets_nothing(page: LivePage, path: str, host: str | None) -> None:
    port = page.url.rsplit(":", 1)[1].rstrip("/")
    answer = get(page, path, host and host.format(port=port))
    assert (answer.status, answer.read()) == (421, b"not the name of this page\n")


def test_its_own_names_get_the_page_and_no_other_site_may_frame_it(page: LivePage) -> None:
    port = page.url.rsplit(":", 1)[1].rstrip("/")
    for name in ("127.0.0.1", "localhost"):
        answer = get(page, "/", f"{name}:{port}")
        assert answer.status == 200 and b"Waiting for the run" in answer.read()
        policy = answer.headers["Content-Security-Policy"]
        assert {"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"} <= set(policy.split("; "))
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert answer.headers["Access-Control-Allow-Origin"] is None
    assert [get(page, path, f"localhost:{port}").status for path in ("/report", "/run.json", "/../run.json")] == [
        404
    ] * 3


def test_a_browser_leaves_out_the_usual_port(page: LivePage) -> None:
    page._server.server_port = 80
    hosts = ("127.0.0.1", "localhost", "localhost:80", "evil.example", "evil.example:80", "", None)
    assert [get(page, "/", host).status for host in hosts] == [200] * 3 + [421] * 4


def test_only_this_machine_reaches_it(page: LivePage) -> None:
    assert page._server.server_address[0] == "127.0.0.1"


def test_a_fault_of_the_page_is_said_once(page: LivePage, capfd: pytest.CaptureFixture[str]) -> None:
    port = page.url.rsplit(":", 1)[1].rstrip("/")
    capfd.readouterr()
    page.content = lambda: 1 / 0  # type: ignore[assignment,method-assign]
    for _ in range(2):
        with pytest.raises(http.client.RemoteDisconnected):
            get(page, "/state", f"localhost:{port}")
    finish([page])
    (said,) = capfd.readouterr().err.splitlines()
    assert said == "note: --live: ZeroDivisionError: division by zero; the run goes on"


def test_connections_that_say_nothing_do_not_pile_up(page: LivePage) -> None:
    port = int(page.url.rsplit(":", 1)[1].rstrip("/"))
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(MAX_CONNECTIONS)]
    with socket.create_connection(("127.0.0.1", port)) as further:
        assert further.recv(1) == b""  # closed
    for each in silent:
        each.close()
    assert wait_until(lambda: _answers(page, port), 20)


def _answers(page: LivePage, port: int) -> bool:
    try:
        return get(page, "/state", f"localhost:{port}").status == 200
    except OSError:
        return False


def test_a_taken_port_is_named_with_who_has_it(page: LivePage) -> None:
    port = int(page.url.rsplit(":", 1)[1].rstrip("/"))
    with pytest.raises(UsageError, match=rf"--live {port}: the port is taken by .*pid \d+.*give another port"):
        LivePage(port)
    with pytest.raises(UsageError, match=r"--live 70000: .*0-65535.*give another port"):
        LivePage(70_000)


def test_the_end_waits_for_nobody_who_does_not_look(
    page: LivePage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a viewer that never takes the report, the wait has an end too."""
    summary = summary_of(9)
    write(tmp_path / "summary.json", summary)
    (tmp_path / "index.html").write_text("the report")
    waited: list[bool] = []
    monkeypatch.setattr("framestorm.sinks.live_page.wait_until", lambda done, within_s: waited.append(done()))
    page.show_report(tmp_path)
    page.looks("a", has_report=False)
    page.show_report(tmp_path)
    port = page.url.rsplit(":", 1)[1].rstrip("/")
    assert get(page, "/report?viewer=a", f"localhost:{port}").read() == b"the report"
    assert wait_until(lambda: not page._viewers, 20)
    page.show_report(tmp_path)
    assert waited == [True, False, True]


def test_runs_in_turn_are_shown_on_one_page(page: LivePage) -> None:
    """As the probes of a search are, and the points of a study: nothing of a run is left in the next."""
    page.put(update(1, 10))
    finish([page])
    assert "Ended" in state(page)["main"] and state(page)["figures"]
    page.begin("search probe-02 20/s", Record(plan="jmx/request-rate.jmx", started_ms=BEGAN_S * 1000), "request")
    assert "<h1>search probe-02 20/s</h1>" in state(page)["main"]
    assert "Running" in state(page)["main"] and not state(page)["figures"]
    page.put(update(1, 20))
    assert wait_until(lambda: "20" in state(page)["main"] and state(page)["figures"], 10)
    finish([page])
    assert "Ended" in state(page)["main"]
