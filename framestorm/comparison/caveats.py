"""What is to be known of sides and comparisons before their figures are trusted, in sentences."""

from collections.abc import Sequence

from framestorm.comparison import studies
from framestorm.comparison.sides import Run, RunSide, StudySide
from framestorm.report.units import count, percent, plural

# Failures that would make a comparison of times one of what was left: 1 in 100.
MANY_FAILED = 0.01


def between(old: RunSide | StudySide, new: RunSide | StudySide, compared: studies.Compared) -> list[str]:
    """What to know before one trusts a comparison of two sides."""
    if isinstance(old, StudySide) and isinstance(new, StudySide):
        return [*_of_studies(old, new, compared), *_failures_at(old, new, compared.shared)]
    assert isinstance(old, RunSide) and isinstance(new, RunSide)  # noqa: S101 - sides.read_sides sees to it
    failures = [
        _many_failed(run.name, run.right.size, int(run.right.sum()), _cut(run)) for run in (*old.runs, *new.runs)
    ]
    return [*_of_runs(old, new), *(sentence for sentence in dict.fromkeys(failures) if sentence)]


def _of_runs(old: RunSide, new: RunSide) -> list[str]:
    said = []
    a, b = old.label, new.label
    shared = {run.folder for run in old.runs} & {run.folder for run in new.runs}
    if shared:
        said.append(_itself(old, new, sorted(folder.name for folder in shared)))
    if len(old.runs) == len(new.runs) == 1:
        said.append(
            f"{a} and {b} are one run each. The intervals say how far the figures of these two runs may be off; how "
            "far one run of the same thing differs from the next nobody can tell from them, and a claim here may be no "
            "more than that. Repeat both, and give the runs as A1,A2,A3 B1,B2,B3."
        )
    else:
        said += _single(old, new, (len(old.runs), len(new.runs)), "run")
    bare = dict.fromkeys(run.name for run in (*old.runs, *new.runs) if run.target is None)
    if bare:
        said.append(
            f"Of the target only the URL is recorded in {', '.join(bare)}: how its function was set up (replicas, "
            "limits, environment) is not known, and may differ without being listed here."
        )
    return said


def _itself(old: RunSide | StudySide, new: RunSide | StudySide, shared: Sequence[str]) -> str:
    return f"{old.label} and {new.label} share {', '.join(shared)}: it is compared with itself."


def _single(old: RunSide | StudySide, new: RunSide | StudySide, n: tuple[int, int], noun: str) -> list[str]:
    if min(n) > 1 or max(n) == 1:
        return []
    one, many = (old, new) if n[0] == 1 else (new, old)
    return [f"{one.label} is a single {noun}: it is taken to vary from {noun} to {noun} as {many.label} does."]


def _of_studies(old: StudySide, new: StudySide, compared: studies.Compared) -> list[str]:
    # Levels of one study have its folder in common, and no run.
    said = [_itself(old, new, [old.name])] if (old.folder, old.name) == (new.folder, new.name) else []
    said += _single(old, new, (old.repetitions, new.repetitions), "repetition")
    for side in dict.fromkeys((old.folder, new.folder)):
        of = old if side == old.folder else new
        if of.left_out:
            said.append(f"{plural(of.left_out, 'run')} of {side.name} failed and are left out.")
    if any(contrast.why == studies.ONE_ONLY for contrast in (*compared.overall, *compared.points)):
        said.append(f"Some figures have no interval: {studies.ONE_ONLY}.")
    if compared.pairs == "point" and old.folder != new.folder:
        said.append(
            f"{old.label} and {new.label} ran once each. The intervals over all points say how far the points differ; "
            "what the machine did otherwise in all of one study nobody can tell from them. Give both repetitions."
        )
    return said


def _failures_at(old: StudySide, new: StudySide, points: Sequence[str]) -> list[str]:
    """Of either side, over the points that both have."""
    found = []
    for side in (old, new):
        n, right, cut = (
            int(sum(sum(side.values(point, name).values()) for point in points)) for name in ("n", "ok", "timed_out")
        )
        found.append(_many_failed(side.name, n, right, cut))
    return [sentence for sentence in found if sentence]


def _many_failed(name: str, n: int, right: int, cut: int) -> str | None:
    failed = n - right - cut
    if failed <= MANY_FAILED * n:
        return None
    return (
        f"{name}: {percent(failed / n)} of the samples failed otherwise than by a time-out; of them there are no "
        "times, and those of the others may look better for it."
    )


def _cut(run: Run) -> int:
    return int(run.times[""].cut.sum()) if "" in run.times else 0


def of_run(run: Run) -> list[str]:
    """What of a run is not in its figures, or should not be."""
    said = []
    verdict = run.summary.get("verdict") or {}
    if verdict.get("verdict") in {"partial", "unjudged"}:
        said.append(f"{run.name} is {verdict['verdict']}: {verdict.get('text')}.")
    if cut := _cut(run):
        said.append(
            f"{run.name}: {count(cut)} of {plural(run.right.size, 'frame')} timed out; their times are lower bounds."
        )
    cold = (((run.summary.get("frames") or {}).get("times") or {}).get("cold") or {}).get("n")
    if cold:
        are = "frame, the first of a process, is" if cold == 1 else "frames, the first of their processes, are"
        said.append(f"{run.name}: {count(cold)} cold {are} in the figures.")
    return said
