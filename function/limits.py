"""Limits that every function has, from the environment, checked once at start.

A name is looked up as OpenFaaS writes its own (`exec_timeout`) and in capitals (`EXEC_TIMEOUT`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

EXEC_TIMEOUT_DEFAULT = "25s"
MAX_INFLIGHT_DEFAULT = "0"
MAX_BODY_BYTES_DEFAULT = str(16 * 2**20)

# So many requests are held at once at most, each by a thread that waits for its result.
INFLIGHT_MAX = 256

_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class VariableError(Exception):
    """A variable of the environment has a value that cannot be used; the message names it and what it may be."""


@dataclass(frozen=True)
class FunctionLimits:
    """Body size, requests at once (0: no limit) and the time after which a request is answered with 504."""

    max_body_bytes: int
    max_inflight: int
    exec_timeout_s: float


def limits_from(environment: Mapping[str, str]) -> FunctionLimits:
    """Read the limits; raises VariableError."""
    return FunctionLimits(
        max_body_bytes=integer(environment, "max_body_bytes", MAX_BODY_BYTES_DEFAULT, 1, 2**31),
        max_inflight=integer(environment, "max_inflight", MAX_INFLIGHT_DEFAULT, 0, INFLIGHT_MAX),
        exec_timeout_s=duration_s(environment, "exec_timeout", EXEC_TIMEOUT_DEFAULT),
    )


def value_of(environment: Mapping[str, str], name: str, default: str) -> str:
    """The value of `name` in small letters, else in capitals, else the default; an empty one counts as not set."""
    return (environment.get(name) or environment.get(name.upper()) or default).strip()


def integer(environment: Mapping[str, str], name: str, default: str, least: int, most: int) -> int:
    """Return a whole number from `least` to `most`; raises VariableError."""
    text = value_of(environment, name, default)
    if not re.fullmatch(r"\d{1,18}", text) or not least <= int(text) <= most:
        raise VariableError(f"{name}={text!r}: must be a whole number from {least} to {most}")
    return int(text)


def share(environment: Mapping[str, str], name: str, default: str) -> float:
    """Return a number above 0 and up to 1; raises VariableError."""
    text = value_of(environment, name, default)
    if not re.fullmatch(r"\d*\.?\d+", text) or not 0 < float(text) <= 1:
        raise VariableError(f"{name}={text!r}: must be a number above 0 and up to 1, such as {default}")
    return float(text)


def duration_s(environment: Mapping[str, str], name: str, default: str) -> float:
    """A duration as OpenFaaS writes it (25s, 1m30s; a bare number is seconds) in seconds; raises VariableError."""
    text = value_of(environment, name, default)
    parts = _DURATION_PART.findall(f"{text}s" if re.fullmatch(r"\d+(\.\d+)?", text) else text)
    seconds = sum(float(number) * _UNIT_S[unit] for number, unit in parts)
    whole = "".join(number + unit for number, unit in parts)
    if whole not in (text, f"{text}s") or not 0 < seconds <= 24 * 3600:
        raise VariableError(f"{name}={text!r}: must be a duration above 0 and up to 24h, such as 25s or 1m30s")
    return seconds
