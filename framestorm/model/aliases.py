"""The words by which people who come from other tools call the properties of the kit's plans."""

import re
from collections.abc import Container

# By our word: theirs, without underscores. A word may lead to several of ours; a plan has the first that it has.
WORDS = {
    "users": "threads numthreads vus vu virtualusers concurrency concurrent concurrentusers clients usercount",
    "rate_per_s": "rps rate qps tps throughput arrivalrate arrivals targetrate requestspersecond rates requestrate rpm",
    "load": "stages scenario profile shape steps schedule",
    "arrivals": "distribution arrivalprocess pattern interarrival",
    "seed": "randomseed",
    "hold_s": "duration hold holdfor runtime time length testduration period seconds iterations loops loopcount",
    "ramp_s": "rampup ramp ramptime rampuptime rampupperiod rampupduration warmup spawnrate hatchrate startrate",
    "sleep_s": "thinktime think pause delay sleep wait waittime pacing",
    "tasks": "iterations loops loopcount requests count n",
    "frames": "iterations loops loopcount",
    "workers": "threads vus concurrency connections processes parallel",
    "concurrency_limit": "maxvus preallocatedvus maxinflight maxusers maxconcurrency vus threads concurrency",
    "url": "host target endpoint address uri server baseurl domain hostname site",
    "body": "data payload json requestbody postdata bodydata input databinary",
    "headers": "header httpheaders h requestheaders auth token authorization bearer",
    "method": "verb httpmethod request",
    "expect": "assert asserts assertion assertions check checks validate contains expected match success",
    "expect_status": "status statuscode statuscodes responsecode expectedstatus codes",
    "reject": "notcontains failif failon mustnot",
    "timeout_s": "timeout responsetimeout requesttimeout maxtime",
    "connect_timeout_s": "connecttimeout connectiontimeout",
    "form": "files multipart formdata upload file fields",
    "rows": "csv dataset datafile feeder params parameters datasource datasources",
    "figures": "metrics extract extractors jsonpath",
    "ca": "cacert cafile insecure insecureskiptlsverify verify",
    "certificate": "cert clientcert key tlscert",
    "keep_alive": "keepalive reuse connectionreuse noconnectionreuse persistent",
    "follow_redirects": "redirects redirect followredirect maxredirects",
    "command": "program executable script exec client",
    "arguments": "args argv",
    "video": "clip movie input",
}
_UNITS = re.compile(r"(?:_?(?:s|ms|sec|secs|seconds|min|m|persec|persecond))$")
# The kit's plans whose load is of this kind, for those who give it to the other.
PLANS = {"rate_per_s": "jmx/request-rate.jmx", "users": "jmx/requests.jmx"}


def ours(word: str, has: Container[str]) -> str | None:
    """Return the property that another tool's word means, of those that a plan has; None if there is none."""
    return next((name for name in _meant(word) if name in has), None)


def other_plan(word: str) -> str | None:
    """Return the plan of the kit that has what a word means, in a sentence; None if no plan is made for it."""
    name = next((name for name in _meant(word) if name in PLANS), None)
    return f"{name} is a property of {PLANS[name]}" if name else None


def _meant(word: str) -> list[str]:
    plain = word.lower().lstrip("-").replace("-", "_")
    forms = {plain.replace("_", ""), _UNITS.sub("", plain).replace("_", "")}
    return [name for name, words in WORDS.items() if forms & {*words.split(), name.replace("_", "")}]
