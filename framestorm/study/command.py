"""`./run.sh study`: lists studies, shows what one would do, runs it, resumes it."""

import argparse
import contextlib
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from framestorm import __version__, machine, paths
from framestorm.errors import FramestormError, UsageError
from framestorm.machine import now_ms
from framestorm.model.study import DEFINITION, MOST_REPETITIONS
from framestorm.parser import Parser, add_cluster, add_viewers, port_number, whole_number
from framestorm.plain import note, say, tell, visible
from framestorm.platform.base import DEFAULT_PORT, Check
from framestorm.points import folder
from framestorm.points.folder import COMPLETE, Overrides, Resumption, StudyFolder, StudyRecord
from framestorm.run import properties
from framestorm.run.values import check_working_dir
from framestorm.setup import pieces as setup
from framestorm.study import readiness
from framestorm.study.design import matrix, reading
from framestorm.study.design.yaml_lines import choices

EXIT_STATUS = (
    "exit status: 0 all runs complete and every hypothesis confirmed, 1 nothing could be run, 2 wrong usage, 3 a "
    "hypothesis was rejected, 4 runs failed or the study was stopped, 5 a hypothesis is inconclusive and none rejected"
)
# The worst of several studies first.
WORST_FIRST = (4, 2, 1, 3, 5, 0)
# A study is resumed with the options that it was started with.
NOT_WITH_RESUME = {
    "only": "--only", "seed": "--seed", "repetitions": "--repetitions", "assignments": "-J", "gateway": "--gateway",
    "slaves": "-R", "context": "--context", "ingress": "--ingress",
}  # fmt: skip
SEEDS = 2**31


class Ended(NamedTuple):
    """The result of a study; `line` is its summary in one line, `is_stopped` tells whether the user stopped it."""

    exit_status: int
    line: str
    is_stopped: bool = False


def main(words: Sequence[str]) -> int:
    """Run the command given by the words after `study`; returns the exit status of run.sh.

    Raises:
        FramestormError: the study could not be run; the error has the exit status.
    """
    options = _parser().parse_args(list(words))
    if options.list:
        return _list()
    if options.all == (options.study is not None):
        raise UsageError("say which study: a name as in ./run.sh study --list, a path, or --all")
    if options.all:
        return _all(options, words)
    return (_resume(options) if options.resume else _start(options, words, options.study)).exit_status


def _parser() -> Parser:
    parser = Parser(
        prog="./run.sh study",
        description="Run a study: every point of its matrix, repeated, in random order, shown on one page.",
        epilog=f"{EXIT_STATUS}.",
    )
    parser.add_argument(
        "study", nargs="?", help="its name in studies/, a study.yml or its folder, or with --resume the study's folder"
    )
    parser.add_argument("--list", action="store_true", help="list the studies, with their size and time")
    parser.add_argument("--all", action="store_true", help="all studies of studies/, one after the other")
    parser.add_argument("--quick", action="store_true", help="the small form of the study, in minutes")
    parser.add_argument("--dry-run", action="store_true", help="show the runs in order and check what they need")
    parser.add_argument(
        "--resume", action="store_true", help="continue the newest unfinished folder of this study, or that of -o"
    )
    parser.add_argument(
        "--only", metavar="FACTOR=LEVEL", action="append", default=[],
        help="only the points with this level, or these levels with commas; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=whole_number(0), metavar="N",
        help="seed of the random order (default: a new one, which is recorded)",
    )  # fmt: skip
    parser.add_argument(
        "--repetitions", type=whole_number(1, MOST_REPETITIONS), metavar="N", help="repetitions, instead of the study's"
    )
    parser.add_argument(
        "-J",
        metavar="NAME=VALUE",
        dest="assignments",
        action="append",
        default=[],
        help="set a fixed property of the plan",
    )
    parser.add_argument("--gateway", metavar="URL", help="test functions behind this gateway, without changing them")
    add_cluster(parser)
    parser.add_argument("-R", metavar="HOSTS", dest="slaves", help="run over slaves, as ./run.sh does")
    inventory = f"the inventory (default: {paths.shown(paths.INVENTORY)}; with --resume as before)"
    parser.add_argument("-i", metavar="FILE", dest="inventory", type=Path, help=inventory)
    parser.add_argument(
        "-o",
        metavar="DIR",
        dest="folder",
        type=Path,
        help="the study's folder (default: dashboards/<study>-<UTC time>)",
    )
    add_viewers(parser)
    parser.add_argument("--over-budget", action="store_true", help="run even if it may take longer than budget_min")
    port = f"loopback port of the embedded target (default: {DEFAULT_PORT}; with --resume as before)"
    parser.add_argument("--port", type=port_number(), help=port)
    return parser


