"""The frame client: one process is one virtual user that sends a video, frame by frame, to a face-blur function.

Prints one JSON object a line on stdout: one for each frame, one for the user at the end. Ends with 0 only if every
frame was answered correctly, with 1 if one was not, with 2 if the user could not begin.
"""
# ruff: noqa: E402 - the clock starts before the imports, which are part of a user's set-up

import time

START_MS, STARTED = time.time() * 1000, time.perf_counter()

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from arguments import DAY_S, count, number, url
from encoding import DEFAULT_ENCODING, ENCODINGS, FrameError
from frames import DEFAULT_CACHE, Frames, find_frames
from interrupt import Interrupts
from lines import LineError, Lines, complain

if TYPE_CHECKING:
    from send import Sender


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    purpose = "Send a video, frame by frame, to a face-blur function and check every answer."
    parser = argparse.ArgumentParser(prog="client.py", description=purpose, allow_abbrev=False)
    add = parser.add_argument
    seconds, more_than_0 = number(DAY_S), number(DAY_S, above_0=True)
    add("sleep_s", nargs="?", type=seconds, default=0.0, help="pause before each frame (default: %(default)s)")
    add("--url", type=url, required=True, help="the function")
    add("--video", type=Path, required=True, metavar="FILE")
    add(
        "--frames",
        type=count(0),
        default=0,
        metavar="N",
        help="number of frames to send; the video starts again when it ends (default: 0, the whole video once)",
    )
    add("--encoding", choices=list(ENCODINGS), default=DEFAULT_ENCODING, help="default: %(default)s")
    add(
        "--timeout-s",
        type=more_than_0,
        default=25.0,
        metavar="S",
        help="timeout of a frame, to the last byte (default: %(default)s)",
    )
    add("--connect-timeout-s", type=more_than_0, default=5.0, metavar="S", help="default: %(default)s")
    add("--verify-share", type=number(1), default=1.0, metavar="SHARE",
        help="share of the answers whose image is compared with the frame sent (default: %(default)s)")  # fmt: skip
    add(
        "--min-faces",
        type=count(0),
        default=1,
        metavar="N",
        help="minimum number of faces in an answer (default: %(default)s)",
    )
    add(
        "--cache",
        type=Path,
        default=DEFAULT_CACHE,
        metavar="DIR",
        help="folder of the cut frames (default: %(default)s)",
    )
    add("--journal", type=Path, metavar="FILE", help="append the lines to this file too; users may share it")
    add("--save", type=Path, metavar="DIR", help="keep the images that came back, in a folder for each user")
    return parser.parse_args(arguments)


def new_sender(options: argparse.Namespace) -> "Sender":
    """Return the connection of the user with these options; raise ValueError for a URL that cannot be asked."""
    from send import Sender

    encoding = ENCODINGS[options.encoding]
    return Sender(options.url, encoding.content_type, encoding.accept, options.timeout_s, options.connect_timeout_s)


def find_input(options: argparse.Namespace) -> Frames | None:
    """Return the frames if the user can have them from who starts it; looked up for each, for the video may change."""
    if not (options.video.is_absolute() and options.cache.is_absolute()):
        return None
    return find_frames(options.video, ENCODINGS[options.encoding], options.cache, options.frames)


def run(
    options: argparse.Namespace,
    interrupts: Interrupts,
    process_start: tuple[float, float],
    sender: "Sender | None" = None,
    frames: Frames | None = None,
) -> int:
    """Be the user with these options, and return the exit status; without `sender` and `frames`, make them."""
    # Imported after the signal handlers are set: importing requests alone takes 80 ms of CPU.
    from user import User

    try:
        sender = sender or new_sender(options)
        user = User(options, sender, Lines(options.journal), interrupts, process_start, frames)
        return 0 if user.run() else 1
    except (FrameError, LineError, ValueError, OSError) as error:
        complain(f"client: {error}")
        return 2


def main() -> int:
    return run(parse_options(), Interrupts(), (START_MS, STARTED))


if __name__ == "__main__":
    sys.exit(main())
