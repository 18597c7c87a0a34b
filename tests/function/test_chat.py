"""The language model: what it computes, how its batch works, and its endpoint as clients see it."""

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import BatchEngine, Sequence
from transformer import MAX_TOKENS, VOCABULARY, Transformer, decode, encode

APP = Path(__file__).parents[2] / "function" / "chat" / "app.py"


@pytest.fixture(scope="module")
def model() -> Transformer:
    return Transformer(layers=2, width=32)


def test_a_step_computes_what_reading_the_whole_text_would(model: Transformer) -> None:
    """The cache of keys and values changes no result."""
    tokens = [5, 9, 700, 31, 9]
    cache, logits = model.prefill(tokens[:2])
    for number, token in enumerate(tokens[2:], 3):
        logits = model.step([token], [cache])[0]
        assert np.allclose(logits, model.prefill(tokens[:number])[1], atol=1e-3)
    assert cache.length == len(tokens)


def test_sequences_of_one_batch_do_not_mix(model: Transformer) -> None:
    prompts = ([3, 4, 5, 6], [7], [8, 9])
    alone = [model.step([11], [model.prefill(prompt)[0]])[0] for prompt in prompts]
    together = model.step([11] * 3, [model.prefill(prompt)[0] for prompt in prompts])
    assert np.allclose(together, alone, atol=1e-3)


def test_weights_depend_on_the_seed_alone() -> None:
    first, same, other = (Transformer(1, 32, seed).prefill([1, 2])[1] for seed in (1, 1, 2))
    assert np.array_equal(first, same) and not np.allclose(first, other)


def test_words_are_tokens() -> None:
    assert encode("so it is  so") == [encode("so")[0], encode("it")[0], encode("is")[0], encode("so")[0]]
    assert len(encode("")) == 1
    assert len({decode(token) for token in range(VOCABULARY)}) == VOCABULARY


def tokens_of(sequence: Sequence) -> list[int]:
    return list(iter(lambda: sequence.tokens.get(timeout=20), None))


def test_more_sequences_than_the_batch_has_room_for_wait_and_are_all_answered(model: Transformer) -> None:
    engine = BatchEngine(model, max_batch=2)
    sequences = [Sequence(encode("a b c"), 10, ignores_end=True) for _ in range(7)]
    for sequence in sequences:
        engine.submit(sequence)
    answers = [tokens_of(sequence) for sequence in sequences]
    assert {len(answer) for answer in answers} == {10}
    assert {sequence.finish_reason for sequence in sequences} == {"length"}
    assert engine.counts()[1] == 0


