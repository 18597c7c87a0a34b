import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import asdict, replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from framestorm.model import units
from framestorm.model.activation import Activation, ColdSplit
from framestorm.model.files import read
from framestorm.model.function_summary import EndedReplica, NodeOutage, PlatformWarning
from framestorm.model.summary import SCHEMA_FILE, Calibration, PathPart, Summary, schema_text
from framestorm.plain import visible
from framestorm.report import build
from framestorm.report.charts import charts
from framestorm.report.junit import junit_xml
from framestorm.report.page import MAX_REPLICAS, _times, page_html
from framestorm.report.summary import summarise
from framestorm.report.trust import machines
from framestorm.results.reading import read_results
from framestorm.stats.estimate import Estimate
from tests.framestorm.conftest import function_of, own_text
from tests.framestorm.results.conftest import JTL_OF_LABELS, START_MS, FakeRun, write_jtl, write_metrics


@pytest.fixture
def made(three_users: Any) -> Path:
    folder: Path = three_users.write()
    build(folder)
    return folder


def load(folder: Path) -> Summary:
    return read(folder / "summary.json", Summary)


def test_made_of_the_summary_alone(made: Path) -> None:
    assert page_html(load(made)) == (made / "index.html").read_text()


def test_a_column_of_time_outs_is_there_where_some_are(made: Path) -> None:
    summary = load(made)
    none = {
        name: replace(label, times={series: replace(times, censored=0) for series, times in label.times.items()})
        for name, label in summary.labels.items()
    }
    column = '<th class="number">timed out</th>'
    assert (page_html(summary).count(column), page_html(replace(summary, labels=none)).count(column)) == (1, 0)


def test_hosts_without_clients_have_no_counts_of_them(tmp_path: Path, slave_lost: Any) -> None:
    """Their zeros would look like a loss; JMeter's samplers write no line by which it could be told."""
    rows = [{"timeStamp": START_MS + n, "elapsed": 9, "label": "call", "success": "true"} for n in range(8)]
    folder = FakeRun(tmp_path / "run").write(has_users=False, label="call", properties={})
    write_jtl(folder / "samples.jtl", [row | {"Hostname": f"slave{n % 2}"} for n, row in enumerate(rows)])
    build(folder)
    hosts = load(folder).hosts
    assert [(host.users, host.sent, host.in_tree, host.in_samples) for host in hosts] == [(None, None, None, 4)] * 2
    build(distributed := slave_lost.write_slaves({"slave1": "2", "slave2": "2"}, {}))
    for column, n in (("users", 0), ("in tree.xml", 0), ("in samples.jtl", 1)):
        heads = [(each / "index.html").read_text().count(f">{column}</th>") for each in (folder, distributed)]
        assert heads == [n, 1], column


def test_a_single_slave_has_its_row(fake_run: Any) -> None:
    fake_run.user([{}] * 5, host="slave1")
    build(folder := fake_run.write_slaves({"slave1": "1"}, {}))
    page = (folder / "index.html").read_text()
    assert "<h2>Hosts</h2>" in page and ">0.125\u00a0ms<" in page


def test_the_published_schema_is_that_of_the_type_and_holds(made: Path, slave_lost: Any) -> None:
    assert SCHEMA_FILE.read_text() == schema_text(), "write it again by python -m framestorm.model.summary"
    distributed = slave_lost.write_slaves({"slave1": "2", "slave2": "2"}, {"slave2": 41.0})
    build(distributed)
    for folder in (made, distributed):
        Draft202012Validator(json.loads(schema_text())).validate(json.loads((folder / "summary.json").read_text()))


def test_every_number_follows_the_summary(made: Path) -> None:
    """Each figure of the tables is changed in the summary in turn: the page has to change with it."""
    summary = load(made)
    page = page_html(summary)
    frame, user = ("labels", "frame"), ("labels", "user")
    places: list[tuple[str, ...]] = [(*frame, name) for name in ("n", "ok", "failed", "success", "rate_per_s")]
    places += [(*frame, "times", "rtt", figure, "value") for figure in ("mean", "p50", "p90", "p95", "p99", "max")]
    places += [(*user, "times", "duration", "p50", "value"), (*frame, "causes", "timeout"), ("load", "duration_ms")]
    for place in places:
        changed = asdict(summary)
        holder: Any = changed
        for name in place[:-1]:
            holder = holder[name]
        holder[place[-1]] = type(holder[place[-1]])(holder[place[-1]] * 2.137 + 1)
        assert page_html(TypeAdapter(Summary).validate_python(changed)) != page, place


