import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from framestorm.cli import main
from framestorm.compare.sides import levels, point_key, read_study
from framestorm.errors import UsageError
from tests.framestorm.compare.conftest import Make, compare

# Fork ten times kept alive, what a repetition has in common, and noise of a percent.
NOISE = {key: float(v) for key, v in enumerate(np.random.default_rng(6).normal(0, 0.01, 64))}


def ways(way: str, users: int, repetition: int, factor: float = 1.0) -> dict[str, Any]:
    noise = NOISE[(users * 7 + repetition * 3 + (way == "fork")) % 64]
    mean_ms = factor * (500.0 if way == "fork" else 50.0) * users * (1 + 0.3 * repetition) * math.exp(noise)
    return {"mean_ms": mean_ms, "median_ms": 0.9 * mean_ms, "p95_ms": 1.5 * mean_ms}


def test_one_point_is_said_once(tmp_path: Path, make_study: Make) -> None:
    """All points together are the one, with the same claim; a second table of it would only be another family."""
    study = make_study("s", ways, users=(3,))
    _, made = compare(tmp_path, study, "--factor", "way=fork,kept-alive", "--threshold", "mean 10 %")
    (each,) = made["comparisons"]
    assert [row["claim"] for row in each["overall"]] == ["faster", "no significant difference"]
    assert (each["points"], [row["point"] for row in made["thresholds"]]) == ([], [None, None])
    page = (tmp_path / "compared" / "index.html").read_text()
    assert "users=3" in page and "Point by point" not in page


def test_a_percentile_that_a_study_did_not_ask_for_is_of_its_runs(
    tmp_path: Path, make_study: Make, make_run: Make
) -> None:
    study = make_study("s", ways, users=(3,))
    (study / "runs").mkdir()
    make_run("s/runs/none", [float(value) for value in range(1, 101)])
    _, made = compare(tmp_path, study, "--factor", "way=fork,kept-alive", "--threshold", "p90 10 %")
    (row,) = (row for row in made["comparisons"][0]["overall"] if row["metric"] == "p90_ms")
    assert (row["baseline"]["value"], row["candidate"]["value"]) == (90.0, 90.0)
    assert made["thresholds"][0]["state"] == "within"


def test_points_at_which_both_studies_were_overloaded_are_not_judged(tmp_path: Path, make_study: Make) -> None:
    first, second = make_study("first", ways), make_study("second", ways, seed=2)
    for folder, overloaded in ((first, ("3", "9")), (second, ("9",))):
        points = json.loads((folder / "study.json").read_text())["points"]
        of_points = [
            {"id": point["id"], "doubts": {"overloaded": 3} if str(point["factors"]["users"]) in overloaded else {}}
            for point in points
        ]
        (folder / "summary.json").write_text(json.dumps({"points": of_points}))
    _, made = compare(tmp_path, first, second, "--threshold", "mean 50 %")
    (each,) = made["comparisons"]
    assert each["warnings"][0].startswith("A: at 4 of 6 points the function did not keep up with the load: ")
    assert each["warnings"][1].startswith("B: at 2 of 6 points ")
    of_mean = {row["point"]: row["why"] for row in made["thresholds"] if row["metric"] == "mean_ms"}
    queues = {point for point, why in of_mean.items() if why and "both sides were overloaded" in why}
    assert queues == {"way=fork, users=9", "way=kept-alive, users=9"}


def test_the_same_order_pairs(tmp_path: Path, make_study: Make) -> None:
    first = make_study("first", ways)
    for name, seed, pairs in (("same", 1, "repetition"), ("other", 2, None)):
        again = make_study(name, lambda *at: ways(*at, 1.2), seed=seed)  # type: ignore[call-arg]
        _, made = compare(tmp_path / name / "out", first, again)
        (each,) = made["comparisons"]
        assert each["pairs"] == pairs
        # Unpaired, what repetitions have in common hides the fifth; paired it cancels.
        assert each["overall"][0]["claim"] == ("slower" if pairs else "no significant difference")


def test_points_of_one_only(tmp_path: Path, make_study: Make) -> None:
    _, made = compare(tmp_path, make_study("a", ways), make_study("b", ways, users=(3, 9, 12), seed=2))
    (each,) = made["comparisons"]
    assert each["only_baseline"] == ["way=fork, users=1", "way=kept-alive, users=1"]
    assert each["only_candidate"] == ["way=fork, users=12", "way=kept-alive, users=12"]
    assert {row["point"] for row in each["points"]} == set(each["shared"])