def test_a_sequence_that_nobody_waits_for_leaves_the_batch(model: Transformer) -> None:
    engine = BatchEngine(model, max_batch=1)
    endless, next_one = (Sequence([1], n, ignores_end=True) for n in (MAX_TOKENS - 1, 1))
    engine.submit(endless)
    assert endless.tokens.get(timeout=20) is not None
    engine.submit(next_one)
    endless.is_cancelled = True
    assert len(tokens_of(next_one)) == 1
    assert endless.finish_reason == ""


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, int]]:
    environment = {"layers": "1", "width": "32", "max_batch": "4", "max_inflight": "8", "PATH": ""}
    command = [sys.executable, str(APP), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("ready http://"), line
        host, _, port = line.split("//")[1].strip().rpartition(":")
        yield host, int(port)
        process.terminate()
        assert process.wait(20) == 0


def call(server: tuple[str, int], path: str, fields: object = None, method: str = "POST") -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection(*server, timeout=20)
    connection.request(method, path, json.dumps(fields) if method == "POST" else None)
    response = connection.getresponse()
    answer = response.status, response.headers["Content-Type"], response.read()
    connection.close()
    return answer


def events_of(body: bytes) -> list[Any]:
    texts = [event.removeprefix("data: ") for event in body.decode().split("\n\n") if event]
    return [text if text == "[DONE]" else json.loads(text) for text in texts]


MESSAGES = {"messages": [{"role": "user", "content": "how do you do"}], "max_tokens": 6, "ignore_eos": True}


@pytest.mark.parametrize("prefix", ["", "/function/chat"])
def test_a_chat_is_streamed(server: tuple[str, int], prefix: str) -> None:
    fields = {**MESSAGES, "stream": True, "stream_options": {"include_usage": True}, "model": "tiny"}
    status, kind, body = call(server, f"{prefix}/v1/chat/completions", fields)
    *events, done = events_of(body)
    assert (status, kind.partition(";")[0], done) == (200, "text/event-stream", "[DONE]")
    first, *pieces, last, usage = events
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert len(pieces) == 6 and all(piece["choices"][0]["delta"]["content"] for piece in pieces)
    assert last["choices"][0]["finish_reason"] == "length"
    assert usage["usage"] == {"prompt_tokens": 4, "completion_tokens": 6, "total_tokens": 10}
    assert {(event["object"], event["model"]) for event in events} == {("chat.completion.chunk", "tiny")}


def test_a_whole_answer_is_the_text_of_the_stream(server: tuple[str, int]) -> None:
    status, kind, body = call(
        server, "/v1/completions", {"prompt": "how do you do", "max_tokens": 6, "ignore_eos": True}
    )
    whole = json.loads(body)
    assert (status, kind, whole["usage"]["completion_tokens"]) == (200, "application/json", 6)
    *events, _ = events_of(call(server, "/v1/chat/completions", {**MESSAGES, "stream": True})[2])
    text = "".join(event["choices"][0]["delta"].get("content", "") for event in events)
    assert whole["choices"][0]["text"] == text.strip()


def test_a_content_of_parts_is_their_text(server: tuple[str, int]) -> None:
    parts = [{"type": "text", "text": "how do "}, {"type": "text", "text": "you do"}]
    fields = {**MESSAGES, "messages": [{"role": "user", "content": parts}]}
    answers = [call(server, "/v1/chat/completions", each) for each in (MESSAGES, fields)]
    assert [status for status, _, _ in answers] == [200, 200]
    text, of_parts = (json.loads(body) for _, _, body in answers)
    assert (of_parts["choices"], of_parts["usage"]) == (text["choices"], text["usage"])


@pytest.mark.parametrize(
    ("path", "fields", "status", "named"),
    [
        ("/v1/chat/completions", {**MESSAGES, "model": "large"}, 404, "The model `large` does not exist"),
        ("/v1/chat/completions", {"prompt": "a"}, 400, "messages"),
        ("/v1/chat/completions", {"messages": [{"content": [{"type": "image_url"}]}]}, 400, "messages"),
        ("/v1/chat/completions", {"messages": [{"content": ["a"]}]}, 400, "messages"),
        ("/v1/completions", {"prompt": "a", "max_tokens": 0}, 400, "max_tokens"),
        ("/v1/completions", {"prompt": "a", "max_tokens": MAX_TOKENS}, 400, str(MAX_TOKENS)),
        ("/v1/completions", ["a"], 400, "not a JSON object"),
        ("/v1/embeddings", {}, 404, "/v1/embeddings"),
    ],
)
def test_bad_requests_are_refused(server: tuple[str, int], path: str, fields: object, status: int, named: str) -> None:
    answered, kind, body = call(server, path, fields)
    assert (answered, kind) == (status, "application/json")
    assert named in json.loads(body)["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({"prompt": "\ud800"}, 128),
        ({"prompt": "a", "max_tokens": None, "model": None}, 128),
        ({"prompt": "a", "max_tokens": None, "max_completion_tokens": 3}, 3),
        ({"prompt": "a", "max_tokens": 2, "max_completion_tokens": None}, 2),
    ],
)
def test_half_a_surrogate_pair_is_a_word_and_null_is_left_out(
    server: tuple[str, int], fields: dict[str, Any], tokens: int
) -> None:
    status, _, body = call(server, "/v1/completions", {**fields, "ignore_eos": True})
    assert (status, json.loads(body)["usage"]["completion_tokens"]) == (200, tokens)


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [("GET", "/v1/completions", "POST"), ("HEAD", "/v1/completions", "POST"), ("POST", "/v1/models", "GET, HEAD")],
)
def test_a_wrong_method_is_refused_with_those_that_are_right(
    server: tuple[str, int], method: str, path: str, allow: str
) -> None:
    connection = http.client.HTTPConnection(*server, timeout=20)
    connection.request(method, path)
    response = connection.getresponse()
    connection.close()
    assert (response.status, response.headers["Allow"]) == (405, allow)


@pytest.mark.parametrize("path", ["/_/health", "/nowhere"])
def test_an_answer_to_head_has_no_body(server: tuple[str, int], path: str) -> None:
    """On a kept connection, its bytes would be the next answer."""
    with socket.create_connection(server, timeout=20) as connection:
        connection.sendall(b"HEAD %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path.encode())
        answer = b"".join(iter(lambda: connection.recv(2**16), b""))
    assert answer.endswith(b"\r\n\r\n")


def test_models_are_listed(server: tuple[str, int]) -> None:
    status, _, body = call(server, "/v1/models", method="GET")
    assert (status, [each["id"] for each in json.loads(body)["data"]]) == (200, ["tiny"])
    assert call(server, "/v1/models", method="HEAD") == (200, "application/json", b"")


def test_clients_that_go_leave_room_for_others(server: tuple[str, int]) -> None:
    """More than may be in flight, each gone after its first bytes."""
    fields = {**MESSAGES, "stream": True, "max_tokens": MAX_TOKENS - 10}
    for _ in range(12):
        connection = http.client.HTTPConnection(*server, timeout=20)
        connection.request("POST", "/v1/chat/completions", json.dumps(fields))
        response = connection.getresponse()
        if response.status == 429:  # those before are about to go
            time.sleep(0.2)
        else:
            assert response.read(20)
        response.close()
        connection.close()
    deadline_s = time.monotonic() + 20
    while call(server, "/v1/chat/completions", MESSAGES)[0] != 200:
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def test_a_wrong_setting_is_named() -> None:
    done = subprocess.run(
        [sys.executable, str(APP)], env={"width": "30", "PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "width=30: must be a multiple of 8" in done.stderr