def test_needs_nothing_from_outside(made: Path) -> None:
    page = own_text((made / "index.html").read_text())
    loads = re.findall(r"""(?:src|href|action|data)\s*=\s*["']([^"']+)|url\(([^)]+)\)|@import\s+(\S+)""", page)
    links = {next(filter(None, found)) for found in loads}
    assert links <= {file.path for file in load(made).files} | {"data:,", "#warnings"}
    assert not re.search(r"""["'(]//[a-z]|https?://(?!127\.0\.0\.1)""", page)


def test_strange_names_stay_text(three_users: Any) -> None:
    evil = "</script><script>alert(1)</script><b>&"
    folder = three_users.write(plan=evil, reason=evil, state="stopped", given={"x": evil}, command=["./run.sh", evil])
    build(folder)
    page = (folder / "index.html").read_text()
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert evil not in junit_xml(load(folder))


def test_what_nobody_sees_is_written_out(three_users: Any) -> None:
    turned = "\u202eFDP.exe\u2066\x1b[2J"
    folder = three_users.write(plan=turned, reason=turned, state="stopped", given={"x": turned})
    build(folder)
    for text in (own_text((folder / "index.html").read_text()), (folder / "junit.xml").read_text()):
        assert "[U+202E]FDP.exe[U+2066][U+001B][2J" in text
        assert visible(text) == text


def test_charts_have_what_a_reader_needs(made: Path) -> None:
    drawn = charts(load(made))
    assert [chart.name for chart in drawn] == [
        "response-time-by-index", "handler-time-by-index", "model-time-by-index", "faces-by-index",
        "response-time-over-time", "success-over-time", "throughput", "users-over-time", "response-time-histogram",
        "processor-use",
    ]  # fmt: skip
    for chart in drawn:
        figure = chart.figure()
        assert chart.title
        assert chart.caption.endswith(".")
        for axis in ("xaxis", "yaxis"):
            assert figure["layout"][axis]["title"]["text"], chart.name
        assert any(value is not None for trace in figure["data"] for value in trace["y"]), chart.name
    lines = [trace for trace in drawn[0].traces if trace["name"].startswith("user ")]
    assert [len(trace["y"]) for trace in lines] == [37, 37, 37]
    assert lines[2]["y"][5] is None, "a failed frame is a gap"


@pytest.mark.parametrize(
    "frames", [[{}], [{"cause": "connect", "rtt_ms": 1.0}], [{"cause": "timeout", "rtt_ms": 25_000.0}] * 3]
)
def test_poor_runs_have_a_page(fake_run: Any, frames: list[dict[str, Any]]) -> None:
    fake_run.user(frames)
    folder = fake_run.write()
    build(folder)
    assert "</html>" in (folder / "index.html").read_text()


def test_junit(made: Path) -> None:
    failing = ["not (user success < 100 %)", "not (frame success < 100 %)"]
    for missing in ([], ["stopped early: Ctrl-C \x1b[0m"]):
        root = ET.fromstring(junit_xml(replace(load(made), missing=missing)))  # noqa: S314 - made by ourselves
        suite = root.find("testsuite")
        assert suite is not None
        expected = [*failing, *(["the run is complete"] if missing else [])]
        assert (suite.get("tests"), suite.get("failures")) == ("3", str(len(expected)))
        assert [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None] == expected
        classes = [str(case.get("classname")).removeprefix(str(suite.get("name"))) for case in suite.iter("testcase")]
        assert classes == [".user", ".frame", ""]


def test_draws_in_a_browser_without_scrolling_sideways(made: Path, draws: Callable[[Path, int], None]) -> None:
    draws(made, 11)


def test_losses_and_replicas_draw_in_a_browser(slave_lost: Any, draws: Callable[[Path, int], None]) -> None:
    folder = slave_lost.write_slaves({"slave1": "2", "slave2": "2"}, {"slave2": 41.0})
    replicas = {f"k1-{number}": (0, 21.0 if number == 3 else 1e9) for number in range(12)}
    write_metrics(folder / "metrics.csv", replicas, lambda _: 12, length_s=62, throttled=0.2)
    build(folder)
    draws(folder, 17)


