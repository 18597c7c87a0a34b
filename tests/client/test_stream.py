"""Pieces of streamed answers, however their bytes are split; the cases are those of the standard's text."""

import itertools
import json
import random

import pytest

import stream
from stream import EventParser, JsonLineParser, PieceTooLargeError, StreamParser, StreamPiece


def read(parser: StreamParser, *parts: bytes) -> list[StreamPiece]:
    """Feed the parts, each at the time of its number, and end."""
    fed = [piece for number, part in enumerate(parts) for piece in parser.feed(part, number)]
    return fed + parser.end()


def data_of(text: str) -> list[str]:
    return [piece.data for piece in read(EventParser(), text.encode())]


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("data: a\n\n", ["a"]),
        ("data:a\n\ndata:  b\n\n", ["a", " b"]),  # one blank is left out
        ("data: a\ndata: b\ndata\n\n", ["a\nb\n"]),
        ("data\n\ndata\ndata\n\ndata:", ["", "\n"]),
        (": a comment\n\ndata: a\n:\n: another\n\n", ["a"]),
        ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", ["a", "b", "c"]),
        ("data: a\r\ndata: b\r\n\r\n", ["a\nb"]),
        ("\ufeffdata: a\n\n", ["a"]),
        ("\ufeff\ufeffdata: a\n\n", []),  # of two marks one is a part of the name
        ("id: 7\nretry: 10\nevent: ping\n\n", []),  # no data: no event
        ("Data: a\ndata : b\n\n", []),
        ("data: a\n\ndata: unfinished\n", ["a"]),
        ("data: [DONE]", []),
        ("data: caf\u00e9 \u732b \U0001f600\n\n", ["caf\u00e9 \u732b \U0001f600"]),
    ],
)
def test_events_are_those_of_the_standard(text: str, data: list[str]) -> None:
    assert data_of(text) == data


def test_an_event_has_the_type_that_stands_before_it() -> None:
    pieces = read(EventParser(), b"event: error\ndata: {}\n\ndata: 1\n\nevent: a\nevent: b\ndata: 2\n\n")
    assert [(piece.event, piece.data) for piece in pieces] == [("error", "{}"), ("", "1"), ("b", "2")]


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    assert [piece.data for piece in read(EventParser(), b"data: a\xff\xe7\x8c\n\n")] == ["a\ufffd\ufffd"]


RECORDED = (
    "\ufeff: open\r\n\r\n"
    'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\r\n\r\n'
    'data: {"choices":[{"delta":{"content":"caf\u00e9 \U0001f600"}}]}\n\n'
    "event: note\rdata: one\rdata: two\r\r"
    "data:\n\n"
    "data: [DONE]\r\n\r\n"
).encode()
LINES = ('\ufeff{"response":"caf\u00e9"}\n\n{"response":"a\\rb"}\r\n{"response":"\u732b"}\n{"done":true}').encode()


@pytest.mark.parametrize(("parser", "text", "n"), [(EventParser, RECORDED, 5), (JsonLineParser, LINES, 4)])
def test_a_stream_split_at_any_byte_has_the_same_pieces(parser: type[StreamParser], text: bytes, n: int) -> None:
    whole = [(piece.event, piece.data) for piece in read(parser(), text)]
    assert len(whole) == n
    single = [(piece.event, piece.data) for piece in read(parser(), *(bytes([byte]) for byte in text))]
    assert single == whole
    for at in range(len(text) + 1):
        parts = read(parser(), text[:at], b"", text[at:])
        assert [(piece.event, piece.data) for piece in parts] == whole, at
    chance = random.Random(7)  # noqa: S311
    for _ in range(200):
        cuts = [0, *sorted(chance.choices(range(len(text)), k=8)), len(text)]
        parts = read(parser(), *(text[low:high] for low, high in itertools.pairwise(cuts)))
        assert [(piece.event, piece.data) for piece in parts] == whole, cuts


@pytest.mark.parametrize("text", ['\ufeff{"done":true}', '\ufeff{"done":true}\n', '{"done":true}'])
def test_a_single_line_has_no_byte_order_mark(text: str) -> None:
    assert [piece.data for piece in read(JsonLineParser(), text.encode())] == ['{"done":true}']


def test_a_piece_has_the_time_at_which_its_last_byte_arrived() -> None:
    pieces = read(EventParser(), b"data: a", b"\n", b"\ndata: b\n\ndata: c\r", b"\r", b"\ndata: d\n", b"\n")
    # The CR ends the line of c, and the next one the event: the LF that follows it says nothing new.
    assert [(piece.data, piece.at_ns) for piece in pieces] == [("a", 2), ("b", 2), ("c", 3), ("d", 5)]
    lines = read(JsonLineParser(), b'{"a"', b":1}\n{}", b"\n1", b"2")
    assert [(piece.data, piece.at_ns) for piece in lines] == [('{"a":1}', 1), ("{}", 2), ("12", 3)]


@pytest.mark.parametrize("parser", [EventParser, JsonLineParser])
def test_a_large_piece_is_read_and_a_larger_one_refused(parser: type[StreamParser]) -> None:
    text = "x" * (stream.MAX_PIECE_BYTES // 2)
    piece = b'data: {"text":"%b"}\n\n' % text.encode()
    if parser is JsonLineParser:
        piece = piece.removeprefix(b"data: ")
    parts = [piece[at : at + 65536] for at in range(0, len(piece), 65536)]
    assert [json.loads(each.data)["text"] for each in read(parser(), *parts)] == [text]
    endless = parser()
    with pytest.raises(PieceTooLargeError):
        for _ in range(2 * stream.MAX_PIECE_BYTES // 65536):
            endless.feed(b"data:" + b"x" * 65531, 0)


def test_an_event_of_many_lines_has_a_bound_too() -> None:
    parser = EventParser()
    with pytest.raises(PieceTooLargeError):
        for _ in range(2 * stream.MAX_PIECE_BYTES // 65536):
            parser.feed(b"data:" + b"x" * 65530 + b"\n", 0)
