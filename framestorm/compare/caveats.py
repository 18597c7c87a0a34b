"""What a reader has to know of sides and comparisons before the figures are trusted, in sentences."""

from framestorm.compare.questions import ONE_ONLY, Asked
from framestorm.compare.sides import Run, RunSide, StudySide
from framestorm.inference.contrasts import share_without_time
from framestorm.model.units import count, percent, plural


def between(old: RunSide | StudySide, new: RunSide | StudySide, asked: Asked) -> list[str]:
    """What to know before one trusts a comparison of two sides."""
    if isinstance(old, StudySide) and isinstance(new, StudySide):
        return _of_studies(old, new, asked)
    assert isinstance(old, RunSide) and isinstance(new, RunSide)  # noqa: S101 - sides.read_sides sees to it
    return _of_runs(old, new)


def _of_runs(old: RunSide, new: RunSide) -> list[str]:
    a, b, runs = old.label, new.label, (*old.runs, *new.runs)
    shared = {run.folder for run in old.runs} & {run.folder for run in new.runs}
    names = ", ".join(sorted(folder.name for folder in shared))
    sentences = [f"{a} and {b} share {names}: it is compared with itself."] if shared else []
    if len(runs) == 2:
        sentences.append(
            f"{a} and {b} are one run each: the intervals do not show run-to-run variation, so a claimed difference "
            "may be no more than that. Repeat both, and give the runs as A1,A2,A3 B1,B2,B3."
        )
    sentences += _single(old, new, (len(old.runs), len(new.runs)), "run")
    bare = dict.fromkeys(run.name for run in runs if run.target is None)
    if bare:
        sentences.append(
            f"Of the target only the URL is recorded in {', '.join(bare)}: how its function was set up (replicas, "
            "limits, environment) is not known, and may differ without being listed here."
        )
    failures = [_many_failed(run.name, run.right.size, int(run.right.sum()), run.timed_out) for run in runs]
    return [*sentences, *dict.fromkeys(sentence for of_run in failures for sentence in of_run)]


def _single(old: RunSide | StudySide, new: RunSide | StudySide, n: tuple[int, int], noun: str) -> list[str]:
    if min(n) > 1 or max(n) == 1:
        return []
    one, many = (old, new) if n[0] == 1 else (new, old)
    return [f"{one.label} is a single {noun}: its {noun}-to-{noun} variation is assumed to be that of {many.label}."]


def _of_studies(old: StudySide, new: StudySide, asked: Asked) -> list[str]:
    a, b = old.label, new.label
    # Levels of one study have its folder in common, and no run.
    is_itself = (old.folder, old.name) == (new.folder, new.name)
    sentences = [f"{a} and {b} share {old.name}: it is compared with itself."] if is_itself else []
    sentences += _single(old, new, (len(old.repetitions), len(new.repetitions)), "repetition")
    for side in {old.folder: old, new.folder: new}.values():
        if side.left_out:
            sentences.append(f"{plural(side.left_out, 'run')} of {side.folder.name} failed and are left out.")
    if any(question.why == ONE_ONLY for question in (*asked.overall, *asked.points)):
        sentences.append(f"Some figures have no interval: {ONE_ONLY}.")
    if asked.pairs == "point" and old.folder != new.folder:
        sentences.append(
            f"{a} and {b} ran once each: the intervals over all points show the variation between points, not what "
            "made a whole study faster or slower. Repeat both."
        )
    for side in (old, new):
        n, ok, timed_out = (sum(side.total(point, name) for point in asked.shared) for name in ("n", "ok", "timed_out"))
        sentences += _many_failed(side.name, n, ok, timed_out)
    return sentences


def _many_failed(name: str, n: int, ok: int, timed_out: int) -> list[str]:
    share = share_without_time(n, ok, timed_out)
    if share is None:
        return []
    return [
        f"{name}: {percent(share)} of the samples failed, timeouts aside. They have no response time, so the times of "
        "the others may look better than the service was."
    ]


def of_run(run: Run) -> list[str]:
    """What of a run is not in its figures, or should not be, and what its own page warns of."""
    if run.summary is None:
        return []
    sentences, verdict = [], run.summary.verdict
    if verdict.word in {"partial", "unjudged"}:
        sentences.append(f"{run.name} is {verdict.word}: {verdict.text}.")
    if run.timed_out:
        n = plural(run.right.size, "sample")
        sentences.append(f"{run.name}: {count(run.timed_out)} of {n} timed out; their times are lower bounds.")
    if cold := run.summary.main.times.get("cold"):
        sentences.append(f"{run.name}: {plural(cold.n, 'cold start')} in the figures.")
    return sentences + [f"{run.name}: {sentence}" for sentence in run.summary.warnings]
