"""The same raw files give the same figures as in the first version, to the last digit.

Before the code was made anew, ten runs and three studies were kept, made small, with the figures that the first version
(commit 50606e8) made of them, and of seven comparisons among them. Their files were converted from format 1 to today's,
and the figures to today's names and words; no number was touched. What the charts of the runs draw is among them.
"""

import csv
import dataclasses
import json
import lzma
import math
import re
import shlex
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framestorm import report
from framestorm.compare import command as compare
from framestorm.model.comparison import Comparison
from framestorm.model.files import read
from framestorm.model.summary import Summary
from framestorm.study.page import page as study_page
from framestorm.study.summary import StudySummary

HERE = Path(__file__).parent
# Figures that were wrong, by where they are, and what they are instead.
INTENDED = {
    # Requests whose answers nobody was to verify were counted as unverified.
    ".facts.unverified": 0,
}
# A run without clients of the kit had zeros for what its clients sent.
WITHOUT_CLIENTS = {f".hosts.0.{name}": None for name in ("users", "sent", "in_tree")}
# By run: peaks of CPU were below the mean in short loads, and replicas that were being started counted as missing;
# where arrivals were dropped, the shortest response time was not part of the time of the throughput, and that the
# function had not kept up was not said.
INTENDED_OF_RUN: dict[str, dict[str, Any]] = {
    "face-blur-http": WITHOUT_CLIENTS,
    "rate-dropped": {
        **WITHOUT_CLIENTS,
        ".doubts.0": "overloaded",
        ".doubts.1": "not_offered",
        ".n_warnings": 3,
        ".functions.0.short_s": 0.0,
        ".labels.request.rate_per_s": 4.515115822536317,
        ".hosts.0.rate_per_s": 4.515115822536317,
    },
    "rate-replica-killed": {**WITHOUT_CLIENTS, ".functions.0.cores_max": 0.02075262725},
    "requests-noop": {**WITHOUT_CLIENTS, ".functions.0.cores_max": 0.0116713934},
}
# By study: the rounding that keeps sums of equal figures equal showed.
INTENDED_OF_STUDY = {"threads-by-sleep": {".hypotheses.3.claims.0.value": pytest.approx(27.4734125, rel=2e-12)}}
# By comparison: no timeout in any repetition had an interval from 0 to 0; that runs lack a figure was not said, nor
# that the function had not kept up. The interval of a rate took its windows of time for independent, and left out the
# last answers.
ONE_LACKS_IT = "1 of 4 runs of both sides have no value"
OF_BATCHES = {"p_value": 0.0079708, "difference.low": 1.302, "difference.high": 10.3273, "ratio.low": 1.09655,
              "ratio.high": 1.7508}  # fmt: skip
INTENDED_OF_COMPARISON: dict[str, dict[str, float | str | dict[str, float]]] = {
    "two-runs": {".comparisons.0.overall.15": OF_BATCHES},
    "levels-one-repetition": {
        ".comparisons.0.overall.11": 1.2578, ".comparisons.0.n_warnings": 3, ".comparisons.1.n_warnings": 2,
    },
    "levels-threads": {
        ".comparisons.0.overall.11": 0.8279, ".comparisons.0.points.22": 0.9798, ".comparisons.0.points.23": 1.6113,
    },
    "levels": {".comparisons.0.points.32": ONE_LACKS_IT},
}  # fmt: skip
# Handler, model and what is outside of them had few metrics; any figure has the same ones now.
NEW_METRICS = {
    "handler_median_ms", "handler_p95_ms", "handler_p99_ms",
    "model_median_ms", "model_p95_ms", "model_p99_ms",
    "outside_sd_ms", "outside_median_ms", "outside_p95_ms", "outside_p99_ms",
    "faces", "faces_mean", "faces_sd", "faces_median", "faces_p95", "faces_p99",
}  # fmt: skip
# JMeter's own times of HTTP samplers are figures of samples, too.
NEW_METRICS |= {
    f"{series}_{name}_ms" for series in ("latency", "connect") for name in ("mean", "median", "p95", "p99", "sd")
}
NEW_TIMES = {"latency", "connect"}
# Whether a function kept up with a schedule is a criterion, and has figures of its own.
NEW_METRICS |= {"answered_per_s", "in_flight_max", "overload"}
NEW_DOUBTS = {"overloaded"}
# So has the share of samples that meet every objective by themselves.
NEW_METRICS |= {"goodput", "good_per_s"}
# Equal on one processor, not to the last digit or two on all: exp and log of NumPy and the least squares of its BLAS
# are other code on another one. These are fitted or geometric means, or ends of intervals that are made with them.
NEAR = re.compile(r"\.(scalability|hypotheses|comparisons)\..*|\.points\.\d+\.figures\.\w+\.(low|high)")
RELATIVE = 1e-12
# Numbers of things that have sentences of their own.
COUNTED = {"n_warnings": "warnings", "n_missing": "missing"}
# That samples failed or timed out was a warning, and is a note now: there are fewer of them, also of studies.
FEWER = re.compile(r".*\.(n_)?warnings(\.(value|low|high))?")
# Bins of charts began with a round second of the run, so that the first and the last were partly filled: they begin
# with the load now. The points that the charts draw beside them are the same, and so is the number of samples in them.
BINNED = re.compile(
    r"\.series\.(labels\.[^.]+\.)?(over_time\.(x|mid|high)|success_over_time\.(x|ratio|hosts\..*))(\.\d+)?"
)