def _all(options: argparse.Namespace, words: Sequence[str]) -> int:
    if options.resume or options.folder:
        raise UsageError("--all starts every study in a new folder; leave out --resume and -o")
    ended: dict[str, Ended] = {}
    for name in _names():
        tell(f"== {name}")
        try:
            ended[name] = _start(options, words, name)
        except FramestormError as error:
            tell(f"framestorm: {visible(str(error))}")
            ended[name] = Ended(error.exit_status, str(error).splitlines()[0])
        if ended[name].is_stopped:
            break
    for name, each in ended.items():
        say(f"{name}: {visible(each.line)}")
    return min((each.exit_status for each in ended.values()), key=WORST_FIRST.index, default=0)


def _names() -> list[str]:
    """Return the studies in studies/."""
    return sorted(file.parent.name for file in paths.STUDIES.glob(f"*/{DEFINITION}"))


def _list() -> int:
    """Print every study with its size and time; 2 if one of them is wrong."""
    status = 0
    for name in _names():
        try:
            full = reading.load(paths.STUDIES / name)
        except UsageError as error:
            say(f"{name}\n  {error}")
            status = error.exit_status
            continue
        say(f"{name}: {full.title}\n  full  {readiness.size(full, matrix.points(full))}")
        with contextlib.suppress(UsageError):  # no quick form; if there is one, it was checked above
            quick = reading.load(paths.STUDIES / name, quick=True)
            say(f"  quick {readiness.size(quick, matrix.points(quick))}")
    return status


def _find(name: str) -> Path:
    """Return the study.yml of a study by its name or path.

    Raises:
        UsageError: there is no such study.
    """
    for candidate in (paths.STUDIES / name / DEFINITION, Path(name) / DEFINITION, Path(name)):
        if paths.is_file(candidate):
            return candidate.resolve()
    raise UsageError(f"studies/ has no study {name}{choices(name, _names())}; or give the path of a {DEFINITION}")


def _start(options: argparse.Namespace, words: Sequence[str], name: str) -> Ended:
    file = _find(name)
    overrides = Overrides(properties.assigned(options.assignments), options.repetitions)
    definition = matrix.override(reading.load(file, options.quick), overrides)
    points = matrix.choose(matrix.points(definition), options.only)
    study = StudyRecord.begin(
        file,
        definition,
        points,
        seed=secrets.randbelow(SEEDS) if options.seed is None else options.seed,
        inventory=str((options.inventory or paths.INVENTORY).absolute()),
        port=DEFAULT_PORT if options.port is None else options.port,
        quick=options.quick,
        command=("./run.sh", "study", *words),
        only=tuple(options.only),
        overrides=overrides,
        gateway=options.gateway,
        context=options.context,
        ingress=options.ingress,
        slaves=options.slaves,
        working_dir=str(Path.cwd()),
    )
    budget = _budget(study, options.over_budget)
    if options.dry_run:
        ordered = matrix.schedule(points, definition.repetitions, study.seed, definition.order)
        runs = [(order, *run) for order, run in enumerate(ordered, start=1)]
        return Ended(readiness.show(study, runs, [*readiness.checks(study, file.parent), budget]), "dry run")
    _make_ready(study, file.parent)
    if not budget.is_there:
        raise UsageError(f"{study.name} {budget.words}")
    new_path = paths.new_dashboard(f"{study.name}-quick" if options.quick else study.name)
    path = options.folder.absolute() if options.folder else new_path
    return _run(StudyFolder.create(path, study), options)


def _resume(options: argparse.Namespace) -> Ended:
    from framestorm.study.engine import Engine

    for name, option in NOT_WITH_RESUME.items():
        if getattr(options, name) not in (None, []):
            raise UsageError(f"--resume continues with the options that the study was started with; leave out {option}")
    where = _folder_to_resume(options)
    _check_same(where)
    inventory = str(options.inventory.absolute()) if options.inventory else where.record.inventory
    port = where.record.port if options.port is None else options.port
    study = replace(where.record, inventory=inventory, port=port)
    if options.dry_run:
        left = list(Engine(where).due())
        return Ended(readiness.show(study, left, [*readiness.checks(study, where.path)]), "dry run")
    _make_ready(study, where.path)
    kit, then = machine.kit(), study.kit.commit
    if kit.commit != then:
        note(f"the runs so far were made at commit {then}, the next are at {kit.commit}")
    where.update(inventory=inventory, port=port, resumed=(*study.resumed, Resumption(now_ms(), kit)))
    return _run(where, options)


