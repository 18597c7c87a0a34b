"""`./run.sh audit`: whether a function caches, and answers as right under load as alone.

One user sends each input twice; then several users together send each once.
"""

import argparse
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from framestorm import conductor, paths
from framestorm.audit import page
from framestorm.audit.answers import causes_of, pairs_of, read_answers, texts_of
from framestorm.audit.inputs import LEAST, Inputs
from framestorm.audit.repeats import repeated_order
from framestorm.conductor import StopSignals
from framestorm.errors import FramestormError, UsageError
from framestorm.judge.accuracy import judge_accuracy, judge_sameness
from framestorm.judge.caching import judge_caching
from framestorm.machine import in_background, now_ms
from framestorm.model import files
from framestorm.model import plan as plans
from framestorm.model.function_audit import FunctionAudit
from framestorm.model.plan import Plan
from framestorm.model.run import Record
from framestorm.model.sample import ANSWER_DIGEST
from framestorm.model.units import count, plural
from framestorm.parser import Parser, whole_number
from framestorm.plain import note, say
from framestorm.report import build
from framestorm.run import pieces
from framestorm.run.options import RunOptions
from framestorm.run.plan_options import add_plan_options, hide_password, run_options
from framestorm.setup import pieces as setup

FILE, ALONE, LOAD = "audit.json", "alone", "load"
EXIT_STATUS = (
    "exit status: 0 neither was seen, 1 the audit could not be done, 2 wrong usage, 3 the function caches or is less "
    "accurate under load, 4 stopped early, or too few answers under load"
)
WARM_UP = 5  # inputs: the first requests make connections, and find a function that is cold
LONGEST_S, USERS = 600.0, 8
OPTIONS = ("load_users", "seed", "folder")
# What the audit sets itself.
_OWN = ("users", "ramp_s", "load")
_LOOKS_EVERY_S = 0.2


def main(words: Sequence[str]) -> int:
    """Find out whether a function caches answers, and whether it is as accurate under load as alone."""
    parser = Parser(prog="./run.sh audit", description=main.__doc__, epilog=EXIT_STATUS)
    _add_options(parser)
    add_plan_options(parser)
    options = parser.parse_args(list(words))
    own = argparse.Namespace(**{name: vars(options).pop(name) for name in OPTIONS})
    hide_password(options, ("audit", *words))
    return audit(run_options(options, ("audit", *words)), ("./run.sh", "audit", *words), own)


