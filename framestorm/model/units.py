"""Numbers as people read them: three significant digits, the unit that fits, nothing rounded into a lie."""

import math
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import TypeGuard

NBSP = "\u00a0"
NONE = "\N{EN DASH}"  # no value, and from … to
# As Java reads them too: no nan, no 1_000, and no digits of other scripts.
WHOLE_NUMBER, NUMBER = re.compile(r"-?[0-9]+"), re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
# Of names in a sentence; more are in lines of their own.
MOST_IN_SENTENCE, LINE_LENGTH = 6, 100


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_number(value: object) -> int | float | None:
    """Return a finite number, or a text that is one, as a number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    for kind in (int, float):
        try:
            number = kind(value) if isinstance(value, str) else value
            return number if math.isfinite(number) else None
        except (ValueError, OverflowError):  # of a whole number that no float can be
            continue
    return None


def scaled(number: str, factor: float | Fraction) -> float:
    """Return a number times the factor of its unit, rounded once: 0.7 % is 0.007, but 0.7 * 0.01 is less."""
    return float(Fraction(Decimal(number)) * Fraction(str(factor)))


def as_text(value: object) -> str:
    """Return a value in the form of a JMeter property."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def significant(value: float, digits: int = 3) -> str:
    """`value` with `digits` significant digits, without an exponent, with thousands separators."""
    if value == 0:
        return "0"
    text = f"{value:.{digits - 1}e}"
    exponent = int(text.split("e")[1])
    return f"{float(text):,.{max(0, digits - 1 - exponent)}f}"


def duration(ms: float) -> str:
    """Return a time, given in ms, in the unit that fits; whole milliseconds have no decimals: they were measured so."""
    if abs(float(f"{ms:.2e}")) < 1000:
        return f"{ms:.0f}{NBSP}ms" if float(ms).is_integer() else f"{significant(ms)}{NBSP}ms"
    seconds = ms / 1000
    if round(seconds) < 120:
        return f"{significant(seconds)}{NBSP}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        days, hours = divmod(round(hours + minutes / 60), 24)
        return plural(days, "day") + (f" {hours}{NBSP}h" if hours else "")
    if hours:
        return f"{hours}{NBSP}h {minutes:02}{NBSP}min"
    return f"{minutes}{NBSP}min {rest:02}{NBSP}s"


def percent(ratio: float) -> str:
    """Return a ratio in percent; says 100 % only for 1 and 0 % only for 0."""
    for decimals in range(1, 10):
        text = f"{100 * ratio:.{decimals}f}"
        if float(text) not in (0.0, 100.0):
            return f"{text}{NBSP}%"
    return f"{100 * ratio:.0f}{NBSP}%"


def count(n: float) -> str:
    """Return a whole number with thousands separators."""
    return f"{int(n):,}"


def rate(per_s: float) -> str:
    """Return a rate in events a second."""
    return f"{significant(per_s)}/s"


def size(n_bytes: float) -> str:
    """Return a number of bytes in kB, MB or GB (powers of 1000)."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= scale:
            return f"{significant(n_bytes / scale)}{NBSP}{unit}"
    return f"{n_bytes:.0f}{NBSP}B" if float(n_bytes).is_integer() else f"{significant(n_bytes)}{NBSP}B"


def size_rate(bytes_per_s: float) -> str:
    """Return a rate in bytes a second."""
    return f"{size(bytes_per_s)}/s"


def cores(n: float) -> str:
    """Return how many cores were busy."""
    return significant(n, 2) if 0 < n < 0.1 else f"{n:.2f}"


def core_count(n: float) -> str:
    """`1 core`, `0.5 cores`."""
    return f"{n:g} {'core' if n == 1 else 'cores'}"


def plural(n: int, noun: str, nouns: str | None = None) -> str:
    """`1 request`, `2 requests`."""
    return f"{count(n)} {noun if n == 1 else nouns or noun + 's'}"


def ends(low: str | None, high: str | None) -> str:
    """Return the ends of an interval with a dash between; … for one that is not known, empty without any."""
    return "" if low is None and high is None else f"{low or '…'} {NONE} {high or '…'}"


def names_in(text: str, is_known: Callable[[str], bool]) -> list[str]:
    """Split names that are joined by commas, which a name may hold too: each is the longest that is known."""
    parts, names = text.split(","), list[str]()
    while parts:
        ends = range(len(parts), 0, -1)
        end = next((end for end in ends if is_known(",".join(parts[:end]))), 1)
        names.append(",".join(parts[:end]))
        parts = parts[end:]
    return names


def listed(words: list[str]) -> str:
    """Return the words as a sentence lists them: a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def in_lines(names: Iterable[str]) -> str:
    """The names for the end of a sentence of a message; many of them in lines of their own, which no name is cut by."""
    words = [*names]
    if len(words) <= MOST_IN_SENTENCE:
        return " " + ", ".join(words)
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > LINE_LENGTH:
            lines.append("")
        lines[-1] += f" {word},"
    return "".join(f"\n {line}" for line in lines).rstrip(",")
