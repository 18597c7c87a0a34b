"""Why a sample failed: one table of causes, each with its sentence and the side that it speaks of.

A cause is a word of lower-case letters, digits and hyphens. `status-NNN` and `exit-N` are made of a number and have no
row of their own.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

WORD = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Side(StrEnum):
    """Whose failure it is: the function's, the way to it, or the generator's own."""

    FUNCTION = "function"
    NETWORK = "network"
    GENERATOR = "generator"


@dataclass(frozen=True)
class Cause:
    """One cause; `is_timeout`: the wait ended before the answer came, so that the time is only a lower bound."""

    word: str
    sentence: str
    side: Side
    is_timeout: bool = False


CAUSES = {
    cause.word: cause
    for cause in (
        Cause("connect", "the connection was refused or could not be made", Side.NETWORK),
        Cause("connect-timeout", "no connection within the connect timeout", Side.NETWORK),
        Cause("timeout", "no complete answer within the timeout", Side.FUNCTION, is_timeout=True),
        Cause("reset", "the connection broke, or the answer was cut short", Side.NETWORK),
        Cause("not-json", "the answer is not JSON", Side.FUNCTION),
        Cause("not-image", "the answer holds no image", Side.FUNCTION),
        Cause("wrong-size", "the image has another size", Side.FUNCTION),
        Cause("not-blurred", "a reported face is unchanged", Side.FUNCTION),
        Cause("changed-outside", "the image is changed outside of the faces", Side.FUNCTION),
        Cause("too-few-faces", "fewer faces reported than the image has", Side.FUNCTION),
        Cause("redirected-as-get", "a redirect turned the request into a GET without its body", Side.FUNCTION),
        Cause("expect-not-met", "the answer does not meet the plan's property expect", Side.FUNCTION),
        Cause("reject-met", "the answer meets the plan's property reject", Side.FUNCTION),
        Cause("failed-check", "an assertion of the plan failed", Side.FUNCTION),
        Cause("failed-sample", "one of its samples failed", Side.FUNCTION),
        Cause("stopped", "interrupted because the run was stopped", Side.GENERATOR),
        Cause("never-ended", "the user started and never ended", Side.GENERATOR),
        Cause("user-timeout", "the user exceeded user_timeout_s", Side.FUNCTION, is_timeout=True),
        Cause("not-started", "the client could not be started", Side.GENERATOR),
        Cause("client-server-ended", "the client server ended or hung, and its users with it", Side.GENERATOR),
        Cause("not-json-lines", "the client printed unexpected output", Side.GENERATOR),
        Cause("no-samples", "the client ended without a sample", Side.GENERATOR),
        Cause("status-429", "the function's concurrency limit was exceeded", Side.FUNCTION),
        Cause("status-500", "an error in the function", Side.FUNCTION),
        Cause("status-502", "the gateway found no function", Side.FUNCTION),
        Cause("status-503", "the function was not ready", Side.FUNCTION),
        Cause("status-504", "the platform's own timeout", Side.FUNCTION, is_timeout=True),
        Cause("unknown", "no cause was recorded", Side.FUNCTION),
    )
}
TIMEOUTS = frozenset(cause.word for cause in CAUSES.values() if cause.is_timeout)


def describe(word: str) -> Cause:
    """The cause of that word; one that no table knows is the word itself, and the function's."""
    if word in CAUSES:
        return CAUSES[word]
    if word.startswith("status-"):
        return Cause(word, f"HTTP {word.removeprefix('status-')}", Side.FUNCTION)
    if word.startswith("exit-"):
        return Cause(word, f"the client's process ended with exit status {word.removeprefix('exit-')}", Side.GENERATOR)
    return Cause(word, word, Side.FUNCTION)
