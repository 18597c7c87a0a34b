"""`lab up [--slaves N] [--outsider] | swarm | status | down`: local hosts for deploy and -R, and a Docker Swarm."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from framestorm.errors import FramestormError
from framestorm.parser import Parser, whole_number
from lab import lifecycle, swarm
from lab.hosts import DEFAULT_SLAVES, MAX_SLAVES


def _parser() -> Parser:
    parser = Parser(
        prog="./run.sh lab", description="Local hosts (master, slaves, function) to try Framestorm on one machine."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="up | swarm | status | down")
    up = verbs.add_parser("up", help="start the hosts that are not running yet; needs root")
    up.add_argument(
        "--slaves",
        type=whole_number(0, MAX_SLAVES),
        default=DEFAULT_SLAVES,
        metavar="N",
        help=f"0 to {MAX_SLAVES} (default {DEFAULT_SLAVES})",
    )
    up.add_argument(
        "--outsider",
        action="store_true",
        help="one more host, which no inventory names, to test the others from outside",
    )
    up.add_argument(
        "--registries",
        action="store_true",
        help="new hosts reach this machine's registries of Python and Maven packages, so that ./run.sh works on them",
    )
    swarm_up = verbs.add_parser(
        "swarm",
        help="start a Docker Swarm on hosts in user-mode Linux, whose kernel has a routing mesh; needs root",
    )
    swarm_up.add_argument(
        "--hosts",
        type=whole_number(1, swarm.MOST),
        default=swarm.USUAL,
        metavar="N",
        help=f"1 to {swarm.MOST} (default {swarm.USUAL})",
    )
    verbs.add_parser(
        "status",
        help="show each host with its address and state; exit status 1 unless all are up and reachable; needs root for "
        "hosts of `up`",
    )
    verbs.add_parser("down", help="stop all hosts and delete their disks; needs root")
    return parser


def table(states: Sequence[lifecycle.HostStatus]) -> str:
    """Return one line a host: name, address, state, and whether ssh gets in."""
    rows = [("host", "address", "state", "ssh")]
    rows += [(status.host.name, status.host.address, status.state, "yes" if status.ssh else "no") for status in states]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def swarm_table(nodes: Sequence[swarm.Node]) -> str:
    """Return one line a host of the swarm: name, address, and whether Docker answers there."""
    answers = {True: "Docker answers", False: "Docker does not answer"}
    return "\n".join(f"{node.name}  {node.address}  {answers[node.answers()]}" for node in nodes)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; 0 when all hosts are up and reachable, 1 when not, 2 for a wrong command line."""
    arguments = _parser().parse_args(argv)
    start = time.monotonic()
    try:
        if arguments.verb == "up":
            print(table(lifecycle.up(arguments.slaves, arguments.outsider, arguments.registries)))
            print(f"up in {time.monotonic() - start:.1f} s", file=sys.stderr)
            return 0
        if arguments.verb == "swarm":
            nodes = lifecycle.swarm_up(arguments.hosts)
            print(swarm_table(nodes))
            print(f"up in {time.monotonic() - start:.1f} s; export DOCKER_HOST={nodes[0].engine}", file=sys.stderr)
            return 0
        if arguments.verb == "down":
            count = lifecycle.down()
            print(
                f"{count} hosts ended in {time.monotonic() - start:.1f} s" if count else "there was no lab",
                file=sys.stderr,
            )
            return 0
        states, nodes = lifecycle.status(), swarm.existing()
    except FramestormError as error:
        print(f"lab {arguments.verb}: {error}", file=sys.stderr)
        return error.exit_status
    if nodes:
        print(swarm_table(nodes))
    if not states and not nodes:
        print("the lab is not up; `./run.sh lab up` starts it", file=sys.stderr)
        return 1
    if states:
        print(table(states))
    return 0 if all(status.ssh for status in states) and all(node.answers() for node in nodes) else 1


if __name__ == "__main__":
    sys.exit(main())
