"""`./run.sh study`: lists studies, shows what one would do, runs it, goes on with it."""

import argparse
import json
import secrets
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from framestorm import __version__, paths, properties, record, setup, target
from framestorm.errors import FramestormError, UsageError
from framestorm.study import listing
from framestorm.study.design import definition, folder, matrix, reading, rejudging, selection
from framestorm.study.design.definition import Study
from framestorm.study.design.folder import StudyFolder
from framestorm.study.design.matrix import Point
from framestorm.study.running import estimate, readiness
from framestorm.study.running.readiness import Check, Place

if TYPE_CHECKING:
    from framestorm.study.running.engine import Engine

EXIT_STATUS = "exit status: 0 all runs complete, 1 nothing could be run, 2 wrong usage, 4 runs failed or it was stopped"
# What a study goes on with is what it was started with.
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
        FramestormError: as errors.py has it.
    """
    asked = _parser().parse_args(list(words))
    if asked.list:
        return listing.show()
    if asked.all == (asked.study is not None):
        raise UsageError("say which study: a name as in ./run.sh study --list, a path, or --all")
    if asked.all:
        return _all(asked, words)
    return (_resume(asked, words) if asked.resume else _start(asked, words, asked.study)).exit_status


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
    parser.add_argument("--dry-run", action="store_true", help="show the runs in order, check that all is there")
    parser.add_argument("--resume", action="store_true", help="go on with the newest unfinished one, or that of -o")
    parser.add_argument(
        "--only", metavar="FACTOR=LEVEL", action="append", default=[], help="just these points; may be repeated"
    )
    parser.add_argument("--seed", type=int, help="of the random order (default: a new one, which is recorded)")
    parser.add_argument("--repetitions", type=int, metavar="N", help="in place of the study's")
    parser.add_argument(
        "-J",
        metavar="NAME=VALUE",
        dest="assignments",
        action="append",
        default=[],
        help="set a fixed property of the plan",
    )
    parser.add_argument("--gateway", metavar="URL", help="test functions behind this gateway, as they are there")
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
    port = f"loopback port of the embedded target (default: {target.DEFAULT_PORT}, or as the study was started)"
    parser.add_argument("--port", type=int, help=port)
    return parser


def _all(asked: argparse.Namespace, words: Sequence[str]) -> int:
    if asked.resume or asked.folder:
        raise UsageError("--all starts every study anew in a folder of its own; leave out --resume and -o")
    ended: dict[str, Ended] = {}
    for name in listing.names():
        print(f"== {name}", file=sys.stderr, flush=True)
        try:
            ended[name] = _start(asked, words, name)
        except FramestormError as error:
            print(f"framestorm: {error}", file=sys.stderr)
            ended[name] = Ended(error.exit_status, str(error).splitlines()[0])
        if ended[name].is_stopped:
            break
    for name, each in ended.items():
        print(f"{name}: {each.line}")
    return max((each.exit_status for each in ended.values()), default=0)


def _start(asked: argparse.Namespace, words: Sequence[str], name: str) -> Ended:
    file = listing.find(name)
    loaded = reading.load(file, asked.quick)
    given = properties.parse_assignments(asked.assignments)
    study = selection.override(loaded, given, asked.repetitions)
    points = selection.choose(selection.points_of(study), selection.parse_only(asked.only, study))
    place = _place(asked, asked.gateway, asked.slaves, paths.INVENTORY, target.DEFAULT_PORT)
    seed = secrets.randbelow(SEEDS) if asked.seed is None else asked.seed
    budget = _budget(study, points, asked.over_budget)
    if asked.dry_run:
        ordered = matrix.schedule(points, study.repetitions, seed, study.order)
        runs = [(order, *run) for order, run in enumerate(ordered, start=1)]
        checks = [*readiness.checks(study, file, points, place), budget]
        return Ended(listing.dry_run(study, points, runs, seed, place, checks), "dry run")
    _check(study, file, points, place)
    if not budget.is_there:
        raise UsageError(f"{study.name} {budget.words}")
    where = StudyFolder.create(
        asked.folder.absolute() if asked.folder else folder.new_path(study.name, asked.quick),
        file,
        study,
        points,
        quick=asked.quick,
        seed=seed,
        command=["./run.sh", "study", *words],
        file=str(file),
        only=list(asked.only),
        overrides={"properties": given, "repetitions": asked.repetitions},
        gateway=asked.gateway,
        slaves=asked.slaves,
        inventory=str(place.inventory),
        port=place.port,
    )
    return _run(where, study, place, asked.over_budget)


def _resume(asked: argparse.Namespace, words: Sequence[str]) -> Ended:
    for name, option in NOT_WITH_RESUME.items():
        if getattr(asked, name) not in (None, []):
            raise UsageError(f"--resume goes on with what the study was started with; leave out {option}")
    where = _begun(asked)
    settings = where.settings
    _check_same(where)
    study = definition.from_json(settings["definition"], settings["name"])
    place = _place(asked, settings["gateway"], settings["slaves"], Path(settings["inventory"]), settings["port"])
    file = where.path / definition.FILE
    if asked.dry_run:
        left = list(_engine(where, study, place, budget_s=None).due())
        checks = readiness.checks(study, file, where.points, place)
        return Ended(listing.dry_run(study, where.points, left, settings["seed"], place, checks), "dry run")
    _check(study, file, where.points, place)
    kit = record.kit()
    if kit["commit"] != settings["kit"]["commit"]:
        began = settings["kit"]["commit"]
        print(f"note: the runs so far were made at commit {began}, the next are at {kit['commit']}", file=sys.stderr)
    resumed = [*settings.get("resumed", []), {"time_ms": record.now_ms(), "kit": kit}]
    where.update(inventory=str(place.inventory), port=place.port, resumed=resumed)
    return _run(where, study, place, over_budget=True)


def _place(asked: argparse.Namespace, gateway: str | None, slaves: str | None, inventory: Path, port: int) -> Place:
    """Where a study runs: inventory and port as asked for, or these."""
    return Place(gateway, slaves, (asked.inventory or inventory).absolute(), port if asked.port is None else asked.port)


def _begun(asked: argparse.Namespace) -> StudyFolder:
    """The study that is gone on with.

    Raises:
        UsageError: there is none, or that of -o is another.
    """
    given = Path(asked.study)
    if asked.folder is None:
        for each in (given, paths.DASHBOARDS / given):
            if listing.is_file(each / folder.FILE):
                return StudyFolder(each.resolve())
        return folder.newest_unfinished(listing.find(asked.study), asked.quick)
    where = StudyFolder(asked.folder.absolute())
    name, file = where.settings["name"], Path(where.settings["file"])
    if asked.study != name and given.resolve() not in (file, file.parent, where.path.resolve()):
        shown = paths.shown(where.path)
        by = f"go on with it by ./run.sh study {shown} --resume"
        raise UsageError(f"{shown} is a study {name}, and no {asked.study}; {by}")
    return where


def _check_same(where: StudyFolder) -> None:
    """See that a study goes on as what it was begun as.

    Raises:
        UsageError: its study.yml, or the copy in its folder, has changed since; or another version of the kit began it.
    """
    settings, shown = where.settings, paths.shown(where.path)
    wrote = settings["kit"]["version"]
    if wrote != __version__:
        raise UsageError(
            f"{shown} was begun by framestorm {wrote}, this is {__version__}: runs of two versions do not mix. "
            f"Go on with framestorm {wrote}, or start the study again without --resume"
        )
    # First its own copy, which may have been edited as well, and is then to blame.
    rejudging.settings_now(where)
    file = Path(settings["file"])
    if not file.is_file():
        return
    now = rejudging.definition_by(file, settings)
    if changed := [key for key in rejudging.differing(settings["definition"], now) if key not in rejudging.ASKED]:
        raise UsageError(
            f"{paths.shown(file)} has changed since {shown} was begun, in {', '.join(changed)}: "
            f"its runs would not belong together. Put it back ({shown}/{definition.FILE} is what it was), "
            "or start the study again without --resume"
        )


def _check(study: Study, file: Path, points: Sequence[Point], place: Place) -> None:
    """See that all that the study needs is there, and make the set-up.

    Raises:
        FramestormError: something is not.
    """
    # Once more with the set-up: slaves are looked up by a part of it.
    for make in (True, False) if place.slaves is not None else (True,):
        missing = [check for check in readiness.checks(study, file, points, place) if not check.is_there]
        if missing:
            raise FramestormError("\n".join(f"{check.what}: {check.words}" for check in missing))
        if make:
            setup.ensure(readiness.pieces(points, place))


def _budget(study: Study, points: Sequence[Point], is_over_allowed: bool) -> Check:
    """Whether a study fits the budget that it gives itself."""
    if study.budget_min is None:
        return Check("budget", True, "none is given")
    estimated_s = estimate.whole_s(study, points)
    takes = f"takes about {estimate.shown(estimated_s)}, and its budget_min allows {study.budget_min:g} min"
    if estimated_s <= study.budget_min * 60:
        return Check("budget", True, takes)
    if is_over_allowed:
        return Check("budget", True, f"{takes}: allowed by --over-budget")
    how = "choose points by --only, take --quick or fewer --repetitions, or allow it by --over-budget"
    return Check("budget", False, f"{takes}: {how}")


def _engine(where: StudyFolder, study: Study, place: Place, budget_s: float | None) -> "Engine":
    from framestorm.study.running.engine import Engine, Runs

    runs = Runs(place.gateway, place.slaves, place.inventory, place.port, tuple(where.settings["command"]), budget_s)
    return Engine(study, where, runs)


def _run(where: StudyFolder, study: Study, place: Place, over_budget: bool) -> Ended:
    """Run what is left, then make the page of what there is."""
    estimated_s = estimate.whole_s(study, where.points)
    count = f"{len(where.points)} points x {study.repetitions}"
    print(f"{study.name}: {count}, about {estimate.shown(estimated_s)}; {paths.shown(where.path)}", file=sys.stderr)
    budget_s = None if over_budget or study.budget_min is None else study.budget_min * 60
    engine = _engine(where, study, place, budget_s)
    try:
        with where.locked():
            engine.run()
    except UsageError:
        if not where.lines() and not any((where.path / "runs").iterdir()):
            shutil.rmtree(where.path)
        raise
    ended = build(where.path)
    if where.settings["state"] != folder.COMPLETE:
        print(f"go on by: ./run.sh study {paths.shown(where.path)} --resume")
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
    summary = json.loads((study_dir / "summary.json").read_text())
    verdicts: dict[str, list[str]] = {}
    for hypothesis in summary["hypotheses"]:
        verdicts.setdefault(hypothesis["verdict"], []).append(hypothesis["name"])
    words = [f"{verdict}: {', '.join(names)}" for verdict, names in verdicts.items()]
    return Ended(outcome.exit_status, "; ".join([page.progress_text(summary), *words]))
