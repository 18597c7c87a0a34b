"""A virtual user: one pass over the frames, a sample for each, one line at the end."""

import hashlib
import time
from argparse import Namespace
from functools import partial

from answer import NOTHING_KNOWN, AnswerVerdict, judge
from encoding import ENCODINGS, FrameError
from frames import Frames, open_frames
from headers import masked
from interrupt import Interrupts, Stopped
from lines import Account, LineError, Lines, complain
from send import Reply, Sender

LABEL = "frame"
NO_FRAMES = "no-frames"


class User:
    """Sends the frames and counts what came of them."""

    def __init__(
        self,
        options: Namespace,
        sender: Sender,
        lines: Lines,
        interrupts: Interrupts,
        process_start: tuple[float, float],
        frames: Frames | None = None,
    ) -> None:
        """Take the options of client.py, and when the process started, as epoch ms and as time.perf_counter.

        frames: the video's frames, if they have been opened.
        """
        self._account = Account(lines, LABEL, process_start)
        self._options = options
        self._sender = sender
        self._interrupts = interrupts
        self._frames = frames

    def run(self) -> bool:
        """Send the frames and return whether every one was answered correctly.

        Raise FrameError, LineError or OSError if the user cannot begin; what keeps it from going on is said on stderr.
        """
        self._sender.begin()
        setup_ms, video, count = None, None, 0
        cause: str | None = None
        try:
            frames, count = self._open_frames(), self._options.frames
            video, count = frames.video[:12], count or len(frames.sizes)
            if self._options.save is not None:
                (self._options.save / self._account.name).mkdir(parents=True)
            self._account.begin(count)
            setup_ms = self._account.since_start_ms()
            self._send_all(frames, count)
        except Stopped:
            cause = "stopped"
        except (FrameError, LineError, OSError) as error:
            if setup_ms is None:
                raise
            cause = NO_FRAMES if isinstance(error, FrameError) else "stopped"
            complain(f"client: {error}")
        settings = {
            "sleep_s": self._options.sleep_s,
            "encoding": self._options.encoding,
            "video": video,
            "setup_ms": setup_ms,
        }
        try:
            return self._account.end(count, cause, **settings)
        except LineError as error:
            complain(f"client: {error}")
            return False

    def _open_frames(self) -> Frames:
        options = self._options
        try:
            with self._interrupts.allowed():
                return self._frames or open_frames(
                    options.video, ENCODINGS[options.encoding], options.cache, options.frames
                )
        except FrameError:  # as happens to users that start after the video was removed
            self._account.begin(0)
            self._account.end(0, NO_FRAMES)
            raise

    def _send_all(self, frames: Frames, count: int) -> None:
        sleep_s = self._options.sleep_s
        last_answer_s = time.perf_counter()
        first_ms = (time.time() + sleep_s) * 1000
        for index in range(count):
            body = frames.body(index)
            intended_ms = first_ms + index * sleep_s * 1000
            # The pause runs from the last answer on: verifying it takes part of the pause, not time besides it.
            pause_s = last_answer_s + sleep_s - time.perf_counter()
            reply = self._interrupts.send(pause_s, partial(self._sender.send, body), len(body))
            last_answer_s = time.perf_counter()
            self._judge(index, intended_ms, body, reply, frames)
            if reply.cause == "stopped":
                raise Stopped
            del reply  # it is large, and the pause that follows may be long

    def _judge(self, index: int, intended_ms: float, body: memoryview, reply: Reply, frames: Frames) -> None:
        """Write a frame's sample. Runs between frames, outside of their times."""
        verdict = AnswerVerdict(reply.cause, NOTHING_KNOWN)
        if reply.cause is None and reply.status != 200:
            verdict = AnswerVerdict(f"status-{reply.status}", NOTHING_KNOWN)
        elif reply.cause is None:
            frame = frames.image(body) if self._is_verified(index) else None
            verdict = judge(reply.body, reply.headers, frames.encoding, frame, self._options.min_faces)
        self._account.reply(
            index, reply, intended_ms=intended_ms, cause=verdict.cause, **verdict.figures,
            worker=masked(reply.headers.get("X-Worker", "")) or None, **self._sender.traceparent.figures,
        )  # fmt: skip
        if self._options.save is not None and (image := verdict.image()) is not None:
            # The user's folder is named by host, process and start: nobody else's.
            name = f"{index:06}{frames.encoding.image_suffix}"
            (self._options.save / self._account.name / name).write_bytes(image)

    def _is_verified(self, index: int) -> bool:
        """Choose by user and index, so that the same frames of a user are verified however the run goes."""
        share: float = self._options.verify_share
        if share in {0, 1}:
            return share == 1
        digest = hashlib.sha256(f"{self._account.name} {index}".encode()).digest()
        return int.from_bytes(digest[:8]) < share * 2**64
