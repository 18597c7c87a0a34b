"""Warnings about figures: too few samples, and what of them is not known, cut off or counted together."""

import re
from collections.abc import Iterator, Sequence

from framestorm.model.criteria import USER
from framestorm.model.run import JtlPart
from framestorm.model.sample import DECLARED, SAMPLE_KIND, is_measured
from framestorm.model.summary import Summary
from framestorm.model.units import count, listed, percent, plural
from framestorm.plain import as_label
from framestorm.results.jtl import MISSING

KIND = "which rows are sub-results"
MOST_FILES = 6
MIN_N = {"p90": 10, "p95": 20, "p99": 100}


def inputs(summary: Summary) -> list[str]:
    users_by_digest = summary.facts.videos
    if len(users_by_digest) < 2:
        return []
    sent = listed([f"{plural(users, 'user')} {digest}…" for digest, users in users_by_digest.items()])
    return [
        f"Users sent {len(users_by_digest)} different inputs, by their SHA-256: {sent}. Unless the plan itself has "
        "several, the file was replaced during the run. The figures are of all of them together: repeat the run with "
        "one input."
    ]


def few_samples(summary: Summary) -> list[str]:
    sentences = []
    judged = {USER: summary.users, summary.unit: summary.main}
    for label, figures in judged.items():
        if figures is None or (label == USER and "users" not in summary.run.properties):
            continue  # the plan has a fixed number of them, however long it runs
        n = next((times.n for times in figures.times.values()), 0)
        largest = [name for name, least in MIN_N.items() if 0 < n < least]
        if largest:
            are, them = "is" if len(largest) == 1 else "are", "that one" if n == 1 else "the largest of them"
            sentences.append(
                f"Insufficient data: with only {plural(n, f'{label} time')}, {listed(largest)} {are} just {them} "
                "(marked †). Run longer."
            )
    return sentences


def times(summary: Summary) -> list[str]:
    main, sentences = summary.main, []
    if main.timed_out:
        sentences.append(
            f"{plural(main.timed_out, summary.unit)} timed out: the time waited is a lower bound of the response "
            "time (marked >). All other times are of successful samples only."
        )
    stopped = main.causes.get("stopped", 0)
    if stopped:
        sentences.append(
            f"{plural(stopped, summary.unit)} failed because the run was stopped. They have no response time."
        )
    if cut_off := summary.facts.cut_off:
        decision = summary.run.decision
        end = f"{decision.option} ended the load" if decision else "a schedule of the plan ended its threads"
        sentences.append(
            f"{plural(cut_off, 'sample')} {'was' if cut_off == 1 else 'were'} in progress when {end}: cut off "
            "(stopped), so neither a success nor a failure."
        )
    other = main.failed - main.timed_out - stopped
    if other:
        how = " for another reason" if main.timed_out or stopped else ""
        sentences.append(
            f"{plural(other, summary.unit)} failed{how} ({percent(other / main.n)}): counted by "
            "cause, excluded from response times. An error can be faster than a success: read both together."
        )
    return sentences


def facts(summary: Summary) -> list[str]:
    facts = summary.facts
    sentences = [f"{text[:1].upper()}{text[1:]}." for text in facts.assumed]
    if facts.cut_transactions:
        n = sum(facts.cut_transactions.values())
        names = listed([as_label(name) for name in facts.cut_transactions])
        was = (
            "was cut off by the end of its thread: it is"
            if n == 1
            else "were cut off by the ends of their threads: they are"
        )
        samples = "its samples are" if n == 1 else "their samples are"
        sentences.append(f"{plural(n, 'transaction')} ({names}) {was} in no figure; {samples} counted.")
    if facts.untimed:
        have = "sample has a time" if facts.untimed == 1 else "samples have times"
        far = "more than a year from most others" if summary.run.source else "outside of the run"
        sentences.append(
            f"{count(facts.untimed)} {have} that cannot be: negative, zero, or {far}, as a script or a "
            "plug-in can set it, and as a sampler has that failed before it began. Such samples are counted as "
            "succeeded or failed, and are not in response times and charts."
        )
    note = DECLARED["verified"]["note"]
    if facts.unverified and note["property"] in summary.run.properties:
        sentences.append(f"{count(facts.unverified)} {note['text']}")
    if facts.from_killed_users:
        sentences.append(
            f"{plural(facts.from_killed_users, summary.unit)} of users that JMeter ended (user_timeout_s) "
            f"{'is' if facts.from_killed_users == 1 else 'are'} known from the journal only."
        )
    # Separated as jmx/java/plan/JsonFigures.java reads them.
    wanted = re.findall(r"(?:^|,)\s*(\w+)\s*=\s*\$", summary.run.properties.get("figures", ""))
    found = {*summary.main.figures, *summary.main.times}
    absent = [name for name in wanted if is_measured(name) and found.isdisjoint({name, name.removesuffix("_ms")})]
    if absent and summary.main.ok:
        sentences.append(
            f"-Jfigures found no figure for {listed(absent)}: no response had a number there, or one was negative. "
            "Look at a response, and correct the JSONPath."
        )
    # By default, JMeter writes no column of hosts; of a JTL from elsewhere it is no news.
    known = {"Hostname"} if summary.run.source else set()
    if absent := [name for name in facts.absent_columns if name in MISSING and name not in known]:
        unknown = dict.fromkeys(MISSING[name] for name in absent)
        sentences.append(
            f"samples.jtl lacks {listed(absent)}, so this is not known: {listed([*unknown])}. "
            "Plans and -q files set such columns by jmeter.save.saveservice properties."
        )
    sentences += _of_parts(summary.run.parts)
    if SAMPLE_KIND in facts.absent_columns and summary.users is None and not summary.run.unpatched:
        sentences.append(
            "samples.jtl does not say which of its rows are sub-results (redirects, embedded resources), so all of "
            "them are counted as samples: it was not written by JMeter as ./run.sh starts it."
        )
    return sentences


def _of_parts(parts: Sequence[JtlPart]) -> Iterator[str]:
    """Yield what several JTLs do not say themselves, and what is not known of those that lack columns of others."""
    assuming: dict[str, list[str]] = {}
    lacking: dict[tuple[str, ...], list[str]] = {}
    for part in parts:
        for sentence in part.assumed:
            assuming.setdefault(sentence, []).append(part.name)
        if part.lacks:
            lacking.setdefault(part.lacks, []).append(part.name)
    for sentence, names in assuming.items():
        text = sentence.replace("{}", _files(names))
        yield f"{text[:1].upper()}{text[1:]}."
    for columns, names in lacking.items():
        known = dict.fromkeys(KIND if name == SAMPLE_KIND else MISSING[name] for name in columns)
        yield (
            f"{_files(names)} {'lacks' if len(names) == 1 else 'lack'} {listed([*columns])}, which other files have, "
            f"so this is known of the samples of the others only: {listed([*known])}."
        )


def _files(names: Sequence[str]) -> str:
    more = [plural(len(names) - MOST_FILES, "more file")] if len(names) > MOST_FILES + 1 else []
    return listed([*names[: MOST_FILES if more else None], *more])


def unpatched(summary: Summary) -> list[str]:
    return [
        f"No class of JMeter was patched (--unpatched): {'; '.join(summary.run.unpatched)}."
        for _ in summary.run.unpatched[:1]
    ]


def counted_together(summary: Summary) -> list[str]:
    return [
        f"The plan has more labels than this page shows: {label.label} are counted together. Fewer names, such "
        "as item instead of item-${n}, make their figures comparable."
        for label in summary.labels.values()
        if label.of_labels > 1
    ]
