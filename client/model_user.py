"""A virtual user of a model: a sample for each request, one line at the end."""

import argparse
import os
import time
from functools import partial

import expect
import messages
from chat import INTENDED_MS, USER_NUMBER
from headers import masked
from interrupt import Interrupts, Stopped
from lines import Account
from rpc import GrpcSender
from send import Reply
from tensors import TensorError, as_json, check_outputs, example


class ModelUser:
    """Sends one request after the other, and writes a sample for each."""

    def __init__(
        self, options: argparse.Namespace, sender: GrpcSender, interrupts: Interrupts, account: Account
    ) -> None:
        self._options = options
        self._sender = sender
        self._interrupts = interrupts
        self._account = account
        # Requests go on in turn from user to user.
        self._first = (int(os.environ.get(USER_NUMBER) or 1) - 1) * options.requests
        self._intended_ms = float(os.environ.get(INTENDED_MS) or 0)

    def run(self, requests: list[bytes] | None) -> bool:
        """Send these requests in turn, or an example; return whether each was answered without error.

        Raises:
            TensorError: there is no example of the model's inputs.
            ValueError: a header cannot be sent, or the authorities cannot be used.
            OSError: the file of authorities cannot be read.
        """
        n, cause, setup_ms = self._options.requests, None, None
        self._sender.begin()
        try:
            if requests is None:
                with self._interrupts.allowed():
                    metadata = self._sender.ask_metadata()
                if metadata.cause is not None:
                    # An outage is an error of requests, at whatever time a user begins.
                    self._account.begin(1)
                    self._intended_ms = self._intended_ms or metadata.start_ms
                    self._write(0, metadata, metadata.cause, {})
                    return self._account.end(n, None)
                requests = [self._example(metadata.body)]
            setup_ms = self._account.since_start_ms()
            self._account.begin(n)
            self._intended_ms = self._intended_ms or time.time() * 1000 + 1000 * self._options.sleep_s
            for index in range(n):
                self._send(index, requests[(self._first + index) % len(requests)])
        except Stopped:
            cause = "stopped"
            if setup_ms is None:
                self._account.begin(0)
        return self._account.end(n, cause, sleep_s=self._options.sleep_s, setup_ms=setup_ms)

    def _example(self, metadata: bytes) -> bytes:
        try:
            message = messages.MetadataResponse.FromString(metadata)
        except messages.DecodeError as error:
            raise TensorError(f"the server's metadata of the model cannot be read: {error}") from None
        return example(self._sender.model, message, is_raw=self._options.raw == "true")

    def _send(self, index: int, request: bytes) -> None:
        pause_s = self._intended_ms / 1000 - time.time() if self._options.sleep_s else 0.0
        reply = self._interrupts.send(pause_s, partial(self._sender.infer, request), len(request))
        # Between requests, outside of their times.
        cause, figures = (reply.cause, {}) if reply.cause is not None else self._judge(reply.body)
        self._write(index, reply, cause, figures)
        if reply.cause == "stopped":
            raise Stopped
        self._intended_ms = reply.start_ms + reply.rtt_ms + 1000 * self._options.sleep_s

    def _write(self, index: int, reply: Reply, cause: str | None, figures: dict[str, str | None]) -> None:
        trace = self._sender.traceparent.figures
        self._account.reply(index, reply, intended_ms=self._intended_ms, cause=cause, **figures, **trace)

    def _judge(self, body: bytes) -> tuple[str | None, dict[str, str | None]]:
        """Return the cause of an answer, None if it is right, and its further figures."""
        try:
            answer = messages.InferResponse.FromString(body)
            version = answer.model_version
            if isinstance(version, bytes):  # which are no UTF-8
                return "not-inference", {}
            figures = {"model_version": masked(version) or None}
            if not answer.outputs:
                return "no-outputs", figures
            check_outputs(answer)
            condition: expect.Condition | None = self._options.expect
            is_met = condition is None or condition.is_met(as_json(answer))
        except (messages.DecodeError, TensorError):
            return "not-inference", {}
        return None if is_met else "expect-not-met", figures
