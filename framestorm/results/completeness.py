"""What a run lost: every sentence here makes the run partial, and none of it is guessed."""

import re
from collections import Counter
from pathlib import Path

from framestorm.model.units import count, plural
from framestorm.results.clients import IN_JOURNAL, IN_TREE
from framestorm.results.reading import RunResults

STATES = {
    "running": "the run recorded no end: it crashed, or is still running",
    "stopped": "the run was stopped early",
    "failed": "the run failed",
}
# The message of jmx/groovy/arrival.groovy, and that of jmeter-plugins' Arrivals Thread Group.
ARRIVALS = re.compile(r'\{"type":"arrivals","due":(\d+)|ArrivalsThreadStarter: .*had arrivals: (\d+)')
# Thread groups run on the slaves where there are any.
LOGS = ("jmeter.log", "jmeter-server-*.log")


def missing(results: RunResults) -> list[str]:
    """Sentences on what is missing or contradicts itself; empty if the run is complete."""
    record, clients, jtl = results.record, results.clients, results.jtl
    sentences = [results.problem] if results.problem else []
    if record.state in STATES:
        sentences.append(STATES[record.state] + (f": {record.reason}" if record.reason else ""))
    exit_code = record.jmeter.exit_code
    if exit_code not in (None, 0) and not record.losses:  # after a loss JMeter would wait for ever, and is ended
        sentences.append(f"JMeter ended with exit code {exit_code}; see jmeter.log")
    if jtl.problem:
        sentences.append(jtl.problem)
    if jtl.bad_rows:
        sentences.append(f"{plural(jtl.bad_rows, 'row')} of samples.jtl cannot be read")
    if clients.users or results.users.height:
        sentences += _client_files(results)
    elif clients.tree_problem and clients.tree_problem != "tree.xml is missing":
        sentences.append(clients.tree_problem)
    if not results.samples.height and not results.users.height:
        sentences.append(f"no {results.label} and no user was measured")
    return sentences


def _client_files(results: RunResults) -> list[str]:
    """Whether tree, journal and rows agree on what the clients did."""
    clients, jtl, label = results.clients, results.jtl, results.label
    sentences = [problem for problem in (clients.tree_problem, clients.journal_problem) if problem]
    if not clients.has_journal:
        sentences.append("journal.jsonl is missing: what was sent cannot be compared with what came back")
    unfinished = [user for user in clients.users.values() if not user.ended]
    if unfinished:
        known = [len(user.sources) - user.sources.count(0) for user in unfinished]
        planned = sum(max(0, user.planned_samples - n) for user, n in zip(unfinished, known, strict=True))
        left = f"; {plural(planned, label)} of theirs never arrived" if planned else ""
        sentences.append(f"{plural(len(unfinished), 'user')} started and never ended{left}")
    lost = clients.from_journal - clients.from_killed_users
    if lost:
        sentences.append(f"{plural(lost, label)} of the journal did not reach tree.xml (taken from the journal)")
    unsent = sum(user.sources.count(IN_TREE) for user in clients.users.values())
    if clients.has_journal and unsent:
        sentences.append(f"{plural(unsent, label)} of tree.xml {'is' if unsent == 1 else 'are'} not in the journal")
    sentences += [f"{plural(n, 'line')} of {where} cannot be read" for where, n in clients.bad_lines.items()]
    sentences += [f"{plural(n, label)} of {where} arrived twice (counted once)" for where, n in clients.twice.items()]
    rows = sum(jtl.count(name) for name in clients.labels or [label])
    if jtl.rows is not None and not clients.tree_problem and rows != clients.from_tree:
        in_tree = plural(clients.from_tree, label)
        sentences.append(f"samples.jtl has {count(rows)} rows labelled {label}, but tree.xml holds {in_tree}")
    return sentences


def reconciliation(results: RunResults) -> dict[str, Counter[str]]:
    """By host: its users, and its samples sent (journal), in_tree (received) and in_samples (samples.jtl)."""
    hosts: dict[str, Counter[str]] = {}
    for user in results.clients.users.values():
        in_both = user.sources.count(IN_TREE | IN_JOURNAL)
        hosts.setdefault(user.host, Counter()).update(
            users=1,
            sent=in_both + user.sources.count(IN_JOURNAL),
            in_tree=in_both + user.sources.count(IN_TREE),
        )
    for (label, host), n in results.jtl.counts.items():
        if label in (results.clients.labels or [results.label]):
            hosts.setdefault(host, Counter()).update(in_samples=n)
    return hosts


def read_arrivals(run_dir: Path) -> int | None:
    """How many requests were due by the schedule, added up over JMeter's logs; None if none of them says so.

    Those past the concurrency limit leave no row anywhere else.
    """
    texts = [path.read_text(errors="replace") for name in LOGS for path in run_dir.glob(name)]
    due = [int(ours or of_plugin) for text in texts for ours, of_plugin in ARRIVALS.findall(text)]
    return sum(due) if due else None
