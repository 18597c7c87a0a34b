"""Random faults in real runs, checked by a function that numbers every request it gets."""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from framestorm.errors import FramestormError
from tests.nemesis.checker import ViolationError
from tests.nemesis.faults import scheme_of
from tests.nemesis.run import suffer


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nemesis", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the faults (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=10, help="at most (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=10, help="after which no run starts (default: %(default)s)")
    parser.add_argument("--slaves", action="store_true", help="over the lab, which is up and deployed")
    parser.add_argument("--only", type=int, help="this run of the seed alone")
    asked = parser.parse_args(argv)
    deadline_s = time.monotonic() + asked.minutes * 60
    violations = 0
    folder = Path(tempfile.mkdtemp(prefix="nemesis-"))
    numbers = [asked.only] if asked.only else range(1, asked.runs + 1)
    for number in numbers:
        if time.monotonic() > deadline_s:
            break
        scheme = scheme_of(asked.seed, number, asked.slaves)
        print(f"{scheme} … ", end="", flush=True)
        try:
            print(suffer(scheme, folder / f"{asked.seed}-{number}"), flush=True)
        except (ViolationError, FramestormError) as violation:
            violations += 1
            print(f"VIOLATION: {violation}; see {folder / f'{asked.seed}-{number}'}", flush=True)
    print(f"{violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
