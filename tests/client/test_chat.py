"""Users of a model: the figures of a streamed answer, the cause of each bad one, prompts, and conversations."""

import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import stream
from headers import VARIABLE
from prompts import PromptError, open_prompts
from send import Sender
from tests.client.conftest import Done, Forked, start, wait_until
from tests.stand_in import Answer, Received, StandIn, serving
from tokens import Tokens

EVENTS, LINES = "text/event-stream; charset=utf-8", "application/x-ndjson"
DONE = "[DONE]"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def sse(*events: object) -> bytes:
    texts = [event if isinstance(event, str) else json.dumps(event, ensure_ascii=False) for event in events]
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def ndjson(*lines: object) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def delta(text: str | None, **more: object) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}}], **more}


def adds(**fields: object) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields}]}


def call(arguments: str, name: str | None = None) -> dict[str, Any]:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return adds(tool_calls=[{"index": 0, "function": function}])


def choice(index: int) -> dict[str, Any]:
    return {"choices": [{"index": index, "text": "cd"[index]}]}


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def usage(tokens: object) -> dict[str, Any]:
    return {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": tokens}}


ROLE = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
ENDED = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
GOOD = sse(ROLE, delta("caf\u00e9 "), delta("\U0001f600"), delta("!"), ENDED, usage(5), DONE)
# The name of a function with the first piece of its arguments, or before them; the last piece has nothing.
CALLS = sse(ROLE, call("", "weather"), call('{"city":'), call(' "Oslo"}'), call(""), ENDED, usage(9), DONE)


def of_response(event: str, **fields: object) -> dict[str, Any]:
    return {"type": f"response.{event}", "sequence_number": 1, "output_index": 1, **fields}


def response_ends(event: str, tokens: int) -> dict[str, Any]:
    counts = {"input_tokens": 11, "output_tokens": tokens, "total_tokens": 11 + tokens}
    output = [{"type": "message", "content": [{"type": "output_text", "text": "caf\u00e9 !"}]}]
    return of_response(event, response={"status": event, "error": None, "output": output, "usage": counts})


# As OpenAI sends them: each text again when it is done, and again at the end.
RESPONSE = "".join(
    f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
    for event in (
        of_response("created", response={"status": "in_progress", "error": None, "usage": None}),
        of_response("output_item.added", item={"type": "message", "role": "assistant", "content": []}),
        of_response("content_part.added", part={"type": "output_text", "text": ""}),
        of_response("output_text.delta", delta="caf\u00e9 "),
        of_response("output_text.delta", delta="!"),
        of_response("output_text.done", text="caf\u00e9 !"),
        of_response("content_part.done", part={"type": "output_text", "text": "caf\u00e9 !"}),
        response_ends("completed", 5),
    )
).encode()
NO_MODEL = {"error": {"message": "The model `x` does not exist.", "type": "NotFoundError", "code": 404}}

KEY = "sk-0123456789abcdef0123456789abcdef"
WRONG_KEY = {"error": {"message": f"{'so ' * 20}the key is wrong: {KEY}"}}


def events(body: bytes, *headers: tuple[str, str], **more: Any) -> Answer:
    return Answer(content_type=EVENTS, body=body, headers=headers, **more)


def coding(name: str) -> tuple[str, str]:
    return "Content-Encoding", name


ANSWERS = {
    "good": events(GOOD),
    "no-usage": events(sse(delta("a"), delta("b"), DONE)),
    "wrong-usage": events(sse(delta("a"), delta("b"), usage("many"), DONE)),
    "crlf": events(GOOD.replace(b"\n", b"\r\n").replace(b"data: ", b": keep alive\r\ndata:")),
    "completions": events(sse({"choices": [{"text": "a"}]}, {"choices": [{"text": "b"}]}, DONE)),
    "reasoning": events(sse(adds(reasoning_content="so", reasoning="so"), adds(reasoning="it"), delta("b"), DONE)),
    "calls": events(CALLS),
    "custom-call": events(sse(adds(tool_calls=[{"custom": {"name": "run", "input": ""}}]), DONE)),
    "function-call": events(sse(adds(function_call={"name": "f"}), adds(function_call={"arguments": "{}"}), DONE)),
    "refusal": events(sse(adds(content=None, refusal="I"), adds(refusal=" cannot"), DONE)),
    "parts": events(sse(adds(content=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), DONE)),
    "thinking": events(sse(adds(content=[{"type": "thinking", "thinking": [{"text": "so"}]}]), delta("a"), DONE)),
    "responses": events(RESPONSE),
    "response-incomplete": events(sse(of_response("output_text.delta", delta="a"), response_ends("incomplete", 1))),
    "response-refused": events(sse(of_response("refusal.delta", delta="no"), response_ends("completed", 2))),
    "response-call": events(
        sse(
            of_response("reasoning_summary_text.delta", delta="so"),
            of_response("output_item.added", item={"type": "function_call", "name": "f", "arguments": ""}),
            of_response("function_call_arguments.delta", delta="{}"),
            of_response("function_call_arguments.done", arguments="{}"),
            response_ends("completed", 9),
        )
    ),
    "response-failed": events(
        sse(of_response("failed", response={"status": "failed", "error": {"code": "x", "message": "too busy"}}))
    ),
    "response-error": events(sse({"type": "error", "code": "x", "message": "out of quota", "param": None})),
    "response-cut": events(sse(of_response("output_text.delta", delta="a"))),
    "empty-data": events(b"event: ping\ndata:\n\n" + GOOD),
    "ollama-calls": Answer(
        content_type=LINES,
        body=ndjson({"message": {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}}, {"done": True}),
    ),
    "ollama-thinking": Answer(content_type=LINES, body=ndjson({"thinking": "so"}, {"response": "a", "done": True})),
    # Two choices in one piece, and in pieces of their own.
    "choices": events(
        sse({"choices": [{"index": 1, "text": "B"}, {"index": 0, "text": "a"}]}, choice(1), choice(0), DONE)
    ),
    "other-choice": events(sse({"choices": [*ROLE["choices"], {"index": 1, "delta": {"content": "b"}}]}, DONE)),
    "padded-end": events(sse(delta("a"), " [DONE] ")),
    "absurd-usage": events(sse(delta("a"), usage(10**30), DONE)),
    "left-open": Answer(raw=CHUNKED + chunk(sse(delta("a"), DONE)), again=b"0"),  # of a length that never ends
    "pings": Answer(raw=CHUNKED + chunk(sse(delta("a"), DONE)), again=chunk(b": ping\n\n")),
    "broken-at-end": Answer(raw=CHUNKED + chunk(sse(delta("a"), DONE))),
    "late-error": Answer(raw=CHUNKED + chunk(sse(delta("a"), DONE, NO_MODEL)), again=b"0"),
    "messages": events(b'event: message_start\ndata: {"type": "message_start", "message": {"content": []}}\n\n'),
    "tokens": events(sse({"index": 1, "token": {"text": "a"}})),
    "error-object": events(sse(delta("a"), {"object": "error", "message": "CUDA error"}, DONE)),
    "error-object-in-place": Answer(body=b'{"object": "error", "message": "too long", "code": 400}'),
    "detail": Answer(400, body=b'{"detail": "no such adapter"}'),
    "details": Answer(422, body=b'{"detail": [{"loc": ["body", "model"], "msg": "Field required"}]}'),
    "errors": Answer(503, body=b'[{"error": {"code": 503, "message": "overloaded"}}]'),
    "flag": Answer(500, body=b'{"error": true, "message": "no worker"}'),
    "nested-errors": Answer(500, body=b'{"error": ' * 50 + b'""' + b"}" * 50),
    "gzip": events(gzip.compress(GOOD), coding("gzip")),
    "identity-gzip": events(gzip.compress(GOOD), coding("identity, gzip")),
    "two-types": events(GOOD, ("Content-Type", "text/event-stream")),
    "gzip-zstd": events(b"(\xb5/\xfd", coding("gzip, zstd")),
    "no-gzip": events(GOOD, coding("gzip")),
    "zstd": events(b"\x28\xb5\x2f\xfd", coding("zstd")),
    "no-text": events(sse(call(""), adds(content=[[]], refusal={}), adds(tool_calls=[None, "", 1]), DONE)),
    "deep": events(sse('{"choices": [{"delta": {"content": ' + "[" * 500 + "]" * 500 + "}}]}", DONE)),
    "garbage": Answer(raw=b"how do you do\r\n\r\n"),
    "half-a-character": Answer(404, body=b'{"error": "no model \\ud83d"}'),
    "controls": events(
        sse({"error": {"message": "\0 is \x1b[31mred\x1b[0m \x9f\x7f\ufffe and\u2028so on"}}).replace(
            b"so on", rb"\ud800 so on"
        )
    ),
    "no-gzip-404": Answer(404, body=b"no model", headers=(coding("gzip"),)),
    "ollama-chat": Answer(
        content_type=LINES,
        body=ndjson({"message": {"content": "a"}}, {"message": {"content": "b"}, "done": True, "eval_count": 7}),
    ),
    "chat": Answer(content_type=LINES, body=ndjson({"message": {"content": "a"}, "done": True})),
    "generate": Answer(content_type=LINES, body=ndjson({"response": "a", "done": True})),
    "ollama": Answer(content_type=LINES, body=ndjson({"response": "a"}, {"done": True, "prompt_eval_count": 3})[:-1]),
    "whole": Answer(body=json.dumps({"choices": [{"message": {"content": "a"}}]}).encode()),
    "error-in-place": Answer(body=json.dumps({"error": {"message": "no such model"}}).encode()),
    "page": Answer(content_type="text/html", body=b"<html>"),
    "no-end": events(sse(delta("a"), delta("b"))),
    "half-an-end": events(sse(delta("a")) + b"data: [DONE]\n"),
    "finished": events(sse(delta("a"), delta("b"), ENDED)),
    "finished-and-broken": events(sse(delta("a"), ENDED), sent_bytes=len(sse(delta("a"), ENDED)) - 1),
    "no-last-line": Answer(content_type=LINES, body=ndjson({"response": "a"})),
    "no-tokens": events(sse(ROLE, ENDED, DONE)),
    "empty": events(b""),
    "error-event": events(sse(delta("a"), {"error": {"message": "out of\nmemory", "code": 500}}, DONE)),
    "named-error": events(b'event: error\ndata: {"message": "overloaded"}\n\n'),
    "error-text": events(b"event: error\ndata: overloaded\n\n"),
    "not-json": events(sse(delta("a"), "{half", DONE)),
    "a-list": events(sse([1], DONE)),
    "nested": events(sse("[" * 100_000)),
    "no-model": Answer(404, body=json.dumps(NO_MODEL).encode()),
    "repeats": Answer(401, body=json.dumps(WRONG_KEY).encode()),
    "repeats-in-place": Answer(body=json.dumps(WRONG_KEY).encode()),
    "repeats-in-stream": events(sse(WRONG_KEY)),
    "busy": Answer(429, body=b"later"),
    "large": events(b"data: " + b"x" * (stream.MAX_PIECE_BYTES + 10) + b"\n\n"),
    "broken": events(GOOD, sent_bytes=len(GOOD) - 20),
    "silent": Answer(delay_s=30),
    "endless": Answer(
        raw=b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + sse(delta("a")), again=sse(delta("b"))
    ),
    "kept-alive": Answer(raw=CHUNKED + chunk(sse(delta("a"))), again=chunk(b": ping\n\n")),
    "kept-alive-from-the-start": Answer(raw=CHUNKED + chunk(sse(ROLE)), again=chunk(b": ping\n\n")),
    "no-chunk-size": Answer(raw=CHUNKED + chunk(sse(delta("a"))) + b"zz\r\n"),
    "cut-chunk": Answer(raw=CHUNKED + chunk(sse(delta("a")))),
    "reset": Answer(resets=True),
}


class Model(StandIn):
    """Answers as the last part of the path says."""

    def next_answer(self, request: Received) -> Answer:
        with self.lock:
            self.received.append(request)
        return ANSWERS[request.path.rpartition("/")[2].partition("?")[0]]


@pytest.fixture
def model() -> Iterator[StandIn]:
    with serving(server=Model([])) as server:
        yield server


def ask(model: StandIn, behaviour: str, *words: object) -> Done:
    with start("chat.py", "--url", f"{model.origin}/v1/{behaviour}", *words) as process:
        return Done(process)


@pytest.mark.parametrize(
    ("behaviour", "tokens", "pieces", "counted_by"),
    [
        ("good", 5, 3, "server"),
        ("crlf", 5, 3, "server"),
        ("no-usage", 2, 2, "pieces"),
        ("wrong-usage", 2, 2, "pieces"),
        ("completions", 2, 2, "pieces"),
        ("reasoning", 3, 3, "pieces"),
        ("calls", 9, 3, "server"),
        ("custom-call", 1, 1, "pieces"),
        ("function-call", 2, 2, "pieces"),
        ("refusal", 2, 2, "pieces"),
        ("parts", 1, 1, "pieces"),
        ("thinking", 2, 2, "pieces"),
        ("finished", 2, 2, "pieces"),
        ("ollama-calls", 1, 1, "pieces"),
        ("responses", 5, 2, "server"),
        ("response-incomplete", 1, 1, "server"),
        ("response-refused", 2, 1, "server"),
        ("response-call", 9, 3, "server"),
        ("empty-data", 5, 3, "server"),
        ("ollama-thinking", 2, 2, "pieces"),
        ("choices", 3, 3, "pieces"),
        ("other-choice", 1, 1, "pieces"),
        ("padded-end", 1, 1, "pieces"),
        ("absurd-usage", 1, 1, "pieces"),
        ("gzip", 5, 3, "server"),
        ("identity-gzip", 5, 3, "server"),
        ("two-types", 5, 3, "server"),
        ("ollama-chat", 7, 2, "server"),
        ("ollama", 1, 1, "pieces"),
    ],
)
def test_a_stream_is_counted(model: StandIn, behaviour: str, tokens: int, pieces: int, counted_by: str) -> None:
    done = ask(model, behaviour)
    (sample,) = done.samples
    assert (done.status, done.user["ok"], sample["cause"], sample["status"]) == (0, True, None, 200)
    assert (sample["label"], sample["tokens"], sample["pieces"], sample["counted_by"]) == (
        "request", tokens, pieces, counted_by
    )  # fmt: skip
    assert 0 < sample["ttft_ms"] <= sample["rtt_ms"]
    assert sample["tokens_per_s"] == pytest.approx(1000 * tokens / sample["rtt_ms"], rel=1e-3)
    assert sample["received_bytes"] == len(GOOD if "gzip" in behaviour else ANSWERS[behaviour].body or b"")
    assert sample["first_pieces"] == pieces  # of a server that writes them in one go
    has_gaps = pieces > 1
    for name in ("itl_mean_ms", "itl_p99_ms", "itl_max_ms", "tpot_ms"):
        assert (sample[name] is not None) == has_gaps, name


def test_each_request_has_a_trace_id_of_its_own(model: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "traceparent: new")
    done = ask(model, "good", "--turns", 2)
    sent = [request.headers["traceparent"].split("-")[1] for request in model.received]
    assert len(set(sent)) == 2
    assert [sample["trace_id"] for sample in done.samples] == sent


@pytest.mark.parametrize(
    ("behaviour", "cause"),
    [
        ("whole", "no-stream: application/json"),
        ("no-gzip", "not-http"),
        ("zstd", "unknown-coding"),
        ("gzip-zstd", "unknown-coding"),
        ("no-text", "no-tokens"),
        ("deep", "no-tokens"),
        ("garbage", "not-http"),
        ("half-a-character", "status-404: no model ?"),
        ("controls", "error-event: ? is ?[31mred?[0m ??? and ? so on"),
        ("no-gzip-404", "status-404"),
        ("error-in-place", "error-event: no such model"),
        ("page", "no-stream: text/html"),
        ("no-end", "no-end"),
        ("half-an-end", "no-end"),
        ("no-last-line", "no-end"),
        ("no-tokens", "no-tokens"),
        ("empty", "no-end"),
        ("late-error", "error-event: The model `x` does not exist."),
        ("messages", "unknown-pieces: message_start"),
        ("tokens", "unknown-pieces: index, token"),
        ("error-object", "error-event: CUDA error"),
        ("error-object-in-place", "error-event: too long"),
        ("detail", "status-400: no such adapter"),
        ("details", "status-422: Field required"),
        ("errors", "status-503: overloaded"),
        ("flag", "status-500: no worker"),
        ("nested-errors", "status-500"),
        ("error-event", "error-event: out of memory"),
        ("named-error", "error-event: overloaded"),
        ("error-text", "error-event"),
        ("response-failed", "error-event: too busy"),
        ("response-error", "error-event: out of quota"),
        ("response-cut", "no-end"),
        ("not-json", "not-json"),
        ("a-list", "not-json"),
        ("nested", "not-json"),
        ("no-model", "status-404: The model `x` does not exist."),
        ("busy", "status-429"),
        ("large", "piece-too-large"),
        ("broken", "reset"),
        ("finished-and-broken", "reset"),
        ("no-chunk-size", "not-http"),
        ("cut-chunk", "reset"),
        ("reset", "reset"),
    ],
)
def test_a_bad_answer_has_its_cause(model: StandIn, behaviour: str, cause: str) -> None:
    done = ask(model, behaviour)
    (sample,) = done.samples
    assert (done.status, sample["ok"], sample["cause"], sample["censored"]) == (1, False, cause, False)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("behaviour", "words", "cause", "waited_s"),
    [
        ("silent", ("--timeout-s", 0.4, "--stall-timeout-s", 0.1), "timeout", 0.4),
        ("endless", ("--timeout-s", 0.4, "--stall-timeout-s", 5), "timeout", 0.4),
        ("endless", ("--timeout-s", 5, "--stall-timeout-s", 0.01), "stalled", 0.01),
        ("kept-alive", ("--timeout-s", 5, "--stall-timeout-s", 0.4), "stalled", 0.4),
        ("kept-alive-from-the-start", ("--timeout-s", 0.6, "--stall-timeout-s", 0.01), "timeout", 0.6),
    ],
)
def test_a_stream_that_stops_or_never_ends(
    model: StandIn, behaviour: str, words: tuple[object, ...], cause: str, waited_s: float
) -> None:
    done = ask(model, behaviour, *words)
    (sample,) = done.samples
    assert (done.status, sample["cause"], sample["censored"]) == (1, cause, True)
    assert sample["rtt_ms"] >= 1000 * waited_s
    assert (sample.get("ttft_ms") is not None) == (behaviour in {"endless", "kept-alive"})


