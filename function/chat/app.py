"""A small language model behind an OpenAI-style endpoint, with streaming: what the test target runs, and a container.

`python app.py --host 127.0.0.1 --port 8080`; `POST /v1/chat/completions`, `POST /v1/completions`, `GET /v1/models`,
also below /function/chat.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

if str(ROOT := Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.insert(0, str(ROOT))
# One thread for the model: the batch is what makes it fast. Before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from function.http_app import StartResponse, serve_application
from function.http_server import HEALTH, READINESS
from function.limits import FunctionLimits, VariableError, integer, limits_from

MODEL = "tiny"
PREFIX = "/function/chat"
CHAT, COMPLETIONS, MODELS = "/v1/chat/completions", "/v1/completions", "/v1/models"
DEFAULT_TOKENS = 128


class RequestError(Exception):
    """A request that is refused, with the status and the code that say why."""

    def __init__(
        self, status: int, message: str, code: str = "invalid_request_error", headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers


class ChatApplication:
    """The WSGI application around the engine."""

    def __init__(self, limits: FunctionLimits) -> None:
        self.stopping: Callable[[], bool] = lambda: False
        self.handler: Any = None  # the BatchEngine, once its model is made
        self._limits = limits
        self._lock = threading.Lock()
        self._in_flight = 0

    def busy(self) -> bool:
        """Return whether an answer is not at its end."""
        return self._in_flight > 0

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        try:
            body = self._route(environ, start_response)
        except RequestError as error:
            body = _send(start_response, error.status, _error(str(error), error.code), error.headers)
        return () if environ["REQUEST_METHOD"] == "HEAD" else body

    def _route(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        path, method = environ["PATH_INFO"].removeprefix(PREFIX).rstrip("/"), environ["REQUEST_METHOD"]
        is_ready = self.handler is not None and not self.stopping()
        if path == HEALTH or (path == READINESS and is_ready):
            return _send(start_response, 200, {"status": "ok"})
        if not is_ready:
            raise RequestError(503, "not ready: starting or stopping", "not_ready")
        if path not in (CHAT, COMPLETIONS, MODELS):
            raise RequestError(404, f"no such path: {path}; there are {CHAT}, {COMPLETIONS} and {MODELS}", "not_found")
        methods = ("GET", "HEAD") if path == MODELS else ("POST",)
        if method not in methods:
            allow = ("Allow", ", ".join(methods))
            raise RequestError(405, f"{method} {path}: only {methods[0]} is served here", headers=(allow,))
        if path == MODELS:
            model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "framestorm"}
            return _send(start_response, 200, {"object": "list", "data": [model]})
        fields = _fields(environ["wsgi.input"].read())
        answer = _Answer(self, fields, is_chat=path == CHAT, timeout_s=self._limits.exec_timeout_s)
        return answer.begin(start_response)

    def enter(self) -> None:
        """Take a place for an answer."""
        most = self._limits.max_inflight
        with self._lock:
            if most and self._in_flight >= most:
                message = f"{most} requests are under way, as many as max_inflight allows"
                raise RequestError(429, message, "rate_limit_exceeded")
            self._in_flight += 1

    def leave(self) -> None:
        """Give the place back."""
        with self._lock:
            self._in_flight -= 1


class _Answer:
    """The answer to one request, as a whole or as a stream of events."""

    def __init__(
        self, application: ChatApplication, fields: dict[str, Any], *, is_chat: bool, timeout_s: float
    ) -> None:
        from engine import Sequence
        from transformer import MAX_TOKENS, encode

        # Clients send null for what they leave out.
        if (model := fields.get("model")) not in (None, MODEL):
            raise RequestError(404, f"The model `{model}` does not exist; there is `{MODEL}`.", "model_not_found")
        prompt = encode(_text(fields.get("messages")) if is_chat else _text(fields.get("prompt")))
        limits = (fields.get(name) for name in ("max_tokens", "max_completion_tokens"))
        max_tokens = next((limit for limit in limits if limit is not None), DEFAULT_TOKENS)
        if type(max_tokens) is not int or max_tokens < 1:
            raise RequestError(400, f"max_tokens is {max_tokens!r}, and has to be a whole number from 1 on")
        if len(prompt) + max_tokens > MAX_TOKENS:
            message = (
                f"the prompt has {len(prompt)} tokens and max_tokens is {max_tokens}; at most {MAX_TOKENS} together"
            )
            raise RequestError(400, message, "context_length_exceeded")
        self._application = application
        self._sequence = Sequence(prompt, max_tokens, fields.get("ignore_eos") is True)
        self._is_chat, self._is_stream = is_chat, fields.get("stream") is True
        options = fields.get("stream_options")
        self._has_usage = isinstance(options, dict) and options.get("include_usage") is True
        self._due_s = time.monotonic() + timeout_s
        self._head = {
            "id": f"{'chatcmpl' if is_chat else 'cmpl'}-{uuid.uuid4().hex}",
            "object": ("chat.completion.chunk" if self._is_stream else "chat.completion")
            if is_chat
            else "text_completion",
            "created": int(time.time()),
            "model": MODEL,
        }

    def begin(self, start_response: StartResponse) -> Iterable[bytes]:
        """Wait for the first token; until then, an answer can still be an error with a status."""
        self._application.enter()
        try:
            self._application.handler.submit(self._sequence)
            first = self._next()
            if not self._is_stream:
                return self._whole(first, start_response)
        except BaseException:
            self._end()
            raise
        start_response("200 OK", [("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache")])
        # Closed by the server, also where the client is gone: the sequence then leaves the batch.
        return _Events(self._events(first), self._end)

    def _whole(self, first: int | None, start_response: StartResponse) -> Iterable[bytes]:
        from transformer import decode

        words, token = [], first
        while token is not None:
            words.append(decode(token))
            token = self._next()
        text = "".join(words).strip()
        content = {"message": {"role": "assistant", "content": text}} if self._is_chat else {"text": text}
        choice = {"index": 0, **content, "finish_reason": self._sequence.finish_reason}
        self._end()
        return _send(start_response, 200, {**self._head, "choices": [choice], "usage": self._usage(len(words))})

    def _events(self, first: int | None) -> Iterator[bytes]:
        from transformer import decode

        if self._is_chat:
            yield self._event({"delta": {"role": "assistant", "content": ""}, "finish_reason": None})
        n, token = 0, first
        try:
            while token is not None:
                n, text = n + 1, decode(token)
                content = {"delta": {"content": text}} if self._is_chat else {"text": text}
                yield self._event({**content, "finish_reason": None})
                token = self._next()
        except RequestError as error:
            yield b"data: %b\n\n" % json.dumps(_error(str(error), error.code)).encode()
            return
        rest: dict[str, Any] = {"delta": {}} if self._is_chat else {"text": ""}
        yield self._event({**rest, "finish_reason": self._sequence.finish_reason})
        if self._has_usage:
            yield b"data: %b\n\n" % json.dumps({**self._head, "choices": [], "usage": self._usage(n)}).encode()
        yield b"data: [DONE]\n\n"

    def _event(self, choice: dict[str, Any]) -> bytes:
        return b"data: %b\n\n" % json.dumps({**self._head, "choices": [{"index": 0, **choice}]}).encode()

    def _next(self) -> int | None:
        try:
            token: int | None = self._sequence.tokens.get(timeout=max(0.0, self._due_s - time.monotonic()))
            return token
        except queue.Empty:
            raise RequestError(504, "no end within exec_timeout", "timeout") from None

    def _usage(self, n: int) -> dict[str, int]:
        prompt = len(self._sequence.prompt)
        return {"prompt_tokens": prompt, "completion_tokens": n, "total_tokens": prompt + n}

    def _end(self) -> None:
        self._sequence.is_cancelled = True
        self._application.leave()


class _Events:
    """Events with something to do when they are over, or nobody wants them any more."""

    def __init__(self, events: Iterator[bytes], end: Callable[[], None]) -> None:
        self._events = events
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        return self._events

    def close(self) -> None:
        """Called once by the server (PEP 3333)."""
        self._end()


def _fields(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise RequestError(400, "the body is not JSON") from None
    if not isinstance(fields, dict):
        raise RequestError(400, "the body is not a JSON object")
    return fields


def _text(prompt: object) -> str:
    """Return the words of a prompt: a text, or messages with texts."""
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, list) and prompt and all(isinstance(each, dict) for each in prompt):
        contents = [_text_of_parts(each.get("content")) for each in prompt]
        if all(isinstance(content, str) for content in contents):
            return "\n".join(map(str, contents))
    raise RequestError(
        400, "neither prompt (a text) nor messages (a list of objects with content, a text or a list of texts)"
    )


def _text_of_parts(content: object) -> object:
    """Return the text of a content that is a list of parts with texts; any other as it is."""
    if isinstance(content, list) and all(isinstance(each, dict) for each in content):
        texts = [each.get("text") for each in content]
        return "".join(texts) if all(isinstance(text, str) for text in texts) else None
    return content


def _error(message: str, code: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": code, "code": code}}


def _send(
    start_response: StartResponse, status: int, content: dict[str, Any], headers: tuple[tuple[str, str], ...] = ()
) -> Iterable[bytes]:
    body = json.dumps(content).encode()
    own = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start_response(f"{status} {HTTPStatus(status).phrase}", [*own, *headers])
    return [body]


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a small language model; limits come from the environment.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="port to listen on (default %(default)s; 0: any)")
    arguments = parser.parse_args()
    try:
        limits = limits_from(os.environ)
        max_batch = integer(os.environ, "max_batch", "8", 1, 256)
        layers = integer(os.environ, "layers", "4", 1, 64)
        width = integer(os.environ, "width", "256", 8, 4096)
        if width % 8:
            raise VariableError(f"width={width}: must be a multiple of 8")
    except VariableError as error:
        sys.exit(f"chat: {error}")

    def load() -> object:
        from engine import BatchEngine
        from transformer import Transformer

        return BatchEngine(Transformer(layers, width), max_batch)

    serve_application("chat", ChatApplication(limits), load, limits, host=arguments.host, port=arguments.port)


if __name__ == "__main__":
    main()