def _add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that only an audit has."""
    parser.add_argument(
        "--users", metavar="N", dest="load_users", type=whole_number(2), default=USERS,
        help="users of the run under load (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--seed",
        metavar="N",
        type=whole_number(0),
        default=1,
        help="seed that draws the inputs that are repeated at once (default: 1)",
    )
    parser.add_argument(
        "-o", metavar="DIR", dest="folder", type=Path,
        help="new folder for the audit (default: dashboards/audit-<plan>-<UTC time>)",
    )  # fmt: skip


def audit(run: RunOptions, words: tuple[str, ...], own: argparse.Namespace) -> int:
    """Make the runs and judge them; `own` has the options of `_add_options`; returns the exit status.

    Raises:
        UsageError: an option or the data set is wrong; nothing was started.
        FramestormError: a run could not be made, or has too few answers to judge.
    """
    plan = plans.read(run.what.plan)
    if missing := [name for name in ("url", "users", "hold_s") if name not in plan.settable]:
        raise UsageError(
            f"{plan.path.name} has no property {missing[0]}: an audit needs a plan of users who take a data set in "
            "turn, such as jmx/requests.jmx"
        )
    if "prompts" in plan.settable:
        raise UsageError(
            f"{plan.path.name} streams its answers, and an audit compares whole ones: ask the model by "
            "jmx/requests.jmx, with the prompts as -Jrows=@prompts.csv (docs/auditing.md#language-models)"
        )
    if given := [name for name in _OWN if name in run.what.given]:
        raise UsageError(
            f"-J{given[0]}={run.what.given[given[0]]}: the audit sets {given[0]} itself; its load is made by --users"
        )
    inputs = Inputs.of(plan, run.what.given)
    folder = own.folder.absolute() if own.folder else paths.new_dashboard(f"audit-{plan.path.stem}")
    if folder.exists():
        raise UsageError(f"{folder} exists; choose a new folder with -o")
    # Before there is a folder: a wrong option of a run is refused here, and leaves nothing.
    setup.ensure(pieces.of_run(run.what, run.where))
    conductor.check(_options(run, plan, {}, own.load_users, folder / "checked"))
    order = repeated_order(len(inputs.numbers), own.seed)
    record = FunctionAudit(
        paths.shown(plan.path.resolve()),
        words,
        f"{inputs.name}=@{paths.shown(inputs.path)}",
        inputs.numbers,
        inputs.equal,
        order,
        WARM_UP,
        own.seed,
        own.load_users,
        now_ms(),
    )
    folder.mkdir(parents=True)
    files.write(folder / FILE, record, indent=1)
    stop_signals = StopSignals()
    n, n_whole = len(inputs.numbers), 0
    with stop_signals.caught():
        for name, of_run, users in ((ALONE, order, 1), (LOAD, range(n), own.load_users)):
            times = "twice by one user" if users == 1 else f"once by {users} users together"
            note(f"{count(n)} inputs are sent {times}, until all were or -Jhold_s is over …")
            data = {inputs.name: inputs.write(of_run, folder, f"inputs-{name}")}
            try:
                n_whole += _run(
                    _options(run, plan, data, users, folder / name), folder / name, len(of_run), stop_signals
                )
            except FramestormError:
                # Stopped before the second run began: the first one has its answers.
                if not (stop_signals.count and n_whole):
                    raise
            if stop_signals.count:
                break
    # What comes after the load of the second run stops nothing.
    ended = replace(record, state="complete" if n_whole == len((ALONE, LOAD)) else "stopped", ended_ms=now_ms())
    files.write(folder / FILE, ended, indent=1)
    return show(folder)


def show(folder: Path) -> int:
    """Judge the runs of an audit, make its page again, and print the answer; returns the exit status.

    Raises:
        FramestormError: too few inputs were answered twice.
    """
    record = files.read(folder / FILE, FunctionAudit)
    if record.state == "complete":
        record = _judged(folder, record)
    record = replace(record, text=page.sentence(record))
    files.write(folder / FILE, record, indent=1)
    page.write(folder, record)
    say(record.text)
    say(f"\nreport: {paths.shown(folder / 'index.html')}")
    return page.exit_status(record)


def _judged(folder: Path, record: FunctionAudit) -> FunctionAudit:
    alone, load = read_answers(folder / ALONE), read_answers(folder / LOAD)
    pairs, left_out = pairs_of(record.order, alone, record.warm_up)
    pairs = [replace(each, number=record.numbers[each.number]) for each in pairs]
    if len(pairs) < LEAST - record.warm_up:
        was = "was" if len(pairs) == 1 else "were"
        reasons = "".join(f", {n} were {reason}" for reason, n in left_out.items())
        raise FramestormError(
            f"{plural(len(pairs), 'input')} {was} answered twice{reasons}, and a judgement needs "
            f"{LEAST - record.warm_up} beside the warm-up: give the run more time by -Jhold_s, or see "
            f"{paths.shown(folder / ALONE)} for what failed"
        )
    properties = files.read(folder / LOAD / "run.json", Record).properties
    accuracy = judge_accuracy(
        causes_of(record.order, alone),
        causes_of(range(len(record.numbers)), load),
        is_status_only=not (properties.get("expect") or properties.get("reject")),
    )
    sameness = judge_sameness(texts_of(record.order, alone, load))
    return replace(record, left_out=left_out, caching=judge_caching(pairs), accuracy=accuracy, sameness=sameness)


def _options(run: RunOptions, plan: Plan, data: dict[str, str], users: int, run_dir: Path) -> RunOptions:
    given = {**run.what.given, **data, "users": f"{users}", f"framestorm.{ANSWER_DIGEST}": "true"}
    given.setdefault("hold_s", f"{LONGEST_S:g}")
    if "ramp_s" in plan.settable:
        given["ramp_s"] = "0"
    return replace(run, what=replace(run.what, given=given), output=replace(run.output, run_dir=run_dir))


def _run(options: RunOptions, run_dir: Path, requests: int, stop_signals: StopSignals) -> bool:
    """Make a run that ends once so many requests were answered; returns whether it was not stopped before."""
    with in_background(partial(_stop_after, run_dir, requests)):
        conductor.run(options, stop_signals)
    build(run_dir)
    state = files.read(run_dir / "run.json", Record)
    if not stop_signals.count and state.state != "complete":
        raise FramestormError(f"the run {run_dir.name} {state.state}: {state.reason}; see {paths.shown(run_dir)}")
    return state.state == "complete"


def _stop_after(run_dir: Path, requests: int, is_over: threading.Event) -> None:
    """End a run gently once so many requests were answered."""
    lines, size = 0, 0
    while not is_over.wait(_LOOKS_EVERY_S):
        path = run_dir / "samples.jtl"
        if not path.exists():
            continue
        with path.open("rb") as file:
            file.seek(size)
            new = file.read()
        lines, size = lines + new.count(b"\n"), size + len(new)
        if lines > requests:  # and a header
            (run_dir / "stop").touch()
            return