@pytest.mark.parametrize("behaviour", ["left-open", "pings", "broken-at-end"])
def test_an_answer_that_is_left_open_or_broken_off_after_its_end_is_whole(model: StandIn, behaviour: str) -> None:
    """And the next one comes over a new connection."""
    done = ask(model, behaviour, "--timeout-s", 8, "--stall-timeout-s", 4, "--turns", 2)
    assert [(sample["cause"], sample["censored"], sample["tokens"]) for sample in done.samples] == [
        (None, False, 1)
    ] * 2
    assert all(sample["rtt_ms"] == sample["ttft_ms"] for sample in done.samples)
    assert [len(json.loads(each.body)["messages"]) for each in model.received] == [1, 3]
    assert len({request.port for request in model.received}) == 2


def test_one_that_is_stopped_hands_in_its_sample(model: StandIn) -> None:
    with start("chat.py", "--url", f"{model.origin}/v1/silent", "--turns", 3) as process:
        wait_until(lambda: model.received)
        process.terminate()
        done = Done(process)
    assert [sample["cause"] for sample in done.samples] == ["stopped"]
    assert (done.status, done.user["cause"], done.user["samples"]) == (1, "stopped", 1)


def test_times_are_those_at_which_the_pieces_arrived() -> None:
    tokens = Tokens(stall_s=1)
    assert tokens.begin(200, {"Content-Type": EVENTS})
    for at_ms, piece in (
        (10, ROLE),
        (50, delta("a")),
        (51, delta("b")),
        (61, delta("")),
        (151, delta("c")),
        (152, DONE),
    ):
        assert tokens.take(sse(piece), round(1e6 * at_ms))
    tokens.end()
    assert tokens.cause is None and "".join(tokens.texts) == "abc"
    figures = tokens.figures(started_ns=0, rtt_ms=200)
    # By the definitions of docs/chat.md: a piece without text is no token.
    assert figures == {
        "ttft_ms": 50, "itl_mean_ms": 50.5, "itl_p99_ms": 100, "itl_max_ms": 100, "tpot_ms": 50.5, "tokens": 3,
        "pieces": 3, "first_pieces": 1, "counted_by": "pieces", "tokens_per_s": 15, "prompt_tokens": None,
    }  # fmt: skip


