"""JMeter's logs of a run: the messages of JMeter and of the kit's classes in it."""

import json
import mmap
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from framestorm.model.summary import ElementErrors
from framestorm.results.element_errors import read_errors

# Thread groups run on the slaves where there are any.
LOGS = ("jmeter.log", "jmeter-server-*.log")
# A message begins after time, level and logger. What is within another is not read: it may be what a client printed.
_MESSAGE = rb"^(?:\S+ \S+ )?[A-Z]+ [^:\n]*: "
# A script of the plan may log anything, such as an answer that looks like one of these: each is taken as it is or not.
# What jmx/java/plan/Refusal.java says of properties that the kit's elements cannot use, by one of their own loggers.
_TEXT = rb'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
_REFUSED = re.compile(rb'^(?:\S+ \S+ )?ERROR f\.p\.\w+: \{"type":"refused","why":(%b)\}$' % _TEXT, re.MULTILINE)
# The message of jmx/java/plan/Pacer.java, and that of jmeter-plugins' Arrivals Thread Group (jmx/java/Arrivals.java).
_NUMBER = rb"(\d{1,15})\b"
_ARRIVALS = re.compile(
    rb'%b\{"type":"arrivals","due":%b,"dropped":%b(?:,"group":(%b))?\}' % (_MESSAGE, _NUMBER, _NUMBER, _TEXT),
    re.MULTILINE,
)
# The messages of jmx/java/Stalls.java: that it watches, and a stall for each second in which it was held up.
_WATCHED = b'{"type":"stalls",'
_STALL = re.compile(
    rb'%b\{"type":"stall","start_ms":%b,"longest_ms":%b,"gc_ms":%b,' % (_MESSAGE, _NUMBER, _NUMBER, _NUMBER),
    re.MULTILINE,
)
# The message of jmx/java/Schedules.java about a schedule that ends the threads of its group, in their samples too.
_GROUP_END = re.compile(
    rb'%b\{"type":"group_end","at_ms":%b,"group":(%b)(?:,"thread":(%b))?\}' % (_MESSAGE, _NUMBER, _TEXT, _TEXT),
    re.MULTILINE,
)
# JMeter numbers its groups, and names their threads by group, number, and number in the group.
_STARTED = b"Starting ThreadGroup: "
_NUMBER_OF = re.compile(r" (\d+)-\d+$")
_OUT_OF_MEMORY = re.compile(rb"OutOfMemoryError: [\w :'-]{1,80}")
# What jmx/java/plan/User.java quotes of a client, which may have printed an error of a Java of its own.
_OF_CLIENT = b": user failed: "
# By an error after which the thread group stops the test, a script or plug-in (jmx/java/Patch.java), or a Flow Control
# Action.
_STOPPED_BY_PLAN = re.compile(
    rb"%b(?:(?:Shutdown|Stop) Test(?: Now)? (?:detected|asked for at \d+) by|Stopping all threads(?: now)? from) "
    rb"(thread: .*|element .*)" % _MESSAGE,
    re.MULTILINE,
)
_STOPPED_NOW = re.compile(rb"%bStop Test Now asked for at %b by" % (_MESSAGE, _NUMBER), re.MULTILINE)
# The message of jmx/java/Unreplaced.java.
_UNREPLACED = re.compile(
    rb'%b\{"type":"unreplaced","label":(%b),"text":(%b),"n":%b\}$' % (_MESSAGE, _TEXT, _TEXT, _NUMBER), re.MULTILINE
)
# The message of jmx/java/Peers.java.
_REQUESTS = re.compile(
    rb'%b\{"type":"requests","name":(%b),"address":(%b),"n":%b\}$' % (_MESSAGE, _TEXT, _TEXT, _NUMBER), re.MULTILINE
)
# The message of jmx/java/SelfCheck.java.
_SELF_CHECK = re.compile(
    rb'%b\{"type":"self_check","samples":%b,"busy_us":%b,"span_us":%b,"unknown":%b\}$' % (_MESSAGE, *[_NUMBER] * 4),
    re.MULTILINE,
)
# What jmx/java/Rows.java says of a sample for which samples.jtl is closed.
_LATE = re.compile(rb"a sample came after the end of the test and is lost: ()")
# And of one that could not be written; the next line names the error.
_UNWRITTEN = re.compile(rb"^(?:\S+ \S+ )?ERROR f\.Rows: cannot write to .*\n(?:[\w.]+: )?(.*)", re.MULTILINE)
# A thread of JMeter that an error of Java ended, as no exception does; the next line names the error.
_ENDED_THREAD = re.compile(
    rb"%b(?:Uncaught exception in thread (?!Thread\[StandardJMeterEngine,).*|Test failed!)\n?([^:\n]*)" % _MESSAGE,
    re.MULTILINE,
)
# The end of what starts the thread groups one after the other; the next line says by what.
_ENDED_ENGINE = re.compile(
    rb"%b(?:Uncaught exception in thread Thread\[StandardJMeterEngine,|Error occurred compiling the tree:).*"
    rb"\n?(.{0,300})" % _MESSAGE,
    re.MULTILINE,
)
# A thread group that JMeter passes over, as one whose duration turns out to be 0; the test goes on with the others.
_UNSTARTED = re.compile(rb"%bError occurred starting thread group :(.*), error message:(.*)" % _MESSAGE, re.MULTILINE)