def _folder_to_resume(options: argparse.Namespace) -> StudyFolder:
    """Return the folder of the study to resume.

    Raises:
        UsageError: there is no such study, or -o has another one.
    """
    name_or_path = Path(options.study)
    if options.folder is None:
        for each in (name_or_path, paths.DASHBOARDS / name_or_path):
            if paths.is_file(each / folder.FILE):
                return StudyFolder(each.resolve())
        return folder.newest_unfinished(_find(options.study), options.quick)
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
        UsageError: its study.yml, or the copy in its folder, has changed since; or it was started by another version
            of the kit, or in another folder, which its properties name files of.
    """
    started, shown = where.record, paths.shown(where.path)
    wrote = started.kit.version
    if wrote != __version__:
        raise UsageError(
            f"{shown} was started by framestorm {wrote}, this is {__version__}: runs of two versions cannot be mixed. "
            f"Resume it with framestorm {wrote}, or start it again without --resume"
        )
    for point in started.points:
        check_working_dir(started.working_dir, matrix.read_plan(point.plan), point.properties)
    # Its own copy first: if both were edited, the message should name the copy.
    reading.record_now(where)
    file = Path(started.file)
    if not file.is_file():
        return
    if changed := [key for key in reading.differing(file, started) if key not in reading.CHANGEABLE]:
        raise UsageError(
            f"{paths.shown(file)} has changed since {shown} was started, in {', '.join(changed)}: "
            f"its runs could not be compared. Restore it (from {shown}/{DEFINITION}), "
            "or start the study again without --resume"
        )


def _make_ready(study: StudyRecord, study_dir: Path) -> None:
    """Check everything that the study needs, and do the set-up.

    Raises:
        FramestormError: something is missing.
    """

    def check() -> None:
        missing = [check for check in readiness.checks(study, study_dir) if not check.is_there]
        if missing:
            raise FramestormError("\n".join(f"{check.what}: {check.words}" for check in missing))

    check()
    setup.ensure(readiness.pieces(study))
    if study.slaves is not None:  # looking them up needs a part of the set-up
        check()


def _budget(study: StudyRecord, is_over_allowed: bool) -> Check:
    """Check that the study's estimated time is within its own budget."""
    budget_min, estimated_s = study.definition.budget_min, study.definition.repetitions * matrix.time_s(study.points)
    if budget_min is None:
        return Check("budget", True, "the study has none")
    is_over = estimated_s > budget_min * 60
    words = f"takes about {matrix.shown_time(estimated_s)}, and its budget_min allows {budget_min:g} min"
    if is_over:
        words += ": choose points by --only, take --quick or fewer --repetitions, or allow it by --over-budget"
    return Check("budget", is_over_allowed or not is_over, words)


def _run(where: StudyFolder, options: argparse.Namespace) -> Ended:
    """Do the missing runs, then make the page."""
    from framestorm.sinks.live_page import live_page
    from framestorm.study.engine import Engine

    study = where.record
    budget_min = None if options.over_budget else study.definition.budget_min
    size = readiness.size(study.definition, study.points)
    tell(f"{study.name}: {size}; {paths.shown(where.path)}")
    try:
        with where.locked(), live_page(options.live_port) as page:
            engine = Engine(where, budget_min, options.sinks, page)
            engine.run()
    except UsageError:
        if not where.lines() and not any((where.path / "runs").iterdir()):
            shutil.rmtree(where.path)
        raise
    ended = build(where.path)
    if where.record.state != COMPLETE:
        say(f"resume by: ./run.sh study {paths.shown(where.path)} --resume")
    return ended._replace(is_stopped=engine.stop_signals.count > 0)


def rebuild(study_dir: Path) -> Ended:
    """Make the pages of a study's runs again from their raw files, then its own; a run that has none stays as it is.

    Raises:
        UsageError: it is not a study's folder, or has a format that this version does not read.
    """
    from framestorm import report

    for line in StudyFolder(study_dir).lines().values():
        try:
            report.build(study_dir / line.run)
        except FramestormError as error:
            tell(f"framestorm: {visible(str(error))}")
    return build(study_dir)


def build(study_dir: Path) -> Ended:
    """Make the page of a study's folder from its runs, and print the result.

    Raises:
        UsageError: it is not a study's folder, or has a format that this version does not read.
    """
    from framestorm.study.page import page

    summary = page.build(study_dir)
    say(visible(page.terminal_text(summary, study_dir / "index.html")))
    verdicts = [f"{n} {verdict}" for verdict, n in summary.verdicts.items() if n]
    return Ended(page.exit_status(summary), ", ".join([page.progress_text(summary), *verdicts]))
