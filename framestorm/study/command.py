"""`./run.sh study`: lists studies, shows what one would do, runs it, resumes it."""

import argparse
import secrets
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from framestorm import __version__, paths
from framestorm.errors import FramestormError, UsageError
from framestorm.machine import now_ms
from framestorm.model import plan
from framestorm.model.study import DEFINITION, Study
from framestorm.platform.base import DEFAULT_PORT, Check
from framestorm.run import record
from framestorm.setup import pieces as setup
from framestorm.study import listing, readiness
from framestorm.study.design import changes, folder, matrix, reading
from framestorm.study.design.folder import StudyFolder
from framestorm.study.design.record import COMPLETE, Overrides, Point, Resumption
from framestorm.study.readiness import Location

if TYPE_CHECKING:
    from framestorm.study.engine import Engine

EXIT_STATUS = "exit status: 0 all runs complete, 1 nothing could be run, 2 wrong usage, 4 runs failed or it was stopped"
# A study is resumed with the options that it was started with.
NOT_WITH_RESUME = {
    "only": "--only", "seed": "--seed", "repetitions": "--repetitions", "assignments": "-J", "gateway": "--gateway",
    "slaves": "-R",
}  # fmt: skip
SEEDS = 2**31


class Ended(NamedTuple):
    """How a study came out; `line` says it in one, `is_stopped` whether its user wanted no more."""

    exit_status: int
    line: str
    is_stopped: bool = False


def main(words: Sequence[str]) -> int:
    """Do what the words after `study` ask for; the exit status of run.sh.

    Raises:
        FramestormError: the study could not be run; its exit status goes with it.
    """
    options = _parser().parse_args(list(words))
    if options.list:
        return listing.show()
    if options.all == (options.study is not None):
        raise UsageError("say which study: a name as in ./run.sh study --list, a path, or --all")
    if options.all:
        return _all(options, words)
    return (_resume(options, words) if options.resume else _start(options, words, options.study)).exit_status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./run.sh study",
        description="Run a study: every point of its matrix, repeated, in random order, into one page.",
        epilog=f"{EXIT_STATUS}.",
    )
    parser.add_argument(
        "study", nargs="?", help="its name in studies/, a study.yml or its folder, or with --resume the study's folder"
    )
    parser.add_argument("--list", action="store_true", help="list the studies, with their size and time")
    parser.add_argument("--all", action="store_true", help="all studies of studies/, one after the other")
    parser.add_argument("--quick", action="store_true", help="the small form of the study, in minutes")
    parser.add_argument("--dry-run", action="store_true", help="show the runs in order and check what they need")
    parser.add_argument("--resume", action="store_true", help="continue the newest unfinished one, or that of -o")
    parser.add_argument(
        "--only", metavar="FACTOR=LEVEL", action="append", default=[], help="only these points; may be repeated"
    )
    parser.add_argument("--seed", type=int, help="of the random order (default: a new one, which is recorded)")
    parser.add_argument("--repetitions", type=int, metavar="N", help="instead of the study's")
    parser.add_argument(
        "-J",
        metavar="NAME=VALUE",
        dest="assignments",
        action="append",
        default=[],
        help="set a fixed property of the plan",
    )
    parser.add_argument("--gateway", metavar="URL", help="test functions behind this gateway, without changing them")
    parser.add_argument("-R", metavar="HOSTS", dest="slaves", help="run over slaves, as ./run.sh does")
    inventory = f"the inventory (default: {paths.shown(paths.INVENTORY)}, or as the study was started)"
    parser.add_argument("-i", metavar="FILE", dest="inventory", type=Path, help=inventory)
    parser.add_argument(
        "-o",
        metavar="DIR",
        dest="folder",
        type=Path,
        help="the study's folder (default: dashboards/<study>-<UTC time>)",
    )
    parser.add_argument("--over-budget", action="store_true", help="run it even if it takes longer than budget_min")
    port = f"loopback port of the embedded target (default: {DEFAULT_PORT}, or as the study was started)"
    parser.add_argument("--port", type=int, help=port)
    return parser


