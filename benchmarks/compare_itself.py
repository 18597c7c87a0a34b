"""Compare a run with itself: `.local/venv/bin/python -m benchmarks.compare_itself [RUN] [resamplings]`.

A run is cut into pieces of time; half of them, drawn at random, are one run and the others another, 200 times, and the
two are compared as `./run.sh compare` does. No difference is true, so at least 95 % of the comparisons have to claim
none, over all their metrics together. Without a RUN one is made up whose response times depend on those before
(autocorrelation 0.7, with a slow wave, rare stalls and failures in clusters). Exits with 1 when too many claim one.
"""

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl

from framestorm.compare.questions import of_runs
from framestorm.compare.runs import Run, RunSide
from framestorm.compare.sides import read_sides
from framestorm.judge.contrasts import judge_differences
from framestorm.model.comparison import NOT_COMPARED, NOT_SIGNIFICANT
from framestorm.model.run import Record
from framestorm.results.samples import Samples
from framestorm.results.table import read_table

PIECES = 60
WANTED = 0.95
START_MS = 1_790_000_000_000.0


def made_up(random: np.random.Generator, frames: int = 1500) -> pl.DataFrame:
    """Frames of one run, one after the other, none of whose times is independent of the last."""
    noise = np.empty(frames)
    noise[0] = random.normal()
    for number in range(1, frames):
        noise[number] = 0.7 * noise[number - 1] + np.sqrt(1 - 0.7**2) * random.normal()
    wave = 0.5 * np.sin(np.arange(frames) / 40)
    handler_ms = 60 * np.exp(0.15 * (noise + wave))
    stalls = np.repeat(random.random(frames // 10 + 1) < 0.02, 10)[:frames]
    rtt_ms = handler_ms + random.gamma(4, 1, frames) + np.where(stalls, 80, 0)
    ok = ~(np.repeat(random.random(frames // 20 + 1) < 0.03, 20)[:frames] & (random.random(frames) < 0.5))
    return pl.DataFrame({
        "start_ms": START_MS + np.concatenate([[0.0], np.cumsum(rtt_ms)[:-1]]), "rtt_ms": rtt_ms,
        "handler_ms": handler_ms, "model_ms": handler_ms * 0.6, "ok": ok, "timed_out": np.zeros(frames, dtype=bool),
    })  # fmt: skip


def halves(frames: pl.DataFrame, random: np.random.Generator) -> tuple[Run, Run]:
    """Two runs of alternate pieces of one, each put together in its own order and time."""
    edges = np.linspace(0, frames.height, PIECES + 1).astype(int)
    starts = frames["start_ms"].to_numpy()
    last_ms = float((frames["start_ms"] + frames["rtt_ms"].fill_null(0)).max())  # type: ignore[arg-type]
    at_ms = [*starts[edges[:-1]], last_ms]
    taken = set(random.permutation(PIECES)[: PIECES // 2].tolist())
    made = []
    for side in (True, False):
        clock_ms, pieces = START_MS, []
        for piece in range(PIECES):
            if (piece in taken) == side:
                part = frames[int(edges[piece]) : int(edges[piece + 1])]
                pieces.append(part.with_columns(pl.col("start_ms") - at_ms[piece] + clock_ms))
                clock_ms += at_ms[piece + 1] - at_ms[piece]
        half = pl.concat(pieces)
        samples, summary = Samples(half, half, half.height), SimpleNamespace(is_at_rate=False)
        made.append(Run(Path("half"), Record(), summary, by_label={None: samples}))  # type: ignore[arg-type]
    return made[0], made[1]


def claims(frames: pl.DataFrame, random: np.random.Generator) -> list[str]:
    """The metrics of which a comparison of two halves claims a difference."""
    a, b = halves(frames, random)
    compared = judge_differences(of_runs(RunSide("A", (a,)), RunSide("B", (b,))).overall)
    return [contrast.metric for contrast in compared.values() if contrast.claim not in {NOT_SIGNIFICANT, NOT_COMPARED}]


def main(words: list[str]) -> int:
    resamplings = int(words.pop()) if words and words[-1].isdigit() else 200
    random = np.random.default_rng(20_261_120)
    given = None
    if words:
        (side,) = read_sides(words[:1])
        assert isinstance(side, RunSide)
        given = read_table(side.runs[0].folder / "samples.csv").sort("start_ms", maintain_order=True).collect()
    wrong, by_metric, started = 0, dict[str, int](), time.monotonic()
    for _ in range(resamplings):
        found = claims(given if given is not None else made_up(random), random)
        wrong += bool(found)
        for metric in found:
            by_metric[metric] = by_metric.get(metric, 0) + 1
    none = 1 - wrong / resamplings
    what = words[0] if words else "made up"
    print(f"{what}: no difference claimed in {none:.1%} of {resamplings} (wanted {WANTED:.0%})")
    print(f"false claims, by metric: {by_metric or 'none'}; {(time.monotonic() - started) / resamplings:.2f} s each")
    return 0 if none >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
