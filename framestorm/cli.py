"""The command line: finds the verb, and turns what goes wrong into a line and an exit status."""

import difflib
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.plain import tell, visible
from framestorm.verbs import VERBS


def main(argv: Sequence[str]) -> int:
    """Run the command given by the words; returns the exit status of run.sh."""
    try:
        verb, words = _verb(argv)
        return VERBS[verb](words)
    except FramestormError as error:
        tell(f"framestorm: {visible(str(error))}")
        return error.exit_status
    except BrokenPipeError:
        # The reader of the output has closed it (… | head), and what was to be done may not be done.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FramestormError.exit_status
    except OSError as error:
        # A disk that is full, a folder without rights: what a run has measured is kept, and report shows it.
        where = f"{error.filename}: " if error.filename else ""
        tell(f"framestorm: {where}{error.strerror or error}{_advice(error)}")
        return FramestormError.exit_status
    except KeyboardInterrupt:
        tell("\nframestorm: stopped")
        return 130


def _advice(error: OSError) -> str:
    """Return what to do about an error of the operating system; empty if that is not known."""
    if error.errno == errno.ENOSPC:
        return "; make room, and ./run.sh report RUN shows what a run had measured"
    if isinstance(error, PermissionError) and Path(str(error.filename)).is_relative_to(paths.LOCAL):
        return (
            "; if a start by sudo has made it, start by sudo again, or remove what it has made by "
            f"`sudo rm -r {paths.LOCAL}`: the next start makes it anew"
        )
    return ""


def _verb(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the verb ("" for a run) and the words after it.

    Raises:
        UsageError: the first word is neither a verb nor an option.
    """
    if not argv or argv[0].startswith("-"):
        return "", argv
    name, words = argv[0], argv[1:]
    if name == "help":
        return (words[0], ["--help"]) if words and words[0] in VERBS else ("", ["--help"])
    if name in VERBS:
        return name, words
    if name.endswith(".jmx"):
        raise UsageError(f"{name!r} is not a verb; to run a plan: ./run.sh -t {name}")
    similar = difflib.get_close_matches(name, VERBS, n=1)
    hint = f"did you mean {similar[0]!r}?" if similar else "./run.sh --help lists them"
    raise UsageError(f"{name!r} is not a verb; {hint}")
