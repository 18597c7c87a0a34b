"""`./run.sh audit`: whether a function caches, by a run of one user who sends each input twice."""

import argparse
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl

from framestorm import conductor, paths
from framestorm.audit import page
from framestorm.audit.inputs import LEAST, Inputs
from framestorm.audit.repeats import pairs_of, repeated_order
from framestorm.conductor import Interrupts
from framestorm.errors import FramestormError, UsageError
from framestorm.judge.caching import judge_caching
from framestorm.machine import in_background, now_ms
from framestorm.model import files
from framestorm.model import plan as plans
from framestorm.model.function_audit import FunctionAudit
from framestorm.model.plan import Plan
from framestorm.model.run import Record
from framestorm.model.units import count
from framestorm.plain import note, say
from framestorm.report import build
from framestorm.results.table import read_table
from framestorm.run import pieces
from framestorm.run.options import RunOptions
from framestorm.setup import pieces as setup

FILE, ALONE = "audit.json", "alone"
EXIT_STATUS = (
    "exit status: 0 no cache was seen, 1 it could not be done, 2 wrong usage, 3 the function caches, 4 stopped early"
)
WARM_UP = 5  # inputs: the first requests make connections, and find a function that is cold
LONGEST_S = 600.0
OPTIONS = ("seed", "folder")
# What the audit sets itself.
_OWN = ("users", "ramp_s", "load")
_LOOKS_EVERY_S = 0.2


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that only an audit has."""
    parser.add_argument(
        "--seed", metavar="N", type=int, default=1, help="draws the inputs that are repeated at once (default: 1)"
    )
    parser.add_argument("-o", metavar="DIR", dest="folder", type=Path, help="new folder for the audit")


def audit(run: RunOptions, words: tuple[str, ...], own: argparse.Namespace) -> int:
    """Make the runs and judge them; `own` has the options of `add_options`; returns the exit status.

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
    if given := [name for name in _OWN if name in run.what.given]:
        raise UsageError(f"-J{given[0]}={run.what.given[given[0]]}: the audit sets {given[0]} itself; leave it out")
    inputs = Inputs.of(plan, run.what.given)
    folder = own.folder.absolute() if own.folder else paths.new_dashboard(f"audit-{plan.path.stem}")
    if folder.exists():
        raise UsageError(f"{folder} exists; choose a new folder with -o")
    # Before there is a folder: a wrong option of a run is refused here, and leaves nothing.
    setup.ensure(pieces.of_run(run.what, run.where))
    conductor.check(_options(run, plan, {}, folder / "checked"))
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
        now_ms(),
    )
    folder.mkdir(parents=True)
    files.write(folder / FILE, record, indent=1)
    note(f"each of {count(len(inputs.numbers))} inputs is sent twice by one user, until all were or -Jhold_s is over …")
    interrupts = Interrupts()
    with interrupts.caught():
        data = {inputs.name: inputs.write(order, folder, "inputs-alone")}
        options = _options(run, plan, data, folder / ALONE)
        with in_background(partial(_stop_after, folder / ALONE, len(order))):
            conductor.run(options, interrupts)
    build(folder / ALONE)
    state = files.read(folder / ALONE / "run.json", Record)
    if not interrupts.count and state.state != "complete":
        raise FramestormError(f"the run with one user {state.state}: {state.reason}; see {paths.shown(folder / ALONE)}")
    ended = replace(record, state="stopped" if interrupts.count else "complete", ended_ms=now_ms())
    files.write(folder / FILE, ended, indent=1)
    return show(folder)


def show(folder: Path) -> int:
    """Judge the runs of an audit, make its page again, and print the answer; returns the exit status.

    Raises:
        FramestormError: too few inputs were answered twice.
    """
    record = files.read(folder / FILE, FunctionAudit)
    if record.state == "complete":
        pairs, left_out = pairs_of(record.order, _answers(folder / ALONE), record.warm_up)
        pairs = [replace(each, number=record.numbers[each.number]) for each in pairs]
        if len(pairs) < LEAST - record.warm_up:
            reasons = "".join(f", {n} were {reason}" for reason, n in left_out.items())
            raise FramestormError(
                f"{len(pairs)} inputs were answered twice{reasons}, and a judgement needs {LEAST - record.warm_up} "
                f"beside the warm-up: give the run more time by -Jhold_s, or see {paths.shown(folder / ALONE)} for "
                "what failed"
            )
        record = replace(record, left_out=left_out, caching=judge_caching(pairs))
    record = replace(record, text=page.sentence(record))
    files.write(folder / FILE, record, indent=1)
    page.write(folder, record)
    say(record.text)
    say(f"\nreport: {paths.shown(folder / 'index.html')}")
    return page.exit_status(record)


def _options(run: RunOptions, plan: Plan, data: dict[str, str], run_dir: Path) -> RunOptions:
    given = {**run.what.given, **data, "users": "1"}
    given.setdefault("hold_s", f"{LONGEST_S:g}")
    if "ramp_s" in plan.settable:
        given["ramp_s"] = "0"
    return replace(run, what=replace(run.what, given=given), output=replace(run.output, run_dir=run_dir))


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


def _answers(run_dir: Path) -> pl.DataFrame:
    """Return the first answer of each place in the order: the requests of a further pass through it do not count."""
    samples = read_table(run_dir / "samples.csv").filter(pl.col("index").is_not_null()).sort("start_ms")
    first = samples.unique("index", keep="first", maintain_order=True)
    cause = pl.col("cause").cast(pl.String)
    return first.select(
        "index", "rtt_ms", cause, (pl.col("ok") | cause.is_in(["expect-not-met", "reject-met"])).alias("is_answer")
    ).collect()
