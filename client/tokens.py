"""The tokens of one streamed answer: when each arrived, how many there were, and what was wrong with the answer.

Three forms are understood: that of OpenAI's chat completions and completions, that of OpenAI's responses, and the lines
of JSON of Ollama.
"""

import json
import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from coding import is_readable
from headers import masked
from stream import EventParser, JsonLineParser, PieceTooLargeError, StreamParser, StreamPiece

PARSERS: dict[str, type[StreamParser]] = {
    "text/event-stream": EventParser,
    **dict.fromkeys(("application/x-ndjson", "application/ndjson", "application/jsonl"), JsonLineParser),
}
END = "[DONE]"
# The fields of what a piece adds: those for the user, of which a conversation is made, and what else the model wrote.
_CONTENT = ("content", "text", "response", "refusal")
_FURTHER = ("reasoning_content", "reasoning", "thinking", "tool_calls", "function_call")
# What such a field has where it is not a text: parts of a content, or calls of tools by their names and arguments.
_PARTS = ("text", "refusal", "thinking", "function", "custom", "name", "arguments", "input")
_PARTS_OF_CONTENT = ("text", "refusal")  # without the reasoning that Mistral has among them
# Events of OpenAI's responses: what all begin with, and those that end the answer.
_RESPONSE, _RESPONSE_ENDS = "response.", ("response.completed", "response.incomplete")
# Where errors in JSON have their message: OpenAI's form, that of FastAPI, and lists of them; last that of responses.
_MESSAGES = ("error", "message", "detail", "msg", "response")
_ERRORS = ("error", "response.failed")
_MOST_NESTED = 5
# Pieces so near to the first one came together with it: no model makes tokens that fast.
_TOGETHER_NS = 1_000_000
# A server may leave the connection open after the end; this is time enough to close it, or to end the answer.
_CLOSED_WITHIN_S = 0.2
_DETAIL_CHARACTERS = 100
_MOST_TOKENS = 2**53  # more are no whole number to all who read JSON


class Tokens:
    """Takes an answer as it arrives (send.Receiver), and says at its end what came."""

    def __init__(self, stall_s: float) -> None:
        self.stall_s = stall_s
        self.piece_ns: int | None = None
        self.cause: str | None = None
        self.texts: list[str] = []  # of the content of the first choice, without reasoning and calls
        self._arrived_ns: list[int] = []  # of each piece with something that the model wrote
        self._counts: dict[str, int] = {}
        self._parser: StreamParser | None = None
        self._done_ns: int | None = None  # when its end arrived
        self._is_finished = False  # the model has said why it ended; some servers send no other end
        self._first_form = ""  # of the first piece: its type, or the names of its fields
        self._is_known = False  # the form of a piece

    def begin(self, status: int, headers: Mapping[str, str]) -> bool:
        # The last one counts if a gateway adds its own, as in browsers.
        media_type = headers.get("Content-Type", "").rpartition(",")[2].partition(";")[0].strip().lower()
        parser = PARSERS.get(media_type)
        if status != 200:
            return False
        if not is_readable(headers):
            self.cause = "unknown-coding"
            return False
        if parser is None:
            self.cause = _with_detail("no-stream", media_type)
            return False
        self._parser = parser()
        return True

    def take(self, data: bytes, at_ns: int) -> bool:
        assert self._parser is not None  # noqa: S101 (begin has returned True)
        try:
            return self._read(self._parser.feed(data, at_ns))
        except PieceTooLargeError:
            self.cause = "piece-too-large"
            return False

    @property
    def whole_ns(self) -> int | None:
        """When the answer was whole, as it says itself; None if it has not said so, or has an error."""
        return self._done_ns if self.cause is None else None

    def end(self, body: bytes = b"") -> None:
        """Judge the answer after it has been read to its end; `body` is what was received in place of a stream."""
        if self._parser is None:
            value = _parsed(body)
            if isinstance(value, dict) and _is_error(value):
                self.cause = _with_detail("error-event", error_message(value))
            return
        if self.cause is not None or not self._read(self._parser.end()):
            return
        if self._done_ns is None and not self._is_finished:
            is_unknown = self._first_form and not self._is_known and not self._arrived_ns
            self.cause = _with_detail("unknown-pieces", self._first_form) if is_unknown else "no-end"
        elif not self._arrived_ns:
            self.cause = "no-tokens"

    def figures(self, started_ns: int, rtt_ms: float) -> dict[str, float | str | None]:
        """Return the figures of the sample; None for those that an answer of so many pieces does not have."""
        arrived_ns = self._arrived_ns
        gaps_ms = sorted((after - before) / 1e6 for before, after in pairwise(arrived_ns))
        n_pieces, of_server = len(arrived_ns), self._counts.get("tokens")
        tokens = n_pieces if of_server is None else of_server
        span_ms = (arrived_ns[-1] - arrived_ns[0]) / 1e6 if arrived_ns else 0.0
        return {
            "ttft_ms": (arrived_ns[0] - started_ns) / 1e6 if arrived_ns else None,
            "itl_mean_ms": span_ms / len(gaps_ms) if gaps_ms else None,
            "itl_p99_ms": gaps_ms[math.ceil(0.99 * len(gaps_ms)) - 1] if gaps_ms else None,
            "itl_max_ms": gaps_ms[-1] if gaps_ms else None,
            "tpot_ms": span_ms / (tokens - 1) if gaps_ms and tokens > 1 else None,
            "tokens": tokens if self._parser else None,
            "pieces": n_pieces if self._parser else None,
            "first_pieces": sum(at_ns - arrived_ns[0] < _TOGETHER_NS for at_ns in arrived_ns) or None,
            "counted_by": None if self._parser is None else "pieces" if of_server is None else "server",
            "tokens_per_s": 1000 * tokens / rtt_ms if arrived_ns and rtt_ms else None,
            "prompt_tokens": self._counts.get("prompt_tokens"),
        }

    def _read(self, pieces: list[StreamPiece]) -> bool:
        """Read pieces; return whether there may be more."""
        return all(map(self._read_piece, pieces))

    def _read_piece(self, piece: StreamPiece) -> bool:
        text = piece.data.strip()
        if text == END:
            self._end_at(piece.at_ns)
            return True
        if not text and piece.event != "error":  # it keeps the connection alive
            return True
        value = _parsed(text)
        if not isinstance(value, dict):
            self.cause = "error-event" if piece.event == "error" else "not-json"
            return False
        if piece.event == "error" or _is_error(value):
            self.cause = _with_detail("error-event", error_message(value))
            return False
        self._first_form = self._first_form or piece.event or ", ".join(value)
        event = _event_of_response(value)
        is_known = bool(event) or "choices" in value or "done" in value
        self._is_known = self._is_known or is_known
        is_token = False
        for number, added in enumerate([_added_by_event(event, value)] if event else _added(value)):
            content = _text(added, _CONTENT, _PARTS_OF_CONTENT)
            if content and added.get("index", number) == 0:
                self.texts.append(content)
            self._is_finished = self._is_finished or bool(added.get("finish_reason"))
            is_token = is_token or bool(content or _text(added, (*_CONTENT, *_FURTHER), _PARTS))
        if is_token:
            self._arrived_ns.append(piece.at_ns)
        counts = value.get("response") if event else value
        usage = counts.get("usage") if isinstance(counts, dict) else None
        usage = usage if isinstance(usage, dict) else {}
        self._count("tokens", usage.get("completion_tokens"), usage.get("output_tokens"), value.get("eval_count"))
        prompt_tokens = (usage.get("prompt_tokens"), usage.get("input_tokens"), value.get("prompt_eval_count"))
        self._count("prompt_tokens", *prompt_tokens)
        # Not before the first token: a server may say at once that it has begun, and then read a long prompt.
        if is_known and self._arrived_ns and self._done_ns is None:
            self.piece_ns = piece.at_ns
        if value.get("done") is True or event in _RESPONSE_ENDS:
            self._end_at(piece.at_ns)
        return True

    def _end_at(self, at_ns: int) -> None:
        if self._done_ns is None:
            self._done_ns = self.piece_ns = at_ns
            self.stall_s = min(self.stall_s, _CLOSED_WITHIN_S)

    def _count(self, name: str, *values: object) -> None:
        for value in values:
            if type(value) is int and 0 < value <= _MOST_TOKENS:
                self._counts[name] = value


