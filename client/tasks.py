"""The task client: one process dispatches a number of tasks at once and says when each was done.

Prints one JSON object a line on stdout, as the frame client does: one for each task, one for the user at the end. Ends
with 0 only if every task was done rightly, with 1 if one was not, with 2 if it could not begin.

The clock of all tasks starts when the dispatcher has them in hand and its processes (local) or threads stand ready:
intended_ms is that moment. A task's own time, from start_ms on, is from its handing over until its result is back: to
the pool or the queue they are handed over all at once, so that it holds the waiting there; a call of the function is
made when a worker is free.
"""
# ruff: noqa: E402 - the clock starts before the imports, which are part of a user's set-up

import time

START_MS, STARTED = time.time() * 1000, time.perf_counter()

import argparse
import sys
from pathlib import Path

from account import Account, rounded_ms
from arguments import DAY_S, count, number, url
from dispatch import Dispatcher, DispatchError, Result
from interrupt import Interrupts, Stopped
from lines import LineError, Lines
from pool import Pool
from pull import Pull
from push import Push

MODES = ("local", "push", "pull")


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    purpose = "Dispatch tasks: to a local pool of processes, to a function, or to its queue."
    parser = argparse.ArgumentParser(prog="tasks.py", description=purpose, allow_abbrev=False)
    add = parser.add_argument
    seconds, more_than_0 = number(0, DAY_S), number(0, DAY_S, above=True)
    add("--mode", choices=MODES, required=True,
        help="local: a pool of processes; push: synchronous calls; pull: OpenFaaS's queue")  # fmt: skip
    add("--url", default="", help="the function; for pull the gateway's /function/NAME (local: none)")
    add("--workers", type=count(1), default=1, metavar="N", help="processes or connections (default: %(default)s)")
    add("--tasks", type=count(1), required=True, metavar="N")
    add("--task-s", type=seconds, default=0.0, metavar="S", help="length of a task; 0: nothing (default: %(default)s)")
    add("--timeout-s", type=more_than_0, default=120.0, metavar="S",
        help="for a task, from its handing over (default: %(default)s)")  # fmt: skip
    add("--connect-timeout-s", type=more_than_0, default=5.0, metavar="S", help="default: %(default)s")
    add("--journal", type=Path, metavar="FILE", help="append the lines to this file too")
    given = parser.parse_args(arguments)
    if given.mode != "local":
        try:
            url(given.url)
        except argparse.ArgumentTypeError as error:
            parser.error(f"argument --url: {error}")
    return given


def run(given: argparse.Namespace, account: Account, interrupts: Interrupts) -> bool:
    """Dispatch the tasks; whether every one was done rightly.

    Raises:
        DispatchError, LineError, ValueError, OSError: the user could not begin.
    """
    dispatcher: Dispatcher | None = None
    setup_ms, intended_ms = None, 0.0
    stopped = False

    def say(result: Result) -> None:
        account.say(result.begun.task, result.done.cause, _fields(result, intended_ms, len(f"{given.task_s:g}")))

    try:
        with interrupts.allowed():
            dispatcher = _ready(given)
        account.begin(given.tasks)
        setup_ms = account.since_start_ms()
        intended_ms = time.time() * 1000
        dispatcher.start(given.tasks)
        for _ in range(given.tasks):
            with interrupts.allowed():
                result = dispatcher.next()
            say(result)
    except Stopped:
        stopped = True
    except LineError as error:
        if setup_ms is None:
            raise
        stopped = True
        print(f"tasks: {error}", file=sys.stderr)
    own = {name: getattr(given, name) for name in ("mode", "workers", "tasks", "task_s")} | {"setup_ms": setup_ms}
    try:
        for result in dispatcher.stop() if dispatcher else ():
            say(result)
        repeated = dispatcher.repeated if dispatcher else 0
        return account.end(given.tasks, stopped, **own, repeated=repeated)
    except LineError as error:
        print(f"tasks: {error}", file=sys.stderr)
        return False


def _ready(given: argparse.Namespace) -> Dispatcher:
    if given.mode == "local":
        return Pool(given.workers, given.task_s, given.timeout_s)
    way = Push if given.mode == "push" else Pull
    return way(given.url, given.workers, given.task_s, given.timeout_s, given.connect_timeout_s)


def _fields(result: Result, intended_ms: float, sent_bytes: int) -> dict[str, object]:
    begun, done = result.begun, result.done
    is_call = begun.caller is not None
    return {
        "intended_ms": rounded_ms(intended_ms),
        "start_ms": rounded_ms(begun.start_ms),
        "rtt_ms": rounded_ms(result.rtt_ms),
        "handler_ms": _rounded(done.handler_ms),
        "model_ms": None,
        "status": done.status,
        "ok": done.cause is None,
        "cause": done.cause,
        "censored": done.cause in {"timeout", "connect-timeout", "stopped"},
        "sent_bytes": sent_bytes if is_call and done.cause not in {"connect", "connect-timeout"} else 0,
        "received_bytes": done.received_bytes,
        "faces": None,
        "cold": None,
        "verified": False,
        "worker": done.worker,
        "accepted_ms": _rounded(result.accepted_ms),
        "begun_ms": _rounded(done.begun_ms),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else rounded_ms(value)


def main() -> int:
    given = parse_options()
    interrupts = Interrupts()
    try:
        account = Account(Lines(given.journal), (START_MS, STARTED))
        return 0 if run(given, account, interrupts) else 1
    except (DispatchError, LineError, ValueError, OSError) as error:
        print(f"tasks: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
