"""Why a sample failed: one table of causes, each with its sentence and the side that it speaks of.

Those of the answers that only the kit's own clients and plans understand are declared in client/sample.json.

A cause is a word of lower-case letters, digits and hyphens. `status-NNN` and `exit-N` are made of a number and have no
row of their own. After some words stands what JMeter said, such as `failed-check: Test failed: text expected ...`.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from framestorm.model.sample import SCHEMA

WORD = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LONGEST_DETAIL = 120
_FROM_EXCEPTION = {
    # By EarlyAnswer.java, IdleConnection.java and HeadParser.java in jmx/java; the second is of Java's own HTTP client.
    "closed-early": re.compile(
        r"the server closed while the body was sent(?: \(\d+ of (?P<detail>\d+ bytes)\))?|error writing to server"
    ),
    "idle-closed": re.compile("the server had closed this connection, idle for"),
    "http2-only": re.compile("the server speaks http/2 only|no_application_protocol"),
    "no-server": re.compile("does not specify a valid host name|protocol = https? host = null"),
    "generator-limit": re.compile("too many open files|cannot assign requested address|address not available"),
    "connect-timeout": re.compile("connecttimeout|connect timed out"),
    # The third is the beginning that jmx/java/SampleTimeouts.java gives a message.
    "timeout": re.compile("sockettimeout|read timed out|sample timeout: |process timeout reached"),
    "connect": re.compile("connectexception|connection refused|could not connect|unknownhost|noroutetohost"),
    # Java says "Socket closed" of a connection that its own side closed.
    "reset": re.compile(
        "nohttpresponse|socketexception(?!.*socket (is )?closed)|connection reset|connectionclosed|premature"
        "|truncatedchunk"
    ),
    # The last is of a Content-Type that ends in `charset="`. Of a connection that broke off, HttpClient says so itself:
    # the end of a file is that of a compressed body.
    "not-http": re.compile(
        "clientprotocolexception|redirectexception|maximum number of redirects|messageconstraint|malformedchunk"
        "|zipexception|http response code: java.io.eofexception|brotli stream decoding"
        "|http response code: java.lang.stringindexoutofbounds"
    ),
}
_EXCEPTION = re.compile(r"(?:[\w$]+\.)+([\w$]*(?:Exception|Error))")
# The wrapper of another exception, and the number that Groovy gives a script each time that it cannot compile it.
_OF_SCRIPT = re.compile(
    r"^javax\.script\.ScriptException: (?=[\w.]+(?:Exception|Error)\b)|(?<=\bScript)\d+(?=\.groovy)"
)
_PREFIX = re.compile(r"Non HTTP response (?:code|message): *")
# The figure of a Duration or Size Assertion differs from sample to sample: without it, one cause is one cause.
_MEASURED = re.compile(r"\b(It (?:took|was)) [\d.,\s]*\d")
# How a Response Assertion shows two texts that are not equal, with marks around the parts that differ, which it fills
# up with blanks to the same length.
_COMPARED = re.compile(
    r"(?P<what>.* to equal) /\s*\*+ received *: (?P<received>.*?)\s*\*+ comparison *: (?P<expected>.*?)\s*/",
    re.DOTALL,
)
_MARKS = re.compile(r" *\]\]\]|\[\[\[")


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


_OF_CLIENTS: dict[str, dict[str, str]] = SCHEMA["$defs"]["causes"]["words"]
CAUSES = {
    cause.word: cause
    for cause in (
        Cause("connect", "the connection was refused or could not be made", Side.NETWORK),
        Cause("connect-timeout", "no connection within the connect timeout", Side.NETWORK),
        Cause("timeout", "no complete answer within the timeout", Side.FUNCTION, is_timeout=True),
        Cause("tls", "no encrypted connection could be made", Side.NETWORK),
        Cause("reset", "the connection broke, or the answer was cut short", Side.NETWORK),
        Cause("closed-early", "a size limit? the server closed while the body was sent", Side.FUNCTION),
        Cause(
            "idle-closed",
            "the server had closed the idle connection before the request was sent on it: set "
            "httpclient4.validate_after_inactivity (ms) below its keep-alive time",
            Side.GENERATOR,
        ),
        Cause("http2-only", "the server speaks HTTP/2 only, and JMeter's HTTP sampler HTTP/1.1", Side.GENERATOR),
        Cause("no-server", "the request names no server", Side.GENERATOR),
        Cause("not-http", "the answer breaks HTTP, in its head, its compression or its redirect", Side.FUNCTION),
        Cause(
            "unknown-coding", "the answer is compressed in a way that nobody asked for or can read here", Side.FUNCTION
        ),
        Cause("not-json", "the answer is not JSON", Side.FUNCTION),
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
        Cause("worker-ended", "a process of the local pool was killed", Side.GENERATOR),
        Cause("no-samples", "the client ended without a sample", Side.GENERATOR),
        Cause("status-429", "too many requests: a concurrency or rate limit was exceeded", Side.FUNCTION),
        Cause("status-500", "an error in the function", Side.FUNCTION),
        Cause("status-502", "the gateway got no valid answer from the function, or found none", Side.FUNCTION),
        Cause("status-503", "the function was not ready, or overloaded", Side.FUNCTION),
        Cause("status-504", "the platform's own timeout", Side.FUNCTION, is_timeout=True),
        Cause("generator-limit", "the generator had no port, file descriptor or memory left for it", Side.GENERATOR),
        Cause("exception", "the sampler ended with an exception", Side.GENERATOR),
        Cause("answer-too-long", "the answer is too long to be checked", Side.GENERATOR),
        Cause("not-judged", "the answer could not be judged: jmeter.log has the error", Side.GENERATOR),
        Cause("error", "the sampler reported an error", Side.FUNCTION),
        Cause("unknown", "no cause was recorded", Side.FUNCTION),
        *(Cause(word, each["description"], Side(each["side"])) for word, each in _OF_CLIENTS.items()),
    )
}
TIMEOUTS = frozenset(cause.word for cause in CAUSES.values() if cause.is_timeout)
# The causes that JMeter's texts give for a sample whose connection it closed itself because the run was stopped.
AS_IF_NOT_STOPPED = frozenset(
    {cause.word for cause in CAUSES.values() if cause.side is Side.NETWORK} | {"exception", "unknown"}
)
# What JMeter writes as the message of a transaction: how many of its samples failed.
TRANSACTION_MESSAGE = r"^Number of samples in transaction : \d+, number of failing samples : (\d+)$"
TRANSACTION_PATTERN = re.compile(TRANSACTION_MESSAGE)
FAILED_CHECK, FAILED_SAMPLE = "failed-check", "failed-sample"


def is_known(cause: str) -> bool:
    """Return whether it is one of this kit's causes, without a detail; clients may have any others."""
    return cause in CAUSES or bool(re.fullmatch(r"status-\d{3}|exit-\d{1,3}", cause))


