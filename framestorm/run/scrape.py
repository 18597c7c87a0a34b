"""The target's own figures, scraped once a second while the run goes on, into scrapes.csv.

A target that is slow or gone costs the run nothing: each has a thread of its own, and what it does not answer in time
is counted and left out.
"""

import http.client
import math
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Lock, Thread
from urllib.parse import quote

from framestorm.endpoint import host_and_port
from framestorm.errors import UsageError
from framestorm.machine import now_ms
from framestorm.model.scraped import GONE, UP, ScrapedCriterion, ScrapedValue, read_text, scraped_criterion
from framestorm.plain import note
from framestorm.run.row_log import RowLog

EVERY_S = 1.0
WITHIN_S = 2.0
MAX_BYTES = 4 << 20
MAX_SERIES = 2000
FILE = "scrapes.csv"
FIELDS = ("time_ms", "url", "kind", "series", "value")
_OF_URLS = "%/:=&?~#+!$,;'@()*[]"
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def scrape(url: str) -> list[ScrapedValue]:
    """Scrape a target once.

    Raises:
        OSError: it does not answer in time, or with an error, or with an answer that is not whole.
        ValueError: the answer is not in Prometheus' text format.
    """
    try:
        return read_text(_answer(url).decode(errors="replace"))
    except http.client.IncompleteRead:
        raise OSError("the answer ends too early") from None
    except http.client.HTTPException as error:
        raise OSError(f"it does not answer in HTTP: {str(error).strip() or type(error).__name__}") from None


def _answer(url: str) -> bytes:
    deadline_s, parts, size = time.monotonic() + WITHIN_S, list[bytes](), 0
    with _OPENER.open(quote(url, safe=_OF_URLS), timeout=WITHIN_S) as answer:
        while part := answer.read1(1 << 16):
            parts.append(part)
            size += len(part)
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"the answer takes longer than {WITHIN_S:g} s")
            if size > MAX_BYTES:
                raise OSError(f"the answer has more than {MAX_BYTES >> 20} MiB")
        if answer.length:  # read1 takes the end of a connection for that of the answer
            raise http.client.IncompleteRead(b"", answer.length)
    return b"".join(parts)


def check_targets(urls: Sequence[str]) -> dict[str, list[ScrapedValue]]:
    """Scrape each target once, before the load.

    Raises:
        UsageError: one cannot be scraped.
    """
    found = {}
    for url in urls:
        host_and_port(url)
        try:
            found[url] = scrape(url)
        except ValueError as error:
            raise UsageError(
                f"--scrape {url}: {_why(error)}; give the address of the metrics, often /metrics"
            ) from None
        except OSError as error:
            raise UsageError(f"--scrape {url}: {_why(error)}; check the address") from None
        if not found[url]:
            raise UsageError(f"--scrape {url}: the answer has no series; give the address of the metrics")
    return found


@contextmanager
def scraping(run_dir: Path, urls: Sequence[str], criteria: Sequence[str]) -> Iterator[None]:
    """Scrape the targets once a second during the block; at its end nothing is waited for.

    criteria: of --fail-if; the series that they are about are always kept.
    """
    is_over, lock = Event(), Lock()
    about = [one for text in criteria if (one := scraped_criterion(text)) is not None]
    log = RowLog(run_dir / FILE, FIELDS, "the target's figures")
    with ExitStack() as stack:
        stack.callback(is_over.set)
        for url in urls:
            Thread(target=_follow, args=(log, url, about, is_over, lock), daemon=True).start()
        yield


def _kept(readings: list[ScrapedValue], about: Sequence[ScrapedCriterion]) -> list[ScrapedValue]:
    """Return the first MAX_SERIES series, and of the others those that a criterion is about."""
    names = tuple(one.family for one in about)
    # Most of very many series have another name, which is quicker to see than their labels are read.
    others = (each for each in readings[MAX_SERIES:] if each.series.startswith(names))
    return readings[:MAX_SERIES] + [each for each in others if any(one.is_about(each.series) for one in about)]


def _follow(log: RowLog, url: str, about: Sequence[ScrapedCriterion], is_over: Event, lock: Lock) -> None:
    """Write what changed since the last scrape, and whether the target answered, until the event is set."""
    last: dict[str, ScrapedValue] = {}
    is_said = False
    due_s = time.monotonic()
    while not is_over.wait(max(0.0, due_s - time.monotonic())):
        due_s = max(due_s + EVERY_S, time.monotonic())
        at_ms, readings, problem, is_up = now_ms(), list[ScrapedValue](), "", True
        try:
            readings = scrape(url)
        except (OSError, ValueError) as error:
            problem, is_up = _why(error), False
        of_all = {each.series: each for each in _kept(readings, about) if math.isfinite(each.value)}
        changed = [each for each in of_all.values() if last.get(each.series) != each]
        if is_up:  # the target answered: what it no longer has, or has no number for, has no value any longer
            changed += [last.pop(name)._replace(kind=GONE) for name in [*last] if name not in of_all]
        last |= {each.series: each for each in changed if each.series in of_all}
        if len(readings) > MAX_SERIES and not problem:
            problem = f"it has {len(readings):,} series: the first {MAX_SERIES:,} and those of --fail-if are kept"
        if problem and not is_said:
            note(f"--scrape {url}: {problem}; the run goes on")
            is_said = True
        rows = [(at_ms, url, UP, UP, int(is_up))]
        rows += [(at_ms, url, each.kind, each.series, repr(each.value)) for each in changed]  # type: ignore[misc]
        with lock:
            if is_over.is_set():
                return
            if not log.append(rows):
                last.clear()  # each value is written again


def _why(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"it answers with status {error.code}"
    if isinstance(error, ValueError):
        return f"the answer is not in Prometheus' text format, at {str(error)!r}"
    if isinstance(error, TimeoutError) or "timed out" in str(error):
        return f"it does not answer within {WITHIN_S:g} s"
    if isinstance(error, urllib.error.URLError):
        return f"it cannot be reached ({getattr(error.reason, 'strerror', None) or error.reason})"
    return str(error)
