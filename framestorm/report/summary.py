"""summary.json: every number of the page, calculated from the tables; the page is made from this file alone."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from framestorm.model import summary as model
from framestorm.model.criteria import ALL, EACH, OVERLOAD, USER, parse
from framestorm.model.function_summary import FunctionSummary
from framestorm.model.judgement import Group, Judgement, for_each, judge
from framestorm.model.run import Record
from framestorm.model.sample import noun
from framestorm.model.scraped import divided
from framestorm.model.series import Curves, InFlight, Mark, Series
from framestorm.model.units import plural
from framestorm.report import series, trust
from framestorm.report.asked import read_users
from framestorm.report.labels import summarise_labels
from framestorm.report.load import measure_load
from framestorm.report.queue import accepted_by_label
from framestorm.report.reached import read_reached
from framestorm.report.scraped import scrape_notes, scraped_judgements, scraped_lines
from framestorm.report.sink_notes import sink_notes
from framestorm.report.steady import read_steady
from framestorm.report.stopping import stop_judgements, stop_sentence
from framestorm.results import hosts, reading, replicas, stalls, starts
from framestorm.results.calibration import read_calibration
from framestorm.results.goodput import read_goodput
from framestorm.results.scrapes import read_scrapes
from framestorm.results.self_check import read_self_check
from framestorm.results.table import height, sample_group, span_ms
from framestorm.results.unreplaced import read_unreplaced

FILES = {
    "baseline/index.html": "the comparison with the baseline",
    "jmeter/index.html": "JMeter's own dashboard",
    "tree.xml": "result tree, for JMeter's View Results Tree",
    "samples.jtl": "every sample, in JMeter's CSV format",
    "samples.csv": "one row per sample",
    "journal.jsonl": "lines of the clients, written during the run",
    "journal-*.jsonl": "lines of a slave's clients, written during the run",
    "client.log": "stderr of the clients",
    "client-*.log": "stderr of a slave's clients",
    "resources.csv": "CPU and memory over time",
    "metrics.csv": "the function's replicas over time",
    "calibration.csv": "each request of the calibration, by round and route",
    "scrapes.csv": "the target's own figures over time: each value when it changed",
    "load.txt": "the load as JMeter read it: seconds since the start, and arrivals per second or users",
    "run.json": "settings, versions and hosts of the run",
    "summary.json": "every number on this page",
    "junit.xml": "the verdict, for CI",
    "jmeter.log": "JMeter's log",
    "jmeter-server-*.log": "the log of a slave's JMeter",
    "target.log": "the function's log",
}
MARKED_STALLS = 5
ALWAYS_MADE = frozenset({"samples.csv", "summary.json", "junit.xml"})
NOT_STEADY = "--steady: the run has no steady part, or is too short to tell"
NOTHING_ENDED = "the load was ended before anything had ended by itself"
EXIT_STATUS: dict[model.VerdictWord, int] = {"pass": 0, "unjudged": 1, "fail": 3, "partial": 4}


def summarise(run_dir: Path, results: reading.RunResults, criteria: Sequence[str] | None) -> model.Summary:
    """Return the whole of summary.json; `criteria` replace those of the run."""
    record, samples, users, label = results.record, results.samples, results.users, results.label
    load = span_ms(samples, "rtt_ms") or span_ms(users.lazy(), "elapsed_ms")
    origin_ms = record.started_ms or (load[0] if load else 0.0)
    start_s = (load[0] - origin_ms) / 1000 if load else 0.0
    asked_users = read_users(record, start_s)
    # Those of a plan whose users are processes wait for them; those of an open model wait for arrivals.
    is_of_threads = not users.height and not record.is_open_model
    threads = results.jtl.threads if is_of_threads else pl.DataFrame()
    texts = record.criteria if criteria is None else criteria
    problems: list[str] = []
    scrapes = read_scrapes(run_dir / "scrapes.csv", load, problems)
    of_target, of_samples = divided(texts, scrapes.families) if record.scrapes else ([], list(texts))
    # Before the labels, whose sorted times stay in memory.
    main_series = series.sample_series(samples, origin_ms)
    stalled = stalls.read_stalls(results.log, samples, load, origin_ms, is_open_model=record.is_open_model)
    resources = hosts.read_machines(run_dir / "resources.csv", problems)
    lost_hosts = hosts.read_losses(record, samples, origin_ms)
    machines = hosts.summarise_machines(resources, record, load)
    in_flight = series.in_flight(samples, users.lazy(), lost_hosts, origin_ms, noun(label), asked_users)
    metrics = replicas.read_metrics(run_dir / "metrics.csv", record.url, load, problems)
    measured = measure_load(results, in_flight, machines, stalled, metrics, lost_hosts, load, origin_ms)
    threads_reached = series.threads_over_time(threads, lost_hosts, origin_ms, asked_users)
    line = measured.asked.per_s if measured.asked else asked_users or _reached(threads_reached or in_flight)
    steady = read_steady(samples, line, origin_ms)
    judged_part = results.since(_steady_ms(steady, origin_ms)) if record.judges_steady else results
    judged_part = replace(judged_part, users=judged_part.ended_users)
    defaults = [f"{name} success < 100 %" for name in ([USER] if judged_part.users.height else []) + [EACH]]
    parsed = [parse(text, label) for text in of_samples or (() if texts else defaults)]
    named = {criterion.label for criterion in parsed if criterion.metric != OVERLOAD}
    labels, groups, charted = summarise_labels(judged_part, named, origin_ms)
    wholes = {ALL, USER} if users.height else {ALL}
    samplers = [name for name, of in labels.items() if of.kind == "sampler" and name not in wholes]
    goodput = read_goodput(judged_part.samples, record.properties, at_rate=judged_part.is_at_rate)
    whole = groups[label]
    if record.judges_steady:
        whole = sample_group(samples, label, at_rate=results.is_at_rate)
    functions = replicas.summarise_replicas(metrics, load, origin_ms)
    functions = starts.with_starts_and_ends(functions, metrics, samples, origin_ms)
    # Without criteria, the assertions of transactions must hold too. With 'Generate parent sample', JMeter writes no
    # rows of their samplers: what failed there is in no other row.
    is_foreign = results.jtl.is_foreign
    transactions = [name for name, of in labels.items() if of.kind == "transaction" and (of.checks or is_foreign)]
    judged = samplers if texts else [*samplers, *transactions]
    if measured.must_keep_up and not record.accepts_overload and all(each.metric != OVERLOAD for each in parsed):
        parsed.append(parse(OVERLOAD))
    each_of = [one for criterion in parsed for one in for_each(criterion, judged)]
    judgements = [
        *stop_judgements(record, label),
        *scraped_judgements(of_target, scrapes),
        *(judge(one, groups, replace(measured.figures, goodput=goodput)) for one in each_of),
    ]
    missing = reading.missing(results)
    cut_ms = record.stopping_ms or results.log.stopped_ms or (record.ended_ms if record.state != "complete" else None)
    summary = model.Summary(
        name=run_dir.resolve().name,
        label=label,
        verdict=_verdict(judgements, missing, groups, label, users.height, record, is_left_out=whole.n > 0),
        criteria=judgements,
        has_default_criteria=not texts,
        missing=missing,
        warnings=[],
        doubts=[],
        run=record,
        load=model.Span(load[0], load[1], load[1] - load[0]) if load else None,
        labels=labels,
        hosts=_hosts(results, whole, {loss.host: loss.at_s for loss in lost_hosts}),
        losses=lost_hosts,
        machines=machines,
        functions=functions,
        facts=model.Facts(
            unverified=height(samples.filter(pl.col("ok") & ~pl.col("verified"))),
            from_killed_users=results.clients.from_killed_users,
            videos=dict(Counter(user.input for user in results.clients.users.values() if user.input)),
            arrivals=results.log.arrivals,
            dropped=results.log.dropped,
            # Asked to stop, the kit's own classes do it.
            stopped_by=results.log.stopped_by if record.stopping_ms is None else None,
            out_of_memory=results.log.out_of_memory,
            stalls=stalled,
            during_stalls=stalls.samples_during(samples, stalled, origin_ms),
            unreplaced=read_unreplaced(results.jtl, results.log.unreplaced, has_secrets="headers" in record.properties),
            requests_by_address=_by_name(results.log.requests),
            element_errors=results.log.element_errors,
            absent_columns=list(results.jtl.absent),
            rates=measured.rates,
            overload=measured.overload,
            accepted=accepted_by_label(results.every),
            self_check=read_self_check(results.log.counted, results.jtl.of_hosts),
            steady=steady,
            left_out=whole.n - groups[label].n,
            assumed=list(results.jtl.assumed),
            cut_off=results.cut_off,
            untimed=results.untimed,
            cut_transactions=dict(results.jtl.cut),
        ),
        goodput=goodput,
        calibration=read_calibration(run_dir, problems),
        reached=read_reached(record, results.started, cut_ms, results.log.dropped_of),
        files=run_files(run_dir),
        series=Series(
            **vars(main_series),
            labels=charted,
            in_flight=in_flight,
            threads=threads_reached,
            asked_per_s=measured.asked.per_s if measured.asked else {},
            machines=series.machines_over_time(resources, origin_ms),
            replicas=replicas.replicas_over_time(metrics, functions, origin_ms),
            scraped=scraped_lines(scrapes, of_target, origin_ms),
            marks=_marks(lost_hosts, functions, stalled, (load[0] - origin_ms) / 1000 if load else 0.0),
        ),
    )
    summary = trust.warned(summary, samples)
    return replace(
        summary,
        warnings=[*summary.warnings, *problems],
        notes=[*summary.notes, *scrape_notes(scrapes), *sink_notes(record.sinks)],
    )


def _reached(users: InFlight | None) -> Curves:
    """Return the number of users over time, in steps, for a plan that does not say how many users it keeps."""
    if users is None:
        return {}
    x, y = (list[float | None](each for value in values for each in (value, value)) for values in (users.x, users.y))
    return {"x": x[1:], "y": y[:-1]}


def _steady_ms(steady: model.SteadyState | None, origin_ms: float) -> float:
    """Return when the steady part of a run begins, in epoch ms; after all samples if it has none."""
    return math.inf if steady is None or steady.since_s is None else origin_ms + 1000 * steady.since_s


def run_files(run_dir: Path) -> list[model.RunFile]:
    """Return the files of a run that its page lists."""
    return [model.RunFile(path, what) for name, what in FILES.items() for path in _paths(run_dir, name)]


def _paths(run_dir: Path, name: str) -> list[str]:
    if name in ALWAYS_MADE:
        return [name]
    return sorted(path.relative_to(run_dir).as_posix() for path in run_dir.glob(name))


def _marks(
    lost_hosts: list[model.LostHost],
    functions: list[FunctionSummary],
    stalled: list[model.Stall],
    load_start_s: float,
) -> list[Mark]:
    """The marks in all charts over time: lost hosts, vanished replicas, and when the generator was held up longest."""
    marks = [Mark(loss.at_s, f"{loss.host} lost", is_shaded=True) for loss in lost_hosts]
    marks += [
        Mark(group.at_s, f"{plural(group.replicas, 'replica')} lost", is_shaded=False)
        for function in functions
        for group in function.vanished
    ]
    marks += [
        Mark(each.at_s, f"{each.name} ended: {each.reason}", is_shaded=False)
        for function in functions
        for each in function.ended
    ]
    longest = sorted(stalled, key=lambda stall: -stall.longest_ms)[:MARKED_STALLS]
    # The second in which the load began may have begun before it.
    at_s = [max(stall.at_s, load_start_s) for stall in longest]
    marks += [Mark(each_s, "generator held up", is_shaded=False, is_quiet=True) for each_s in at_s]
    return sorted(marks, key=lambda mark: mark.at_s)


def _verdict(
    judgements: Sequence[Judgement],
    missing: Sequence[str],
    groups: Mapping[str, Group],
    label: str,
    n_users: int,
    record: Record,
    *,
    is_left_out: bool,
) -> model.Verdict:
    """The verdict. Partial has priority over failed: figures of part of a run prove nothing; the text gives both.

    is_left_out: there are samples, in the part that is judged or not.
    """
    failed = sum(judgement.state == "failed" for judgement in judgements)
    unjudged = sum(judgement.state == "unjudged" for judgement in judgements)
    what = plural(groups[label].n, noun(label))
    what += f" of {plural(n_users, 'user')}" if n_users else ""
    every = plural(len(judgements), "criterion", "criteria")
    outcome = {1: "the criterion passed", 2: "both criteria passed"}.get(len(judgements), f"all {every} passed")
    if failed or unjudged:
        counts = {"failed": failed, "could not be judged": unjudged}
        outcome = " and ".join(f"{n} of {every} {how}" for how, n in counts.items() if n)
        if len(judgements) == 1:
            outcome = f"the criterion {'failed' if failed else 'could not be judged'}"
    if record.state == "decided" and record.decision is not None:
        outcome = f"{stop_sentence(record.decision, record)}; {outcome}"
    word: model.VerdictWord
    if not any(group.n for group in groups.values()):
        # That nothing was measured is among what is missing.
        word, text = "unjudged", "; ".join([*([NOT_STEADY] if is_left_out else []), *missing]) or NOTHING_ENDED
    elif missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        word, text = "partial", f"{missing[0]}{more}; of the {what} that arrived: {outcome}"
    else:
        word, text = "fail" if failed or unjudged else "pass", f"{outcome}, on {what}"
    return model.Verdict(word, EXIT_STATUS[word], text, failed, unjudged)


def _by_name(requests: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """Return requests by name and address."""
    names: dict[str, dict[str, int]] = {}
    for (name, address), n in sorted(requests.items(), key=lambda each: -each[1]):
        names.setdefault(name, {})[address] = n
    return names


def _hosts(results: reading.RunResults, whole: Group, lost_at: Mapping[str, float]) -> list[model.HostSummary]:
    """A summary of what each host sent and what arrived; also for a single host, and for a slave that sent nothing."""
    record, samples = results.record, results.samples
    reconciliation = reading.reconciliation(results)
    senders = {str(host) for host in samples.select("host").unique().collect()["host"]}
    slaves = {host.name for host in record.slaves}
    rows = []
    for name in sorted(senders | reconciliation.keys() | slaves):
        group = Group(whole.label)
        if name in senders:
            of_host = samples.filter(pl.col("host") == name)
            group = whole if len(senders) == 1 else sample_group(of_host, whole.label, at_rate=results.is_at_rate)
        rtt, host, counts = group.samples.get("rtt"), record.host(name), reconciliation.get(name)
        # Without lines of clients it is not known who sent what.
        of_clients = counts if results.clients.users else None
        rows.append(
            model.HostSummary(
                host=name,
                share=hosts.share_of(host.share, record) if host else {},
                clock_offset_ms=host.clock_offset_ms if host else None,
                lost_s=lost_at.get(name),
                users=of_clients["users"] if of_clients else None,
                sent=of_clients["sent"] if of_clients else None,
                in_tree=of_clients["in_tree"] if of_clients else None,
                in_samples=counts["in_samples"] if counts else None,
                shown=group.n,
                ok=group.ok,
                rate_per_s=group.rate_per_s,
                p50=rtt.percentile("50") if rtt else None,
                p95=rtt.percentile("95") if rtt else None,
            )
        )
    return rows