def error_message(value: object) -> str:
    """Return the message of an error in JSON, as model servers have it; empty if there is none."""
    for _ in range(_MOST_NESTED):
        match value:
            case str():
                return value
            case [first, *_]:
                value = first
            case dict():
                named = (value[name] for name in _MESSAGES if name in value)
                value = next((each for each in named if each and isinstance(each, str | list | dict)), None)
    return ""


def _is_error(value: Mapping[str, Any]) -> bool:
    return bool(value.get("error")) or value.get("object") == "error" or value.get("type") in _ERRORS


def status_cause(status: int, body: bytes) -> str:
    """Return the cause of an answer with a status other than 200, with the message that it has."""
    return _with_detail(f"status-{status}", error_message(_parsed(body)))


def _parsed(text: str | bytes) -> Any:
    """Return a value in JSON; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _with_detail(cause: str, detail: str) -> str:
    detail = " ".join(masked(detail).split())
    shown = (
        detail if len(detail) <= _DETAIL_CHARACTERS else f"{detail[: _DETAIL_CHARACTERS - 1]}\N{HORIZONTAL ELLIPSIS}"
    )
    return f"{cause}: {shown}" if shown else cause


def _added(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of what a piece adds to each of its choices."""
    choices = value.get("choices")
    if isinstance(choices, list) and choices:
        return [_merged(choice, choice.get("delta")) for choice in choices if isinstance(choice, dict)]
    return [_merged(value, value.get("message"))]


def _event_of_response(value: dict[str, Any]) -> str:
    """Return the type of an event of OpenAI's responses; empty if a piece is none."""
    event = value.get("type")
    return event if isinstance(event, str) and event.startswith(_RESPONSE) else ""


def _added_by_event(event: str, value: dict[str, Any]) -> dict[str, Any]:
    """Return what such an event adds, as a piece of chat completions has it."""
    match event.removeprefix(_RESPONSE):
        case "output_text.delta":
            return {"content": value.get("delta")}
        case "refusal.delta":
            return {"refusal": value.get("delta")}
        case "output_item.added":  # the name of a call
            return {"tool_calls": value.get("item")}
        case further if further.endswith(".delta") and not further.endswith("audio.delta"):
            return {"reasoning": value.get("delta")}
    return {}


def _merged(fields: dict[str, Any], inner: Any) -> dict[str, Any]:
    return fields | inner if isinstance(inner, dict) else fields


def _text(fields: Mapping[str, Any], names: tuple[str, ...], parts: tuple[str, ...]) -> str:
    """Return the text of the first of these fields that has any."""
    return next((text for name in names if name in fields and (text := _joined(fields[name], parts))), "")


def _joined(value: Any, names: tuple[str, ...]) -> str:
    """Return the text of a field: its own, or those of the parts by these names in its lists and objects."""
    texts, rest = [], [value]
    while rest:  # no recursion: a server may nest them deeply
        match rest.pop():
            case str() as text:
                texts.append(text)
            case list() as parts:
                rest += reversed(parts)
            case dict() as fields:
                rest += [fields[name] for name in reversed(names) if name in fields]
    return "".join(texts)
