"""A virtual user: one pass over the frames, one line for each, one line at the end."""

import hashlib
import sys
import time
from pathlib import Path
from typing import NamedTuple

from account import Account, rounded_ms
from answer import Answer, read_answer
from encoding import Encoding, FrameError
from frames import Frames, open_frames
from interrupt import Interrupts, Stopped
from lines import LineError, Lines
from send import Reply, Sender

_NO_ANSWER = Answer(None, None, None, None, None, None)


class Options(NamedTuple):
    """What a user is asked to do."""

    video: Path
    cache: Path
    encoding: Encoding
    frames: int  # 0: all of the video
    sleep_s: float
    verify_share: float
    min_faces: int
    save: Path | None


class User:
    """Sends the frames and counts what came of them."""

    def __init__(
        self, options: Options, sender: Sender, lines: Lines, interrupts: Interrupts, began: tuple[float, float]
    ) -> None:
        """Take also when the process began, as epoch ms and as time.perf_counter."""
        self._account = Account(lines, began)
        self._options = options
        self._sender = sender
        self._interrupts = interrupts

    def run(self) -> bool:
        """Send the frames and return whether every one was answered rightly.

        Raise FrameError, LineError or OSError if the user cannot begin; what keeps it from going on is said on stderr.
        """
        setup_ms, video, count = None, None, 0
        stopped = False
        try:
            with self._interrupts.allowed():
                frames = open_frames(self._options.video, self._options.encoding, self._options.cache)
            video, count = frames.video[:12], self._options.frames or len(frames.sizes)
            if self._options.save is not None:
                (self._options.save / self._account.name).mkdir(parents=True)
            self._account.begin(count)
            setup_ms = self._account.since_start_ms()
            self._send_all(frames, count)
        except Stopped:
            stopped = True
        except (FrameError, LineError, OSError) as error:
            if setup_ms is None:
                raise
            stopped = True
            print(f"client: {error}", file=sys.stderr)
        own = {
            "sleep_s": self._options.sleep_s,
            "encoding": self._options.encoding.name,
            "video": video,
            "setup_ms": setup_ms,
        }
        try:
            return self._account.end(count, stopped, **own)
        except LineError as error:
            print(f"client: {error}", file=sys.stderr)
            return False

    def _send_all(self, frames: Frames, count: int) -> None:
        sleep_s = self._options.sleep_s
        answered = time.perf_counter()
        first_ms = (time.time() + sleep_s) * 1000
        for index in range(count):
            body = frames.body(index)
            intended_ms = first_ms + index * sleep_s * 1000
            start_ms, began = 0.0, None
            try:
                with self._interrupts.allowed():
                    # The pause runs from the last answer on: verifying it takes part of the pause, not time besides it.
                    pause_s = answered + sleep_s - time.perf_counter()
                    if pause_s > 0:
                        time.sleep(pause_s)
                    start_ms, began = time.time() * 1000, time.perf_counter()
                    reply = self._sender.send(body)
            except Stopped:
                if began is not None:
                    rtt_ms = (time.perf_counter() - began) * 1000
                    reply = Reply(start_ms, rtt_ms, None, {}, b"", len(body), 0, "stopped", censored=True)
                    self._say_frame(index, intended_ms, reply, _NO_ANSWER, "stopped", verified=False)
                raise
            answered = time.perf_counter()
            self._judge(index, intended_ms, body, reply, frames)

    def _judge(self, index: int, intended_ms: float, body: bytes, reply: Reply, frames: Frames) -> None:
        """Say what a reply is worth. Runs between frames, outside of their times."""
        answer, verified = _NO_ANSWER, False
        cause = reply.cause
        if cause is None and reply.status != 200:
            cause = f"status-{reply.status}"
        if cause is None:
            answer = read_answer(reply.body, reply.headers, frames.encoding)
            cause = answer.cause
        image = None
        if answer.payload is not None:
            verified = self._is_verified(index)
            if verified or self._options.save is not None:
                image = answer.image()
            if verified:
                from verify import verify_image  # only here: brings in Pillow, which a user without does not need

                sent = frames.image(body)
                cause = verify_image(sent, image or b"", answer.faces or [], frames.encoding)
            # A face that was not found is also a change that is missing; the faces are the cause then.
            if cause in {None, "changed-outside"} and len(answer.faces or []) < self._options.min_faces:
                cause = "too-few-faces"
        self._say_frame(index, intended_ms, reply, answer, cause, verified=verified)
        if image is not None and self._options.save is not None:
            mine = self._options.save / self._account.name  # named by host, process and start: nobody else's
            (mine / f"{index:06}{frames.encoding.image_suffix}").write_bytes(image)

    def _is_verified(self, index: int) -> bool:
        """Choose by user and index, so that the same frames of a user are verified however the run goes."""
        share = self._options.verify_share
        if share in {0, 1}:
            return share == 1
        digest = hashlib.sha256(f"{self._account.name} {index}".encode()).digest()
        return int.from_bytes(digest[:8]) < share * 2**64

    def _say_frame(
        self, index: int, intended_ms: float, reply: Reply, answer: Answer, cause: str | None, *, verified: bool
    ) -> None:
        fields = {
            "intended_ms": rounded_ms(intended_ms),
            "start_ms": rounded_ms(reply.start_ms),
            "rtt_ms": rounded_ms(reply.rtt_ms),
            "handler_ms": answer.handler_ms,
            "model_ms": answer.model_ms,
            "status": reply.status,
            "ok": cause is None,
            "cause": cause,
            "censored": reply.censored,
            "sent_bytes": reply.sent_bytes,
            "received_bytes": reply.received_bytes,
            "faces": None if answer.faces is None else len(answer.faces),
            "cold": answer.cold,
            "verified": verified,
            "worker": reply.headers.get("X-Worker"),
        }
        self._account.say(index, cause, fields)
