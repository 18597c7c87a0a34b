"""Objectives of a search as criteria of its runs, and what a run says of them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framestorm.errors import FramestormError, UsageError
from framestorm.find.objectives import KEEPS_UP, criterion_of, decided_of, needed_samples, opposite, probe_of, rung_of
from framestorm.model import criteria, files
from framestorm.model.judgement import JudgedState, Judgement
from framestorm.model.overload import Overload, Rates
from framestorm.model.run import Decision, Record, Target
from framestorm.model.search import LoadRange, Probe
from framestorm.model.summary import Facts, Machine, Times
from tests.framestorm.conftest import summary_of

USERS = LoadRange("users", 1, 64, is_whole=True)


@pytest.mark.parametrize(
    ("objective", "criterion"),
    [
        ("p95 < 500 ms", "p95 >= 500 ms"),
        ("success  >= 99.9 %", "success < 99.9 %"),
        ("errors <= 1 %", "errors > 1 %"),
        ("'a < b' p99 < 2 s", "'a < b' p99 >= 2 s"),
    ],
)
def test_an_objective_is_missed_where_its_criterion_holds(objective: str, criterion: str) -> None:
    assert criterion_of(objective) == criterion
    assert opposite(criterion).split() == objective.split()


@pytest.mark.parametrize("wrong", ["p95", "fast < 3 s", "success >= 101 %", ""])
def test_what_is_no_objective_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="--slo"):
        criterion_of(wrong)


def test_a_percentile_needs_samples_beyond_it() -> None:
    assert needed_samples(["p95 < 1 s", "success > 9 %"]) == 100
    assert needed_samples(["p99.9 < 1 s"]) == 5000
    assert needed_samples([]) == 30


def judged(text: str, state: JudgedState, value: float | None = 1.0) -> Judgement:
    criterion = criteria.parse(text, "frame")
    return Judgement(**vars(criterion), state=state, measured="that", value=value, bound="exact", why="too few")


def probed(folder: Path, *judgements: Judgement, **fields: Any) -> Any:
    files.write(folder / "summary.json", summary_of(100, criteria=list(judgements), **fields))
    return probe_of(folder, USERS, 20, 5)


def overloaded(generator: str = "", **rates: float) -> dict[str, Any]:
    of_load = Overload(["backlog"], 0, 5, 20, 10, 9, generator=generator)
    return {"facts": Facts(0, 0, None, overload=of_load, rates=Rates(**rates))}


def test_each_criterion_is_an_outcome(tmp_path: Path) -> None:
    facts = Facts(0, 0, None, rates=Rates(asked_per_s=20, sent_per_s=20, answered_per_s=19.9))
    probe = probed(tmp_path, judged("p95 >= 1 s", "passed"), judged("overload", "passed"), facts=facts)
    assert [each.objective for each in probe.outcomes] == ["p95 < 1 s", KEEPS_UP]
    assert probe.passed
    assert (probe.load, probe.answered_per_s, probe.length_s) == (20, 19.9, 5)


@pytest.mark.parametrize("metric", ["p75", "p95", "p99.9", "handler p99"])
@pytest.mark.parametrize(("low", "high", "is_sure"), [(900, 990, True), (900, 1010, False), (900, None, False)])
def test_a_result_is_sure_if_the_whole_interval_of_its_figure_is(
    tmp_path: Path, metric: str, low: float, high: float | None, is_sure: bool
) -> None:
    judgement = replace(judged(f"{metric} >= 1 s", "passed", 950), low=low, high=high)
    (outcome,) = probed(tmp_path, judgement).outcomes
    assert (outcome.low, outcome.high, outcome.is_sure) == (low, high, is_sure)


def test_all_are_the_samples_of_a_single_label(tmp_path: Path) -> None:
    label = replace(summary_of(100).labels["frame"], success=0.55, success_low=0.4, success_high=0.6)
    (outcome,) = probed(tmp_path, judged("all success < 50 %", "passed", 0.55), labels={"frame": label}).outcomes
    assert (outcome.low, outcome.high, outcome.is_sure) == (0.4, 0.6, False)


def test_a_figure_of_too_few_samples_is_no_pass(tmp_path: Path) -> None:
    figure = Times(20, 0, *(None,) * 7)
    label = replace(summary_of(100).labels["frame"], figures={"tokens_per_s": figure})
    with pytest.raises(FramestormError, match="had 20 samples and needs 100"):
        probed(tmp_path, judged("frame tokens_per_s p99 < 1 /s", "passed"), labels={"frame": label})


def test_a_rule_that_did_not_end_the_load_says_nothing(tmp_path: Path) -> None:
    rule = "errors > 10 % over 20 s"
    of_rule = replace(judged("errors > 10 %", "passed", None), text=rule)
    probe = probed(tmp_path, judged("p95 >= 1 s", "passed"), of_rule, run=Record(stop_if=(rule,)))
    assert [each.objective for each in probe.outcomes] == ["p95 < 1 s"]


def test_a_probe_that_a_rule_ended_has_missed_whatever_its_figures_say(tmp_path: Path) -> None:
    """Its p95 has no margin: it is of a part that was chosen, and no crossing is fitted to it."""
    decision = Decision("--stop-if", "errors > 10 % over 20 s", 0.0, "30 %", "frame", 30.0)
    run = Record(state="decided", decision=decision, stop_if=(decision.text,))
    files.write(tmp_path / "summary.json", summary_of(100, criteria=[judged("p95 >= 1 s", "passed")], run=run))
    probe = decided_of(tmp_path, 40, 20)
    assert (probe.passed, probe.margin, probe.is_sure) == (False, None, True)
    assert [(each.objective, each.measured) for each in probe.outcomes] == [("errors <= 10 % over 20 s", "30 %")]


def test_answers_5_percent_short_of_the_requests_are_an_overload(tmp_path: Path) -> None:
    facts = Facts(0, 0, None, rates=Rates(asked_per_s=20, sent_per_s=20, answered_per_s=18.9))
    assert not probed(tmp_path, judged("overload", "passed"), facts=facts).passed


def test_a_generator_that_sent_late_is_to_blame(tmp_path: Path) -> None:
    late = probed(tmp_path, judged("overload", "unjudged"), **overloaded("vm was saturated"))
    assert late.generator == "vm was saturated"
    assert not late.passed


def test_a_saturated_machine_that_sent_in_time_is_not_to_blame_for_a_backlog(tmp_path: Path) -> None:
    in_time = probed(tmp_path, judged("overload", "failed"), **overloaded(), doubts=["saturated", "overloaded"])
    assert (in_time.generator, in_time.passed) == ("", False)


def test_a_missed_time_on_a_saturated_machine_says_nothing_of_the_function(tmp_path: Path) -> None:
    assert probed(tmp_path, judged("p95 >= 1 s", "failed"), doubts=["saturated"]).generator
    assert probed(tmp_path, judged("p95 >= 1 s", "passed"), doubts=["saturated"]).passed


@pytest.mark.parametrize(
    ("criterion", "cause", "blamed"),
    [
        ("success < 95 %", "status-429", False),
        ("errors > 5 %", "status-500", False),
        ("errors > 9", "not-json", False),
        ("errors > 10", "status-429", True),
        ("success < 95 %", "timeout", True),
        ("success < 95 %", "connect", True),
        ("success < 95 %", "failed-check: The operation lasted too long", True),
        ("p95 >= 1 s", "status-429", True),
    ],
)
def test_answers_that_alone_miss_an_objective_are_the_functions_on_whatever_machine(
    tmp_path: Path, criterion: str, cause: str, blamed: bool
) -> None:
    label = replace(summary_of(100).labels["frame"], ok=90, failed=10, success=0.9, causes={cause: 10})
    fields = {"labels": {"frame": label}, "doubts": ["saturated", "not_offered"]}
    late = probed(tmp_path, judged(criterion, "failed"), judged("overload", "unjudged"), **fields)
    assert (bool(late.generator), late.passed) == (blamed, False)


@pytest.mark.parametrize(
    ("criteria", "in_bursts", "blamed"),
    [
        (("success < 95 %",), 5, True),  # five others of 100 are allowed
        (("success < 95 %",), 4, False),
        (("errors > 5",), 5, True),
        (("errors > 5", "p95 >= 1 s"), 5, False),  # which the bursts have not missed
    ],
)
def test_errors_of_the_load_generators_own_bursts_are_not_the_functions(
    tmp_path: Path, criteria: Sequence[str], in_bursts: int, blamed: bool
) -> None:
    label = replace(summary_of(100).labels["frame"], ok=90, failed=10, success=0.9, causes={"status-429": 10})
    label = replace(label, errors_in_bursts=in_bursts)
    probe = probed(tmp_path, *(judged(each, "failed") for each in criteria), labels={"frame": label})
    assert (f"may have caused {in_bursts} of 10 errors" in probe.generator, probe.passed) == (blamed, False)


@pytest.mark.parametrize(("refused", "blamed"), [(40, False), (10, True)])
def test_a_rung_whose_requests_are_refused_is_the_functions(tmp_path: Path, refused: int, blamed: bool) -> None:
    ends = "".join(f"frame,{100 * n}.0,50.0,true\n" for n in range(401))
    (tmp_path / "samples.csv").write_text(f"label,start_ms,rtt_ms,ok\n{ends}")
    label = replace(summary_of(401).labels["frame"], causes={"status-429": refused})
    files.write(tmp_path / "summary.json", summary_of(401, labels={"frame": label}, doubts=["saturated"]))
    assert bool(rung_of(tmp_path, USERS, 2, 40).generator) == blamed


@pytest.mark.parametrize(
    ("url", "cores", "blamed"),
    [
        ("http://127.0.0.1:8080/", 0.1, False),
        ("http://[::1]:8080/", 0.1, False),
        ("http://127.0.0.1:8080/", 1.0, True),
        ("http://198.18.0.3:8080/", 0.1, True),
    ],
)
def test_a_machine_that_the_function_itself_fills_is_the_functions(
    tmp_path: Path, url: str, cores: float, blamed: bool
) -> None:
    generator = Machine("vm", "generator", 2, cores, cores, 1e6, None, None)
    run = Record(target=Target("url", url))
    probe = probed(tmp_path, judged("p95 >= 1 s", "failed"), doubts=["saturated"], machines=[generator], run=run)
    assert bool(probe.generator) == blamed


def test_a_rung_has_its_rate_with_an_interval(tmp_path: Path) -> None:
    """An answer each 100 ms, give or take some: 10/s."""
    ends = 1000 * np.arange(1, 402) / 10 + np.random.default_rng(7).normal(0, 20, 401)
    rows = "".join(f"frame,{end_ms - 50:.3f},50.000,true\n" for end_ms in ends)
    (tmp_path / "samples.csv").write_text(f"label,start_ms,rtt_ms,ok\n{rows}")
    files.write(tmp_path / "summary.json", summary_of(401))
    rung = rung_of(tmp_path, USERS, 2, 40)
    assert rung.answered_per_s == pytest.approx(10, rel=0.005)
    assert rung.answered_low and rung.answered_high
    assert 9.8 < rung.answered_low < 10 < rung.answered_high < 10.2
    assert rung.passed


def rung(folder: Path, load: float, answered: int, failed: int, apart_ms: float = 100) -> Probe:
    """A rung of the capacity whose answers without an error come first."""
    rows = "".join(f"frame,{apart_ms * n},50.0,{str(n < answered).lower()}\n" for n in range(answered + failed))
    (folder / "samples.csv").write_text(f"label,start_ms,rtt_ms,ok\n{rows}")
    label = replace(summary_of(answered + failed).labels["frame"], ok=answered, failed=failed)
    files.write(folder / "summary.json", summary_of(labels={"frame": label}))
    return rung_of(folder, USERS, load, 20)


@pytest.mark.parametrize(
    ("load", "answered", "failed", "apart_ms", "n"),
    [(2, 9, 0, 100, "9"), (1, 9, 90, 100, "9"), (1, 0, 90, 100, "0"), (2, 12, 0, 0, "12, all at once")],
)
def test_a_rate_of_few_answers_is_no_rate(
    tmp_path: Path, load: float, answered: int, failed: int, apart_ms: float, n: str
) -> None:
    with pytest.raises(FramestormError, match=f"10 answers without an error, and there are {n};"):
        rung(tmp_path, load, answered, failed, apart_ms)


@pytest.mark.parametrize(("answered", "rate_per_s"), [(0, 0.0), (3, 0.1), (21, 1.0)])
def test_a_function_that_collapses_under_more_users_has_a_low_rate(
    tmp_path: Path, answered: int, rate_per_s: float
) -> None:
    """However fast the first answers came: requests were sent for 20 s."""
    collapsed = rung(tmp_path, 2, answered, 201 - answered)
    assert collapsed.answered_per_s == pytest.approx(rate_per_s, rel=0.01)
    assert collapsed.answered_low is None


@pytest.mark.parametrize(
    ("n", "state", "is_refused"), [(999, "passed", True), (1000, "passed", False), (9, "failed", False)]
)
def test_a_percentile_that_is_just_the_largest_of_few_samples_is_no_pass(
    tmp_path: Path, n: int, state: JudgedState, is_refused: bool
) -> None:
    times = Times(n, 0, *[None] * 7)
    label = replace(summary_of(n).labels["frame"], times={"rtt": times})
    judgement = judged("p99.9 >= 1 s", state)
    if is_refused:
        with pytest.raises(FramestormError, match=r"with 20 users, 'p99.9 < 1 s' had 999 samples and needs 1,000"):
            probed(tmp_path, judgement, labels={"frame": label})
    else:
        assert probed(tmp_path, judgement, labels={"frame": label}).passed == (state == "passed")


def test_a_load_that_was_not_made_is_no_pass(tmp_path: Path) -> None:
    assert not probed(tmp_path, judged("p95 >= 1 s", "passed"), doubts=["not_offered"]).passed


@pytest.mark.parametrize(
    ("length_s", "advice"),
    [(5, "give longer probes by --probe-s"), (None, "make the run of the plan longer, by its own")],
)
def test_an_objective_that_cannot_be_judged_ends_the_search(
    tmp_path: Path, length_s: float | None, advice: str
) -> None:
    unjudged = judged("p95 >= 1 s", "unjudged", None)
    files.write(tmp_path / "summary.json", summary_of(100, criteria=[unjudged]))
    with pytest.raises(FramestormError, match=rf"'p95 < 1 s' could not be judged: too few; {advice}"):
        probe_of(tmp_path, USERS, 20, length_s)


def test_a_label_that_there_is_not_ends_the_search_on_whatever_machine(tmp_path: Path) -> None:
    absent = replace(judged("p95 >= 1 s", "unjudged", None), label="nowhere")
    with pytest.raises(FramestormError, match=r"'p95 < 1 s' could not be judged: too few"):
        probed(tmp_path, absent, judged("success < 99 %", "failed"), doubts=["saturated"])


@pytest.mark.parametrize("label", ["all", "user", "*", "frame"])
def test_a_saturated_machine_is_to_blame_for_a_figure_that_a_label_lacks(label: str, tmp_path: Path) -> None:
    lacking = replace(judged("p95 >= 1 s", "unjudged", None), label=label)
    assert probed(tmp_path, lacking, doubts=["saturated"]).generator


@pytest.mark.parametrize(("cause", "blamed"), [("status-503", False), ("connect", True)])
def test_a_time_of_requests_that_all_failed_is_missed(tmp_path: Path, cause: str, blamed: bool) -> None:
    label = replace(summary_of(100).labels["frame"], ok=0, failed=100, success=0.0, causes={cause: 100})
    fields = {"labels": {"frame": label}, "doubts": ["saturated"]}
    probe = probed(tmp_path, judged("p95 >= 1 s", "unjudged", None), **fields)
    assert (bool(probe.generator), probe.passed) == (blamed, False)
    assert [(each.is_met, each.measured) for each in probe.outcomes] == [(False, "every request failed")]


def test_a_percentile_of_few_samples_is_missed_where_most_requests_failed(tmp_path: Path) -> None:
    """More of them would not come of a longer probe."""
    label = summary_of(200).labels["frame"]
    label = replace(label, ok=3, failed=197, causes={"status-503": 197}, times={"rtt": Times(3, 0, *[None] * 7)})
    probe = probed(tmp_path, judged("p95 >= 1 s", "passed", 20.0), labels={"frame": label}, doubts=["saturated"])
    assert (probe.passed, probe.generator, probe.margin) == (False, "", None)
    assert [each.measured for each in probe.outcomes] == ["197 of 200 requests failed"]


@pytest.mark.parametrize(
    ("failed", "objectives", "is_met"),
    [(120, (), False), (100, (), True), (120, (judged("success < 30 %", "passed", 0.4),), True)],
)
def test_a_time_is_not_met_by_a_few_that_did_not_fail(
    tmp_path: Path, failed: int, objectives: Sequence[Judgement], is_met: bool
) -> None:
    """Unless an objective says how many may fail."""
    label = summary_of(200).labels["frame"]
    label = replace(label, ok=200 - failed, failed=failed, causes={"status-503": failed})
    label = replace(label, times={"rtt": Times(200 - failed, 0, *[None] * 7)})
    probe = probed(tmp_path, judged("p95 >= 1 s", "passed", 20.0), *objectives, labels={"frame": label})
    assert probe.passed == is_met
    if not is_met:
        assert probe.outcomes[0].measured == f"{failed} of 200 requests failed"


def test_a_label_that_no_request_reached_is_missed_where_most_requests_failed(tmp_path: Path) -> None:
    lacking = replace(judged("p95 >= 1 s", "unjudged", None), label="checkout")
    label = replace(summary_of(100).labels["frame"], ok=0, failed=100, causes={"status-503": 100})
    probe = probed(tmp_path, lacking, labels={"frame": label})
    assert [(each.is_met, each.measured) for each in probe.outcomes] == [(False, "every request failed")]


def test_too_few_samples_of_one_objective_do_not_matter_where_another_is_missed(tmp_path: Path) -> None:
    label = replace(summary_of(12).labels["frame"], times={"rtt": Times(12, 0, *[None] * 7)})
    few, missed = judged("p95 >= 1 s", "passed", 20.0), judged("success < 99 %", "failed", 0.9)
    assert not probed(tmp_path, few, missed, labels={"frame": label}).passed


def test_users_without_an_objective_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FramestormError, match="--slo"):
        probed(tmp_path)
