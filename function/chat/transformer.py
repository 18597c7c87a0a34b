"""A small language model: a real transformer with a cache of keys and values, whose weights are random.

Its answers mean nothing; its work is that of a model: a prompt is read at once (prefill), each further token takes a
step, and one step for several sequences costs less than a step for each.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
END = 0  # the token that ends an answer
VOCABULARY = 1024
HEADS = 4
MAX_TOKENS = 4096  # of a prompt and its answer together
_SPREAD = 1237  # so that the first syllables differ, too
_SYLLABLES = [first + vowel for first, vowel in product("bcdfghjklmnprstv", "aeiou")]


def encode(text: str) -> list[int]:
    """Return a token for each word of a text; the same word is the same token, and at least one there is."""
    # JSON may have half of a surrogate pair, which UTF-8 has not.
    words = (word.encode(errors="surrogatepass") for word in text.split())
    return [1 + zlib.crc32(word) % (VOCABULARY - 1) for word in words] or [1]


def decode(token: int) -> str:
    """Return the word of a token, with the blank after it."""
    first, second = divmod(token * _SPREAD % len(_SYLLABLES) ** 2, len(_SYLLABLES))
    return f"{_SYLLABLES[first]}{_SYLLABLES[second]} "


@dataclass
class Cache:
    """Keys and values of a sequence so far, by layer: (heads, tokens, width of a head)."""

    keys: list[Floats]
    values: list[Floats]
    length: int = 0


@dataclass
class Layer:
    """The weights of one layer."""

    qkv: Floats
    out: Floats
    up: Floats
    down: Floats


@dataclass
class Transformer:
    """A decoder of `layers` layers of `width` floats, with the weights that a seed gives."""

    layers: int
    width: int
    seed: int = 1
    _layers: list[Layer] = field(init=False)
    _embedding: Floats = field(init=False)
    _output: Floats = field(init=False)
    _positions: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Draw the weights."""
        chance, width = np.random.default_rng(self.seed), self.width

        def draw(rows: int, columns: int) -> Floats:
            weights: Floats = (chance.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)
            return weights

        shapes = ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width))
        self._layers = [Layer(*(draw(*shape) for shape in shapes)) for _ in range(self.layers)]
        self._embedding = draw(VOCABULARY, width) * np.float32(np.sqrt(VOCABULARY))
        self._output = draw(width, VOCABULARY)
        angles = np.arange(MAX_TOKENS)[:, None] / 10_000 ** (np.arange(width // 2)[None, :] * 2 / width)
        self._positions = np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)

    def prefill(self, tokens: list[int]) -> tuple[Cache, Floats]:
        """Read a prompt; returns its cache, and the logits of the next token."""
        size = self.width // HEADS
        room = (HEADS, MAX_TOKENS, size)
        # Without zeros: the system gives no memory to what is not written.
        keys, values = ([np.empty(room, np.float32) for _ in self._layers] for _ in range(2))
        cache = Cache(keys, values)
        states = self._embedding[tokens] + self._positions[: len(tokens)]
        hidden = np.triu(np.full((len(tokens), len(tokens)), -np.inf, np.float32), k=1)
        for number, layer in enumerate(self._layers):
            query, key, value = self._qkv(layer, states)
            cache.keys[number][:, : len(tokens)], cache.values[number][:, : len(tokens)] = key, value
            scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(size)) + hidden
            mixed = (_softmax(scores) @ value).transpose(1, 0, 2).reshape(len(tokens), self.width)
            states = _feed(layer, (states + mixed @ layer.out).astype(np.float32, copy=False))
        cache.length = len(tokens)
        return cache, self._logits(states[-1:])[0]

    def step(self, tokens: list[int], caches: list[Cache]) -> Floats:
        """Add a token to each sequence; returns the logits of the next ones, a row for each."""
        size = self.width // HEADS
        states = self._embedding[tokens] + self._positions[[cache.length for cache in caches]]
        for number, layer in enumerate(self._layers):
            query, key, value = self._qkv(layer, states)
            mixed = np.empty_like(states)
            for row, cache in enumerate(caches):
                end = cache.length + 1
                cache.keys[number][:, end - 1], cache.values[number][:, end - 1] = key[:, row], value[:, row]
                scores = np.einsum("hd,htd->ht", query[:, row], cache.keys[number][:, :end]) / np.float32(np.sqrt(size))
                mixed[row] = np.einsum("ht,htd->hd", _softmax(scores), cache.values[number][:, :end]).reshape(-1)
            states = _feed(layer, (states + mixed @ layer.out).astype(np.float32, copy=False))
        for cache in caches:
            cache.length += 1
        return self._logits(states)

    def _qkv(self, layer: Layer, states: Floats) -> tuple[Floats, Floats, Floats]:
        """Return queries, keys and values: (heads, tokens, width of a head)."""
        joined = (_normal(states) @ layer.qkv).reshape(len(states), 3, HEADS, -1).transpose(1, 2, 0, 3)
        return joined[0], joined[1], joined[2]

    def _logits(self, states: Floats) -> Floats:
        logits: Floats = _normal(states) @ self._output
        return logits


def _feed(layer: Layer, states: Floats) -> Floats:
    raised = _normal(states) @ layer.up
    fed: Floats = states + np.maximum(raised, 0) @ layer.down
    return fed


def _normal(states: Floats) -> Floats:
    centred = states - states.mean(axis=-1, keepdims=True)
    normal: Floats = centred / np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + np.float32(1e-5))
    return normal


def _softmax(scores: Floats) -> Floats:
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    share: Floats = raised / raised.sum(axis=-1, keepdims=True)
    return share
