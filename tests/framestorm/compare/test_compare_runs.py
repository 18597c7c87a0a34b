import json
import os
import xml.etree.ElementTree as ET
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from framestorm import paths
from framestorm.cli import main
from framestorm.report import build
from framestorm.results.imported import import_jtl
from tests.framestorm.compare.conftest import Make, compare, steady

NO_TIMES = {"reason": None, "started_ms": 0, "ended_ms": 0, "engine_ms": 0, "order": 1}


def by_metric(made: dict[str, Any], number: int = 0) -> dict[str, Any]:
    return {row["metric"]: row for row in made["comparisons"][number]["overall"]}


def test_slower_beyond_the_threshold(tmp_path: Path, make_run: Make, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = make_run("a", steady(600, 1)), make_run("b", steady(600, 2, 1.4))
    status, made = compare(tmp_path, a, b)
    assert status == 3
    row = by_metric(made)["median_ms"]
    assert row["claim"] == "slower" and row["is_worse"]
    assert row["ratio"]["low"] < 1.4 < row["ratio"]["high"]
    assert row["difference"]["low"] < row["difference"]["value"] < row["difference"]["high"]
    assert by_metric(made)["mean_ms"]["cliffs_delta"] > 0.8
    assert by_metric(made)["served_per_s"]["claim"] == "lower"
    assert by_metric(made)["p99_ms"]["why"] == "insufficient data (n < 1,000): n = 600"
    said = capsys.readouterr().out
    assert "Regression: " in said and "Median response time" in said


def test_a_run_with_itself(tmp_path: Path, make_run: Make) -> None:
    run = make_run("a", steady(600, 1))
    status, made = compare(tmp_path, run, run)
    assert status == 0
    assert {row["claim"] for row in by_metric(made).values()} == {"no significant difference", "not compared"}
    assert any("compared with itself" in sentence for sentence in made["comparisons"][0]["warnings"])


def test_success_differs_by_100_points_at_most(tmp_path: Path, make_run: Make) -> None:
    old = [make_run(f"a{n}", steady(200, n), refused=tuple(range(refused))) for n, refused in enumerate((0, 160))]
    new = [make_run(f"b{n}", steady(200, n), refused=tuple(range(refused))) for n, refused in enumerate((20, 180))]
    _, made = compare(tmp_path, ",".join(map(str, old)), ",".join(map(str, new)))
    success = by_metric(made)["success"]["difference"]
    assert (success["low"], success["high"]) == (-1, 1)


def test_one_run_against_repetitions(tmp_path: Path, make_run: Make) -> None:
    old = [make_run(f"a{n}", steady(300, n)) for n in range(4)]
    _, made = compare(tmp_path, ",".join(map(str, old)), make_run("b", steady(300, 9, 3.0)))
    mean = by_metric(made)["mean_ms"]
    assert (mean["claim"], mean["baseline"]["repetitions"]) == ("slower", 4)
    assert any("B is a single run" in sentence for sentence in made["comparisons"][0]["warnings"])


def test_several_against_the_first(tmp_path: Path, make_run: Make) -> None:
    runs = [make_run(name, steady(300, n, factor)) for n, (name, factor) in enumerate((("a", 1), ("b", 1), ("c", 2)))]
    _, made = compare(tmp_path, *runs)
    assert [(each["label"], each["against"]) for each in made["comparisons"]] == [("B", "A"), ("C", "A")]
    assert by_metric(made, 0)["median_ms"]["claim"] == "no significant difference"
    assert by_metric(made, 1)["median_ms"]["claim"] == "slower"


def test_many_repetitions_by_their_names(tmp_path: Path, make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Together, the names are longer than that of a file may be."""
    monkeypatch.setattr(paths, "DASHBOARDS", tmp_path)
    names = [make_run(f"face-blur-20261129T08{n:02}00Z", steady(60, n)).name for n in range(12)]
    _, made = compare(tmp_path, ",".join(names[:11]), names[11])
    assert by_metric(made)["mean_ms"]["baseline"]["repetitions"] == 11


def test_a_figure_that_one_repetition_lacks_is_not_of_the_others(tmp_path: Path, make_run: Make) -> None:
    """A slow run of a closed loop has fewer samples, here too few for its p99: without it the side looks fast."""
    sides = [[make_run(f"{side}{n}", steady(60 if n == 0 else 200, n)) for n in range(3)] for side in "ab"]
    _, made = compare(tmp_path, *(",".join(map(str, runs)) for runs in sides))
    assert by_metric(made)["p95_ms"]["baseline"]["repetitions"] == 3
    assert "p99_ms" not in by_metric(made)


def test_time_outs_of_the_new_side(tmp_path: Path, make_run: Make) -> None:
    a, b = make_run("a", steady(400, 1)), make_run("b", [*steady(399, 2), 25_000.0], cut=(399,))
    _, made = compare(tmp_path, a, b)
    mean = by_metric(made)["mean_ms"]
    assert mean["bound"] == "at least" and mean["candidate"]["is_lower_bound"]
    assert mean["ratio"]["high"] is None
    assert by_metric(made)["median_ms"]["bound"] == "exact"
    page = (tmp_path / "compared" / "index.html").read_text()
    assert page.count('<td class="number">&gt; ') == 1


def test_time_outs_of_both_sides(tmp_path: Path, make_run: Make) -> None:
    runs = [make_run(name, [*steady(399, n), 25_000.0], cut=(399,)) for n, name in enumerate("ab")]
    _, made = compare(tmp_path, *runs)
    mean = by_metric(made)["mean_ms"]
    assert (mean["claim"], mean["bound"]) == ("not compared", "unknown")
    assert "timeouts hide" in mean["why"]


def test_fewer_right_answers(tmp_path: Path, make_run: Make) -> None:
    a, b = make_run("a", steady(400, 1)), make_run("b", steady(400, 1), refused=tuple(range(0, 400, 5)))
    status, made = compare(tmp_path, a, b)
    success = by_metric(made)["success"]
    assert (status, success["claim"]) == (3, "lower")
    assert success["difference"]["low"] < -0.2 < success["difference"]["high"] < -0.1
    warnings = made["comparisons"][0]["warnings"]
    assert [sentence for sentence in warnings if sentence.startswith("b: 20.0\u00a0% of the samples failed")]


@pytest.mark.parametrize("refused", [300, 400])
def test_success_is_judged_whatever_else_is(
    tmp_path: Path, make_run: Make, refused: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that were answered may be as fast as ever; where none was there is no time to judge."""
    a, b = make_run("a", steady(400, 1)), make_run("b", steady(400, 1), refused=tuple(range(refused)))
    status, made = compare(tmp_path, a, b, "--threshold", "mean 10 %")
    states = {row["metric"]: row["state"] for row in made["thresholds"]}
    assert (status, states["success"]) == (3, "regression")
    assert states["mean_ms"] == ("missing" if refused == 400 else "within")
    assert "\nregression: success 1 point: B, success rate: " in capsys.readouterr().out


@pytest.mark.parametrize(("n", "m", "status", "state"), [(400, 15, 1, "missing"), (15, 400, 0, "not compared")])
def test_what_one_side_lacks(tmp_path: Path, make_run: Make, n: int, m: int, status: int, state: str) -> None:
    """15 samples have no 95th percentile."""
    words = ("--threshold", "p95 10 %")
    found, made = compare(tmp_path, make_run("a", steady(n, 1)), make_run("b", steady(m, 1)), *words)
    assert (found, made["thresholds"][-1]["state"]) == (status, state)
    if state == "not compared":
        assert made["thresholds"][-1]["why"] == "the baseline has too few samples of it, or none"
    else:
        assert made["verdict"]["text"].startswith(
            "B, p95 response time: none, though the baseline has it (b has too few"
        )


def settings_of(comparison: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {setting["name"]: (setting["baseline"], setting["candidate"]) for setting in comparison["changes"]}


def test_what_was_set_otherwise(tmp_path: Path, make_run: Make) -> None:
    properties = {"users": "5", "sleep_s": "0", "frames": "37"}
    host = {"name": "vm", "role": "generator", "cores": 4, "memory_bytes": 8_000_000_000}
    kit, versions = {"version": "0.2.0", "commit": "b" * 40, "dirty": True}, {"jmeter": "5.5", "java": "21"}
    b = make_run("b", steady(60, 2), properties=properties, hosts=[host], versions=versions, kit=kit)
    _, made = compare(tmp_path, make_run("a", steady(60, 1)), b)
    assert settings_of(made["comparisons"][0]) == {
        "property users": (["2"], ["5"]),
        "property frames": ([], ["37"]),
        "version java": (["17"], ["21"]),
        "kit": (["0.1.0, commit aaaaaaaaaaaa"], ["0.2.0, commit bbbbbbbbbbbb with changes not committed"]),
        "hosts": (["vm, 2 cores, 8.00\u00a0GB memory"], ["vm, 4 cores, 8.00\u00a0GB memory"]),
    }
    warnings = " ".join(made["comparisons"][0]["warnings"])
    assert "compare machines, not settings" in warnings and "different versions (java)" in warnings


def test_what_a_study_set_otherwise(tmp_path: Path, make_run: Make, make_study: Make) -> None:
    """A run has only the URL of its target; how the study set that up, its point says."""
    study = make_study("s", lambda *_: {"mean_ms": 10.0})
    (study / "runs").mkdir()
    settings = json.loads((study / "study.json").read_text())
    lines, runs = [], []
    for number, point in enumerate(settings["points"][:2]):
        point["target"] = {"kind": "openfaas", "function": "face-blur", "concurrency_limit": number}
        runs.append(make_run(f"s/runs/{number}", steady(60, 1)))
        lines.append({"point": point["id"], "repetition": 1, "run": f"runs/{number}", "state": "complete"} | NO_TIMES)
    (study / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (study / "study.json").write_text(json.dumps(settings))
    changed, bare = compared_settings(tmp_path / "1", *runs)
    assert changed == {"target concurrency_limit": (["0"], ["1"])} and not bare
    (study / "study.json").write_text(json.dumps(settings | {"gateway": "http://gateway:8080"}))
    changed, bare = compared_settings(tmp_path / "2", *runs)
    assert not changed and bare[0].startswith("0, 1: how the function was set up ")


def test_the_steady_part_of_one_run_and_the_whole_of_another(tmp_path: Path, make_jtl_run: Callable[..., Path]) -> None:
    runs = [make_jtl_run(name, {"search": steady(600, n)}) for n, name in enumerate("ab")]
    build(runs[1], judges_steady=True)
    _, made = compare(tmp_path, *runs)
    (compared,) = made["comparisons"]
    assert settings_of(compared) == {"part judged": (["whole run"], ["steady"])}
    assert any("are judged by different parts of a run" in text for text in compared["warnings"])


def compared_settings(folder: Path, *runs: Path) -> tuple[dict[str, Any], list[str]]:
    """What was set otherwise, and what is said of targets of which that is not known."""
    (each,) = compare(folder, *runs)[1]["comparisons"]
    return settings_of(each), [sentence for sentence in each["warnings"] if "how the function was set up" in sentence]


def test_only_the_address_is_known(tmp_path: Path, make_run: Make) -> None:
    embedded = {"kind": "embedded", "workers": 1}
    a, b, c = make_run("a", steady(60, 1)), make_run("b", steady(60, 1)), make_run("c", steady(60, 1), target=embedded)
    assert compared_settings(tmp_path / "1", a, b)[1][0].startswith("a, b: how the function was set up ")
    assert compared_settings(tmp_path / "2", c, c)[1] == []
    assert "None that is recorded" in (tmp_path / "1" / "compared" / "index.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{a}"], "is only one side: two are needed"),
        (["{a}", "nowhere"], "'nowhere' is neither a run nor a study"),
        (["{a}", "x" * 300], "xxx' is neither a run nor a study"),
        (["{a}", "{study}"], "runs are compared with runs and studies with studies"),
        (["{a},{a}", "{a}"], "the same run twice"),
        (["{a},{study}", "{a}"], "is a study, which has its own repetitions"),
        (["{a}", "{a}", "--threshold", "mean"], "expected a metric, a number and % or points"),
        (["{a}", "{a}", "--threshold", "success 5 %"], "compared in points"),
        (["{a}", "{a}", "--threshold", "mean 5 points"], "compared in %"),
        (["{a}", "{a}", "--threshold", "speed 5 %"], "--threshold: there is no speed; there are "),
        (["{a}", "{a}", "--threshold", "speed 5 %"], ", served_per_s, success\n"),
        (["{a}", "{a}", "--threshold", "frame tokens p95 5 %"], "--threshold: there is no tokens_p95; there are "),
        (["{a}", "{a}", "--threshold", "logout p95 5 %"], "there is no label logout; there are frame"),
        (["{a}", "{a}", "--threshold", "user_max_ms 5 %"], "there is no user_max_ms"),
        (["{a}", "{a}", "--threshold", "rate 150 %"], "rate cannot fall by 100 % or more"),
        (["{a}", "{a}", "--json", "/nowhere/made.json"], "there is no folder /nowhere"),
        (["{a}", "{a}", "-o", "{a}"], "exists; a comparison overwrites nothing"),
        (["{a}", "{a}", "--factor", "way=a,b"], "name one study and nothing else"),
        (["{a}", "--factor", "way=a,b"], "name one study and nothing else"),
        (["{study}"], "or two levels of this one by --factor: way=fork,kept-alive; users=1,3,9"),
        (["{study}", "--factor", "speed=1,2"], "a factor of s: way=fork,kept-alive; users=1,3,9"),
        (["{study}", "--factor", "way=fork,spoon"], "a factor of s: way=fork,kept-alive"),
        (["{study}", "--factor", "way=fork"], "two or more different levels"),
        (["{study}", "--factor", "way"], "expected NAME=LEVEL,LEVEL"),
    ],
)
def test_wrong_usage(
    make_run: Make, make_study: Make, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    places = {"a": make_run("a", steady(30, 1)), "study": make_study("s", lambda way, n, k: {"mean_ms": 10.0 * n + k})}
    assert main(["compare", *(word.format(**places) for word in words)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["nowhere"], [], ["{a}", "--threshold", "mean"], ["{a}", "--factor", "way=a,b"], ["{jtl},{jtl}"]]
)
def test_no_report_of_a_jtl_is_made_for_a_command_that_is_wrong(
    words: list[str], make_run: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "DASHBOARDS", tmp_path / "dashboards")
    jtl = make_run("a", steady(30, 1)) / "samples.jtl"
    places = {"a": jtl.parent, "jtl": jtl}
    assert main(["compare", str(jtl), *(word.format(**places) for word in words)]) == 2
    assert not paths.DASHBOARDS.exists()


def test_a_jtl_and_a_run_differ_in_nothing_that_is_known(tmp_path: Path, make_jtl_run: Callable[..., Path]) -> None:
    run = make_jtl_run("a", {"search": steady(60, 1)})
    import_jtl([run / "samples.jtl"], tmp_path / "old")
    build(tmp_path / "old")
    _, made = compare(tmp_path, run, tmp_path / "old")
    (compared,) = made["comparisons"]
    assert compared["changes"] == []
    assert any(
        text.startswith("old: made from a JTL, which does not say by which plan,") for text in compared["warnings"]
    )
    assert not [
        text
        for text in compared["warnings"]
        if "different hosts" in text or ("how the function" in text and "old" in text)
    ]


def test_jtls_may_come_through_pipes(
    make_jtl_run: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "DASHBOARDS", tmp_path / "dashboards")
    pipes = [tmp_path / "old", tmp_path / "new"]
    with ThreadPoolExecutor(len(pipes)) as writers:
        for seed, pipe in enumerate(pipes, 1):
            os.mkfifo(pipe)
            jtl = make_jtl_run(f"run-{seed}", {"search": steady(60, seed)}) / "samples.jtl"
            writers.submit(pipe.write_bytes, jtl.read_bytes())
        _, made = compare(tmp_path, *pipes)
    assert [side["name"].partition("-")[0] for side in made["sides"]] == ["old", "new"]


@pytest.mark.parametrize("limits", [(), ("--threshold", "mean 10 %")])
def test_runs_without_a_success_have_no_times_to_judge(
    limits: tuple[str, ...], make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The usual thresholds are of no use then; one that was asked for is a mistake."""
    sides = [make_run(name, steady(30, 1), refused=tuple(range(30))) for name in ("a", "b")]
    if limits:
        assert main(["compare", *map(str, sides), *limits]) == 2
        assert "--threshold: there is no mean_ms; there are served_per_s, success" in capsys.readouterr().err
        return
    status, made = compare(tmp_path, *sides)
    states = {each["metric"]: each["state"] for each in made["thresholds"]}
    assert (status, states) == (
        0,
        {"success": "inconclusive", "mean_ms": "not compared", "median_ms": "not compared", "p95_ms": "not compared"},
    )
    assert "a: no sample succeeded (of 30), so it has no response times." in made["comparisons"][0]["warnings"]


@pytest.mark.parametrize(
    ("broken", "said"),
    [("summary.json", "make it by ./run.sh report"), ("samples.csv", "has no samples.csv")],
)
def test_no_report_yet(make_run: Make, capsys: pytest.CaptureFixture[str], broken: str, said: str) -> None:
    a = make_run("a", steady(30, 1))
    (a / broken).unlink()
    assert main(["compare", str(a), str(a)]) == 1
    assert said in capsys.readouterr().err


def test_a_run_that_has_lost_samples_since_its_report(make_run: Make, capsys: pytest.CaptureFixture[str]) -> None:
    a = make_run("a", steady(30, 1))
    lines = (a / "samples.csv").read_text().splitlines(keepends=True)
    (a / "samples.csv").write_text("".join(lines[:-2]))
    assert main(["compare", str(a), str(a)]) == 1
    assert "a: samples.csv has 28 samples, and its report was made of 30; make it again by" in capsys.readouterr().err


def test_nothing_measured(make_run: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(make_run("a", steady(30, 1))), str(make_run("b", []))]) == 1
    assert "b measured nothing" in capsys.readouterr().err


def test_labels_are_compared_where_a_threshold_names_them(tmp_path: Path, make_jtl_run: Callable[..., Path]) -> None:
    a = make_jtl_run("a", {"log in": steady(600, 1), "search": steady(600, 2)})
    b = make_jtl_run("b", {"log in": steady(600, 3, 1.5), "search": steady(600, 4)})
    limits = ["'log in' p95 10 %", "search p92.5 20 %", "search p99.9 20 %", '"log in" success 1 point']
    status, made = compare(tmp_path, a, b, *(word for text in limits for word in ("--threshold", text)))
    assert status == 3
    assert [(each["metric"], each["state"]) for each in made["thresholds"]] == [
        ('"log in" p95_ms', "regression"), ("search p92.5_ms", "within"), ('"log in" success', "within"),
        ("success", "within"), ("search p99.9_ms", "not compared"),
    ]  # fmt: skip
    row = by_metric(made)['"log in" p95_ms']
    assert row["ratio"]["low"] < 1.5 < row["ratio"]["high"]
    assert {'"log in" mean_ms', "p92.5_ms"}.isdisjoint(by_metric(made))


def test_a_label_that_only_the_baseline_has(tmp_path: Path, make_jtl_run: Callable[..., Path]) -> None:
    a = make_jtl_run("a", {"log in": steady(60, 1), "search": steady(60, 2)})
    limits = ("--threshold", "search success 1 point", "--threshold", "search mean 10 %")
    status, made = compare(tmp_path, a, make_jtl_run("b", {"log in": steady(60, 3)}), *limits)
    states = {each["metric"]: each["state"] for each in made["thresholds"]}
    assert (status, states["search success"], states["search mean_ms"]) == (1, "missing", "missing")


@pytest.mark.parametrize(
    ("limit", "states"),
    [
        ("login tokens p95 10 %", ["regression", "within"]),
        ("login tokens p95 +10 %", ["regression"]),
        ("login tokens p95 -10 %", ["within"]),
        ("all tokens p95 10 %", ["regression", "within"]),
    ],
)
def test_a_figure_of_a_label_may_neither_rise_nor_fall(
    tmp_path: Path, make_jtl_run: Callable[..., Path], limit: str, states: list[str]
) -> None:
    a, b = (
        make_jtl_run(name, {"login": steady(600, seed, factor)}, tokens=True)
        for name, seed, factor in (("a", 1, 1.0), ("b", 3, 1.5))
    )
    status, made = compare(tmp_path, a, b, "--threshold", limit)
    assert status == (3 if "regression" in states else 0)
    assert [each["state"] for each in made["thresholds"]] == [*states, "within"]
    assert made["thresholds"][0]["metric"].endswith("tokens_p95")


def test_undecided_checks_are_named_and_can_fail(
    tmp_path: Path, make_run: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [make_run(name, steady(60, n, factor)) for n, (name, factor) in enumerate((("a", 1), ("b", 1.04)), 1)]
    limits = ("--threshold", "mean 10 %", "--threshold", "p95 10 %", "--threshold", "success 50 points")
    (tmp_path / "usual").mkdir()
    status, made = compare(tmp_path / "usual", *runs, *limits)
    states = {each["threshold"]: each["state"] for each in made["thresholds"]}
    assert states == {"mean 10 %": "inconclusive", "p95 10 %": "not compared", "success 50 points": "within"}
    assert (status, made["verdict"]["word"]) == (0, "none")
    said = capsys.readouterr().out
    assert "undecided: mean 10 %: B, mean response time: 1.0" in said
    assert " samples in place of 60 and 60 would decide it" in said
    assert "undecided: p95 10 %: B, p95 response time: " in said and "insufficient data (n < 200): n = 60" in said
    cases = {each.get("name"): each for each in junit(tmp_path / "usual")}
    assert {name: [child.tag for child in case][:1] for name, case in cases.items()} == {
        "mean 10 %": ["skipped"], "p95 10 %": ["skipped"], "success 50 points": ["system-out"],
    }  # fmt: skip

    (tmp_path / "strict").mkdir()
    status, made = compare(tmp_path / "strict", *runs, *limits, "--undecided", "fail")
    assert (status, made["verdict"]["word"]) == (5, "inconclusive")
    assert "2 of 3 checks could not be decided, which counts as failed" in made["verdict"]["text"]
    assert made["command"][-2:] == ["--undecided", "fail"]
    cases = {each.get("name"): each.find("failure") for each in junit(tmp_path / "strict")}
    failures = {name: None if of is None else of.get("type") for name, of in cases.items()}
    assert failures == {"mean 10 %": "inconclusive", "p95 10 %": "not compared", "success 50 points": None}


def test_times_of_two_overloaded_runs_are_not_judged(
    tmp_path: Path, make_run: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [make_run(name, steady(600, n), doubts=("overloaded",)) for n, name in enumerate(("a", "b"))]
    status, made = compare(tmp_path, *runs, "--threshold", "mean 50 %", "--threshold", "rate 50 %")
    states = {each["threshold"]: (each["state"], each["why"]) for each in made["thresholds"]}
    assert states["mean 50 %"] == ("not compared", "both sides were overloaded: their times are those of a queue")
    assert states["rate 50 %"][0] == states["success 1 point"][0] == "within"
    assert (status, made["verdict"]["text"]) == (
        0,
        "no worsening beyond a threshold was shown; 1 of 3 checks could not be decided; A and B were overloaded",
    )
    assert "A and B were both overloaded: their response times are those of a queue" in capsys.readouterr().out
    assert 'class="verdict partial"' in (tmp_path / "compared" / "index.html").read_text()


def test_a_run_that_is_overloaded_is_compared_with_one_that_is_not(tmp_path: Path, make_run: Make) -> None:
    calm, busy = make_run("a", steady(600, 1)), make_run("b", steady(600, 2, 3.0), doubts=("overloaded",))
    status, made = compare(tmp_path, calm, busy)
    assert status == 3 and made["verdict"]["text"].endswith("; B was overloaded")
    assert made["comparisons"][0]["warnings"][0].startswith("B was overloaded, and the other side was not: ")
    (tmp_path / "better").mkdir()
    status, made = compare(tmp_path / "better", busy, calm)
    assert (status, made["verdict"]["word"]) == (0, "none")
    assert 'class="verdict partial"' in (tmp_path / "better" / "compared" / "index.html").read_text()


def test_junits_names_do_not_depend_on_the_runs_names(tmp_path: Path, make_jtl_run: Callable[..., Path]) -> None:
    a = make_jtl_run("yesterday", {"chat": steady(600, 1)})
    b = make_jtl_run("today", {"chat": steady(600, 2, 1.4)})
    assert compare(tmp_path, a, b, "--threshold", "mean 10 %")[0] == 3
    suite = junit(tmp_path)
    assert [(each.get("classname"), each.get("name")) for each in suite] == [
        ("framestorm.compare.shop.B", "mean 10 %"), ("framestorm.compare.shop.B", "success 1 point"),
    ]  # fmt: skip
    failure = suite[0].find("failure")
    assert failure is not None and failure.get("type") == "regression" and "1.4" in str(failure.text)
    text = (tmp_path / "compared" / "junit.xml").read_text()
    assert '<property name="side B" value="today" />' in text


def junit(folder: Path) -> list[ET.Element]:
    """The cases of a comparison's junit.xml."""
    return list(ET.parse(folder / "compared" / "junit.xml").iter("testcase"))  # noqa: S314 - written by the test
