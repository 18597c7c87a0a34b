"""What the words of a command line may be: each refuses what is out of its range and says what is in it."""

import argparse
import math
import re
from collections.abc import Callable

DAY_S = 86400


def number(most: float, *, above_0: bool = False) -> Callable[[str], float]:
    """Return a number from 0 to `most`; `above_0`: without 0 itself."""

    def parse(text: str) -> float:
        value = float(text)
        if not math.isfinite(value) or not 0 <= value <= most or (above_0 and value == 0):
            limits = f"{'above' if above_0 else 'at least'} 0 and at most {most:g}"
            raise argparse.ArgumentTypeError(f"{text} is not {limits}")
        return value

    parse.__name__ = "number"
    return parse


def count(least: int) -> Callable[[str], int]:
    """Return a whole number, `least` or more."""

    def parse(text: str) -> int:
        if (value := int(text)) < least:
            raise argparse.ArgumentTypeError(f"{text} is below {least}")
        return value

    parse.__name__ = "whole number"
    return parse


def statuses(text: str) -> frozenset[int]:
    """Return the HTTP statuses of a list such as 2xx,304 or 200-299, as jmx/java/plan/Statuses.java reads it."""
    chosen: set[int] = set()
    for each in map(str.strip, text.split(",")):
        if re.fullmatch(r"[1-5xX][0-9xX]{2}", each):
            chosen.update(status for status in range(100, 600) if re.fullmatch(re.sub("[xX]", ".", each), str(status)))
        elif limits := re.fullmatch(r"([1-5][0-9]{2})-([1-5][0-9]{2})", each):
            chosen.update(range(int(limits[1]), int(limits[2]) + 1))
        else:
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of statuses such as 2xx,304 or 200-299")
    return frozenset(chosen)


def url(text: str) -> str:
    if not text.lower().startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f"{text!r} does not start with http:// or https://")
    return text
