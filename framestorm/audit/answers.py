"""What came back in a run of an audit, by the inputs that were sent."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from framestorm.judge.accuracy import RIGHT, WRONG_TEXT
from framestorm.model.function_audit import RepeatedInput
from framestorm.model.sample import ANSWER_DIGEST
from framestorm.results.table import read_table


def read_answers(run_dir: Path) -> pl.DataFrame:
    """Return what came back of each place in the order, the requests of a further pass through it left out.

    Columns: `index`, the place; `rtt_ms`; `cause`, RIGHT of an answer without an error; `is_answer`, whether there is a
    text that was right or wrong; `digest`, of that text.
    """
    path = run_dir / "samples.csv"
    samples = read_table(path).filter(pl.col("index").is_not_null()).sort("start_ms")
    cause = pl.when("ok").then(pl.lit(RIGHT)).otherwise(pl.col("cause").cast(pl.String).fill_null("unknown"))
    answers = (
        samples.unique("index", keep="first", maintain_order=True)
        .select("index", "start_ms", "rtt_ms", cause.alias("cause"))
        .with_columns(pl.col("cause").is_in([RIGHT, *WRONG_TEXT]).alias("is_answer"))
        .collect()
    )
    return answers.join(_digests(path), on=["index", "start_ms"], how="left", maintain_order="left").drop("start_ms")


def _digests(path: Path) -> pl.DataFrame:
    raw = pl.scan_csv(path, infer_schema=False)
    digest = pl.col(ANSWER_DIGEST) if ANSWER_DIGEST in raw.collect_schema() else pl.lit(None, pl.String)
    keys = [pl.col("index").cast(pl.Int32, strict=False), pl.col("start_ms").cast(pl.Float64, strict=False)]
    return raw.select(*keys, digest.alias("digest")).unique(["index", "start_ms"]).collect()


def texts_of(order: Sequence[int], alone: pl.DataFrame, load: pl.DataFrame) -> list[tuple[str, str, str]]:
    """Return the digests of each input's two answers alone and of that under load, where there are all three."""
    of_alone, of_load = (dict(each.filter("is_answer").select("index", "digest").iter_rows()) for each in (alone, load))
    digests: dict[int, list[str | None]] = {}
    for place, number in enumerate(order):
        digests.setdefault(number, []).append(of_alone.get(place))
    texts = [(first, again, of_load.get(number)) for number, (first, again) in digests.items()]
    return [(first, again, other) for first, again, other in texts if first and again and other]


def causes_of(order: Sequence[int], answers: pl.DataFrame) -> dict[int, str]:
    """Return how the first request of each input that came back failed, RIGHT if it did not."""
    by_place = dict(answers.select("index", "cause").iter_rows())
    causes: dict[int, str] = {}
    for place, number in enumerate(order):
        if place in by_place:
            causes.setdefault(number, by_place[place])
    return causes


def pairs_of(order: Sequence[int], answers: pl.DataFrame, warm_up: int) -> tuple[list[RepeatedInput], dict[str, int]]:
    """Return the inputs that were answered twice in the same way, and why how many others are left out.

    Args:
        order: the input of each request.
        answers: those of `read_answers`.
        warm_up: how many of the first inputs do not count.
    """
    by_place = {row["index"]: row for row in answers.iter_rows(named=True)}
    places: dict[int, list[int]] = {}
    for place, number in enumerate(order):
        places.setdefault(number, []).append(place)
    pairs, left_out = list[RepeatedInput](), dict[str, int]()
    for number, (first, second) in places.items():
        rows = [by_place[each] for each in (first, second) if each in by_place]
        if len(rows) < 2:
            continue
        if number < warm_up:
            reason = "warm-up"
        elif not all(row["is_answer"] and row["rtt_ms"] for row in rows):
            reason = "without an answer"
        elif rows[0]["cause"] != rows[1]["cause"]:
            reason = "answered in two ways"
        else:
            pairs.append(RepeatedInput(number, second - first - 1, rows[0]["rtt_ms"], rows[1]["rtt_ms"]))
            continue
        left_out[reason] = left_out.get(reason, 0) + 1
    return pairs, left_out