def describe(cause: str) -> Cause:
    """Return the cause of that word; one that no table knows is the word itself, and the function's."""
    word, _, detail = cause.partition(": ")
    if word in CAUSES:
        known = CAUSES[word]
        return replace(known, sentence=f"{known.sentence}: {detail}") if detail else known
    word = cause
    if word.startswith("status-"):
        return Cause(word, f"HTTP {word.removeprefix('status-')}", Side.FUNCTION)
    if word.startswith("exit-"):
        return Cause(word, f"the client's process ended with exit status {word.removeprefix('exit-')}", Side.GENERATOR)
    return Cause(word, word, Side.FUNCTION)


def is_answered(cause: str) -> bool:
    """Return whether it is an error that the function itself answers, however long it took.

    Failed assertions are none, because an assertion may be about the time.
    """
    described = describe(cause)
    is_check = cause.startswith((FAILED_CHECK, FAILED_SAMPLE))
    return described.side is Side.FUNCTION and not described.is_timeout and not is_check


def user_cause(code: str, message: str) -> str:
    """Why a user's process failed: the cause set by the plan, or else by JMeter's code and message (SystemSampler)."""
    if WORD.fullmatch(message) or (code == "0" and message != "OK"):
        return message
    lower = message.lower()
    if "process timeout" in lower or "timed out" in lower:
        return "user-timeout"
    if "interrupted" in lower:
        return "stopped"
    return "not-started" if code == "500" else f"exit-{code or 'unknown'}"


