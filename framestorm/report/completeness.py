"""What a run lost: every sentence here makes the run partial, and none of it is guessed."""

from typing import Any

from framestorm.report.criteria import Group
from framestorm.report.frames import IN_JOURNAL, IN_TREE, Merged
from framestorm.report.jtl import Jtl
from framestorm.report.units import count, plural

STATES = {
    "running": "the run never said that it ended: it died, or is still going on",
    "stopped": "the run was stopped early",
    "failed": "the run failed",
}


def missing(
    run: dict[str, Any], run_problem: str | None, merged: Merged, jtl: Jtl, groups: dict[str, Group]
) -> list[str]:
    """Sentences on what is missing or contradicts itself; empty if the run is complete."""
    found = [run_problem] if run_problem else []
    state = run.get("state")
    if state in STATES:
        reason = run.get("reason")
        found.append(STATES[state] + (f": {reason}" if reason else ""))
    exit_code = (run.get("jmeter") or {}).get("exit_code")
    if exit_code not in (None, 0) and not run.get("losses"):  # after a loss JMeter would wait for ever, and is ended
        found.append(f"JMeter ended with exit code {exit_code}; see jmeter.log")
    if jtl.problem:
        found.append(jtl.problem)
    if jtl.bad_rows:
        found.append(f"{plural(jtl.bad_rows, 'row')} of samples.jtl cannot be read")
    if merged.users or jtl.count("user"):
        found += _client_files(merged, jtl)
    elif merged.tree.problem and merged.tree.problem != "tree.xml is missing":
        found.append(merged.tree.problem)
    if not sum(group.n for group in groups.values()):
        found.append(f"no {jtl.unit} and no user was measured")
    return found


def _client_files(merged: Merged, jtl: Jtl) -> list[str]:
    """Whether tree, journal and rows tell the same story of the clients."""
    found = [problem for problem in (merged.tree.problem, merged.journal_problem) if problem]
    if not merged.journal_found:
        found.append("journal.jsonl is missing: what was sent cannot be compared with what came back")
    never = sum(not user.ended for user in merged.users.values())
    if never:
        planned = sum(
            max(0, (u.planned_frames or 0) - len(u.seen) + u.seen.count(0))
            for u in merged.users.values()
            if not u.ended
        )
        left = f"; {plural(planned, jtl.unit)} of theirs never came" if planned else ""
        found.append(f"{plural(never, 'user')} started and never ended{left}")
    lost = merged.from_journal - merged.from_killed_users
    if lost:
        found.append(f"{plural(lost, jtl.unit)} of the journal did not reach tree.xml (taken from the journal)")
    unsent = sum(user.seen.count(IN_TREE) for user in merged.users.values())
    if merged.journal_found and unsent:
        found.append(f"{plural(unsent, jtl.unit)} of tree.xml {'is' if unsent == 1 else 'are'} not in the journal")
    bad = {"tree.xml": merged.tree_bad_lines, "the journal": merged.journal_bad_lines}
    found += [f"{plural(n, 'line')} of {where} cannot be read" for where, n in bad.items() if n]
    twice = {"tree.xml": merged.tree_duplicates, "the journal": merged.journal_duplicates}
    found += [f"{plural(n, jtl.unit)} of {where} came twice (counted once)" for where, n in twice.items() if n]
    if jtl.rows is not None and not merged.tree.problem and jtl.count(jtl.unit) != merged.from_tree:
        rows, frames = count(jtl.count(jtl.unit)), count(merged.from_tree)
        found.append(f"samples.jtl has {rows} rows labelled {jtl.unit}, but tree.xml holds {frames} {jtl.unit}s")
    return found


def reconciliation(merged: Merged, jtl: Jtl) -> list[dict[str, Any]]:
    """A row a host: frames, requests or tasks sent (journal), received (tree.xml, samples.jtl), shown."""
    rows: dict[str, dict[str, Any]] = {}

    def row(host: str) -> dict[str, Any]:
        empty = {"host": host, "users": 0, "sent": 0, "in_tree": 0, "in_samples": 0, "shown": 0}
        return rows.setdefault(host, empty)

    for user in merged.users.values():
        of_host = row(user.host)
        both = user.seen.count(IN_TREE | IN_JOURNAL)
        of_host["users"] += 1
        of_host["sent"] += both + user.seen.count(IN_JOURNAL)
        of_host["in_tree"] += both + user.seen.count(IN_TREE)
        of_host["shown"] += len(user.seen) - user.seen.count(0)
    for (label, host), n in jtl.counts.items():
        if label == jtl.unit:
            row(host)["in_samples"] += n
    return [rows[host] for host in sorted(rows)]