def test_levels_are_written_as_elsewhere(tmp_path: Path, make_study: Make) -> None:
    """As results.csv and --only have them, however study.yml wrote the number."""
    study = make_study("1.0", ways, users=(1.0, 3.0))
    _, made = compare(tmp_path, study, make_study("1", ways, users=(1, 3)))
    assert made["comparisons"][0]["shared"][:2] == ["way=fork, users=1", "way=fork, users=3"]
    assert compare(tmp_path / "levels", study, "--factor", "users=1,3")[0] == 3
    assert point_key({"target.autoscale": True}) == "target.autoscale=true"


def test_a_level_may_hold_commas(make_study: Make) -> None:
    side, load = read_study("A", make_study("s", ways)), "1/s for 1 s, to 3/s in 2 s"
    names = {"fork": load, "kept-alive": "5/s for 1 s"}
    points = {
        key: replace(point, factors={"load": names[str(point.factors["way"])]}) for key, point in side.points.items()
    }
    side = replace(side, points=points)
    assert [each.name for each in levels(side, f"load={load},5/s for 1 s")] == [f"load={load}", "load=5/s for 1 s"]


def test_more_levels_than_there_are_labels_are_refused(make_study: Make) -> None:
    study = make_study("s", ways, users=tuple(range(1, 28)), repetitions=1)
    with pytest.raises(UsageError, match="27 levels; at most 26"):
        levels(read_study("A", study), f"users={','.join(map(str, range(1, 28)))}")


def test_regression_at_one_point(tmp_path: Path, make_study: Make, capsys: pytest.CaptureFixture[str]) -> None:
    def worse_at_nine(way: str, users: int, repetition: int) -> dict[str, Any]:
        return ways(way, users, repetition, 4.0 if (way, users) == ("fork", 9) else 1.0)

    words = ("--threshold", "mean 50 %", "--json", tmp_path / "c.json")
    status, made = compare(tmp_path, make_study("a", ways), make_study("b", worse_at_nine), *words)
    assert made["command"][4:] == ["--threshold", "mean 50 %"]
    regressions = [row for row in made["thresholds"] if row["state"] == "regression"]
    assert status == 3
    assert [row["point"] for row in regressions] == ["way=fork, users=9"]
    assert "at way=fork, users=9" in capsys.readouterr().out


def test_failed_runs_are_left_out_and_counted(tmp_path: Path, make_study: Make) -> None:
    def failing(way: str, users: int, repetition: int) -> dict[str, Any] | None:
        return None if (way, users, repetition) == ("fork", 3, 2) else ways(way, users, repetition)

    _, made = compare(tmp_path, make_study("a", ways), make_study("b", failing))
    (each,) = made["comparisons"]
    assert "1 run of b failed and is left out." in each["warnings"]
    assert each["overall"][0]["candidate"]["repetitions"] == 2


def test_a_single_common_repetition_pairs_nothing(tmp_path: Path, make_study: Make) -> None:
    def failing(way: str, users: int, repetition: int) -> dict[str, Any] | None:
        return None if (users, repetition) in {(1, 1), (3, 2)} else ways(way, users, repetition)

    _, made = compare(tmp_path, make_study("a", ways, users=(1, 3)), make_study("b", failing, users=(1, 3)))
    mean = made["comparisons"][0]["overall"][0]
    assert [mean[side]["repetitions"] for side in ("baseline", "candidate")] == [3, 1]


@pytest.mark.parametrize("right", [10, 0])
def test_success_is_judged_whatever_else_is(tmp_path: Path, make_study: Make, right: int) -> None:
    def refusing(way: str, users: int, repetition: int) -> dict[str, Any]:
        refused = {"ok": right, "success": right / 37}
        return (ways(way, users, repetition) if right else {}) | (refused if way == "kept-alive" else {})

    words = ("--factor", "way=fork,kept-alive", "--threshold", "mean 10 %")
    study = make_study("s", lambda *at: ways(*at) if at[0] == "fork" else refusing(*at))
    status, made = compare(tmp_path, study, *words)
    states = {(row["metric"], row["point"]): row["state"] for row in made["thresholds"]}
    assert (status, states["success", None]) == (3, "regression")
    assert states["mean_ms", "users=3"] == ("within" if right else "missing")
    warned = "of the samples failed" if right else "no response times"
    assert any(
        sentence.startswith("way=kept-alive: ") and warned in sentence
        for sentence in made["comparisons"][0]["warnings"]
    )


