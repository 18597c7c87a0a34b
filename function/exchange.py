"""What a function and the shell around it (HTTP server, forked process) say to each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

JSON = "application/json"


class RefusalError(Exception):
    """A request that gets no result; `status` is the HTTP status that says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Answer:
    """What goes back: a body, what it is, and headers that go with it where the way out has headers."""

    body: bytes
    content_type: str = JSON
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


# Takes a request's body and what its Accept header says ("" for none); raises RefusalError for bad input.
Handler = Callable[[bytes, str], Answer]


def refusal(status: int, message: str, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """Return the one form of every error: JSON with the message and the status."""
    return Answer(json.dumps({"error": message, "status": status}).encode(), JSON, status, headers)
