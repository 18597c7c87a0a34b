"""Headlines of runs, read from summary.json and run.json of any format; each run has one, whatever is left of it."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import Any, get_args
from urllib.parse import urlsplit

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model.files import FORMAT, FileError, parse
from framestorm.model.headline import NOT_KNOWN, Headline, LoadKey
from framestorm.model.run import Record
from framestorm.model.summary import Summary, VerdictWord
from framestorm.model.units import as_number, is_number
from framestorm.plain import note
from framestorm.report.load_words import load_key
from framestorm.stats.estimate import Estimate

SUMMARY, RECORD = "summary.json", "run.json"
# A folder with one of them is that of a run.
RUN_FILES = (RECORD, "samples.jtl", "samples.csv")
TIMES = {"median_ms": "p50", "p95_ms": "p95", "p99_ms": "p99"}
_OF_TARGET = "url"
_RATE, _USERS, _HOLD = "rate_per_s", "users", "hold_s"
Json = dict[str, Any]


def read_headlines(folders: Iterable[Path]) -> list[Headline]:
    """Return the headline of each run in these folders, however deep, in the order of their starts.

    Raises:
        UsageError: a folder is not there.
    """
    runs: dict[Path, None] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder; name folders that have runs in them")
        runs |= dict.fromkeys(_runs(folder.resolve()))
    headlines = [read_headline(run) for run in runs]
    return sorted(headlines, key=lambda each: (each.started_ms or 0.0, each.run))


def _runs(folder: Path) -> Iterator[Path]:
    """Yield the folders of runs; one lies within another only if that is no run."""
    for at, folders, files in os.walk(folder, onerror=lambda error: note(f"a folder cannot be read: {error}")):
        if any(name in files for name in RUN_FILES):
            folders.clear()
            yield Path(at)
        folders.sort()


def read_headline(folder: Path) -> Headline:
    """Return the headline of a run, with what is known of it."""
    summary, problem = _read(folder / SUMMARY)
    # A report has the record of its run.
    run, of_record = (_part(summary, "run"), "") if summary else _read(folder / RECORD)
    problem = "; ".join(each for each in (problem, of_record) if each)
    form = (summary or run).get("format", FORMAT)
    if not summary and run.get("state") == "running":
        problem = f"it is still running, or it crashed; {problem}"
    if form != FORMAT:
        # No report of it is made by this one.
        problem = f"its {'report' if summary else 'record'} has format {form}, of another version of the kit"
    # A run of format 1 has one kind of samples, and these are its frames.
    main = _part(_part(summary, "labels"), _text(summary.get("label"))) or _part(summary, "frames")
    verdict = _part(summary, "verdict").get("word")
    if verdict not in get_args(VerdictWord):
        verdict = None
        problem = problem or f"{SUMMARY} has no verdict{_remake(folder)}"
    checkout, kit = _part(run, "checkout"), _part(run, "kit")
    load, doubts = _part(summary, "load"), summary.get("doubts")
    n = main.get("n")
    return Headline(
        run=folder.name,
        folder=str(folder),
        key=_key(summary, run),
        label=_text(summary.get("label") or summary.get("unit")) or None,
        title=_text(run.get("title")) or None,
        started_ms=next((ms for each in (run.get("started_ms"), load.get("start_ms")) if (ms := _number(each))), None),
        n=n if isinstance(n, int) else None,
        figures=_figures(main),
        verdict=verdict,
        doubts=tuple(each for each in doubts if isinstance(each, str)) if isinstance(doubts, list) else (),
        commit=_text(checkout.get("commit")) or None,
        branch=_text(checkout.get("branch")) or None,
        kit=_text(kit.get("version")) or None,
        problem=problem,
    )


def _read(path: Path) -> tuple[Json, str]:
    """Return what a JSON file holds, of whichever format; and a sentence if that is nothing."""
    remake = _remake(path.parent) if path.name == SUMMARY else ""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, f"{path.name} is missing{remake}"
    except (OSError, ValueError, RecursionError) as error:
        return {}, f"{path.name} cannot be read ({error}){remake}"
    return (content, "") if isinstance(content, dict) else ({}, f"{path.name} is not a JSON object{remake}")


def _remake(folder: Path) -> str:
    return f": make it by ./run.sh report {paths.shown(folder)}"


def _part(content: Json, name: str) -> Json:
    """Return an object in an object; an empty one if it has none of that name."""
    part = content.get(name)
    return part if isinstance(part, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    """Return a finite number; None for anything else, which a damaged file may have."""
    number = as_number(value) if is_number(value) else None
    return None if number is None else float(number)


def _figures(main: Json) -> dict[str, Estimate]:
    rtt = _part(_part(main, "times"), "rtt")
    figures = {name: _estimate(_part(rtt, statistic)) for name, statistic in TIMES.items()}
    ends = {"low": main.get("success_low"), "high": main.get("success_high")}
    figures["success"] = _estimate({"value": main.get("success"), **ends})
    of_rate = {"low": main.get("rate_low_per_s"), "high": main.get("rate_high_per_s")}
    figures["served_per_s"] = _estimate({"value": main.get("rate_per_s"), **of_rate})
    return {name: figure for name, figure in figures.items() if figure}


def _estimate(content: Json) -> Estimate | None:
    """Return a figure; None if it is not known, or is a percentile that is just the largest sample."""
    value, low, high = (_number(content.get(name)) for name in ("value", "low", "high"))
    if value is None or content.get("few") is True:
        return None
    return Estimate(value, low, high, bound="lower" if content.get("bound") == "lower" else "exact")


def _key(summary: Json, run: Json) -> LoadKey:
    properties, target = _part(run, "properties"), _part(run, "target")
    given, unread = _part(run, "given"), run.get("unread")
    # What the target says already, and what can make no difference.
    left_out = {_OF_TARGET, *(unread if isinstance(unread, list) else ())}
    recorded = _recorded(summary, run)
    record = recorded.run if isinstance(recorded, Summary) else recorded
    load = (load_key(recorded) or NOT_KNOWN) if recorded else _load_by_properties(properties)
    # Another draw of random arrivals is the same load: each repetition of a study has one of its own.
    if record is not None and any(each.seed is not None for each in record.loads):
        left_out.add("seed")
    # A JTL may come from another folder each time, as of a workspace that each build has of its own.
    plan = PurePath(_text(run.get("plan"))).name or (_text(run.get("title")) if run.get("source") else "")
    plan = plan or _text(run.get("source"))
    kind, url = _text(target.get("kind")), _text(target.get("url")) or _text(properties.get(_OF_TARGET))
    where = kind if kind == "embedded" else url or {"none": "what the plan calls"}.get(kind, NOT_KNOWN)
    of_target = _part(target, "settings")
    if "namespace" in of_target:
        # A Service gets another port of the nodes each time that it is made.
        function = "/".join(str(of_target.get(name)) for name in ("context", "namespace", "function"))
        where = f"{kind} {function}{urlsplit(url).path}"
    settings = [f"{name}={value}" for name, value in sorted(given.items()) if name not in left_out]
    # A history is about a function's versions. Of one that a study or a search made, which has a port, the image is a
    # setting like others.
    version = {"revision"} if "port" in of_target else {"revision", "image"}
    settings += [f"target.{name}={value}" for name, value in sorted(of_target.items()) if name not in version]
    # Figures of the steady part are no figures of whole runs.
    settings += ["steady=true"] if run.get("judges_steady") is True else []
    return LoadKey(plan or NOT_KNOWN, where, load, tuple(settings))


def _recorded(summary: Json, run: Json) -> Summary | Record | None:
    """Return the report of a run, or its record if it has none; None of a run whose format has changed too much."""
    form = {"format": FORMAT}
    try:
        return parse(json.dumps(summary | form), Summary) if summary else parse(json.dumps(run | form), Record)
    except FileError:
        return None


def _load_by_properties(properties: Json) -> str:
    """Return the load in words, by the properties of the kit's own plans."""
    levels = ((_RATE, "{}/s"), (_USERS, "{} users"))
    words = next((words.format(properties[name]) for name, words in levels if properties.get(name)), NOT_KNOWN)
    return f"{words} for {properties[_HOLD]} s" if properties.get(_HOLD) and words != NOT_KNOWN else words