def _all(options: argparse.Namespace, words: Sequence[str]) -> int:
    if options.resume or options.folder:
        raise UsageError("--all starts every study in a new folder; leave out --resume and -o")
    ended: dict[str, Ended] = {}
    for name in listing.names():
        print(f"== {name}", file=sys.stderr, flush=True)
        try:
            ended[name] = _start(options, words, name)
        except FramestormError as error:
            print(f"framestorm: {error}", file=sys.stderr)
            ended[name] = Ended(error.exit_status, str(error).splitlines()[0])
        if ended[name].is_stopped:
            break
    for name, each in ended.items():
        print(f"{name}: {each.line}")
    return max((each.exit_status for each in ended.values()), default=0)


def _start(options: argparse.Namespace, words: Sequence[str], name: str) -> Ended:
    file = listing.find(name)
    loaded = reading.load(file, options.quick)
    properties = plan.parse_assignments(options.assignments)
    study = changes.override(loaded, properties, options.repetitions)
    points = changes.choose(changes.points_of(study), changes.parse_only(options.only, study))
    location = _location(options, options.gateway, options.slaves, paths.INVENTORY, DEFAULT_PORT)
    seed = secrets.randbelow(SEEDS) if options.seed is None else options.seed
    budget = _budget(study, points, options.over_budget)
    if options.dry_run:
        ordered = matrix.schedule(points, study.repetitions, seed, study.order)
        runs = [(order, *run) for order, run in enumerate(ordered, start=1)]
        checks = [*readiness.checks(study, file, points, location), budget]
        return Ended(listing.dry_run(study, points, runs, seed, location, checks), "dry run")
    _check(study, file, points, location)
    if not budget.is_there:
        raise UsageError(f"{study.name} {budget.words}")
    where = StudyFolder.create(
        options.folder.absolute() if options.folder else folder.new_path(study.name, options.quick),
        file,
        study,
        points,
        quick=options.quick,
        seed=seed,
        command=("./run.sh", "study", *words),
        only=tuple(options.only),
        overrides=Overrides(properties, options.repetitions),
        gateway=options.gateway,
        slaves=options.slaves,
        inventory=str(location.inventory),
        port=location.port,
    )
    return _run(where, study, location, options.over_budget)


def _resume(options: argparse.Namespace, words: Sequence[str]) -> Ended:
    for name, option in NOT_WITH_RESUME.items():
        if getattr(options, name) not in (None, []):
            raise UsageError(f"--resume continues with the options that the study was started with; leave out {option}")
    where = _folder_to_resume(options)
    started = where.record
    _check_same(where)
    study = started.definition
    location = _location(options, started.gateway, started.slaves, Path(started.inventory), started.port)
    file = where.path / DEFINITION
    if options.dry_run:
        left = list(_engine(where, study, location, budget_s=None).due())
        checks = readiness.checks(study, file, where.points, location)
        return Ended(listing.dry_run(study, where.points, left, started.seed, location, checks), "dry run")
    _check(study, file, where.points, location)
    kit = record.kit()
    if kit.commit != started.kit.commit:
        then = started.kit.commit
        print(f"note: the runs so far were made at commit {then}, the next are at {kit.commit}", file=sys.stderr)
    resumed = (*started.resumed, Resumption(now_ms(), kit))
    where.update(inventory=str(location.inventory), port=location.port, resumed=resumed)
    return _run(where, study, location, over_budget=True)


def _location(
    options: argparse.Namespace, gateway: str | None, slaves: str | None, inventory: Path, port: int
) -> Location:
    """Where a study runs: inventory and port as the options say, or these."""
    return Location(
        gateway, slaves, (options.inventory or inventory).absolute(), port if options.port is None else options.port
    )


def _folder_to_resume(options: argparse.Namespace) -> StudyFolder:
    """The study that is resumed.

    Raises:
        UsageError: there is no such study, or -o has another one.
    """
    name_or_path = Path(options.study)
    if options.folder is None:
        for each in (name_or_path, paths.DASHBOARDS / name_or_path):
            if listing.is_file(each / folder.FILE):
                return StudyFolder(each.resolve())
        return folder.newest_unfinished(listing.find(options.study), options.quick)
    where = StudyFolder(options.folder.absolute())
    name, file = where.record.name, Path(where.record.file)
    if options.study != name and name_or_path.resolve() not in (file, file.parent, where.path.resolve()):
        shown = paths.shown(where.path)
        by = f"resume it by ./run.sh study {shown} --resume"
        raise UsageError(f"{shown} belongs to study {name}, not {options.study}; {by}")
    return where


