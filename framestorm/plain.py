"""Text from elsewhere, such as a function's answer or a label, as a person may safely read it."""

import errno
import os
import re
import select
import sys
from contextlib import suppress
from typing import TextIO

# What a terminal obeys, what turns the direction of the text around it, and halves of characters, which no file takes.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

# Of a pipe whose reader has gone, and of a terminal that was closed.
_UNREAD = (errno.EPIPE, errno.EIO)


def visible(text: str) -> str:
    """`text` with its control characters written out, such as [U+202E]; line ends and tabs stay."""
    return _UNSEEN.sub(lambda each: f"[U+{ord(each[0]):04X}]", text)


def as_label(label: str) -> str:
    """Return a label as a person can tell it from others: in quotes if blanks begin or end it, as those of criteria."""
    return (f'"{label}"' if label != label.strip() else label) or "(empty)"


def note(text: str) -> None:
    """Say on the terminal what the person should know of a command that goes on."""
    tell(f"note: {visible(text)}")


def tell(text: str) -> None:
    """Say on the terminal how a command goes on, which it does where nobody can read that any more."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _print_nowhere(sys.stderr)


def tell_now(text: str) -> None:
    """Say something from a signal's handler, but not where that would have to wait, as for a pipe that nobody reads.

    Python's own buffer may be in use then.
    """
    with suppress(OSError, ValueError, AttributeError):  # the last one where it was closed (2>&-)
        stderr = sys.stderr.fileno()
        if select.select([], [stderr], [], 0)[1]:
            os.write(stderr, text.encode())


def say(text: str) -> None:
    """Print a result. Whoever has closed the output (… | head) wants no more of it, but still the exit status."""
    try:
        print(text, flush=True)
    except OSError as error:
        if error.errno not in _UNREAD:
            raise
        _print_nowhere(sys.stdout)


def _print_nowhere(stream: TextIO) -> None:
    """Discard all further output to a stream, so that Python reports no other error when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
