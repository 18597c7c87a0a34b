"""`./run.sh find`: the highest load within objectives, or the smallest setting that is enough, by run after run."""

import argparse
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from framestorm import conductor, paths
from framestorm.conductor import StopSignals
from framestorm.errors import FramestormError, UsageError
from framestorm.find import page
from framestorm.find.lengths import LONGEST_S, ProbeLengths
from framestorm.find.objectives import check_labels, criterion_of, decided_of, longer, opposite, probe_of, rung_of
from framestorm.find.setting import PlatformSetting
from framestorm.judge.ladder import Ladder
from framestorm.judge.search import Search
from framestorm.judge.smallest import SmallestSearch
from framestorm.load.kit_load import drawn
from framestorm.lock import locked
from framestorm.machine import now_ms
from framestorm.model import files, stop_rule
from framestorm.model import plan as plans
from framestorm.model.files import FileError
from framestorm.model.plan import Plan
from framestorm.model.run import Record
from framestorm.model.search import OF_TARGET, Highest, LoadRange, Probe, SearchRecord, SearchState, Smallest
from framestorm.parser import Parser, add_stop_rules, add_viewers, number
from framestorm.plain import note, say, tell
from framestorm.report import build
from framestorm.run import pieces
from framestorm.run.options import RunOptions
from framestorm.run.plan_options import add_plan_options, add_slaves, hide_password, run_options
from framestorm.run.values import check_working_dir
from framestorm.setup import pieces as setup

if TYPE_CHECKING:
    from framestorm.sinks.live_page import LivePage

FILE = "find.json"
LOCK = ".lock"  # find.json itself is replaced by each probe
EXIT_STATUS = (
    "exit status: 0 found, 1 the search could not be done, 2 wrong usage, 3 --at-least was not shown, the lowest load "
    "failed or no setting was enough, 4 stopped early"
)
REFINED = 3.0  # times as long are the probes around the limit
PROBE_S, DRAIN_S, LONGEST_DRAIN_S, MOST_PROBES = 20.0, 2.0, 60.0, 30
OPTIONS = ("over", "target", "objectives", "stop_if", "stop_when", "at_least", "probe_s", "drain_s", "folder", "resume")
OF_PROBES = ("probe_s", "drain_s")  # which may change when a search goes on
_OVER = re.compile(r"(?P<name>[^=\s]+)=(?P<low>[0-9]+(?:\.[0-9]+)?)\.\.(?P<high>[0-9]+(?:\.[0-9]+)?)")


def main(words: Sequence[str]) -> int:
    """Find the highest load within objectives, or the smallest setting of a platform."""
    options = _parsed(words)
    command = ("./run.sh", "find", *words)
    if options.resume is not None:
        folder = options.resume
        of_probes = [word for name in OF_PROBES for word in _words_of(name, getattr(options, name))]
        if vars(options) != vars(_parsed(("--resume", str(folder), *of_probes))):
            raise UsageError(
                f"--resume {folder} goes on by the words that the search began with: give no others than --probe-s and "
                "--drain-s"
            )
        command = (*_read(folder).command, *of_probes)
        options = _parsed(command[2:])
        options.resume = folder
    own = argparse.Namespace(**{name: vars(options).pop(name) for name in OPTIONS})
    hide_password(options, ("find", *words))
    live_port = vars(options).pop("live_port")
    run = run_options(options, ("find", *words))
    from framestorm.sinks.live_page import live_page

    with nullcontext() if own.resume is None else locked(own.resume / LOCK), live_page(live_port) as page:
        return search(run, command, own, page)


def _words_of(name: str, value: float | None) -> tuple[str, ...]:
    """Return an option with its value as words of a command; none if it is not given."""
    return () if value is None else (f"--{name.replace('_', '-')}", f"{value:g}")


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    parser = Parser(prog="./run.sh find", description=main.__doc__, epilog=EXIT_STATUS)
    _add_options(parser)
    add_viewers(parser)
    add_stop_rules(parser)
    add_plan_options(parser)
    add_slaves(parser)
    options: argparse.Namespace = parser.parse_args(list(words))
    return options