def test_the_gaps_of_a_server_that_pauses_are_seen() -> None:
    answer = events(
        sse(delta("a"), delta("b"), delta("c"), DONE), pause_s=0.05
    )  # after each line, of which an event has 2
    with serving(server=StandIn([answer])) as server:
        sender = Sender(server.url, "application/json", EVENTS, timeout_s=5, connect_timeout_s=1, is_timed=True)
        sender.begin()
        tokens = Tokens(stall_s=5)
        reply = sender.send(b"{}", tokens)
        tokens.end()
    figures = tokens.figures(reply.started_ns, reply.rtt_ms)
    assert (reply.cause, tokens.cause, figures["pieces"]) == (None, None, 3)
    assert figures["itl_mean_ms"] >= 100 and figures["ttft_ms"] + 2 * figures["itl_mean_ms"] <= reply.rtt_ms


def test_a_piece_that_is_read_late_has_the_time_at_which_it_came() -> None:
    """By the kernel's stamp: other users may have had the processor."""
    connections: list[socket.socket] = []

    def answer(listener: socket.socket) -> None:
        connections.append(listener.accept()[0])
        request = b""
        while not request.endswith(b"{}"):  # what is unread at the end would be a reset
            request += connections[0].recv(65536)
        connections[0].sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + sse(delta("a")))

    class Late(Tokens):
        arrived_ns: ClassVar[list[int]] = []
        woken_ns = 0

        def take(self, data: bytes, at_ns: int) -> bool:
            self.arrived_ns.append(at_ns)
            if len(self.arrived_ns) == 1:
                connections[0].sendall(sse(delta("b"), DONE))
                connections[0].close()
                time.sleep(0.2)
                Late.woken_ns = time.perf_counter_ns()
            return super().take(data, at_ns)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/chat/completions"
        sender = Sender(url, "application/json", EVENTS, timeout_s=5, connect_timeout_s=1, is_timed=True)
        sender.begin()
        tokens = Late(stall_s=5)
        reply = sender.send(b"{}", tokens)
        thread.join()
    tokens.end()
    assert (reply.cause, tokens.cause, tokens.texts) == (None, None, ["a", "b"])
    first_ns, second_ns = Late.arrived_ns
    assert reply.started_ns < first_ns < second_ns < Late.woken_ns


