"""The engine of studies: run after run, each into a folder of its own, until every point has its repetitions."""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from framestorm import conductor, paths
from framestorm.errors import FramestormError, UsageError
from framestorm.load.kit_load import drawn
from framestorm.machine import now_ms
from framestorm.model import files
from framestorm.model.metric import is_of_run
from framestorm.model.run import Record
from framestorm.model.sink import SinkAddress
from framestorm.model.units import as_number
from framestorm.plain import tell
from framestorm.platform.registry import Platforms
from framestorm.points.folder import COMPLETE, FAILED, LOG, PARTIAL, RUNNING, STOPPED, Point, RunLine, StudyFolder
from framestorm.report import build
from framestorm.run import dashboard
from framestorm.run.options import Output, RunOptions, What, Where
from framestorm.study.design import matrix

if TYPE_CHECKING:
    from framestorm.sinks.live_page import LivePage

# A criterion that never fails: in a study, errors are results and do not fail a run.
NO_CRITERION = "success < 0 %"
SAME_FAILURES = 3


class Engine:
    """Does the remaining runs of a study; once `budget_min` is used up, it adds no repetitions.

    sinks, live_page: who is told of each run while it goes on.
    """

    def __init__(
        self,
        where: StudyFolder,
        budget_min: float | None = None,
        sinks: Sequence[SinkAddress] = (),
        live_page: "LivePage | None" = None,
    ) -> None:
        self._sinks, self._live_page = tuple(sinks), live_page
        self._folder = where
        self._record = where.record
        self._study = where.record.definition
        self._budget_min = budget_min
        self.stop_signals = conductor.StopSignals()
        self._overheads_s: list[float] = []
        self._began_s = time.monotonic()
        self._failures: list[str] = []
        self._read: dict[str, tuple[dict[str, float], str | None]] = {}
        self._seed_step = _seed_step(self._record.points)
        self._main_metric = next((name for name in self._study.metrics if is_of_run(name)), "mean_ms")

    def run(self) -> None:
        """Do the missing runs; their results, and the final state of the study, are in the folder.

        Raises:
            UsageError: the first run is refused; all others would be too.
        """
        self._folder.update(state=RUNNING)
        for moved in self._folder.set_aside():
            self._say(f"{paths.shown(moved)}: left by a crash; its run is made again")
        # A kill leaves "running"; so does an error that does not come from a run.
        with self.stop_signals.caught():
            for line in self._folder.lines().values():
                if line.state == COMPLETE and (why := self._figures(line.run)[1]):
                    self._say(f"{line.run}: {why}; the run is made again")
            platforms = Platforms(self._record.site, self._folder.path)
            is_stopped = False
            try:
                for order, point, repetition in self.due():
                    self._one(platforms, order, point, repetition)
                    # What comes after the load of the last run stops nothing.
                    if (why := self._stopped()) and next(self.due(), None) is not None:
                        self._say(why)
                        is_stopped = True
                        break
                is_whole = all(line.state == COMPLETE for line in self._folder.lines().values())
                state = STOPPED if is_stopped else COMPLETE if is_whole else PARTIAL
                self._folder.update(state=state, ended_ms=now_ms())
            finally:
                for words in platforms.close():
                    self._say(words)

    def due(self) -> Iterator[tuple[int, Point, int]]:
        """The runs to do (those without readable, complete results), in the seed's order, each with its position."""
        order = 0
        most = self._study.stop.at_most if self._study.stop else self._study.repetitions
        for repetition in range(1, max(most, self._study.repetitions) + 1):
            is_extra = repetition > self._study.repetitions
            points = [point for point in self._record.points if not is_extra or self._needs(point, repetition)]
            for point in matrix.in_order(points, repetition, self._record.seed, self._study.order):
                order += 1
                line = self._folder.lines().get((point.id, repetition))
                if line is None or line.state != COMPLETE or self._figures(line.run)[1]:
                    if is_extra and self._is_budget_used():
                        self._say("the budget is used up: no more repetitions where figures vary")
                        return
                    yield order, point, repetition

    def _needs(self, point: Point, repetition: int) -> bool:
        """Return whether the stop rule asks for this repetition of a point; one whose runs fail gets no more."""
        from framestorm.stats.means import is_enough

        stop = self._study.stop
        if stop is None:
            return False
        lines = self._folder.lines()
        before = [lines.get((point.id, number)) for number in range(1, repetition)]
        figures = [self._figures(line.run)[0] for line in before if line and line.state == COMPLETE]
        values = [each[stop.metric] for each in figures if stop.metric in each]
        return len(values) >= 2 and not is_enough(values, self._study.repetitions, stop.within_percent / 100)

    def _figures(self, run_name: str) -> tuple[dict[str, float], str | None]:
        """Return the metrics of a run, or why they cannot be read; its files are read only once."""
        from framestorm.points import run_figures

        if run_name not in self._read:
            figures, why = run_figures.figures_or_why_not(self._folder.path / run_name, self._study)
            metrics = {name: float(value) for name, value in figures.metrics.items() if value is not None}
            self._read[run_name] = metrics, why
        return self._read[run_name]

    def _one(self, platforms: Platforms, order: int, point: Point, repetition: int) -> None:
        """Do one run and record how it ended; a run that was stopped before it began is not recorded."""
        began_s, started_ms, run_s = time.monotonic(), now_ms(), 0.0
        run_dir = self._folder.new_run(order, point, repetition)
        reason: str | None = None
        try:
            with self.stop_signals.starting():
                options = self._options(platforms, point, repetition, run_dir)
            run_began_s = time.monotonic()
            try:
                reason = self._run(options)
            finally:
                run_s = time.monotonic() - run_began_s
        except FramestormError as error:
            if self.stop_signals.count and not run_dir.exists():
                return
            # Names and values were checked before: if the first run is refused now, all others would be too.
            if isinstance(error, UsageError) and not self._folder.lines():
                raise
            reason = str(error)
        run_name = run_dir.relative_to(self._folder.path).as_posix()
        figures: dict[str, float] = {}
        if not reason:
            # This run's metrics may have been read before, when its folder was missing.
            self._read.pop(run_name, None)
            figures, reason = self._figures(run_name)
        if figures.get("n") == 0:
            reason = (
                f"nothing was measured: every sample ({figures['n_sent']:.0f}) was rejected, by a warm-up of "
                f"{self._study.warm_up_s:g} s and temperature {self._study.temperature}; make the runs longer"
            )
        took_s = time.monotonic() - began_s
        line = RunLine(
            point=point.id,
            repetition=repetition,
            run=run_name,
            state=FAILED if reason else COMPLETE,
            reason=reason,
            started_ms=started_ms,
            ended_ms=now_ms(),
            engine_ms=round((took_s - run_s) * 1000),
            order=order,
        )
        self._folder.append(line)
        self._note(point, line, took_s, figures)

    def _options(self, platforms: Platforms, point: Point, repetition: int, run_dir: Path) -> RunOptions:
        """Return the options of a run, after applying the target settings of its point."""
        plan, platform = paths.ROOT / point.plan, platforms.prepare(point.target)
        return RunOptions(
            What(
                plan,
                drawn(matrix.read_plan(point.plan), point.properties, 1 + (repetition - 1) * self._seed_step),
                port=self._record.port,
                context=self._record.context,
                ingress=self._record.ingress,
                platform=platform,
            ),
            Where(self._record.slaves, Path(self._record.inventory)),
            # A study looks for overload: its answers say in how many runs there was some.
            Output(
                run_dir,
                criteria=(NO_CRITERION,),
                accepts_overload=True,
                command=self._record.command,
                sinks=self._sinks,
                name=f"{self._folder.path.name} {run_dir.name}",
            ),
        )

    def _run(self, options: RunOptions) -> str | None:
        """Do the run and make its report; returns why it does not count, or None if it does."""
        run_dir = conductor.run(options, self.stop_signals, self._live_page)
        try:
            dashboard.make_dashboard(run_dir)
        except FramestormError as error:
            self._log(str(error))
        verdict = build(run_dir)
        record = files.read(run_dir / "run.json", Record)
        if record.state != "complete":
            return record.reason or record.state
        return None if verdict.word in ("pass", "fail") else verdict.line

    def _note(self, point: Point, line: RunLine, took_s: float, figures: Mapping[str, float]) -> None:
        """Record how a run ended, and print it with what is left to do."""
        if line.state == COMPLETE:
            self._failures.clear()
            self._overheads_s.append(took_s - point.load_s - point.target.settle_s)
        else:
            self._failures.append(str(line.reason))
        done = self._folder.lines()
        planned = [(each, number) for each in self._record.points for number in range(1, self._study.repetitions + 1)]
        left = [each for each, number in planned if (each.id, number) not in done]
        words = [f"{line.state} in {matrix.shown_time(took_s)}"]
        words += [f"{name} {figures[name]:.4g}" for name in (self._main_metric, "success") if name in figures]
        words += [f"about {matrix.shown_time(matrix.time_s(left, self._overheads_s))} left"] if left else []
        total = max(len(planned), line.order)
        self._say(f"[{line.order}/{total}] {point.id} r{line.repetition}: {', '.join(words)}")
        if line.reason:
            self._say(f"    {line.reason}")
        self._log(f"{line.run}: the engine itself took {line.engine_ms} ms")

    def _stopped(self) -> str | None:
        """Return why no further runs are done; None if there is no reason to stop."""
        if self.stop_signals.count:
            return f"stopped by {self.stop_signals.name}"
        same = self._failures[-SAME_FAILURES:]
        if len(same) == SAME_FAILURES and len(set(same)) == 1 and self._is_budget_used():
            return f"stopped: the budget is used up, and {len(self._failures)} runs in a row failed: {same[0]}"
        return None

    def _is_budget_used(self) -> bool:
        return self._budget_min is not None and time.monotonic() - self._began_s > 60 * self._budget_min

    def _say(self, text: str) -> None:
        tell(text)
        self._log(text)

    def _log(self, text: str) -> None:
        path = self._folder.path / LOG
        try:
            with path.open("a") as log:
                log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
        except OSError as error:
            why = f"{paths.shown(path)} cannot be written: {error.strerror}; fix that, then continue with --resume"
            raise FramestormError(why) from None


def _seed_step(points: Sequence[Point]) -> int:
    """Return how much higher seeds are than those of the repetition before, so that no two repetitions share one."""
    seeds = [as_number({**matrix.read_plan(point.plan).defaults, **point.properties}.get("seed")) for point in points]
    known = [int(seed) for seed in seeds if seed is not None]
    return max(known) - min(known) + 1 if known else 1