class CountedByJmeter(NamedTuple):
    """What one JMeter counted of a test by itself, apart from the results of its samplers.

    samples: how many ended; busy_ms: how long their samplers took, all together; span_ms: from the start of the first
    to the end of the last; unknown: for how many of them the time is not known.
    """

    samples: int
    busy_ms: float
    span_ms: float
    unknown: int


class LoadEnd(NamedTuple):
    """When a JMeter told threads to end, in epoch ms: those of a thread group, or all of its threads.

    slave: the one with this JMeter, as in the names of its files; empty for this machine.
    group, number: that group's name, and which of JMeter's groups it is, from 1 on.
    """

    at_ms: float
    slave: str
    group: str | None = None
    number: int | None = None


@dataclass(frozen=True)
class JMeterLog:
    """What JMeter's logs say, those of all hosts together.

    refusal: why the kit's elements could not use a property, and so sent nothing.
    arrivals: how many were due by the schedule, None without one; dropped: how many of them found no free thread,
    dropped_of: by the name of the thread group, empty for those of a plan that has one.
    out_of_memory: what it says of memory or threads that it did not get.
    stopped_by: which thread or element of the plan stopped the test, None if it ran to its end.
    ends: when that, or the schedule of a thread group, ended threads within their samples, which cuts these off.
    ended_threads: how many threads each error ended; the samples that they had begun have no row.
    ended_engine: the error that ended JMeter's engine, which starts the thread groups.
    element_errors: failures of elements that JMeter only logs.
    unreplaced: how many samples were sent with a text in place of a value, by label and text.
    requests: how many went to each address, by the name (host:port) that leads there, and the address.
    unstarted: each thread group that could not be started, with the reason.
    is_watched: whether it noticed the seconds in which it was held up. stalls: the start of each such second in epoch
    ms, and how long in ms a thread was held up in it at most, and garbage was collected.
    counted: what each JMeter that made load counted by itself.
    late: how many samples came after the end of the test, and have no row.
    unwritten: how many samples each error kept from being written, which have no row either.
    """

    refusal: str | None
    arrivals: int | None
    dropped: int
    dropped_of: Counter[str]
    out_of_memory: str | None
    stopped_by: str | None
    ends: list[LoadEnd]
    ended_threads: Counter[str]
    ended_engine: str | None
    element_errors: list[ElementErrors]
    unreplaced: Counter[tuple[str, str]]
    requests: Counter[tuple[str, str]]
    unstarted: list[tuple[str, str]]
    is_watched: bool
    stalls: list[tuple[int, int, int]]
    counted: list[CountedByJmeter]
    late: int
    unwritten: Counter[str]

    @property
    def stopped_ms(self) -> float | None:
        """When a part of the plan stopped the test at once, in epoch ms; None if none did."""
        return min((end.at_ms for end in self.ends if end.group is None), default=None)