def test_a_piece_never_came_before_its_time_whenever_its_user_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here between the readings of two clocks: a first token came before its request."""
    pauses_s, time_ns = [0.05], time.time_ns

    def interrupted_ns() -> int:
        time.sleep(pauses_s.pop() if pauses_s else 0)
        return time_ns()

    with serving(server=StandIn([events(GOOD)])) as server:
        sender = Sender(server.url, "application/json", EVENTS, timeout_s=5, connect_timeout_s=1, is_timed=True)
        sender.begin()
        tokens = Tokens(stall_s=5)
        monkeypatch.setattr(time, "time_ns", interrupted_ns)
        reply = sender.send(b"{}", tokens)
    assert (reply.cause, pauses_s) == (None, [])
    ttft_ms = tokens.figures(reply.started_ns, reply.rtt_ms)["ttft_ms"]
    assert ttft_ms is not None and 0 < float(ttft_ms) < reply.rtt_ms


@pytest.mark.parametrize(
    ("path", "words", "fields"),
    [
        ("good", ("--model", "m", "--prompts", "Hi"), {"model": "m", "messages": [{"role": "user", "content": "Hi"}],
         "max_tokens": 100, "stream": True, "stream_options": {"include_usage": True}}),
        ("good", ("--prompts", "Hi", "--max-tokens", 0, "--include-usage", "false", "--extra", '{"temperature": 0}'),
         {"messages": [{"role": "user", "content": "Hi"}], "stream": True, "temperature": 0}),
        ("completions", ("--prompts", "Hi", "--ignore-eos", "true", "--max-tokens", 7, "--extra", '{"max_tokens": 8}'),
         {"prompt": "Hi", "stream": True, "ignore_eos": True, "max_tokens": 8,
          "stream_options": {"include_usage": True}}),
        ("responses", ("--prompts", "Hi", "--max-tokens", 7),
         {"input": [{"role": "user", "content": "Hi"}], "stream": True, "max_output_tokens": 7}),
        ("api/chat", ("--prompts", "Hi", "--max-tokens", 7, "--extra", '{"options": {"seed": 1}, "think": false}'),
         {"messages": [{"role": "user", "content": "Hi"}], "stream": True, "options": {"num_predict": 7, "seed": 1},
          "think": False}),
        ("api/generate", ("--prompts", "Hi", "--max-tokens", 0, "--extra", '{"options": {"seed": 1}}'),
         {"prompt": "Hi", "stream": True, "options": {"seed": 1}}),
    ],
)  # fmt: skip
def test_what_is_sent(model: StandIn, path: str, words: tuple[object, ...], fields: dict[str, Any]) -> None:
    assert ask(model, path, *words).status == 0
    (request,) = model.received
    assert json.loads(request.body) == fields
    assert request.headers["Content-Type"] == "application/json"


def test_the_messages_of_a_prompt_are_one_text_for_completions(model: StandIn, tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "What is "}, {"type": "image_url", "image_url": {"url": "x"}}, {"text": "this?"}]
    contents = ["Be brief.", None, parts]
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(json.dumps({"messages": [{"role": "user", "content": content} for content in contents]}))
    assert ask(model, "completions", "--prompts", f"@{prompts}").status == 0
    assert json.loads(model.received[0].body)["prompt"] == "Be brief.\n\nWhat is this?"


def test_a_secret_reaches_the_server_and_no_line(
    model: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAMESTORM_HEADERS", "Authorization: Bearer ${env:CHAT_KEY}")
    monkeypatch.setenv("CHAT_KEY", "s3cr3t")
    done = ask(model, "good", "--journal", tmp_path / "journal.jsonl")
    assert model.received[0].headers["Authorization"] == "Bearer s3cr3t"
    assert "s3cr3t" not in (tmp_path / "journal.jsonl").read_text() + json.dumps(done.lines) + done.stderr


@pytest.mark.parametrize("behaviour", ["repeats", "repeats-in-place", "repeats-in-stream"])
def test_a_secret_that_an_error_repeats_is_in_no_line(
    model: StandIn, behaviour: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is a part of it, where a long message is cut."""
    monkeypatch.setenv("FRAMESTORM_HEADERS", "Authorization: Bearer ${env:CHAT_KEY}")
    monkeypatch.setenv("CHAT_KEY", KEY)
    done = ask(model, behaviour, "--journal", tmp_path / "journal.jsonl")
    assert done.samples[0]["cause"].endswith("is wrong: ${env:CHAT_KEY}")
    assert KEY[:8] not in (tmp_path / "journal.jsonl").read_text() + json.dumps(done.lines) + done.stderr


