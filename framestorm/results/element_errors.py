"""Errors of a plan's elements in JMeter's logs: JMeter only logs them, and goes on as if nothing had happened."""

import mmap
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from framestorm.model.summary import ElementErrors
from framestorm.plain import visible

MOST_ELEMENTS = 100
MOST_CHARACTERS = 160
# A line of a log: level, logger, message, and what the next line says, which is the exception if there is one.
_LINE = re.compile(
    rb"^(?:\S+ \S+ )?(ERROR|WARN) +([^\s:][^:\n]{0,200}): ?([^\n]{0,400})[^\n]*(?=(?:\n([^\n]{0,400}))?)", re.MULTILINE
)
_RECORD = re.compile(r"\S+ \S+ (?:ERROR|WARN|INFO|DEBUG|TRACE|FATAL) ")
# Loggers whose errors are told in another way, or again by the element that they come from.
_TOLD = re.compile(
    r"o\.a\.j\.JMeter|o\.a\.j\.u\.(JMeterUtils|BeanShellInterpreter|XPathUtil)|f(ramestorm)?\.\w+"
    r"|o\.a\.j\.e\.(StandardJMeterEngine|ClientJMeterEngine|DistributedRunner|RemoteJMeterEngineImpl)|o\.a\.j\.r\.\w+"
)
# Elements whose warnings mean that they failed; those of others are of threads, connections and the like.
_WARNING = re.compile(
    r"o\.a\.j\.(m\.\w*(PreProcessor|CounterConfig|UserParameters)|t\.\w*Timer|e\.(\w\.)*\w*(Extractor|PostProcessor)"
    r"|a\.\w*Assertion|f\.(?!LogFunction)\w+|c\.\w*(Controller|Config|DataSet)|v\.\w*Listener|s\.TestAction"
    r"|e\.u\.FunctionParser)"
)
# What a user's own script or function writes, and what JMeter's engine says of its end.
_OF_USER = re.compile(r"o\.a\.j\.f\.LogFunction")
# A timer's mode that JMeter does not understand is understood by jmx/java/Schedules.java. A sharing mode of a data set
# that is none of the three words is the name of what shares it.
_TOLD_MESSAGES = re.compile(
    r"Test failed!|user failed: |\{\"type\":|Error in NonGUIDriver|Could not convert calcMode="
    r"|Could not translate shareMode="
)
# The name of an element within messages.
_NAMED = (
    re.compile(r"Problem in JSR223 script[,:] (?P<name>.+)"),
    re.compile(r"Error processing JSON content in (?P<name>.+?), message: (?P<message>.*)"),
    re.compile(r"Error while processing sampler: '(?P<name>.+)'\.?"),
    re.compile(r"(?P<name>.+): error while processing \[(?P<message>.*)\]"),
    re.compile(r"(?P<name>.+?): Error while generating result\. (?P<message>.*)"),
)
# Functions whose classes have other names.
_FUNCTIONS = {
    name: name for name in ("BeanShell", "CSVRead", "FileToString", "StringFromFile", "StringToFile", "XPath")
}
_WRAPPERS = re.compile(
    r"^(Problem in BeanShell script[.:] |javax\.script\.ScriptException: |[\w.]*\.JMeterException: )+"
)
_CONSEQUENCES = (
    (re.compile(r"function .*|\w*(PreProcessor|Timer|CounterConfig|DataSet)\b.*"), "requests were sent all the same"),
    (re.compile(r"\w*(Extractor|PostProcessor)\b.*"), "the variables that it sets are as they were before"),
    (re.compile(r"\w*(Listener|Collector|Saver)\b.*"), "what it should have written is missing"),
    (re.compile(r"IfController\b.*"), "what is in it was not run"),
    (re.compile(r"sampler .*"), "it has no row"),
    (
        re.compile(r"SampleResult"),
        "a script or a plug-in set its start or end, which is no measured time",
    ),
)
# JMeter's way to log where it was called from.
_NO_EXCEPTION = "java.lang.Throwable: "


def read_errors(logs: Iterable[bytes | mmap.mmap]) -> list[ElementErrors]:
    """The errors of elements in these logs by element, the most frequent first; logs may be larger than the memory."""
    by_what: dict[str, ElementErrors] = {}
    for log in logs:
        for level, logger, message, below in _lines(log):
            what, text = _element(level, logger, message, below)
            if what is None:
                continue
            if what not in by_what:
                if len(by_what) >= MOST_ELEMENTS:
                    continue
                by_what[what] = ElementErrors(what, 0, visible(text)[:MOST_CHARACTERS], _consequence(what))
            by_what[what] = replace(by_what[what], n=by_what[what].n + 1)
    return sorted(by_what.values(), key=lambda each: -each.n)


def _lines(log: bytes | mmap.mmap) -> Iterator[tuple[str, str, str, str]]:
    for match in _LINE.finditer(log):
        level, logger, message, below = ((group or b"").decode(errors="replace") for group in match.groups())
        yield level, logger, message.strip(), below


def _element(level: str, logger: str, message: str, below: str) -> tuple[str | None, str]:
    """Return which element a line is about, None if it is about none, and what it says."""
    is_of_element = _WARNING.fullmatch(logger) is not None
    if (level == "WARN" and not is_of_element) or _OF_USER.fullmatch(logger) or _TOLD_MESSAGES.match(message):
        return None, ""
    if _TOLD.fullmatch(logger):
        return None, ""
    kind = logger.rpartition(".")[2]
    name = ""
    for pattern in _NAMED:
        if match := pattern.fullmatch(message):
            name, message = match["name"], match.groupdict().get("message", "") or message
            break
    # A script's own logger ends in its name: o.a.j.m.J.name
    if script := re.fullmatch(r"o\.a\.j\.\w\.J\.(.+)", logger):
        kind, name = "script", script[1]
    elif logger.startswith("o.a.j.f."):
        kind = f"function {_FUNCTIONS.get(kind) or kind[:1].lower() + kind[1:].removesuffix('Function')}"
    elif logger.startswith("o.a.j.v.b."):
        kind = "BackendListener" if kind == "BackendListener" else f"BackendListener ({kind})"
    elif kind == "JMeterThread" and name:
        kind = "sampler"
    is_exception = below and not _RECORD.match(below) and not below.startswith(("\t", "<", _NO_EXCEPTION))
    exception = below.strip() if is_exception else ""
    text = _WRAPPERS.sub("", exception or message)
    return (f"{kind} {name!r}" if name else kind), " ".join(text.split())


def _consequence(what: str) -> str:
    return next((text for pattern, text in _CONSEQUENCES if pattern.fullmatch(what)), "")
