"""The task client: one process dispatches a number of tasks at once and says when each was done.

Prints one JSON object a line on stdout, as the frame client does: one for each task, one for the user at the end. Ends
with 0 only if every task was done correctly, with 1 if one was not, with 2 if it could not begin.

The clock of all tasks starts when the dispatcher has them in hand and its processes (local) or threads stand ready:
intended_ms is that moment. A task's own time, from start_ms on, is from its dispatch until its result is back: to
the pool or the queue they are handed over all at once, so that it holds the waiting there; a call of the function is
made when a worker is free.
"""
# ruff: noqa: E402 - the clock starts before the imports, which are part of a user's set-up

import time

START_MS, STARTED = time.time() * 1000, time.perf_counter()

import argparse
import sys
from pathlib import Path

from arguments import DAY_S, count, number, statuses, url
from connections import is_connected
from dispatch import Dispatcher, DispatchError, Result
from headers import given, masked
from interrupt import Interrupts, Stopped
from lines import Account, LineError, Lines, complain
from pool import Pool
from pull import Pull
from push import Calls, Push

LABEL = "task"
MODES = ("local", "push", "pull")


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    purpose = "Dispatch tasks: to a local pool of processes, to a function, or to its queue."
    parser = argparse.ArgumentParser(prog="tasks.py", description=purpose, allow_abbrev=False)
    add = parser.add_argument
    seconds, more_than_0 = number(DAY_S), number(DAY_S, above_0=True)
    add("--mode", choices=MODES, required=True,
        help="local: a pool of processes; push: synchronous calls; pull: OpenFaaS's queue")  # fmt: skip
    add("--url", default="", help="the function; for pull the gateway's /function/NAME (local: none)")
    add("--workers", type=count(1), default=1, metavar="N", help="processes or connections (default: %(default)s)")
    add("--tasks", type=count(1), required=True, metavar="N")
    add(
        "--task-s", type=seconds, default=0.0, metavar="S", help="duration of a task; 0: no work (default: %(default)s)"
    )
    add("--timeout-s", type=more_than_0, default=120.0, metavar="S",
        help="timeout of a task, from its dispatch (default: %(default)s)")  # fmt: skip
    add("--connect-timeout-s", type=more_than_0, default=5.0, metavar="S", help="default: %(default)s")
    add("--expect-status", type=statuses, default="2xx", metavar="LIST",
        help="statuses of a correct answer, such as 2xx,304 or 200-299 (default: %(default)s)")  # fmt: skip
    add("--journal", type=Path, metavar="FILE", help="append the lines to this file too")
    options = parser.parse_args(arguments)
    if options.mode != "local":
        try:
            url(options.url)
        except argparse.ArgumentTypeError as error:
            parser.error(f"argument --url: {error}")
    return options


def run(options: argparse.Namespace, account: Account, interrupts: Interrupts) -> bool:
    """Dispatch the tasks; whether every one was done correctly.

    Raises:
        DispatchError, LineError, ValueError, OSError: the user could not begin.
    """
    dispatcher: Dispatcher | None = None
    setup_ms, intended_ms = None, 0.0
    stopped = False

    def write(result: Result) -> None:
        _write_sample(account, result, intended_ms, len(f"{options.task_s:g}"))

    try:
        with interrupts.allowed():
            dispatcher = _ready(options)
        interrupts.turn_into(dispatcher.interrupt)  # an exception could come between a result and its line
        account.begin(options.tasks)
        setup_ms = account.since_start_ms()
        intended_ms = time.time() * 1000
        dispatcher.start(options.tasks)
        for _ in range(options.tasks):
            write(dispatcher.next())
    except Stopped:
        stopped = True
    except LineError as error:
        if setup_ms is None:
            raise
        stopped = True
        complain(f"tasks: {error}")
    settings = {name: getattr(options, name) for name in ("mode", "workers", "tasks", "task_s")} | {
        "setup_ms": setup_ms
    }
    try:
        for result in dispatcher.stop() if dispatcher else ():
            write(result)
        repeated = dispatcher.repeated if dispatcher else 0
        return account.end(options.tasks, "stopped" if stopped else None, **settings, repeated=repeated)
    except LineError as error:
        complain(f"tasks: {error}")
        return False


def _ready(options: argparse.Namespace) -> Dispatcher:
    if options.mode == "local":
        return Pool(options.workers, options.task_s, options.timeout_s)
    times_s = (options.task_s, options.timeout_s, options.connect_timeout_s)
    calls = Calls(options.url, options.workers, *times_s, options.expect_status, given())
    return Push(calls) if options.mode == "push" else Pull(calls)


def _write_sample(account: Account, result: Result, intended_ms: float, sent_bytes: int) -> None:
    handover, outcome = result.handover, result.outcome
    is_sent = handover.caller is not None and is_connected(outcome.cause)
    account.sample(
        handover.task,
        intended_ms=intended_ms,
        start_ms=handover.start_ms,
        rtt_ms=result.rtt_ms,
        status=outcome.status,
        cause=outcome.cause,
        censored=outcome.cause in {"timeout", "connect-timeout", "stopped"},
        sent_bytes=sent_bytes if is_sent else 0,
        received_bytes=outcome.received_bytes,
        handler_ms=outcome.handler_ms,
        worker=masked(outcome.worker or "") or None,
        accepted_at_ms=result.accepted_ms,
        begun_at_ms=outcome.begun_ms,
        **({"trace_id": handover.trace_id} if handover.trace_id else {}),
    )


def main() -> int:
    options = parse_options()
    interrupts = Interrupts()
    try:
        account = Account(Lines(options.journal), LABEL, (START_MS, STARTED))
        return 0 if run(options, account, interrupts) else 1
    except (DispatchError, LineError, ValueError, OSError) as error:
        complain(f"tasks: {error}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
