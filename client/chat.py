"""The chat client: one process is one virtual user that asks a model, and notes when each piece of its answers arrives.

Prints one JSON object a line on stdout: one for each request, one for the user at the end. Ends with 0 only if every
request was answered without error, with 1 if one was not, with 2 if the user could not begin.
"""
# ruff: noqa: E402 - the clock starts before the imports, which are part of a user's set-up

import time

START_MS, STARTED = time.time() * 1000, time.perf_counter()

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arguments import DAY_S, count, number, url
from interrupt import Interrupts, Stopped
from lines import Account, LineError, Lines, complain
from prompts import Message, PromptError, Prompts, open_prompts, text_of
from tokens import Tokens, status_cause

if TYPE_CHECKING:
    from send import Reply, Sender

LABEL = "request"
YES_NO = ("true", "false")
# By the environment, so that all users have the same words, which the client server reads once.
USER_NUMBER, INTENDED_MS = "FRAMESTORM_USER", "FRAMESTORM_INTENDED_MS"


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    purpose = "Ask a model by an OpenAI-style endpoint, and take the time of each piece of its answers."
    parser = argparse.ArgumentParser(prog="chat.py", description=purpose, allow_abbrev=False)
    add = parser.add_argument
    seconds, more_than_0 = number(DAY_S), number(DAY_S, above_0=True)
    add("sleep_s", nargs="?", type=seconds, default=0.0, help="pause before each request (default: %(default)s)")
    add("--url", type=url, required=True,
        help="the endpoint, such as http://host/v1/chat/completions or http://host/v1/completions")  # fmt: skip
    add("--model", default="", help="name of the model (default: none is sent)")
    add("--prompts", default="", metavar="TEXT", help="the prompt, or @FILE with a prompt in each line")
    add("--prompt-words", type=count(1), default=100, metavar="N",
        help="without prompts: words of each generated prompt (default: %(default)s)")  # fmt: skip
    add("--prompt-seed", type=count(0), default=1, metavar="N", help="of generated prompts (default: %(default)s)")
    add("--max-tokens", type=count(0), default=100, metavar="N",
        help="maximum number of tokens of an answer; 0: the server's default (default: %(default)s)")  # fmt: skip
    add("--ignore-eos", choices=YES_NO, default="false",
        help="ask for max_tokens tokens even if the model would end before (default: %(default)s)")  # fmt: skip
    add("--include-usage", choices=YES_NO, default="true", help="ask for the server's count (default: %(default)s)")
    add("--extra", type=_fields, default="{}", metavar="JSON", help="further fields of each request")
    add("--conversations", type=count(1), default=1, metavar="N", help="default: %(default)s")
    add("--turns", type=count(1), default=1, metavar="N",
        help="requests of a conversation, each with those before and their answers (default: %(default)s)")  # fmt: skip
    add("--timeout-s", type=more_than_0, default=60.0, metavar="S",
        help="timeout of a request, to the last byte (default: %(default)s)")  # fmt: skip
    add("--stall-timeout-s", type=more_than_0, default=10.0, metavar="S",
        help="timeout from one piece of an answer to the next (default: %(default)s)")  # fmt: skip
    add("--connect-timeout-s", type=more_than_0, default=5.0, metavar="S", help="default: %(default)s")
    add("--journal", type=Path, metavar="FILE", help="append the lines to this file too; users may share it")
    return parser.parse_args(arguments)


def _fields(text: str) -> dict[str, Any]:
    try:
        fields = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object")
    return fields


def new_sender(options: argparse.Namespace) -> "Sender":
    """Return the connection of the user with these options; raise ValueError for a URL that cannot be asked."""
    from send import Sender

    accept = "text/event-stream, application/x-ndjson, application/json"
    times_s = (options.timeout_s, options.connect_timeout_s)
    return Sender(options.url, "application/json", accept, *times_s, is_timed=True)


def find_input(options: argparse.Namespace) -> Prompts | None:
    """Return the prompts, None if the user has to look for them itself, or to say that there are none."""
    if options.prompts.startswith("@") and not Path(options.prompts[1:]).is_absolute():
        return None
    try:
        return open_prompts(options.prompts, options.prompt_words, options.prompt_seed)
    except PromptError:
        return None


