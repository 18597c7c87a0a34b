"""What users of a model ask: the prompts of a file, a text, or generated ones of a given number of words."""

import json
import random
from functools import lru_cache
from pathlib import Path
from typing import Any

Message = dict[str, Any]
# Short and common, so that most tokenizers have one token for each.
_COMMON = """
the a of and to in is it that was for on are with as at be this have from or one had by word but not what all were
when we there can an your which their said if do will each about how up out them then she many some so these would
other into has more her two like him see time could no make than first been its who now people my made over did down
only way find use may water long little very after called just where most know
"""
_WORDS = _COMMON.split()


class PromptError(Exception):
    """The prompts cannot be used; the message says why."""


class Prompts:
    """Prompts by number: those of a list in turn, or generated ones, of which each is another."""

    def __init__(self, listed: list[list[Message]], words: int = 0, seed: int = 1) -> None:
        """Take the messages of each prompt; without any, each prompt is made of so many words."""
        self._listed = listed
        self._words = words
        self._seed = seed

    def messages(self, number: int) -> list[Message]:
        """Return the messages of a prompt, the same ones for the same number each time."""
        if self._listed:
            return self._listed[number % len(self._listed)]
        chance = random.Random(f"{self._seed} {number}")  # noqa: S311
        return [_message(" ".join(chance.choices(_WORDS, k=self._words)))]


def open_prompts(text: str, words: int, seed: int) -> Prompts:
    """Return the prompts of a property: `@file`, or a text, which is the one prompt; generated ones if it is empty.

    Raises:
        PromptError: the file cannot be read, or has something else than prompts.
    """
    if not text.startswith("@"):
        return Prompts([[_message(text)]] if text else [], words, seed)
    path = Path(text[1:])
    try:
        return _read(path, path.stat().st_mtime_ns)
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"prompts {path} cannot be read: {error}") from error


@lru_cache(maxsize=4)
def _read(path: Path, _changed_ns: int) -> Prompts:
    lines = path.read_text(encoding="utf-8-sig").split("\n")
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        raise PromptError(f"prompts {path}: the file has no prompt")
    if path.suffix not in {".jsonl", ".ndjson"}:
        return Prompts([[_message(line.strip())] for _, line in numbered])
    return Prompts([_messages(line, f"prompts {path}, line {number}") for number, line in numbered])


def _messages(line: str, where: str) -> list[Message]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise PromptError(f"{where}: {error}") from error
    prompt = value.get("prompt") if isinstance(value, dict) else value
    if isinstance(prompt, str):
        return [_message(prompt)]
    messages = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        raise PromptError(f"{where}: neither a text nor an object with prompt (a text) or messages (a list)")
    return messages


def _message(text: str) -> Message:
    return {"role": "user", "content": text}


def text_of(message: Message) -> str:
    """Return the text of a message: its content, or that of its parts."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))
