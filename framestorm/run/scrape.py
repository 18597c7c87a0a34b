"""The target's own figures, scraped once a second while the run goes on, into scrapes.csv.

A target that is slow or gone costs the run nothing: each has a thread of its own, and what it does not answer in time
is counted and left out.
"""

import csv
import io
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Lock, Thread

from framestorm.endpoint import host_and_port
from framestorm.errors import UsageError
from framestorm.machine import now_ms
from framestorm.model.scraped import ScrapedValue, read_text
from framestorm.plain import note

EVERY_S = 1.0
WITHIN_S = 2.0
MAX_BYTES = 4 << 20
MAX_SERIES = 2000
FILE = "scrapes.csv"
FIELDS = ("time_ms", "url", "kind", "series", "value")
UP = "up"  # whether the target answered, as Prometheus calls it
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def scrape(url: str) -> list[ScrapedValue]:
    """Scrape a target once.

    Raises:
        OSError: it does not answer in time, or with an error.
        ValueError: the answer is not in Prometheus' text format.
    """
    deadline_s, parts, size = time.monotonic() + WITHIN_S, list[bytes](), 0
    with _OPENER.open(url, timeout=WITHIN_S) as answer:
        while part := answer.read1(1 << 16):
            parts.append(part)
            size += len(part)
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"the answer takes longer than {WITHIN_S:g} s")
            if size > MAX_BYTES:
                raise ValueError(f"the answer has more than {MAX_BYTES >> 20} MiB")
    return read_text(b"".join(parts).decode(errors="replace"))


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
                f"--scrape {url}: the answer is not in Prometheus' text format, at {str(error)!r}; give the address of "
                "the metrics, often /metrics"
            ) from None
        except OSError as error:
            raise UsageError(f"--scrape {url}: {_why(error)}; check the address") from None
        if not found[url]:
            raise UsageError(f"--scrape {url}: the answer has no series; give the address of the metrics")
    return found


@contextmanager
def scraping(run_dir: Path, urls: Sequence[str]) -> Iterator[None]:
    """Scrape the targets once a second during the block; at its end nothing is waited for."""
    is_over, lock = Event(), Lock()
    with ExitStack() as stack:
        stack.callback(is_over.set)
        for url in urls:
            Thread(target=_follow, args=(run_dir / FILE, url, is_over, lock), daemon=True).start()
        yield


def _follow(path: Path, url: str, is_over: Event, lock: Lock) -> None:
    """Write what changed since the last scrape, and whether the target answered, until the event is set."""
    last: dict[str, float] = {}
    is_said = False
    due_s = time.monotonic()
    while not is_over.wait(max(0.0, due_s - time.monotonic())):
        due_s = max(due_s + EVERY_S, time.monotonic())
        at_ms, readings, problem = now_ms(), list[ScrapedValue](), ""
        try:
            readings = scrape(url)
        except (OSError, ValueError) as error:
            problem = _why(error)
        of_all = {each.series: each for each in readings[:MAX_SERIES]}
        changed = [each for each in of_all.values() if last.get(each.series) != each.value]
        last |= {each.series: each.value for each in changed}
        if len(readings) > MAX_SERIES and not problem:
            problem = f"it has {len(readings)} series, of which the first {MAX_SERIES} are kept"
        if problem and not is_said:
            note(f"--scrape {url}: {problem}; the run goes on")
            is_said = True
        rows = [(at_ms, url, UP, UP, int(bool(readings)))]
        rows += [(at_ms, url, each.kind, each.series, repr(each.value)) for each in changed]  # type: ignore[misc]
        with lock:
            if is_over.is_set():
                return
            try:
                _append(path, rows)
            except OSError as error:
                note(f"{FILE}: {error.strerror}; the target's figures are not recorded any longer")
                return


def _append(path: Path, rows: Sequence[tuple[object, ...]]) -> None:
    with path.open("a", newline="") as file:
        text = io.StringIO(newline="")
        csv.writer(text).writerows(rows if file.tell() else [FIELDS, *rows])
        file.write(text.getvalue())


def _why(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"it answers with status {error.code}"
    if isinstance(error, TimeoutError) or "timed out" in str(error):
        return f"it does not answer within {WITHIN_S:g} s"
    if isinstance(error, urllib.error.URLError):
        return f"it cannot be reached ({getattr(error.reason, 'strerror', None) or error.reason})"
    return str(error)
