"""Arrivals of an open load, by the plan's own count: those past the concurrency limit leave no row anywhere else."""

import re
from pathlib import Path

COUNT = re.compile(
    r"(\d+) arrivals were due|ArrivalsThreadStarter: .*had arrivals: (\d+)"
)  # of jmx/groovy/, of jmeter-plugins
# Thread groups run on the slaves where there are any.
LOGS = ("jmeter.log", "jmeter-server-*.log")


def read_arrivals(run_dir: Path) -> int | None:
    """How many requests were due, by the plans' last words in JMeter's logs; None without any."""
    texts = [path.read_text(errors="replace") for name in LOGS for path in run_dir.glob(name)]
    counts = [int(ours or theirs) for text in texts for ours, theirs in COUNT.findall(text)]
    return sum(counts) if counts else None