def test_a_point_that_one_side_lacks(tmp_path: Path, make_study: Make) -> None:
    def lacking(way: str, users: int, repetition: int) -> dict[str, Any] | None:
        return None if (way, users) == ("fork", 9) else ways(way, users, repetition)

    status, made = compare(tmp_path, make_study("a", ways), make_study("b", lacking), "--threshold", "mean 50 %")
    assert (status, made["verdict"]["word"]) == (1, "missing")
    assert made["verdict"]["text"] == (
        "B, mean response time at way=fork, users=9: none, though the baseline has it (no complete run), and 1 more"
    )
    assert "Cannot be compared" in (tmp_path / "compared" / "index.html").read_text()


def test_runs_that_lack_a_figure_are_said(tmp_path: Path, make_study: Make) -> None:
    """As one in which every sample failed."""

    def lacking(way: str, users: int, repetition: int) -> dict[str, Any]:
        return {"ok": 0, "success": 0.0} if (users, repetition) == (9, 2) else ways(way, users, repetition)

    _, made = compare(tmp_path, make_study("a", ways), make_study("b", lacking))
    (each,) = made["comparisons"]
    whys = {row["point"]: row["why"] for row in each["points"] if row["metric"] == "mean_ms"}
    assert {point: why for point, why in whys.items() if why} == dict.fromkeys(
        ("way=fork, users=9", "way=kept-alive, users=9"), "1 of 6 runs of both sides have no value"
    )


def test_one_repetition_pairs_points(tmp_path: Path, make_study: Make) -> None:
    """How far the three points differ stands in for repetitions; at a single point there is nothing to stand in."""
    status, made = compare(tmp_path, make_study("s", ways, repetitions=1), "--factor", "way=fork,kept-alive")
    (each,) = made["comparisons"]
    overall = each["overall"][0]
    logs = [math.log(ways("kept-alive", n, 1)["mean_ms"] / ways("fork", n, 1)["mean_ms"]) for n in (1, 3, 9)]
    ends = stats.ttest_1samp(logs, 0).confidence_interval()
    assert (status, overall["claim"], each["pairs"]) == (0, "faster", "point")
    assert overall["ratio"]["value"] == pytest.approx(math.exp(np.mean(logs)), rel=1e-9)
    assert overall["ratio"]["low"] == pytest.approx(math.exp(ends.low), rel=1e-9)
    assert overall["ratio"]["high"] == pytest.approx(math.exp(ends.high), rel=1e-9)
    assert overall["difference"]["low"] is None  # of geometric means there is none over points
    assert {row["claim"] for row in each["points"] if row["metric"] == "mean_ms"} == {"not compared"}
    assert [warning for warning in each["warnings"] if "n < 2 repetitions" in warning]


def test_one_repetition_against_several(tmp_path: Path, make_study: Make) -> None:
    """As with runs: what varies is known of one side only."""
    studies = make_study("a", ways), make_study("b", ways, repetitions=1)
    for number, sides in enumerate((studies, studies[::-1])):
        _, made = compare(tmp_path / str(number), *sides)
        one, many = "BA" if number == 0 else "AB"
        variation = f"assumed to be that of {many}."
        (warning,) = made["comparisons"][0]["warnings"]
        assert warning.startswith(f"{one} is a single repetition") and warning.endswith(variation)
        assert made["comparisons"][0]["pairs"] is None


def test_a_study_with_itself(tmp_path: Path, make_study: Make) -> None:
    study = make_study("s", ways)
    _, made = compare(tmp_path / "1", study, study)
    assert made["comparisons"][0]["warnings"] == ["A and B are the same study, s: it is compared with itself."]
    _, levels = compare(tmp_path / "2", study, "--factor", "way=fork,kept-alive")
    assert levels["comparisons"][0]["warnings"] == []


def test_one_repetition_of_shares(tmp_path: Path, make_study: Make) -> None:
    """Success is averaged as it is; where all points are alike, single samples still vary."""

    def worse(way: str, users: int, repetition: int) -> dict[str, Any]:
        return ways(way, users, repetition) | {"ok": 17, "success": 17 / 37}

    studies = [make_study(name, values, repetitions=1) for name, values in (("a", ways), ("b", worse))]
    _, made = compare(tmp_path, *studies)
    (each,) = made["comparisons"]
    success = next(row for row in each["overall"] if row["metric"] == "success")
    assert success["claim"] == "lower"
    assert success["difference"]["value"] == pytest.approx(17 / 37 - 1)
    assert success["difference"]["low"] < 17 / 37 - 1 < success["difference"]["high"] < 0
    assert [warning for warning in each["warnings"] if warning.startswith("A and B ran once each:")]


