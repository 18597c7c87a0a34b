"""What a reader has to know of sides and comparisons before the figures are trusted, in sentences."""

from collections.abc import Sequence

from framestorm.compare import studies
from framestorm.compare.sides import Run, RunSide, StudySide
from framestorm.inference.contrasts import share_without_time
from framestorm.model.units import count, percent, plural


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
    sentences = []
    a, b = old.label, new.label
    shared = {run.folder for run in old.runs} & {run.folder for run in new.runs}
    if shared:
        sentences.append(_itself(old, new, sorted(folder.name for folder in shared)))
    if len(old.runs) == len(new.runs) == 1:
        sentences.append(
            f"{a} and {b} are one run each: the intervals do not show run-to-run variation, so a claimed difference "
            "may be no more than that. Repeat both, and give the runs as A1,A2,A3 B1,B2,B3."
        )
    else:
        sentences += _single(old, new, (len(old.runs), len(new.runs)), "run")
    bare = dict.fromkeys(run.name for run in (*old.runs, *new.runs) if run.target is None)
    if bare:
        sentences.append(
            f"Of the target only the URL is recorded in {', '.join(bare)}: how its function was set up (replicas, "
            "limits, environment) is not known, and may differ without being listed here."
        )
    return sentences


def _itself(old: RunSide | StudySide, new: RunSide | StudySide, shared: Sequence[str]) -> str:
    return f"{old.label} and {new.label} share {', '.join(shared)}: it is compared with itself."


def _single(old: RunSide | StudySide, new: RunSide | StudySide, n: tuple[int, int], noun: str) -> list[str]:
    if min(n) > 1 or max(n) == 1:
        return []
    one, many = (old, new) if n[0] == 1 else (new, old)
    return [f"{one.label} is a single {noun}: its {noun}-to-{noun} variation is assumed to be that of {many.label}."]


def _of_studies(old: StudySide, new: StudySide, compared: studies.Compared) -> list[str]:
    # Levels of one study have its folder in common, and no run.
    sentences = [_itself(old, new, [old.name])] if (old.folder, old.name) == (new.folder, new.name) else []
    sentences += _single(old, new, (old.repetitions, new.repetitions), "repetition")
    for side in {old.folder: old, new.folder: new}.values():
        if side.left_out:
            sentences.append(f"{plural(side.left_out, 'run')} of {side.folder.name} failed and are left out.")
    if any(question.why == studies.ONE_ONLY for question in (*compared.overall, *compared.points)):
        sentences.append(f"Some figures have no interval: {studies.ONE_ONLY}.")
    if compared.pairs == "point" and old.folder != new.folder:
        sentences.append(
            f"{old.label} and {new.label} ran once each: the intervals over all points show the variation "
            "between points, not what made a whole study faster or slower. Repeat both."
        )
    return sentences


def _failures_at(old: StudySide, new: StudySide, points: Sequence[str]) -> list[str]:
    """Of either side, over the points that both have."""
    sentences = []
    for side in (old, new):
        n, right, cut = (
            int(sum(sum(side.values(point, name).values()) for point in points)) for name in ("n", "ok", "timed_out")
        )
        sentences.append(_many_failed(side.name, n, right, cut))
    return [sentence for sentence in sentences if sentence]


def _many_failed(name: str, n: int, right: int, cut: int) -> str | None:
    share = share_without_time(n, right, cut)
    if share is None:
        return None
    return (
        f"{name}: {percent(share)} of the samples failed, timeouts aside. They have no response time, so the times of "
        "the others may look better than the service was."
    )


def _cut(run: Run) -> int:
    return int(run.times[""].cut.sum()) if "" in run.times else 0


def of_run(run: Run) -> list[str]:
    """What of a run is not in its figures, or should not be."""
    sentences = []
    verdict = run.summary.verdict
    if verdict.word in {"partial", "unjudged"}:
        sentences.append(f"{run.name} is {verdict.word}: {verdict.text}.")
    if cut := _cut(run):
        sentences.append(
            f"{run.name}: {count(cut)} of {plural(run.right.size, 'sample')} timed out; their times are lower bounds."
        )
    times = run.summary.main.times.get("cold")
    cold = times.n if times else 0
    if cold:
        are = "cold start is" if cold == 1 else "cold starts are"
        sentences.append(f"{run.name}: {count(cold)} {are} in the figures.")
    return sentences
