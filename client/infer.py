"""The model client: one process is one virtual user that sends inputs to a model by gRPC.

The model is one of the Open Inference Protocol (KServe's V2, Triton). Prints one JSON object a line on stdout: one for
each request, one for the user at the end. Ends with 0 only if every request was answered without error, with 1 if one
was not, with 2 if the user could not begin.
"""
# ruff: noqa: E402 - the clock starts before the imports, which are part of a user's set-up

import time

START_MS, STARTED = time.time() * 1000, time.perf_counter()

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import expect
from arguments import DAY_S, count, number
from interrupt import Interrupts
from lines import Account, LineError, Lines, complain

# What gRPC needs is imported where it is used: the client server has this module for users of other plans, too.
if TYPE_CHECKING:
    from rpc import GrpcSender

LABEL = "request"
YES_NO = ("true", "false")


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    purpose = "Send inputs to a model of the Open Inference Protocol (V2) by gRPC."
    parser = argparse.ArgumentParser(prog="infer.py", description=purpose, allow_abbrev=False)
    add = parser.add_argument
    add("sleep_s", nargs="?", type=number(DAY_S), default=0.0, help="pause before each request (default: %(default)s)")
    add("--url", required=True, help="the model, such as grpc://host:8001/iris; grpcs:// for TLS")
    add("--inputs", default="", metavar="JSON",
        help="a request as the protocol has it in JSON, or @FILE with it, or @FILE.jsonl with one in each line, which "
        "are sent in turn (default: an example, made from the server's description)")  # fmt: skip
    add("--raw", choices=YES_NO, default="true", help="send inputs as bytes (default: %(default)s)")
    add("--expect", type=_condition, default="", metavar="TEXT",
        help="what a right answer has: $.outputs[0].data[0] >= 0.5")  # fmt: skip
    add("--requests", type=count(1), default=1, metavar="N", help="of the user (default: %(default)s)")
    add("--timeout-s", type=number(DAY_S, above_0=True), default=60.0, metavar="S",
        help="timeout of a request (default: %(default)s)")  # fmt: skip
    add("--journal", type=Path, metavar="FILE", help="append the lines to this file too; users may share it")
    return parser.parse_args(arguments)


def _condition(text: str) -> expect.Condition | None:
    try:
        return expect.parse(text) if text else None
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def new_sender(options: argparse.Namespace) -> "GrpcSender":
    """Return the channel of the user with these options; raise ValueError for a URL of no model."""
    import model_user  # noqa: F401 - before the fork, so that no user need do it
    from rpc import GrpcSender

    return GrpcSender(options.url, options.timeout_s)


def find_input(options: argparse.Namespace) -> list[bytes] | None:
    """Return the requests of the property inputs, None if the user has to ask for, look for or complain of them."""
    from rpc import model_of
    from tensors import TensorError, open_inputs

    if not options.inputs or (options.inputs.startswith("@") and not Path(options.inputs[1:]).is_absolute()):
        return None
    try:
        return open_inputs(options.inputs, model_of(options.url), is_raw=options.raw == "true")
    except (TensorError, ValueError):
        return None


def run(
    options: argparse.Namespace,
    interrupts: Interrupts,
    process_start: tuple[float, float],
    sender: "GrpcSender | None" = None,
    requests: list[bytes] | None = None,
) -> int:
    """Be the user with these options, and return the exit status; without `sender` and `requests`, make them."""
    from model_user import ModelUser
    from tensors import TensorError, open_inputs

    try:
        sender = sender or new_sender(options)
        account = Account(Lines(options.journal), LABEL, process_start)
        try:
            if options.inputs:
                requests = requests or open_inputs(options.inputs, sender.model, is_raw=options.raw == "true")
            return 0 if ModelUser(options, sender, interrupts, account).run(requests) else 1
        except TensorError:
            account.begin(0)
            account.end(0, "no-inputs")
            raise
    except (TensorError, LineError, ValueError, OSError) as error:
        complain(f"infer: {error}")
        return 2


def main() -> int:
    return run(parse_options(), Interrupts(), (START_MS, STARTED))


if __name__ == "__main__":
    sys.exit(main())
