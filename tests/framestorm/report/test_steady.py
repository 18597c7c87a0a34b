"""Since when a run is steady: what the page says, what --steady leaves out, and where nothing can be told."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framestorm.model.files import read
from framestorm.model.summary import Summary
from framestorm.points.run_figures import figures_of_run
from framestorm.report import build
from framestorm.results.samples import read_samples
from tests.framestorm.results.conftest import START_MS, write_jtl

RATE, LENGTH_S, USUAL_MS = 40, 30, 50
WARM_S = 6
N, N_WARM = RATE * LENGTH_S, RATE * WARM_S
Length = Callable[[float], float]


def is_level(_: float) -> float:
    return 1.0


def is_warm(at_s: float) -> float:
    return 1.0 if at_s >= WARM_S else 2.0


def drifts(at_s: float) -> float:
    return 1 + at_s / LENGTH_S


def write_run(folder: Path, length: Length, length_s: float = LENGTH_S, **record: object) -> Path:
    """A run of 40 requests a second, whose response times are about 50 ms times what `length` says of their second."""
    noise = np.random.default_rng(3)
    starts_s = np.arange(round(RATE * length_s)) / RATE
    took_ms = [USUAL_MS * length(at_s) * noise.uniform(0.9, 1.1) for at_s in starts_s]
    fixed = {"label": "request", "responseCode": "200", "success": "true"}
    rows = [
        {"timeStamp": START_MS + round(1000 * at_s), "elapsed": round(took), **fixed}
        for at_s, took in zip(starts_s, took_ms, strict=True)
    ]
    write_jtl(folder / "samples.jtl", rows)
    properties = {"rate_per_s": str(RATE), "ramp_s": "0", "hold_s": f"{length_s:g}"}
    run = {"format": 2, "state": "complete", "plan": "jmx/request-rate.jmx", "label": "request", "started_ms": START_MS}
    (folder / "run.json").write_text(json.dumps(run | {"properties": properties} | record))
    (folder / "jmeter.log").write_text(f'INFO arrival: {{"type":"arrivals","due":{len(rows)},"dropped":0}}\n')
    return folder


def report(folder: Path, criterion: str = "p95 > 10 s", *, judges_steady: bool | None = None) -> Summary:
    build(folder, [criterion, "success < 100 %"], judges_steady=judges_steady)
    return read(folder / "summary.json", Summary)


def words(summary: Summary) -> str:
    return "\n".join([*summary.warnings, *summary.notes]).replace("\u00a0", " ")


def test_a_level_is_steady_in_all_of_the_load(tmp_path: Path) -> None:
    summary = report(write_run(tmp_path, is_level))
    assert "Response times are steady in all of the 30.0 s of the full load." in words(summary)
    assert "drift" not in summary.doubts


def test_a_warm_part_is_named_and_stays_in_the_figures(tmp_path: Path) -> None:
    summary = report(write_run(tmp_path, is_warm))
    steady = summary.facts.steady
    assert steady is not None and steady.since_s == pytest.approx(WARM_S, abs=0.5)
    assert steady.change == pytest.approx(1.0, abs=0.1)
    assert "Response times are steady from 6.00 s after the start of the load on: before, they are" in words(summary)
    assert (summary.main.n, summary.facts.left_out) == (N, 0)
    assert "drift" not in summary.doubts


def test_a_drift_is_a_warning(tmp_path: Path) -> None:
    summary = report(write_run(tmp_path, drifts))
    assert summary.facts.steady is not None and summary.facts.steady.since_s is None
    assert "drift" in summary.doubts
    assert "Response times never became steady: in the last third of the 30.0 s of the full load they are" in words(
        summary
    )


def test_steady_judges_the_steady_part_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path, is_warm)
    assert report(folder, "p95 > 70 ms").criteria[0].state == "failed"
    summary = report(folder, "p95 > 70 ms", judges_steady=True)
    assert summary.criteria[0].state == "passed"
    left_out = summary.facts.left_out
    assert left_out == pytest.approx(N_WARM, abs=20) and summary.main.n == N - left_out
    assert (
        f"--steady: figures and criteria leave out what began before 6.00 s after the start of the load: {left_out} of"
        in words(summary)
    )
    assert summary.hosts[0].shown == N, "what was sent and what arrived is still all of it"
    samples = read_samples(folder)
    assert (samples.sent, samples.rejected_warm_up) == (N, left_out), "a comparison takes the same part"
    assert figures_of_run(folder, 0, "any").metrics["n"] == N - left_out, "and so does a study"


def test_without_a_steady_part_nothing_is_judged(tmp_path: Path) -> None:
    summary = report(write_run(tmp_path, drifts), judges_steady=True)
    assert (summary.main.n, summary.facts.left_out) == (0, N)
    assert summary.verdict.exit_status != 0
    assert summary.verdict.line.startswith("Not judged: --steady: the run has no steady part")
    assert f"--steady: the run has no steady part: {N:,} of its requests are left out." in words(summary)


def test_a_run_that_is_not_whole_says_why_too(tmp_path: Path) -> None:
    summary = report(write_run(tmp_path, drifts, state="stopped", reason="Ctrl-C"), judges_steady=True)
    assert summary.verdict.line == (
        "Not judged: --steady: the run has no steady part, or is too short to tell; the run was stopped early: Ctrl-C."
    )


@pytest.mark.parametrize("length", [is_warm, drifts])
def test_pauses_are_shares_of_the_whole_run(length: Length, tmp_path: Path) -> None:
    """Also where the steady part is without samples, or has fewer than were in progress during pauses."""
    folder = write_run(tmp_path, length)
    with (folder / "jmeter.log").open("a") as log:
        log.write('INFO f.Stalls: {"type":"stalls","noticed_from_ms":10}\n')
        for second in range(LENGTH_S):
            begin = f'"type":"stall","start_ms":{START_MS + 1000 * second}'
            log.write(f'INFO f.Stalls: {{{begin},"longest_ms":40,"gc_ms":0,"compiler_ms":5}}\n')
    summary = report(folder, judges_steady=True)
    assert summary.facts.left_out > 0
    assert f"{summary.facts.during_stalls:,} requests (100 %) were in progress then" in words(summary)


def test_a_label_of_the_warm_up_alone_is_not_judged(tmp_path: Path) -> None:
    folder = write_run(tmp_path, is_warm)
    with (folder / "samples.jtl").open("a") as file:
        file.write(f"{START_MS + 10},40,set up,500,no,users 1-1,text,false,,1,1,1,1,null,1,0,1,here\n")
    assert build(folder).word == "fail", "one of its samples failed"
    assert build(folder, judges_steady=True).word == "pass"
    summary = read(folder / "summary.json", Summary)
    assert [*summary.labels] == ["request"] and summary.main.n < N


def test_users_that_began_in_the_warm_up_are_not_judged(fake_run: Any) -> None:
    """They are processes, and their frames of the steady part are judged all the same."""
    noise = np.random.default_rng(3)
    for _ in range(2):
        frames = [USUAL_MS * (2 if n < 150 else 1) * noise.uniform(0.9, 1.1) for n in range(700)]
        fake_run.user([{"rtt_ms": round(float(each), 3)} for each in frames])
    folder = fake_run.write()
    assert build(folder, judges_steady=True).word == "pass"
    summary = read(folder / "summary.json", Summary)
    assert summary.facts.left_out > 0
    assert [each.text for each in summary.criteria] == ["frame success < 100 %"]


def test_a_short_run_says_nothing(tmp_path: Path) -> None:
    summary = report(write_run(tmp_path, drifts, length_s=8))
    assert summary.facts.steady is None and "steady" not in words(summary)


def test_only_the_full_load_is_looked_at(tmp_path: Path) -> None:
    """Response times that follow the load do not drift by themselves."""
    properties = {"rate_per_s": str(RATE), "ramp_s": "15", "hold_s": "15"}
    folder = write_run(tmp_path, lambda at_s: min(1.0, 0.2 + at_s / 15), properties=properties)
    steady = report(folder).facts.steady
    assert steady is not None and steady.from_s >= 13 and steady.since_s is not None