def _add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that only a search has."""
    parser.add_argument(
        "--over", metavar="NAME=LOW..HIGH",
        help="the property to raise, and its range: rate_per_s=1..500, users=1..64; or a setting of the function's "
        "platform, to find the smallest value that is enough for a constant load: target.replicas=1..8",
    )  # fmt: skip
    parser.add_argument(
        "--target", metavar="NAME=VALUE", action="append", default=[],
        help="with --over target.…: the function and its other settings, as in study.yml: function=noop, kind=knative; "
        "may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--slo", metavar="OBJECTIVE", dest="objectives", action="append", default=[],
        help="what has to hold: 'p95 < 500 ms', 'success >= 99.9 %%'; may be repeated (default: that the function "
        "keeps up with the rate; over users its capacity is found, and how many users reach it)",
    )  # fmt: skip
    parser.add_argument("--at-least", metavar="N", type=number(0), help="fail unless a load of N is shown to pass")
    parser.add_argument(
        "--probe-s", metavar="S", type=number(1, LONGEST_S),
        help=f"how long a probe holds its load; longer where an objective needs more samples (default: {PROBE_S:g})",
    )  # fmt: skip
    parser.add_argument(
        "--drain-s", metavar="S", type=number(0, LONGEST_DRAIN_S),
        help=f"pause between probes, longer after one that left requests behind (default: {DRAIN_S:g})",
    )  # fmt: skip
    parser.add_argument(
        "-o", metavar="DIR", dest="folder", type=Path,
        help="new folder for the search (default: dashboards/find-<plan>-<UTC time>)",
    )  # fmt: skip
    parser.add_argument(
        "--resume",
        metavar="DIR",
        type=Path,
        help="continue the search of this folder; its further probes may have another --probe-s and --drain-s",
    )


def _read(folder: Path) -> SearchRecord:
    """Return the record of a search that is to go on.

    Raises:
        UsageError: it is not a search's folder.
    """
    try:
        return files.read(folder / FILE, SearchRecord)
    except FileError as error:
        raise UsageError(
            f"{paths.shown(folder)} is no search that can go on: {error}; restore that file, or begin a new search"
        ) from None


def over_of(text: str | None, plan: Plan) -> LoadRange:
    """Return the range of --over.

    Raises:
        UsageError: it has another form, or the plan has no such property, or it may not have these values.
    """
    match = _OVER.fullmatch(text or "")
    if match is None:
        what = f"--over {text}: expected" if text else "find needs"
        raise UsageError(f"{what} a property and its range, such as --over rate_per_s=1..500")
    name, low, high = match["name"], float(match["low"]), float(match["high"])
    if not 0 < low < high:
        raise UsageError(f"--over {text}: the range has to begin above 0, and to end above its beginning")
    if name.startswith(OF_TARGET):
        if not (low.is_integer() and high.is_integer()):
            raise UsageError(f"--over {text}: a setting of the platform is sought in whole numbers")
        return LoadRange(name, low, high, is_whole=True)
    try:
        plan.check(name, match["low"])
        plan.check(name, match["high"])
    except UsageError as error:
        raise UsageError(f"--over {text}: {error}") from None
    known = plan.settable[name]
    # A plan from elsewhere does not say what it makes of a property: a number of threads has no fraction.
    is_whole = known.is_whole_number if known.facets else "." not in match["low"] + match["high"]
    return LoadRange(name, low, high, is_whole)


def search(
    run: RunOptions, words: tuple[str, ...], own: argparse.Namespace, live_page: "LivePage | None" = None
) -> int:
    """Search from the start; `own` has the options of `_add_options`; returns the exit status.

    live_page: shows each probe in turn.

    Raises:
        UsageError: an option is wrong; nothing was started.
        FramestormError: a probe could not be made or judged; `--resume` goes on after those that were.
    """
    plan = plans.read(run.what.plan)
    over = over_of(own.over, plan)
    if over.is_of_target and own.at_least is not None:
        raise UsageError(f"--at-least {own.at_least:g} is for a load; with --over {over.name} end the range there")
    if own.at_least is not None and not over.low <= own.at_least <= over.high:
        raise UsageError(f"--at-least {own.at_least:g} is outside of --over {own.over}, so it could never be shown")
    if own.target and not over.is_of_target:
        raise UsageError(f"--target {own.target[0]} is for a setting of the platform: --over target.replicas=1..8")
    setting = PlatformSetting(over.name, own.target, run.what.site(run.where)) if over.is_of_target else None
    if setting is not None and plan.url is not None and plan.url.name in run.what.given:
        raise UsageError(f"-J{plan.url.name}= and --over {over.name}: the platform gives the address; leave it out")
    if over.name in run.what.given:
        raise UsageError(f"-J{over.name} and --over {own.over} set the same property: leave out -J{over.name}")
    stop_rule.parse_all(own.stop_if, own.stop_when)
    criteria = tuple(dict.fromkeys(criterion_of(each) for each in own.objectives))
    objectives = [opposite(each) for each in criteria]
    rules = tuple(own.stop_if), tuple(own.stop_when)
    run = replace(run, output=replace(run.output, criteria=criteria, stop_if=rules[0], stop_when=rules[1]))
    check_labels(plan, replace(run.output, criteria=tuple(objectives)))
    lengths = ProbeLengths(plan, over, objectives, own.probe_s or PROBE_S, run.what.given)
    if own.probe_s is not None and "hold_s" not in plan.settable:
        note(f"--probe-s {own.probe_s:g} has no effect: {plan.path.name} has no hold_s, and takes as long as it says")
    if own.resume is not None:
        folder = own.resume.absolute()
        record = replace(
            _read(folder), command=words, state="searching", answer=None, ended_ms=None, text="", reason=""
        )
        check_working_dir(record.working_dir, plan, run.what.given)
    else:
        folder = own.folder.absolute() if own.folder else paths.new_dashboard(f"find-{plan.path.stem}")
        if folder.exists():
            raise UsageError(f"{folder} exists; choose a new folder with -o, or continue its search by --resume")
        record = SearchRecord(
            over, objectives, paths.shown(plan.path.resolve()), words, now_ms(), at_least=own.at_least,
            target=tuple(own.target), working_dir=str(Path.cwd()),
        )  # fmt: skip
    if record.is_ladder and own.at_least is not None:
        raise UsageError(f"--at-least {own.at_least:g} has to be carried within an objective: give one by --slo")
    if record.is_ladder and any(rules):
        raise UsageError(
            "--stop-if and --stop-when end probes by a criterion; a search for the capacity has none: --slo"
        )
    if record.is_ladder and "ramp_s" in plan.settable:
        # A ramp-up would be a part of each rate.
        run = replace(run, what=replace(run.what, given={"ramp_s": "0", **run.what.given}))
    # Before there is a folder: a wrong option of a run is refused here, and leaves nothing.
    if setting is None:
        setup.ensure(pieces.of_run(run.what, run.where))
        conductor.check(_probe_options(run, over, over.low, lengths.at(over.low), folder / "probe-checked"))
    else:
        setup.ensure([*pieces.of_plan(plan, run.what.given), *setting.needs((over.low, over.high))])
    with _made(folder) if own.resume is None else nullcontext():
        if setting is not None:
            setting.begin(folder)
        try:
            drain_s = DRAIN_S if own.drain_s is None else own.drain_s
            return _Loop(run, folder, record, lengths, drain_s, setting, live_page).go()
        finally:
            if setting is not None:
                setting.close()


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make the folder of a new search, and keep other processes from it.

    Raises:
        UsageError: it exists by now, or cannot be made.
    """
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}; choose a new folder with -o") from None
    with locked(folder / LOCK):
        yield