def test_time_outs(tmp_path: Path, make_study: Make) -> None:
    def cut(way: str, users: int, repetition: int) -> dict[str, Any]:
        return ways(way, users, repetition) | ({"cut_off": "mean_ms p95_ms"} if (way, users) == ("fork", 9) else {})

    _, made = compare(tmp_path, make_study("s", cut), "--factor", "way=fork,kept-alive")
    by_metric = {row["metric"]: row for row in made["comparisons"][0]["overall"]}
    assert (by_metric["mean_ms"]["bound"], by_metric["mean_ms"]["ratio"]["low"]) == ("at most", None)
    assert by_metric["mean_ms"]["claim"] == "faster"
    assert by_metric["median_ms"]["bound"] == "exact"


def test_hidden_on_both_sides(tmp_path: Path, make_study: Make) -> None:
    def cut(way: str, users: int, repetition: int) -> dict[str, Any]:
        return ways(way, users, repetition) | ({"cut_off": "mean_ms"} if users == 9 else {})

    _, made = compare(tmp_path, make_study("a", cut), make_study("b", cut))
    overall = made["comparisons"][0]["overall"][0]
    assert "2 of 6 points left out" in overall["why"]
    at_nine = [
        row for row in made["comparisons"][0]["points"] if row["metric"] == "mean_ms" and "users=9" in row["point"]
    ]
    assert {row["claim"] for row in at_nine} == {"not compared"}


def test_success_that_is_all_alike_still_varies(tmp_path: Path, make_study: Make) -> None:
    """Three times 36 of 37 is no proof against three times 37 of 37."""
    _, made = compare(
        tmp_path, make_study("a", ways), make_study("b", lambda *at: ways(*at) | {"ok": 36, "success": 36 / 37})
    )
    at_points = [row for row in made["comparisons"][0]["points"] if row["metric"] == "success"]
    assert {row["claim"] for row in at_points} == {"no significant difference"}


@pytest.mark.parametrize(("old", "new", "claim"), [(0, 1, "no significant difference"), (0, 12, "higher"),
                                                   (1, 2, "no significant difference"), (2, 20, "higher")])  # fmt: skip
def test_counts_that_repeat_by_chance_still_vary(
    tmp_path: Path, make_study: Make, old: int, new: int, claim: str
) -> None:
    """Three times no timeout of 37 is no proof against three times one."""
    a, b = (
        make_study(name, lambda *at, n=n: ways(*at) | {"timed_out": n}, users=(1, 3))
        for name, n in (("a", old), ("b", new))
    )
    (each,) = compare(tmp_path, a, b, "--threshold", "timed_out 10 %")[1]["comparisons"]
    rows = [row for row in (*each["overall"], *each["points"]) if row["metric"] == "timed_out"]
    assert {row["claim"] for row in rows if row["point"]} == {claim}
    for row in rows:
        assert row["difference"]["low"] < new - old < row["difference"]["high"]
        assert row["ratio"] is None or row["ratio"]["low"] < new / old < row["ratio"]["high"]


@pytest.mark.parametrize(
    ("new_ms", "claim", "ends"),
    [(4.0, "no significant difference", (3 / 3, 5 / 1)), (8.0, "slower", (7 / 3, 9 / 1))],
)
def test_whole_milliseconds_that_repeat_are_not_exact(
    tmp_path: Path, make_study: Make, new_ms: float, claim: str, ends: tuple[float, float]
) -> None:
    """JMeter's times: 2 and 2 ms against 4 and 4 may all be 3."""
    a, b = (make_study(name, lambda *_, ms=ms: {"mean_ms": ms}) for name, ms in (("a", 2.0), ("b", new_ms)))
    _, made = compare(tmp_path, a, b)
    (each,) = made["comparisons"]
    for row in (each["overall"][0], each["points"][0]):
        assert (row["metric"], row["claim"]) == ("mean_ms", claim)
        assert (row["ratio"]["low"], row["ratio"]["high"]) == pytest.approx(ends)


def test_settings_of_studies(tmp_path: Path, make_study: Make) -> None:
    _, made = compare(tmp_path, make_study("a", ways), make_study("b", ways, quick=True, gateway="http://gateway:8080"))
    changed = {change["name"]: change["candidate"] for change in made["comparisons"][0]["changes"]}
    assert changed == {"study quick": ["yes"], "study gateway": ["http://gateway:8080"]}


def test_no_point_in_common(make_study: Make, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = make_study("a", ways), make_study("b", ways, users=(2,))
    assert main(["compare", str(a), str(b)]) == 1
    assert "no point in common" in capsys.readouterr().err