def read_log(run_dir: Path) -> JMeterLog:
    """Read JMeter's logs in a run's folder; they may be larger than the memory."""
    with ExitStack() as stack:
        by_slave = {
            path.stem.partition("jmeter-server-")[2]: stack.enter_context(_content(path))
            for name in LOGS
            for path in run_dir.glob(name)
        }
        logs = list(by_slave.values())
        found = partial(_found, logs=logs)
        refusal, stopped = (next((text for (text,) in found(each)), None) for each in (_REFUSED, _STOPPED_BY_PLAN))
        ends = [end for slave, log in by_slave.items() for end in _ends(log, slave)]
        arrivals = [(int(due), int(dropped), group) for due, dropped, group in found(_ARRIVALS)]
        dropped_of = Counter[str]()
        for _, dropped, group in arrivals:
            dropped_of[str(json.loads(group)) if group else ""] += dropped
        return JMeterLog(
            refusal=str(json.loads(refusal)).partition("\n")[0] if refusal else None,
            arrivals=sum(due for due, *_ in arrivals) if arrivals else None,
            dropped=dropped_of.total(),
            dropped_of=dropped_of,
            out_of_memory=next((error for log in logs for error in _memory_errors(log)), None),
            stopped_by=stopped.replace("thread:", "thread").strip() if stopped else None,
            ends=ends,
            ended_threads=Counter(error.strip() for (error,) in found(_ENDED_THREAD)),
            ended_engine=next((error.strip() for (error,) in found(_ENDED_ENGINE)), None),
            element_errors=read_errors(logs),
            unreplaced=_pairs(found(_UNREPLACED)),
            requests=_pairs(found(_REQUESTS)),
            unstarted=[(name, why.strip(" ,\r")) for name, why in found(_UNSTARTED)],
            is_watched=any(log.find(_WATCHED) >= 0 for log in logs),
            stalls=[(int(start), int(longest), int(gc)) for start, longest, gc in found(_STALL)],
            counted=[
                CountedByJmeter(int(samples), int(busy_us) / 1000, int(span_us) / 1000, int(unknown))
                for samples, busy_us, span_us, unknown in found(_SELF_CHECK)
            ],
            late=sum(1 for _ in found(_LATE)),
            unwritten=Counter(error.strip() for (error,) in found(_UNWRITTEN)),
        )


def _found(pattern: re.Pattern[bytes], logs: Iterable[bytes | mmap.mmap]) -> Iterator[list[str]]:
    """Yield the groups of each match in the logs."""
    matches = (match for log in logs for match in pattern.finditer(log))
    return ([(group or b"").decode(errors="replace") for group in match.groups()] for match in matches)


def _ends(log: bytes | mmap.mmap, slave: str) -> Iterator[LoadEnd]:
    """Yield when the test was stopped at once, and when each group was told to end, which a timer may do repeatedly."""
    yield from (LoadEnd(float(match[1]), slave) for match in _STOPPED_NOW.finditer(log))
    ends: dict[tuple[str, int | None], LoadEnd] = {}
    for match in _GROUP_END.finditer(log):
        group, thread = (str(json.loads((text or b'""').decode(errors="replace"))) for text in match.groups()[1:])
        of_thread = _NUMBER_OF.search(thread)
        number = int(of_thread[1]) if of_thread else _last_started(log, group, match.start())
        ends.setdefault((group, number), LoadEnd(float(match[1]), slave, group, number))
    yield from ends.values()


def _last_started(log: bytes | mmap.mmap, group: str, before: int) -> int | None:
    """Return the number of the group of that name, if it is the last one that JMeter started before a place."""
    begin = log.rfind(_STARTED, 0, before) + len(_STARTED)
    number, _, name = log[begin : log.find(b"\n", begin)].decode(errors="replace").partition(" : ")
    return int(number) if number.isdecimal() and name.strip() == group.strip() else None


def _pairs(lines: Iterator[list[str]]) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for first, second, n in lines:
        counts[str(json.loads(first)), str(json.loads(second))] += int(n)
    return counts


def _memory_errors(log: bytes | mmap.mmap) -> Iterator[str]:
    """Yield Java's errors of memory, without those within the words of a client."""
    for match in _OUT_OF_MEMORY.finditer(log):
        before = log[log.rfind(b"\n", 0, match.start()) + 1 : match.start()]
        if _OF_CLIENT not in before:
            yield match[0].decode(errors="replace")


@contextmanager
def _content(path: Path) -> Iterator[bytes | mmap.mmap]:
    """The bytes of a file, which stay on the disk."""
    with path.open("rb") as file:
        if not path.stat().st_size:  # nothing can be mapped
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content