def test_charts_of_the_chosen_label(tmp_path: Path, draws: Callable[[Path, int], None]) -> None:
    transaction = '"Number of samples in transaction : 2, number of failing samples : 0"'
    rows = [
        f"{1_790_000_000_000 + 100 * n + at},{elapsed},{label},{code},users 1-1,true,"
        for n in range(40)
        for at, elapsed, label, code in (
            (0, 10 + n % 7, "log in", "200,OK"), (20, 30, "<search>", "200,OK"),
            (0, 50, "whole visit", f",{transaction}")
        )
    ]  # fmt: skip
    (tmp_path / "samples.jtl").write_text("\n".join([JTL_OF_LABELS, *rows, ""]))
    build(tmp_path)
    drawn = charts(load(tmp_path))
    by_label = {label: [chart for chart in drawn if chart.label == label] for label in (None, "all", "whole visit")}
    of_label = {"response-time-over-time", "success-over-time", "throughput", "response-time-histogram"}
    assert {chart.name for chart in by_label["all"]} == of_label
    assert {chart.name for chart in by_label["whole visit"]} == {f"{name}-3" for name in of_label}
    assert len({chart.name for chart in drawn}) == len(drawn), "each is an element of the page"
    slowest = next(chart for chart in drawn if chart.name == "response-time-by-label")
    assert [trace["name"] for trace in slowest.traces] == ["whole visit", "<search>", "log in"]
    page = (tmp_path / "index.html").read_text()
    assert re.findall(r'<option value="(\d)">(.*?)</option>', page) == [
        ("0", "all"), ("1", "log in"), ("2", "&lt;search&gt;"), ("3", "whole visit")
    ]  # fmt: skip
    draws(tmp_path, 1 + len(by_label[None]) + len(of_label))