class ChatUser:
    """Asks for one conversation after the other, and writes a sample for each request."""

    def __init__(
        self, options: argparse.Namespace, sender: "Sender", interrupts: Interrupts, account: Account, prompts: Prompts
    ) -> None:
        self._options = options
        self._sender = sender
        self._interrupts = interrupts
        self._account = account
        self._prompts = prompts
        self._index = 0
        # Numbers of prompts go on from user to user.
        requests = options.conversations * options.turns
        self._first_prompt = (int(os.environ.get(USER_NUMBER) or 1) - 1) * requests
        self._intended_ms = float(os.environ.get(INTENDED_MS) or 0) or time.time() * 1000 + 1000 * options.sleep_s

    def run(self) -> bool:
        """Return whether each request was answered without error."""
        options = self._options
        requests = options.conversations * options.turns
        cause = None
        self._sender.begin()
        self._account.begin(requests)
        setup_ms = self._account.since_start_ms()
        try:
            for _ in range(options.conversations):
                history: list[Message] = []
                for _ in range(options.turns):
                    history = self._ask(history)
        except Stopped:
            cause = "stopped"
        return self._account.end(requests, cause, sleep_s=options.sleep_s, setup_ms=setup_ms)

    def _ask(self, history: list[Message]) -> list[Message]:
        """Send the next prompt, and return the conversation with it and its content, without both if there is none."""
        messages = [*history, *self._prompts.messages(self._first_prompt + self._index)]
        body = self._body(messages)
        tokens = Tokens(self._options.stall_timeout_s)
        pause_s = self._intended_ms / 1000 - time.time() if self._options.sleep_s else 0.0
        reply = self._interrupts.send(pause_s, partial(self._sender.send, body, tokens), len(body))
        cause = self._judge(reply, tokens)
        self._account.reply(
            self._index, reply, intended_ms=self._intended_ms, cause=cause,
            **tokens.figures(reply.started_ns, reply.rtt_ms), **self._sender.traceparent.figures,
        )  # fmt: skip
        self._index += 1
        if reply.cause == "stopped":
            raise Stopped
        self._intended_ms = reply.start_ms + reply.rtt_ms + 1000 * self._options.sleep_s
        # An answer of calls alone would need the results of its tools.
        content = "" if cause else "".join(tokens.texts)
        return [*messages, {"role": "assistant", "content": content}] if content else history

    @staticmethod
    def _judge(reply: "Reply", tokens: Tokens) -> str | None:
        if reply.cause is not None:
            return reply.cause
        if reply.status != 200:
            return status_cause(reply.status or 0, reply.body)
        tokens.end(reply.body)
        return tokens.cause

    def _body(self, messages: list[Message]) -> bytes:
        options = self._options
        path = options.url.partition("?")[0].rstrip("/")
        is_response, is_ollama = path.endswith("/responses"), path.endswith(("/api/chat", "/api/generate"))
        fields: dict[str, Any] = {"stream": True}
        if path.endswith(("/completions", "/generate")) and not path.endswith("/chat/completions"):
            fields["prompt"] = "\n".join(map(text_of, messages))
        else:
            fields["input" if is_response else "messages"] = messages
        if options.model:
            fields["model"] = options.model
        if options.max_tokens and is_ollama:
            fields["options"] = {"num_predict": options.max_tokens}
        elif options.max_tokens:
            fields["max_output_tokens" if is_response else "max_tokens"] = options.max_tokens
        if options.ignore_eos == "true":
            fields["ignore_eos"] = True
        if options.include_usage == "true" and not (is_response or is_ollama):  # they send it unasked
            fields["stream_options"] = {"include_usage": True}
        extra = options.extra
        if isinstance(extra.get("options"), dict):
            extra = {**extra, "options": fields.get("options", {}) | extra["options"]}
        return json.dumps(fields | extra).encode()


def run(
    options: argparse.Namespace,
    interrupts: Interrupts,
    process_start: tuple[float, float],
    sender: "Sender | None" = None,
    prompts: Prompts | None = None,
) -> int:
    """Be the user with these options, and return the exit status; without `sender` and `prompts`, make them."""
    try:
        sender = sender or new_sender(options)
        prompts = prompts or open_prompts(options.prompts, options.prompt_words, options.prompt_seed)
        account = Account(Lines(options.journal), LABEL, process_start)
        return 0 if ChatUser(options, sender, interrupts, account, prompts).run() else 1
    except (PromptError, LineError, ValueError, OSError) as error:
        complain(f"chat: {error}")
        return 2


def main() -> int:
    return run(parse_options(), Interrupts(), (START_MS, STARTED))


if __name__ == "__main__":
    sys.exit(main())
