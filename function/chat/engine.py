"""Answers many prompts at once: a queue, and a batch that sequences join and leave between two steps.

As in servers such as vLLM, the time to first token grows once the batch is full, and a prompt that is read holds up the
tokens of the others.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from transformer import END, Cache, Floats, Transformer


@dataclass
class Sequence:
    """One prompt and its answer; `tokens` yields each token as it comes, and None at the end."""

    prompt: list[int]
    max_tokens: int
    ignores_end: bool
    tokens: queue.SimpleQueue[int | None] = field(default_factory=queue.SimpleQueue)
    finish_reason: str = ""
    is_cancelled: bool = False
    _n: int = 0

    def add(self, logits: Floats) -> int:
        """Choose the likeliest token, the same each time; returns it."""
        token = int(np.argmax(logits[1:])) + 1 if self.ignores_end else int(np.argmax(logits))
        if token == END:
            self.finish("stop")
            return token
        self._n += 1
        self.tokens.put(token)
        if self._n >= self.max_tokens:
            self.finish("length")
        return token

    def finish(self, reason: str) -> None:
        """End the answer."""
        self.finish_reason = reason
        self.tokens.put(None)


@dataclass
class _Running:
    sequence: Sequence
    cache: Cache
    token: int

    @property
    def is_over(self) -> bool:
        return bool(self.sequence.finish_reason) or self.sequence.is_cancelled


class BatchEngine:
    """Runs the model in a thread of its own; at most `max_batch` sequences have a token each in a step."""

    def __init__(self, model: Transformer, max_batch: int) -> None:
        self._model = model
        self._max_batch = max_batch
        self._waiting: deque[Sequence] = deque()
        self._running: list[_Running] = []
        self._is_work = threading.Condition()
        threading.Thread(target=self._work, daemon=True, name="engine").start()

    def submit(self, sequence: Sequence) -> None:
        """Put a sequence at the end of the queue."""
        with self._is_work:
            self._waiting.append(sequence)
            self._is_work.notify()

    def counts(self) -> tuple[int, int]:
        """Return how many sequences run, and how many wait."""
        return len(self._running), len(self._waiting)

    def _work(self) -> None:
        while True:
            for sequence in self._next():
                cache, logits = self._model.prefill(sequence.prompt)
                self._running.append(_Running(sequence, cache, sequence.add(logits)))
            self._running = [each for each in self._running if not each.is_over]
            if self._running:
                tokens, caches = zip(*((each.token, each.cache) for each in self._running), strict=True)
                logits = self._model.step(list(tokens), list(caches))
                for each, row in zip(self._running, logits, strict=True):
                    each.token = each.sequence.add(row)

    def _next(self) -> list[Sequence]:
        """Take sequences from the queue for which the batch has room; waits if there is nothing to do."""
        with self._is_work:
            self._running = [each for each in self._running if not each.is_over]
            self._is_work.wait_for(lambda: self._waiting or self._running)
            taken: list[Sequence] = []
            while self._waiting and len(self._running) + len(taken) < self._max_batch:
                if not (sequence := self._waiting.popleft()).is_cancelled:
                    taken.append(sequence)
            return taken
