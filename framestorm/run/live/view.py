"""The live view on the terminal: progress, figures, criteria so far, and a row for each slave and label."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Event

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from framestorm.model import criteria, files, judgement, stop_rule, units
from framestorm.model.glance import Glance, KeyFigure
from framestorm.model.run import Decision, Loss, Record
from framestorm.model.sample import noun
from framestorm.model.scraped import scraped_criterion
from framestorm.plain import as_label, tell
from framestorm.results.growing import shown
from framestorm.run.live.counts import OTHER_LABELS, Counts
from framestorm.run.live.outlook import Log, Outlook
from framestorm.run.live.stop_rules import StopRules
from framestorm.run.live.tally import RECENT_S, Tally
from framestorm.sinks.sink import Sink, Update

DRAW_EVERY_S = 0.5
LINE_EVERY_S = 5.0
# With rules that may end the load.
READ_EVERY_S = 0.5
# The view shares the cores with JMeter: it uses one part in so many of a core, and is drawn less often if need be.
OF_A_CORE = 20
LONGEST_PAUSE_S = 5.0
LONGEST_CAUSE = 60
SHOWN_CAUSES = 3
SHOWN_CRITERIA = 4
MAX_ROWS = 50  # of labels, where there is no terminal that limits them
PERCENTS = {"p50": "50", "p95": "95", "p99": "99"}
GAP = "   "
GAP_OF_COLUMNS = "  "
SHORTEST_BAR, SHORTEST_NAME = 8, 16


class LiveView:
    """Follows resources.csv, jmeter.log, and a run's journals, or samples.jtl where its plan has none.

    sinks: are told what is read; decision: the stop rule that ends the load; None until one holds.
    losses: the hosts that are lost.
    """

    def __init__(self, run_dir: Path, has_journal: bool, label: str, sinks: Sequence[Sink] = ()) -> None:
        record = Record()
        with suppress(files.FileError):
            record = files.read(run_dir / "run.json", Record)
        self._record = record
        self._sinks = sinks
        self.losses: Sequence[Loss] = ()
        self.is_stopping = False
        self.decision: Decision | None = None
        main_label = label if record.label is None else record.label
        of_samples = [text for text in record.criteria if not (record.scrapes and scraped_criterion(text))]
        parsed = [criteria.parse(text, main_label) for text in of_samples]
        # A study gives its runs one that never fails.
        self._criteria = [criterion for criterion in parsed if (criterion.op, criterion.limit) != ("<", 0)]
        self.counts = Counts(run_dir, record, self._criteria, has_journal=has_journal)
        self._rules = StopRules(stop_rule.of_run(record, main_label), self.counts.by_slave)
        self._log = Log(run_dir / "jmeter.log")
        self._outlook = Outlook(record.loads)
        self._sample = noun(label)
        self._has_processes = has_journal or record.has_users
        self._hosts = {host.name: host for host in record.hosts}
        self._now_s = time.time()
        self._began_s = record.started_ms / 1000 if record.started_ms else self._now_s

    def watch(self, is_over: Event) -> None:
        """Show the figures until the run is over: a table on a terminal, else a line every few seconds."""
        console = Console(stderr=True)
        is_drawn = console.is_terminal and not console.is_dumb_terminal
        pause_s = DRAW_EVERY_S if is_drawn else LINE_EVERY_S
        live = Live(console=console, auto_refresh=False, transient=True)
        if not is_drawn:
            every_s = READ_EVERY_S if self._is_read_often else LINE_EVERY_S
            shown_s = time.monotonic()
            while not is_over.wait(every_s):
                self.read()
                if time.monotonic() - shown_s > LINE_EVERY_S - every_s:
                    shown_s = time.monotonic()
                    tell(self.line())
            return
        try:
            with live:
                while not is_over.wait(pause_s):
                    used_s = time.thread_time()
                    self.read()
                    live.update(self.screen(console.width, console.height), refresh=True)
                    used_s = time.thread_time() - used_s
                    longest_s = READ_EVERY_S if self._is_read_often else LONGEST_PAUSE_S
                    pause_s = min(max(DRAW_EVERY_S, OF_A_CORE * used_s), longest_s)
        except OSError:  # the terminal was closed; the rules that stop the run are judged all the same
            while not is_over.wait(READ_EVERY_S):
                self.read()

    def read(self, now_s: float | None = None) -> None:
        """Read what was written since the last call; the figures are those of `now_s`."""
        self._now_s = time.time() if now_s is None else now_s
        self._log.read(self._began_s, self._now_s)
        intervals = self.counts.read(self._now_s)
        for interval in intervals:
            self._rules.take(interval)
        # What is slow or rare after the planned time is the end of the load, not the function.
        if self.decision is None and not self._is_planned_time_over:
            self.decision = self._rules.decision(self._now_s, {self._shown(loss.host) for loss in self.losses})
        if self._sinks:
            busy = {self._shown(name): cores for name, cores in self.counts.busy_cores.items()}
            losses = tuple(replace(loss, host=self._shown(loss.host)) for loss in self.losses)
            update = Update(self._now_s, intervals, self.counts.whole.users_now, busy, losses, self.glance())
            for sink in self._sinks:
                sink.put(update)

    def glance(self) -> Glance:
        """Return all figures, each in words."""
        notes = self._criteria_so_far() if self._has_begun else []
        if self.counts.whole.causes:
            notes.append(f"causes of errors: {self._causes()}")
        heads, of_slaves, of_labels = self._rows()
        left = (
            [(f"and {units.plural(n, 'more label')}", [""] * len(heads))]
            if (n := len(of_labels) - MAX_ROWS) > 0
            else []
        )
        lost = [f"{self._shown(loss.host)} was lost{f': {loss.reason}' if loss.reason else ''}" for loss in self.losses]
        figures = self._figures() if self._has_begun else []
        return Glance(self._progress(), figures, notes, heads, [*of_slaves, *of_labels[:MAX_ROWS], *left], lost)

    def _shown(self, name: str) -> str:
        return shown(self._hosts[name]) if name in self._hosts else name

    def line(self) -> str:
        """Return all figures as one line of text."""
        parts = [self._progress()]
        if self._has_begun:
            parts += ["  ".join(each.text for each in self._figures()), *self._criteria_so_far()]
        if self.counts.whole.causes:
            parts.append(self._causes())
        for slave, tally in self.counts.by_slave.items():
            parts.append(
                f"{slave}: {units.plural(tally.users_now, self._user)}, {units.plural(tally.samples, self._sample)}, "
                f"{units.plural(tally.errors, 'error')}"
            )
        if len(self._hosts) > 1:
            parts += [f"{name}: {busy} cores" for name, busy in self._busy().items()]
        return "  | ".join(parts).replace(units.NBSP, " ")

    def screen(self, width: int = 80, height: int = 24) -> Group:
        """Return the lines for a terminal of that size: what there is no room for, the report has."""
        if not self._has_begun:
            return Group(self._bar(width))
        lines = [*_packed([each.text for each in self._figures()], width), *self._criteria_so_far()]
        if self.counts.whole.causes:
            lines.append(f"causes of errors: {self._causes()}")
        # Text, because rich reads markup in a str.
        texts = [Text(line.replace(units.NBSP, " ")) for line in lines]
        wrapped = [line for text in texts for line in text.wrap(_console(width), width)]
        table = self.table(width, height - len(wrapped) - 2)
        return Group(self._bar(width), *wrapped, *([table] if table.row_count else []))

    def table(self, width: int = 80, height: int = 24) -> Table:
        """Return a row for each slave, and for each label as far as there is room, the most frequent first."""
        headings, rows, labels = self._rows()
        room = height - len(rows) - 1
        n_shown = room if len(labels) <= room else max(0, room - 1)
        rows += labels[:n_shown]
        # Names give way to figures, and on a narrow terminal the last of these to names.
        widths = [max([cell_len(head), *(cell_len(row[n]) for _, row in rows if n < len(row))])
                  for n, head in enumerate(headings)]  # fmt: skip
        while len(widths) > 1 and width - sum(widths) - len(widths) * len(GAP_OF_COLUMNS) < SHORTEST_NAME:
            widths.pop()
        for_name = max(1, width - sum(widths) - len(widths) * len(GAP_OF_COLUMNS))
        table = Table.grid(padding=(0, len(GAP_OF_COLUMNS), 0, 0))
        table.add_column(no_wrap=True, overflow="ellipsis", max_width=for_name)
        for each in widths:
            table.add_column(justify="right", no_wrap=True, min_width=each)
        if rows:
            table.add_row("", *(Text(heading, style="bold") for heading in headings[: len(widths)]))
        for name, cells in rows:
            table.add_row(*map(Text, (name, *cells[: len(widths)])))
        if labels and len(labels) > n_shown:
            table.add_row(Text(f"and {units.plural(len(labels) - n_shown, 'more label')}"))
        return table

    def _rows(self) -> tuple[list[str], list[tuple[str, list[str]]], list[tuple[str, list[str]]]]:
        """Return headings, a row for each slave, and one for each label of several, the most frequent first."""
        busy = self._busy() if len(self._hosts) > 1 else {}
        headings = [f"{self._sample}s", "/s", "errors", *PERCENTS, *(["busy cores"] if busy else [])]
        rows: list[tuple[str, list[str]]] = []
        for name in dict.fromkeys((*self.counts.by_slave, *busy)):
            of_slave = self.counts.by_slave.get(name)
            cells = self._cells(of_slave) if of_slave else [""] * (len(headings) - 1)
            rows.append((name, [*cells, busy.get(name, "")] if busy else cells))
        labels = sorted(self.counts.by_label.items(), key=lambda each: -each[1].samples)
        labels = labels if len(labels) > 1 else []
        return headings, rows, [(as_label(printable(label)), self._cells(of_label)) for label, of_label in labels]

    def _cells(self, tally: Tally) -> list[str]:
        per_s = tally.answers_per_s(self._now_s, self.counts.first_end_s)
        times = tally.recent_times(self._now_s, *PERCENTS.values())
        return [units.count(tally.samples), _per_s(per_s), units.count(tally.errors), *map(_shown_ms, times)]

    @property
    def _is_read_often(self) -> bool:
        return self._rules.are_any or bool(self._sinks)

    @property
    def _user(self) -> str:
        # JMeter's threads are users too, but not those that wait for arrivals.
        return "thread" if self._outlook.is_open and not self._has_processes else "user"

    @property
    def _starts(self) -> dict[str, float]:
        return self._outlook.starts(self._log, self.counts.first_start_s)

    @property
    def _load_began_s(self) -> float | None:
        """When the load began; None if it has not."""
        began_s = min(self._starts.values(), default=self.counts.first_start_s)
        return began_s if began_s is not None and began_s <= self._now_s else None

    @property
    def _has_begun(self) -> bool:
        return self._load_began_s is not None or bool(self.counts.whole.samples)

    @property
    def _is_planned_time_over(self) -> bool:
        end_s = self._outlook.end_s(self._starts)
        return end_s is not None and self._now_s > end_s

    def _spans_s(self) -> tuple[float, float | None]:
        """Return how long the load has gone on, and how long it lasts in all; None if it ends by itself."""
        began_s, end_s = self._load_began_s or self._began_s, self._outlook.end_s(self._starts)
        return self._now_s - began_s, None if end_s is None else end_s - began_s

    def _progress(self) -> str:
        """Return how long the load goes on, and how long it still will."""
        elapsed_s, total_s = self._spans_s()
        if not self._has_begun:
            return f"starting JMeter, {_shown_s(elapsed_s)}"
        waiting = f"waiting for the last {'users' if self._has_processes else 'answers'}"
        if self.is_stopping:
            return f"{_shown_s(elapsed_s)}: stopping, {waiting}"
        if total_s is None:
            return _shown_s(elapsed_s)
        if elapsed_s > total_s:
            return f"{_shown_s(elapsed_s)}: the {_shown_s(total_s)} of the plan are over, {waiting}"
        return f"{_shown_s(elapsed_s)} of {_shown_s(total_s)}, {_shown_s(total_s - elapsed_s)} left"

    def _bar(self, width: int) -> RenderableType:
        text = Text(self._progress())
        elapsed_s, total_s = self._spans_s()
        room = width - text.cell_len - len(GAP)
        if total_s is None or not self._has_begun or room < SHORTEST_BAR:
            return text
        bar = Table.grid(padding=(0, len(GAP), 0, 0))
        bar.add_row(text, ProgressBar(total=total_s, completed=min(elapsed_s, total_s), width=room))
        return bar

    def _figures(self) -> list[KeyFigure]:
        """Return the figures of the whole run, each with its name."""
        whole, now_s = self.counts.whole, self._now_s
        since_s = self.counts.first_end_s
        rates = [KeyFigure(f"{_per_s(whole.answers_per_s(now_s, since_s))}/s", "answered")]
        if (started := self._log.started_per_s()) is not None and not self._is_planned_time_over:
            rates.append(KeyFigure(f"{_per_s(started)}/s", "started"))
        if (asked := self._asked_per_s()) is not None:
            is_of_samples = self._outlook.is_of(self.counts.by_label.keys() - self.counts.transactions)
            rates.append(KeyFigure(f"{_per_s(asked)}{'' if is_of_samples else ' arrivals'}/s", "asked"))
        share = f" ({units.percent(whole.errors / whole.samples).replace(units.NBSP, ' ')})" if whole.errors else ""
        errors = _counted(units.plural(whole.errors, "error") + share)
        times = zip(PERCENTS, whole.recent_times(now_s, *PERCENTS.values()), strict=True)
        parts = [
            _counted(units.plural(whole.samples, self._sample)), *rates, *self._under_way(), errors,
            *(KeyFigure(_shown_ms(ms), name, is_name_first=True) for name, ms in times),
        ]  # fmt: skip
        busy = self._busy()
        return parts + ([KeyFigure(next(iter(busy.values())), "cores busy")] if len(busy) == 1 else [])

    def _asked_per_s(self) -> float | None:
        """Return the planned rate of the seconds that the answered rate is of, as far as they lie within the load."""
        began_s = self._load_began_s
        if self._is_planned_time_over or began_s is None:
            return None
        return self._outlook.asked_per_s(max(began_s, self._now_s - RECENT_S), self._now_s, self._starts)

    def _under_way(self) -> list[KeyFigure]:
        """Return the users of a closed load, or the requests that an open one waits for."""
        whole = self.counts.whole
        if not self._outlook.is_open:
            total = self._outlook.users(self._now_s, self._starts)
            users = _counted(f"{units.plural(whole.users_now if total is None else total, 'user')} now")
            if total is not None:
                users = users._replace(value=f"{units.count(whole.users_now)} of {users.value}")
            ended = {"done": whole.users_done, "failed": whole.users_failed}
            more = "".join(f", {units.count(n)} {how}" for how, n in ended.items() if n)
            return [users._replace(name=users.name + more)]
        if self._log.arrivals is None or self.counts.by_slave:
            # The slaves' logs come at the end.
            n = min(round(whole.in_flight(self._now_s, self.counts.first_end_s)), whole.users_now)
            return [KeyFigure(f"about {units.count(n)}", "in flight")]
        arrivals = self._log.arrivals
        dropped = [KeyFigure(units.count(arrivals.dropped), "dropped")] if arrivals.dropped else []
        return [KeyFigure(units.count(arrivals.in_flight), "in flight"), *dropped]

    def _load_so_far(self) -> judgement.LoadFigures:
        """Return what JMeter counts of the whole load; the rest is judged at the end."""
        if (arrivals := self._log.arrivals) is None or self.counts.by_slave:
            return judgement.LoadFigures()
        due = arrivals.sent + arrivals.dropped
        return judgement.LoadFigures(in_flight=self._log.most_in_flight, due=due, dropped=arrivals.dropped)

    def _criteria_so_far(self) -> list[str]:
        """Return each criterion and what was measured for it so far, those that do not hold first."""
        counts, is_open = self.counts, self._record.is_open_model
        labels = [name for name in counts.by_label if name not in {*counts.transactions, OTHER_LABELS}]
        each = [one for criterion in self._criteria for one in judgement.for_each(criterion, labels)]
        groups = {name: counts.group(name, is_at_rate=is_open) for name in {one.label for one in each}}
        judged = [judgement.judge(one, groups, self._load_so_far()) for one in each]
        judged.sort(key=lambda one: ("failed", "unjudged", "passed").index(one.state))
        lines = []
        for one in judged[:SHOWN_CRITERIA]:
            how = {"passed": f"{one.measured}, ok so far", "failed": f"{one.measured}, not ok so far"}.get(one.state)
            lines.append(
                f"{printable(one.text)}: {how or ('judged at the end' if groups[one.label].n else 'no sample yet')}"
            )
        if left := judged[SHOWN_CRITERIA:]:
            failed = sum(one.state == "failed" for one in left)
            lines.append(f"and {units.plural(len(left), 'more criterion', 'more criteria')}, {failed} not ok so far")
        return lines

    def _causes(self) -> str:
        """Return the most common causes of errors, each with its count."""
        most_common = self.counts.whole.causes.most_common(SHOWN_CAUSES)
        return ", ".join(f"{printable(cause)} {units.count(count)}" for cause, count in most_common)

    def _busy(self) -> dict[str, str]:
        """Return how many cores of each host are busy."""
        busy = self.counts.busy_cores
        return {
            shown(host): f"{busy[name]:.1f} of {f'{host.cores:g}' if host.cores else '?'}"
            for name, host in self._hosts.items()
            if name in busy
        }


def printable(text: str) -> str:
    """`text` shortened and without control characters, which a terminal would execute (ESC starts a command)."""
    text = "".join(character if character.isprintable() else "?" for character in text)
    return text if len(text) <= LONGEST_CAUSE else f"{text[:LONGEST_CAUSE]}..."


def _counted(text: str) -> KeyFigure:
    """Return a number and what it is of, such as `3 users now`."""
    value, _, name = text.partition(" ")
    return KeyFigure(value, name)


def _packed(parts: Sequence[str], width: int) -> list[str]:
    """Return the parts as lines that are no wider than that, as long as a part is not."""
    lines: list[str] = []
    for part in parts:
        if lines and cell_len(lines[-1]) + len(GAP) + cell_len(part) <= width:
            lines[-1] += GAP + part
        else:
            lines.append(part)
    return lines


@cache
def _console(width: int) -> Console:
    """Return a console that only tells how its lines are broken."""
    return Console(width=width)


def _per_s(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.1f}"


def _shown_s(seconds: float) -> str:
    seconds = round(seconds)
    if seconds < 120:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def _shown_ms(ms: float | None) -> str:
    return "-" if ms is None else units.duration(ms)