def request_cause(code: str, message: str, failure: str, is_http: bool = True) -> str:
    """Return why a sample of JMeter's own samplers failed: the cause set by the plan, or else by JMeter's texts.

    is_http: the sample has a URL. JMeter writes the status 500 of a function for other samplers that fail, too.
    """
    for word in (message, failure):
        if word in CAUSES:
            return word
    text = f"{code} {message}".lower()
    for cause, pattern in _FROM_EXCEPTION.items():
        if match := pattern.search(text):
            detail = match.groupdict().get("detail")
            return f"{cause}: ... of {detail}" if detail else cause
    is_error = bool(re.fullmatch(r"[1345]\d\d", code))
    if is_http and re.fullmatch(r"[13-9]\d\d", code):  # what HTTP does not define, functions send all the same
        return f"status-{code}"
    # An assertion can only repeat that there was no answer.
    if failure and not is_error and not _PREFIX.match(code):
        return _failed_check(failure)
    if WORD.fullmatch(message):
        return message
    code, message = _PREFIX.sub("", code), _OF_SCRIPT.sub("", _PREFIX.sub("", message))
    if exception := _EXCEPTION.search(f"{code} {message}"):
        is_tls = "ssl" in exception[0].lower() or "certificate" in exception[1].lower()
        detail = message if exception[0] in message else f"{exception[1]}: {message}"
        return _detailed("tls" if is_tls else "exception", detail)
    if is_error and not message:
        return f"status-{code}"
    is_plain = re.fullmatch(r"2\d\d|", code) and message in ("", "OK")
    return "unknown" if is_plain else _detailed("error", f"{code} {message}")


def transaction_cause(message: str, failure: str) -> str:
    """Return why a transaction failed: because a sample of it did, or by an assertion of its own."""
    failing = TRANSACTION_PATTERN.search(message)
    if (failing is None and not failure) or (failing is not None and int(failing[1])):
        return FAILED_SAMPLE
    return _failed_check(failure) if failure else FAILED_CHECK


def _failed_check(failure: str) -> str:
    """Return a failed assertion, with what it expects: two of them may differ in nothing else."""
    if texts := _COMPARED.fullmatch(failure.strip()):
        received, expected = (" ".join(_MARKS.sub("", texts[name]).split()) for name in ("received", "expected"))
        failure = (
            f"{texts['what']} {_cut(expected, LONGEST_DETAIL // 3)}, received {_cut(received, LONGEST_DETAIL // 3)}"
        )
    line = " ".join(_MEASURED.sub(r"\1 ...", failure).split())
    return f"{FAILED_CHECK}: {_cut(line, LONGEST_DETAIL)}"


def _cut(text: str, most: int) -> str:
    """Return a text of bounded length: its beginning and its end, where texts of one kind differ."""
    return text if len(text) <= most else f"{text[: most * 2 // 3]} ... {text[-most // 3 :]}"


def _detailed(word: str, detail: str) -> str:
    """Return a cause with what JMeter said about it, in one line of bounded length."""
    detail = " ".join(detail.split())
    return f"{word}: {detail if len(detail) <= LONGEST_DETAIL else detail[:LONGEST_DETAIL] + '...'}"