@pytest.mark.parametrize(
    ("behaviour", "field", "content"), [("thinking", "messages", "a"), ("responses", "input", "caf\u00e9 !")]
)
def test_a_conversation_goes_on_with_the_content_alone(
    model: StandIn, behaviour: str, field: str, content: str
) -> None:
    assert ask(model, behaviour, "--prompts", "Hi", "--turns", 2).status == 0
    question = {"role": "user", "content": "Hi"}
    assert json.loads(model.received[1].body)[field] == [question, {"role": "assistant", "content": content}, question]


def test_a_conversation_has_its_history(model: StandIn, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("one\n\ntwo\nthree\n")
    done = ask(model, "good", "--prompts", f"@{prompts}", "--turns", 2, "--conversations", 2)
    assert [sample["index"] for sample in done.samples] == [0, 1, 2, 3]
    sent = [[message["content"] for message in json.loads(each.body)["messages"]] for each in model.received]
    answer = "caf\u00e9 \U0001f600!"
    assert sent == [["one"], ["one", answer, "two"], ["three"], ["three", answer, "one"]]
    assert len({request.port for request in model.received}) == 1  # one connection


@pytest.mark.parametrize("behaviour", ["not-json", "calls"])
def test_an_answer_that_failed_or_has_no_content_is_no_part_of_the_history(model: StandIn, behaviour: str) -> None:
    ask(model, behaviour, "--prompts", "one", "--turns", 2)
    assert [len(json.loads(each.body)["messages"]) for each in model.received] == [1, 1]


@pytest.mark.parametrize(
    ("behaviour", "content"),
    [("reasoning", "b"), ("choices", "ac"), ("refusal", "I cannot"), ("parts", "ab"), ("ollama-thinking", "a")],
)
def test_the_history_has_the_content_alone(model: StandIn, behaviour: str, content: str) -> None:
    ask(model, behaviour, "--prompts", "one", "--turns", 2)
    assert json.loads(model.received[1].body)["messages"][1] == {"role": "assistant", "content": content}


def test_pieces_that_came_with_the_first_one_are_counted() -> None:
    tokens = Tokens(stall_s=1)
    assert tokens.begin(200, {"Content-Type": EVENTS})
    for at_ms, pieces in ((50, [ROLE, *[delta("a")] * 12]), (50.4, [delta("b")] * 3), (51, [delta("c")]), (90, [DONE])):
        assert tokens.take(sse(*pieces), round(1e6 * at_ms))
    tokens.end()
    figures = tokens.figures(started_ns=0, rtt_ms=100)
    assert (tokens.cause, figures["pieces"], figures["first_pieces"]) == (None, 16, 15)


def test_users_take_the_prompts_in_turn(
    model: StandIn, forked: Forked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However they are started."""
    prompts = tmp_path / "prompts.jsonl"
    lines = [
        '"a"',
        '{"prompt": "b"}',
        '{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "c"}]}',
    ]
    prompts.write_text("\n".join(lines))
    words = ("--url", f"{model.origin}/v1/good", "--prompts", f"@{prompts}")
    for number in range(1, 5):
        monkeypatch.setenv("FRAMESTORM_USER", str(number))
        with start("chat.py", *words) if number == 2 else forked.start_chat(*words) as process:
            assert Done(process).status == 0
    sent = [[message["content"] for message in json.loads(each.body)["messages"]] for each in model.received]
    assert sent == [["a"], ["b"], ["s", "c"], ["a"]]


def test_generated_prompts_depend_on_seed_and_number_alone() -> None:
    def texts(seed: int) -> list[str]:
        return [open_prompts("", 30, seed).messages(number)[0]["content"] for number in range(20)]

    assert texts(1) == texts(1)
    assert {len(text.split()) for text in texts(1)} == {30}
    assert len({*texts(1), *texts(2)}) == 40


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.jsonl", '{"prompt": "a"}\n{"prompt"', "line 2"),
        ("a.jsonl", '{"prompt": "a"}\n\n{"question": "b"}', "line 3: neither a text nor an object with prompt"),
        ("a.jsonl", '{"messages": []}', "line 1: neither"),
        ("a.txt", "\n \n", "has no prompt"),
        ("a.txt", b"\xff\xfe", "cannot be read"),
        ("a.txt", None, "cannot be read"),
    ],
)
def test_wrong_prompts_are_named(
    model: StandIn, tmp_path: Path, name: str, text: str | bytes | None, problem: str
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(PromptError, match=problem):
        open_prompts(f"@{path}", 1, 1)
    done = ask(model, "good", "--prompts", f"@{path}")
    assert (done.status, done.samples) == (2, [])
    assert problem in done.stderr and str(path) in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--extra", "{"], "is not JSON"),
        (["--extra", "[1]"], "not a JSON object"),
        (["--turns", "0"], "below 1"),
        (["--stall-timeout-s", "0"], "above 0"),
        (["--url", "ftp://h/"], "ftp:"),
        (["--url", "http://"], "http://"),
    ],
)
def test_bad_use_is_named(model: StandIn, words: list[str], named: str) -> None:
    done = ask(model, "good", *words)
    assert (done.status, done.samples, model.received) == (2, [], [])
    assert named in done.stderr and "Traceback" not in done.stderr


def test_the_pause_of_a_user_comes_before_each_request(model: StandIn) -> None:
    began_ms = time.time() * 1000
    done = ask(model, "good", 0.2, "--turns", 2)
    first, second = done.samples
    assert first["start_ms"] - began_ms >= 200
    assert second["start_ms"] - (first["start_ms"] + first["rtt_ms"]) >= 199
    assert second["intended_ms"] <= second["start_ms"]
