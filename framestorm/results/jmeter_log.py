"""What JMeter says of a run in its logs: its own messages, and those of the kit's scripts and classes there."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Thread groups run on the slaves where there are any.
LOGS = ("jmeter.log", "jmeter-server-*.log")
# What jmx/groovy/request.groovy and answer.groovy say of properties that they cannot use, before the first request.
_REFUSED = re.compile(r'\{"type":"refused","why":.*\}$', re.MULTILINE)
# The message of jmx/groovy/arrival.groovy, and that of jmeter-plugins' Arrivals Thread Group.
_ARRIVALS = re.compile(r'\{"type":"arrivals","due":(\d+)|ArrivalsThreadStarter: .*had arrivals: (\d+)')
# The messages of jmx/java/Stalls.java: that it watches, and a stall for each second in which it was held up.
_STALLS = re.compile(r'\{"type":"stalls?",.*\}$', re.MULTILINE)
_OUT_OF_MEMORY = re.compile(r"OutOfMemoryError: [\w :'-]{1,80}")
# By an error after which the thread group stops the test, a script, or a Flow Control Action.
_STOPPED_BY_PLAN = re.compile(
    r"(?:Shutdown|Stop) Test(?: Now)? detected by (thread: .*)|Stopping all threads(?: now)? from (element .*)"
)
# A thread of JMeter that an error of Java ended, as no exception does; the next line names the error.
_ENDED_THREAD = re.compile(r"Uncaught exception in thread .*\n?([^:\n]*)")


@dataclass(frozen=True)
class JMeterLog:
    """What JMeter's logs say, those of all hosts together.

    refusal: why a plan's scripts could not use a property, and so sent nothing.
    arrivals: how many requests were due by the schedule; those dropped at the concurrency limit appear nowhere else.
    out_of_memory: what it says of memory or threads that it did not get.
    stopped_by: which thread or element of the plan stopped the test, None if it ran to its end.
    ended_threads: how many threads each error ended; the samples that they had begun have no row.
    stalls: messages on the seconds in which it was held up, one at least if it watched for them.
    """

    refusal: str | None
    arrivals: int | None
    out_of_memory: str | None
    stopped_by: str | None
    ended_threads: Counter[str]
    stalls: list[dict[str, Any]]


def read_log(run_dir: Path) -> JMeterLog:
    """Read JMeter's logs in a run's folder."""
    text = "\n".join(path.read_text(errors="replace") for name in LOGS for path in run_dir.glob(name))
    refused, stopped, out_of_memory = (each.search(text) for each in (_REFUSED, _STOPPED_BY_PLAN, _OUT_OF_MEMORY))
    due = [int(ours or of_plugin) for ours, of_plugin in _ARRIVALS.findall(text)]
    return JMeterLog(
        refusal=str(json.loads(refused[0])["why"]).partition("\n")[0] if refused else None,
        arrivals=sum(due) if due else None,
        out_of_memory=out_of_memory[0] if out_of_memory else None,
        stopped_by=(stopped[1] or stopped[2]).replace("thread:", "thread").strip() if stopped else None,
        ended_threads=Counter(error.strip() for error in _ENDED_THREAD.findall(text)),
        stalls=[json.loads(message) for message in _STALLS.findall(text)],
    )
