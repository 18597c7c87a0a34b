"""Where run.sh hands over."""
# ruff: noqa: E402 - a Ctrl-C is taken care of before the imports, which take long

import signal

# Until the command line takes it, a Ctrl-C ends this like any other program: without a traceback of the imports.
# Where it is to be ignored, as in the background of a script, it stays so.
IS_HEARD = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if IS_HEARD:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import io
import os
import sys
from types import FrameType

from framestorm.cli import main


def _interrupt(number: int, frame: FrameType | None) -> None:
    """A Ctrl-C. While a module is loaded it ends all at once: there an exception may be lost or become another."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            os.write(2, b"\nframestorm: stopped\n")
            os._exit(128 + number)
        frame = frame.f_back
    raise KeyboardInterrupt


# Needed to find this package, not for what it starts: clients and functions have environments of their own.
os.environ.pop("PYTHONPATH", None)

if IS_HEARD:
    signal.signal(signal.SIGINT, _interrupt)
# A character that the terminal's encoding lacks, as in a label, is written as its number, as Python does on stderr.
if isinstance(sys.stdout, io.TextIOWrapper):
    sys.stdout.reconfigure(errors="backslashreplace")
sys.exit(main(sys.argv[1:]))