QUICK = "studies/closed-loop/runs/0002-way=quick,users=4-r1,studies/closed-loop/runs/0007-way=quick,users=4-r2"
SLOW = "studies/closed-loop/runs/0001-way=slow,users=4-r1,studies/closed-loop/runs/0012-way=slow,users=4-r2"
COMPARISONS = {
    "two-runs": "runs/face-blur-users runs/stopped-early",
    "two-runs-time-outs": "runs/video-per-user runs/video-time-outs "
    "--threshold 'p95 5 %' --threshold 'user mean 10 %' --threshold 'success 1 point'",
    "four-runs": f"{QUICK} {SLOW} --threshold 'mean 5 %' --threshold 'rate 5 %'",
    "levels": "studies/closed-loop --factor way=quick,slow",
    "levels-one-repetition": "studies/open-loop --factor limit=none,1,cut --threshold 'p95 20 %'",
    "levels-threads": "studies/threads-by-sleep --factor sleep_s=0,5 "
    "--threshold 'mean 5 %' --threshold 'user mean 10 %' --threshold 'handler mean 5 %'",
    "study-with-itself": "studies/closed-loop studies/closed-loop",
}
EXPECTED = json.loads(lzma.decompress((HERE / "figures.json.xz").read_bytes()))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the kept runs and studies, all built."""
    folder = tmp_path_factory.mktemp("kept")
    with tarfile.open(HERE / "raw.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    for record in sorted(folder.rglob("run.json")):
        _say_that_none_is_a_sub_result(record.with_name("samples.jtl"))
        report.build(record.parent)
    for record in sorted(folder.rglob("study.json")):
        study_page.build(record.parent)
    return folder


def _say_that_none_is_a_sub_result(samples: Path) -> None:
    """The runs were kept before JMeter wrote this; of their plans, only those with users have any."""
    header, *rows = samples.read_text(encoding="utf-8").splitlines() if samples.exists() else [""]
    if "intended_ms" in header:
        lines = [f"{header},is_sub_result", *(f"{row},false" for row in rows), ""]
        samples.write_text("\n".join(lines), encoding="utf-8")


def summary_of(run: Path) -> Summary:
    return read(run / "summary.json", Summary)


def differences(old: Any, new: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two differ, and how: in the fields of a noun that were kept, in all of a mapping, list or value."""
    if BINNED.fullmatch(where):
        return
    if isinstance(old, dict) and dataclasses.is_dataclass(new):
        for name, value in old.items():
            field = len(getattr(new, COUNTED[name])) if name in COUNTED else getattr(new, name)
            yield from differences(value, field, f"{where}.{name}")
    elif isinstance(old, dict) and isinstance(new, dict):
        by_text = {str(name): value for name, value in new.items()}
        yield from ((f"{where}.{name}", old[name], None) for name in old.keys() - by_text.keys())
        yield from (
            (f"{where}.{name}", None, by_text[name])
            for name in by_text.keys() - old.keys() - NEW_METRICS - NEW_TIMES - NEW_DOUBTS
        )
        for name in old.keys() & by_text.keys():
            yield from differences(old[name], by_text[name], f"{where}.{name}")
    elif isinstance(old, list) and isinstance(new, list | tuple) and len(old) == len(known := of_old(new, old)):
        new = known
        for place, (value, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(value, other, f"{where}.{place}")
    elif new is not None and FEWER.fullmatch(where) and float(new) < float(old):
        return
    elif old != new and INTENDED.get(where, old) != new and not is_near(old, new, where):
        yield where, old, new


def of_old(items: Any, old: list[Any]) -> list[Any]:
    """The items without those of metrics that are new there."""
    new_metrics = NEW_METRICS - {each.get("metric") for each in old if isinstance(each, dict)}
    return [each for each in items if getattr(each, "metric", None) not in new_metrics]


def is_near(old: Any, new: Any, where: str) -> bool:
    are_floats = isinstance(old, float) and isinstance(new, float)
    return are_floats and NEAR.fullmatch(where) is not None and math.isclose(old, new, rel_tol=RELATIVE)


@pytest.mark.parametrize("name", EXPECTED["runs"])
def test_bins_of_a_run_have_all_of_its_samples(kept: Path, name: str) -> None:
    """As many as the bins had that began elsewhere, ok and failed, of each host."""
    old, new = EXPECTED["runs"][name]["series"], summary_of(kept / "runs" / name).series
    pairs = [(old, new), *((of, new.labels[label]) for label, of in old.get("labels", {}).items())]
    rated = [(of["success_over_time"], now.success_over_time) for of, now in pairs if of.get("success_over_time")]
    assert rated
    for of, now in rated:
        assert now is not None and of["hosts"].keys() == now.hosts.keys()
        for host, curves in of["hosts"].items():
            for what, rates in curves.items():
                n = sum(rate * width_s for rate, width_s in zip(now.hosts[host][what], now.widths_s, strict=True))
                assert n == pytest.approx(sum(rates) * of["width_s"], abs=0.02), (host, what)


@pytest.mark.parametrize("name", EXPECTED["runs"])
def test_figures_of_a_run(kept: Path, name: str) -> None:
    found = differences(EXPECTED["runs"][name], summary_of(kept / "runs" / name))
    intended = INTENDED_OF_RUN.get(name, {})
    assert [(where, old, new) for where, old, new in found if (where, new) not in intended.items()] == []


@pytest.mark.parametrize("name", EXPECTED["studies"])
def test_figures_of_a_study(kept: Path, name: str) -> None:
    expected, folder = EXPECTED["studies"][name], kept / "studies" / name
    found, intended = differences(expected["summary"], read(folder / "summary.json", StudySummary)), INTENDED_OF_STUDY
    assert [each for each in found if each[2] != intended.get(name, {}).get(each[0])] == []
    for run, figures in expected["runs"].items():
        summary = summary_of(folder / run)
        # Kept before the runs of a study accepted an overload.
        judged = {".verdict.word", ".verdict.exit_status", ".doubts"} if "overloaded" in summary.doubts else set[str]()
        assert [each for each in differences(figures, summary) if each[0] not in judged] == [], run
    with (folder / "results.csv").open(newline="", encoding="utf-8") as file:
        assert list(differences(expected["results"], list(csv.DictReader(file)))) == []


@pytest.mark.parametrize("name", EXPECTED["comparisons"])
def test_figures_of_a_comparison(kept: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(kept)
    status = compare.main([*shlex.split(COMPARISONS[name]), "-o", str(tmp_path / "out")])
    expected = EXPECTED["comparisons"][name]
    intended: dict[str, Any] = {}
    for where, new in INTENDED_OF_COMPARISON.get(name, {}).items():
        if isinstance(new, int):
            intended[where] = new
        elif isinstance(new, str):
            intended[f"{where}.why"] = new
        elif isinstance(new, dict):
            intended |= {f"{where}.{name}": pytest.approx(value, rel=1e-3) for name, value in new.items()}
        else:
            ends = {"low": -new, "high": new}
            intended |= {f"{where}.difference.{end}": pytest.approx(ends[end], rel=1e-3) for end in ends}
    found = differences(expected, read(tmp_path / "out" / "comparison.json", Comparison))
    assert [each for each in found if each[2] != intended.get(each[0])] == []
    assert status == expected["verdict"]["exit_status"]