def _check_same(where: StudyFolder) -> None:
    """Check that a study is resumed as it was started.

    Raises:
        UsageError: its study.yml, or the copy in its folder, has changed since; or another version of the kit began it.
    """
    started, shown = where.record, paths.shown(where.path)
    wrote = started.kit.version
    if wrote != __version__:
        raise UsageError(
            f"{shown} was started by framestorm {wrote}, this is {__version__}: runs of two versions do not mix. "
            f"Resume it with framestorm {wrote}, or start it again without --resume"
        )
    # First its own copy: if that was edited too, the message should name it.
    changes.record_now(where)
    file = Path(started.file)
    if not file.is_file():
        return
    now = changes.definition_by(file, started)
    if changed := [key for key in changes.differing(started.definition, now) if key not in changes.CHANGEABLE]:
        raise UsageError(
            f"{paths.shown(file)} has changed since {shown} was started, in {', '.join(changed)}: "
            f"its runs could not be compared. Restore it (from {shown}/{DEFINITION}), "
            "or start the study again without --resume"
        )


def _check(study: Study, file: Path, points: Sequence[Point], location: Location) -> None:
    """Check everything that the study needs, and make the set-up.

    Raises:
        FramestormError: something is missing.
    """
    # Once more with the set-up: slaves are looked up by a part of it.
    for make in (True, False) if location.slaves is not None else (True,):
        missing = [check for check in readiness.checks(study, file, points, location) if not check.is_there]
        if missing:
            raise FramestormError("\n".join(f"{check.what}: {check.words}" for check in missing))
        if make:
            setup.ensure(readiness.pieces(points, location))


def _budget(study: Study, points: Sequence[Point], is_over_allowed: bool) -> Check:
    """Whether a study fits the budget that it gives itself."""
    if study.budget_min is None:
        return Check("budget", True, "the study has none")
    estimated_s = matrix.total_s(study, points)
    takes = f"takes about {matrix.shown_time(estimated_s)}, and its budget_min allows {study.budget_min:g} min"
    if estimated_s <= study.budget_min * 60:
        return Check("budget", True, takes)
    if is_over_allowed:
        return Check("budget", True, f"{takes}: allowed by --over-budget")
    how = "choose points by --only, take --quick or fewer --repetitions, or allow it by --over-budget"
    return Check("budget", False, f"{takes}: {how}")


def _engine(where: StudyFolder, study: Study, location: Location, budget_s: float | None) -> "Engine":
    from framestorm.study.engine import Engine, Runs

    runs = Runs(location.gateway, location.slaves, location.inventory, location.port, where.record.command, budget_s)
    return Engine(study, where, runs)


def _run(where: StudyFolder, study: Study, location: Location, over_budget: bool) -> Ended:
    """Make the missing runs, then the page."""
    estimated_s = matrix.total_s(study, where.points)
    count = f"{len(where.points)} points x {study.repetitions}"
    print(f"{study.name}: {count}, about {matrix.shown_time(estimated_s)}; {paths.shown(where.path)}", file=sys.stderr)
    budget_s = None if over_budget or study.budget_min is None else study.budget_min * 60
    engine = _engine(where, study, location, budget_s)
    try:
        with where.locked():
            engine.run()
    except UsageError:
        if not where.lines() and not any((where.path / "runs").iterdir()):
            shutil.rmtree(where.path)
        raise
    ended = build(where.path)
    if where.record.state != COMPLETE:
        print(f"resume by: ./run.sh study {paths.shown(where.path)} --resume")
    return ended._replace(is_stopped=engine.is_interrupted)


def build(study_dir: Path) -> Ended:
    """Make the page of a study's folder from its runs, and print how it came out.

    Raises:
        UsageError: it is no study's folder, or one of a format that this version does not know.
    """
    from framestorm.study.page import page

    StudyFolder(study_dir)
    outcome = page.build(study_dir)
    print(outcome.text)
    verdicts: dict[str, list[str]] = {}
    for hypothesis in outcome.summary.hypotheses:
        verdicts.setdefault(hypothesis.verdict, []).append(hypothesis.name)
    words = [f"{verdict}: {', '.join(names)}" for verdict, names in verdicts.items()]
    return Ended(outcome.exit_status, "; ".join([page.progress_text(outcome.summary), *words]))