def _probe_options(run: RunOptions, over: LoadRange, load: float, length_s: float | None, run_dir: Path) -> RunOptions:
    value = f"{load:.0f}" if load.is_integer() else f"{load}"
    given = dict(run.what.given) if over.is_of_target else {**run.what.given, over.name: value}
    if length_s is not None:
        given["hold_s"] = f"{length_s:g}"
    return replace(run, what=replace(run.what, given=given), output=replace(run.output, run_dir=run_dir))


class _Loop:
    """Makes probes until the search is over or is stopped; find.json and the page are whole after each."""

    def __init__(
        self,
        run: RunOptions,
        folder: Path,
        record: SearchRecord,
        lengths: ProbeLengths,
        drain_s: float,
        setting: PlatformSetting | None,
        live_page: "LivePage | None",
    ) -> None:
        self._run, self._folder, self._record, self._lengths, self._drain_s = run, folder, record, lengths, drain_s
        self._setting, self._live_page = setting, live_page
        self._stop_signals = StopSignals()

    def go(self) -> int:
        self._write()
        try:
            with self._stop_signals.caught():
                self._make_probes()
        except Exception as error:
            with suppress(OSError):  # of a disk that is full, which would hide the error
                self._end("failed", reason=str(error) or type(error).__name__)
                shown = paths.shown(self._folder)
                note(f"why it failed is in {shown}/index.html; once that is mended: ./run.sh find --resume {shown}")
            raise
        answer = self._search().answer()
        self._end("stopped" if answer is None else "complete", answer=answer)
        return show(self._folder)

    def _make_probes(self) -> None:
        while (load := self._search().next_load()) is not None and not self._stop_signals.count:
            if len(self._record.probes) >= MOST_PROBES:
                raise FramestormError(
                    f"after {MOST_PROBES} probes there is no answer: results differ too much from probe to probe; "
                    f"{longer(self._record.probes[-1].length_s)}"
                )
            if self._record.probes:
                self._drain(self._record.probes[-1])
            probe = self._probe(load)
            if probe is None:
                break
            self._check_recovered(probe)
            self._record = replace(self._record, probes=[*self._record.probes, probe])
            self._write()
            tell(page.probe_line(len(self._record.probes), probe, self._record.over))

    def _check_recovered(self, probe: Probe) -> None:
        """Raise FramestormError if the function answers nothing at a load at which it did; the probe does not count.

        All further loads would seem too high.
        """
        if probe.is_silent and any(each.passed and each.load == probe.load for each in self._record.probes):
            self._record = replace(self._record, probes=self._record.up_to_death)
            over, last = self._record.over, self._record.probes[-1]
            raise FramestormError(
                f"{over.at(probe.load)}, the function answered before, and now every request fails: it has not "
                f"recovered from the probe {over.at(last.load)}: start it again; see {paths.shown(self._folder)}"
            )

    def _end(self, state: SearchState, answer: Highest | Smallest | None = None, reason: str = "") -> None:
        self._record = replace(self._record, state=state, answer=answer, reason=reason, ended_ms=now_ms())
        self._record = replace(self._record, text=page.sentence(self._record))
        self._write()

    def _search(self) -> Search | Ladder | SmallestSearch:
        over, probes = self._record.over, self._record.probes
        if over.is_of_target:
            return SmallestSearch(over, probes)
        return Ladder(over, probes) if self._record.is_ladder else Search(over, probes)

    def _write(self) -> None:
        files.write(self._folder / FILE, self._record, indent=1)
        page.write(self._folder, self._record)

    def _drain(self, last: Probe) -> None:
        """Let the function finish what the last probe left, so that the next one finds it idle."""
        left_s = (last.in_flight or 0) / last.answered_per_s if not last.passed and last.answered_per_s else 0.0
        until_s = time.monotonic() + min(LONGEST_DRAIN_S, self._drain_s + left_s)
        while (rest_s := until_s - time.monotonic()) > 0 and not self._stop_signals.count:
            time.sleep(min(0.2, rest_s))

    def _probe(self, load: float) -> Probe | None:
        """Make one run; None if it was stopped, and does not count."""
        number = len(self._record.probes) + 1
        while (run_dir := self._folder / f"probe-{number:02}").exists():
            number += 1
        # Near the limit, queues fill and empty slowly.
        length_s = self._lengths.at(load, REFINED if self._search().is_refining else 1.0)
        options = _probe_options(self._run, self._record.over, load, length_s, run_dir)
        name = f"{self._folder.name} {run_dir.name} {self._record.over.amount(load)}"
        # If all probes had the same random arrivals, their interval could not show what chance does.
        given = drawn(plans.read(options.what.plan), options.what.given, number)
        options = replace(options, what=replace(options.what, given=given), output=replace(options.output, name=name))
        try:
            if self._setting is not None:
                with self._stop_signals.starting():
                    platform = self._setting.bring_to(load)
                options = replace(options, what=replace(options.what, platform=platform))
            conductor.run(options, self._stop_signals, self._live_page)
            build(run_dir)
        except FramestormError:
            if self._stop_signals.count:
                return None
            raise
        state = files.read(run_dir / "run.json", Record)
        if self._stop_signals.count:
            return None
        if state.state == "decided":
            return decided_of(run_dir, load, length_s)
        if state.state != "complete":
            at = self._record.over.at(load)
            raise FramestormError(f"the probe {at} {state.state}: {state.reason}; see {paths.shown(run_dir)}")
        return (rung_of if self._record.is_ladder else probe_of)(run_dir, self._record.over, load, length_s)


def show(folder: Path) -> int:
    """Make the page of a search again from its find.json, and print the answer; returns the exit status."""
    record = files.read(folder / FILE, SearchRecord)
    page.write(folder, record)
    say(record.text or page.sentence(record))
    say(f"\nreport: {paths.shown(folder / 'index.html')}")
    return page.exit_status(record)