def test_any_label_leaves_the_figures_on_the_page(tmp_path: Path) -> None:
    rows = [
        f"{1_790_000_000_000 + 100 * n},5,{label},200,OK,t 1-1,true,"
        for n, label in enumerate(("x" * 300, "", "pay", "pay "))
    ]
    (tmp_path / "samples.jtl").write_text("\n".join([JTL_OF_LABELS, *rows, ""]))
    build(tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert 'class="long">xxx' in page and ">(empty)<" in page
    assert ">pay<" in page and ">&#34;pay &#34;<" in page


def test_a_figure_duration_of_a_sample_is_not_that_of_a_process(fake_run: Any) -> None:
    fake_run.user([{"duration_ms": 5, "label": name} for name in ("a", "b", "c")])
    folder = fake_run.write()
    rows = dict(_times(summarise(folder, read_results(folder), None)))
    assert [name for name, _ in rows["whole process"]] == ["user"]
    assert [name for name, _ in rows["duration"]] == ["all", "a", "b", "c"]


def test_response_times_that_are_all_0_have_a_row_and_parts_of_them_have_none(tmp_path: Path) -> None:
    rows = [{"timeStamp": START_MS + n, "elapsed": 0, "label": "call", "success": "true", "URL": "a"} for n in range(8)]
    write_jtl(tmp_path / "samples.jtl", [row | {"Connect": 0} for row in rows])
    results = read_results(tmp_path)
    assert [*results.samples.collect()["connect_ms"]] == [0.0] * 8
    ((_, rows_of_label),) = _times(summarise(tmp_path, results, None))
    assert [(name, times.n) for name, times in rows_of_label] == [("response time", 8)]


def test_key_figures_of_one_label_among_others_name_it(made: Path) -> None:
    summary = read(made / "summary.json", Summary)
    key = "Of frame alone"
    assert key not in page_html(summary), "users are no samples of another label"
    set_up = replace(summary.main, label="log in")
    assert key in page_html(replace(summary, labels={**summary.labels, "log in": set_up}))


def test_starts_of_replicas_have_their_times_and_ends_their_reason(made: Path) -> None:
    summary = load(made)
    begun_ms = float(summary.run.started_ms or 0)
    split = ColdSplit(1300, queue_ms=100, start_ms=700, init_ms=450, handler_ms=40, rest_ms=10)
    start = Activation("face-blur", "echo-1", begun_ms + 500, begun_ms + 750, ready_ms=begun_ms + 1750, split=split)
    killed = EndedReplica("echo-1", "OOMKilled", 137, at_s=3.0, failed=2)
    function = function_of(activations=[start], ended=[killed], lost=1)
    page = own_text(page_html(replace(summary, functions=[function])))
    table = page[page.index("Starts of replicas") : page.index("1 started.")]
    cells = re.findall(r"<td[^>]*>\s*(.*?)\s*</td>", table)
    assert [visible(each) for each in cells] == ["500\xa0ms", "250\xa0ms", units.NONE, "1.25\xa0s", units.NONE]
    table = page[page.index("What the first answers waited for") : page.index("Queue: until")]
    cells = [visible(each) for each in re.findall(r"<td[^>]*>\s*(.*?)\s*</td>", table)]
    assert cells == ["1.30\xa0s", "100\xa0ms", "700\xa0ms", "450\xa0ms", "40\xa0ms", "10\xa0ms"]
    (sentence,) = machines.replicas(replace(summary, functions=[function]))
    assert "used more memory than its limit (OOMKilled, exit status 137)" in sentence
    assert sentence.endswith(f"2 {summary.unit}s in progress then failed.")


def test_a_cold_start_after_many_others_has_its_row(made: Path) -> None:
    summary = load(made)
    begun_ms = float(summary.run.started_ms or 0)
    split = ColdSplit(1300, queue_ms=100, start_ms=700, init_ms=450, handler_ms=40, rest_ms=10)
    starts = [Activation("face-blur", f"echo-{n}", begun_ms + 500) for n in range(MAX_REPLICAS + 1)]
    starts[-1] = replace(starts[-1], split=split)
    page = own_text(page_html(replace(summary, functions=[function_of(activations=starts)])))
    assert f"{MAX_REPLICAS + 1} started; the first {MAX_REPLICAS} have a row." in page
    table = page[page.index("What the first answers waited for") : page.index("Queue: until")]
    assert f'<th scope="row">echo-{MAX_REPLICAS}</th>' in table


def test_a_node_that_was_not_ready_is_named(made: Path) -> None:
    outage = NodeOutage("n-1", at_s=load(made).load_start_s + 12.0, length_s=5.0)
    summary = replace(load(made), functions=[function_of(node_outages=[outage])])
    (sentence,) = machines.replicas(summary)
    assert sentence.startswith(
        "Node n-1, which had replicas of face-blur, was not ready for 5.00\xa0s, from 12.0\xa0s after the start"
    )


@pytest.mark.parametrize(
    ("median_ms", "words"), [(4.0, "Of the run's median, 4\xa0ms, gateway is about 1\xa0ms (25.0\xa0%)."), (0.0, "")]
)
def test_what_the_path_adds_is_a_share_of_the_median(made: Path, median_ms: float, words: str) -> None:
    """Of whole milliseconds, as plain JMeter takes them, the median may be 0."""
    summary = load(made)
    rtt = replace(summary.main.times["rtt"], p50=Estimate(median_ms))
    calibration = Calibration(3, [PathPart("gateway", "gateway", "direct", 30, 0, 2.0, Estimate(1.0))])
    page = unescape(
        page_html(
            replace(
                summary,
                functions=[function_of()],
                calibration=calibration,
                labels={**summary.labels, "frame": replace(summary.main, times={"rtt": rtt})},
            )
        )
    )
    assert words in page and "What the platform's path adds" in page
    assert page.count("Of the run's median") == bool(words)


def test_what_the_cluster_warned_of_has_a_table(made: Path) -> None:
    begin_s = load(made).load_start_s
    assert begin_s > 0
    times = {"first_s": begin_s - 2.0, "last_s": begin_s + 61.5}
    warnings = [
        PlatformWarning(f"Pod echo-{n}", "BackOff", "Back-off <restarting>", 30 - n, **times)
        for n in range(MAX_REPLICAS + 2)
    ]
    page = own_text(page_html(replace(load(made), functions=[function_of(warnings=warnings)])))
    table = page[page.index("What Kubernetes warned of") :]
    (first, *_), rest = (
        re.findall(r"<tr>(.*?)</tr>", table[table.index("<tbody>") :], re.DOTALL),
        table.index("</table>"),
    )
    cells = [visible(each) for each in re.findall(r"<t[dh][^>]*>\s*(.*?)\s*</t[dh]>", first)]
    assert cells == ["Pod echo-0", "BackOff", "Back-off &lt;restarting&gt;", "30", "2.00\xa0s before", "61.5\xa0s"]
    assert "The other 2 are in metrics.csv." in table[rest : rest + 600]


def test_declared_figures_have_titles_and_definitions(made: Path) -> None:
    summary = load(made)
    times = summary.main.times["rtt"]
    main = replace(
        summary.main, times={"rtt": times, "ttft": times, "wait": times}, figures={"tokens": times, "faces": times}
    )
    page = page_html(replace(summary, labels={**summary.labels, summary.main.label: main}))
    heads = re.findall(r'<th scope="row"[^>]*>([^<]*)</th>', page)
    assert "time to first token (ttft_ms)" in heads and "wait" in heads
    assert "<td>tokens of an answer (tokens)</td>" in page and "<td>faces</td>" in page
    definition = "<dt>time to first token</dt><dd>time from sending to the first piece of the answer that has text"
    assert (page.count(definition), page_html(summary).count(definition)) == (1, 0)
