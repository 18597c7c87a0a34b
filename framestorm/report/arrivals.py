"""Arrivals of an open load, by JMeter's own count: those past the concurrency limit leave no row anywhere else."""

import re
from pathlib import Path

COUNT = re.compile(r"ArrivalsThreadStarter: .*had arrivals: (\d+)")


def read_arrivals(run_dir: Path) -> int | None:
    """How many requests were due, by the thread groups' last words in jmeter.log; None without any."""
    log = run_dir / "jmeter.log"
    if not log.exists():
        return None
    counts = [int(count) for count in COUNT.findall(log.read_text(errors="replace"))]
    return sum(counts) if counts else None
