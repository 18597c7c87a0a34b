"""JMeter's own HTML dashboard of a run."""

import io
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl

from framestorm.errors import FramestormError
from framestorm.model.units import count, plural
from framestorm.plain import note, tell, visible
from framestorm.results.jtl_file import JtlFile, open_jtl, whole_rows
from framestorm.results.reading import read_run
from framestorm.run import jmeter

QUICK_UP_TO_BYTES = 10 * 2**20
# With it, 800,000 samples cost 22 s of CPU instead of 27, and three quarters of the memory.
ONE_COLLECTOR = ("-XX:+UseSerialGC",)
# JMeter keeps every time of a label for its percentiles: 10,000,000 rows (1.4 GB) took 3.2 GB and 1 GiB failed.
HEAP_PER_BYTE = 2.5
BESIDE_UP_TO_BYTES = 2**29
# JMeter's time and memory grow with the square of the labels: 2,000 took 11 s, and 5,000 more than 1 GiB.
MAX_LABELS = 1000
# The settings of the dashboard, which JMeter reads only as it makes it. By a class or by templates of its own, the
# folder of somebody else's run would execute code here.
_SETTINGS = re.compile(r"jmeter\.reportgenerator\.(?!.*(?:classname|_dir)$)[\w.-]+")


def make_dashboard(run_dir: Path) -> None:
    """Make JMeter's own HTML dashboard of a run from its samples.jtl; an existing one is replaced.

    Raises:
        FramestormError: there is no sample, or JMeter could not make it; the message says why.
    """
    output = run_dir / "jmeter"
    log = run_dir / "jmeter-dashboard.log"
    for path in (output, log):
        if path.is_symlink():  # JMeter would follow it
            path.unlink()
    shutil.rmtree(output, ignore_errors=True)
    given = read_run(run_dir)[0].given
    # One name: the next dashboard removes what a killed conductor left.
    scratch = run_dir / "jmeter-dashboard"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        samples = _whole_rows(run_dir / "samples.jtl", scratch)
        # Two collectors, ours and another of the environment, would be an error.
        options: tuple[str, ...] = jmeter.QUICK_START if samples.stat().st_size < QUICK_UP_TO_BYTES else ONE_COLLECTOR
        options = () if any(map(os.environ.get, jmeter.JAVA_VARIABLES)) else options
        if not os.environ.get("HEAP"):
            heap_bytes = int(HEAP_PER_BYTE * samples.stat().st_size)
            options = (*options, f"-Xmx{max(heap_bytes, 2**30) >> 20}m")
        command = [
            *("setpriv", "--pdeathsig", "KILL"),  # it ends with this process
            *jmeter.java_command("-Djava.awt.headless=true", *options),
            *("-g", str(samples), "-o", str(output), "-j", str(log)),
            *jmeter.assignments({name: value for name, value in given.items() if _SETTINGS.fullmatch(name)}),
            f"-Jjmeter.reportgenerator.temp_dir={scratch}/work",
        ]
        done = subprocess.run(
            command, env=jmeter.environment(), capture_output=True, text=True, check=False, cwd=run_dir
        )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if done.returncode != 0 or not (output / "index.html").exists():
        raise FramestormError(
            f"JMeter made no dashboard (status {done.returncode}): {done.stdout.strip()} {done.stderr.strip()}"
        )


@contextmanager
def dashboard_of(run_dir: Path) -> Iterator[Callable[[], None]]:
    """Make the dashboard beside the block, which gets what waits for it; why there is none is said on the terminal.

    It takes three times the CPU time of the report. One that needs much memory is made before the block.
    """
    samples = run_dir / "samples.jtl"
    is_large = samples.exists() and samples.stat().st_size > BESIDE_UP_TO_BYTES
    with ThreadPoolExecutor(1) as thread:
        task = thread.submit(make_dashboard, run_dir)

        def wait() -> None:
            if isinstance(error := task.exception(), FramestormError):
                tell(f"framestorm: {visible(str(error))}")
            elif error is not None:
                raise error

        if is_large:
            task.exception()
        yield wait


def _whole_rows(samples: Path, scratch: Path) -> Path:
    """Return the samples without an incomplete last row, left by a killed JMeter: the report generator fails on it.

    A file of another form, such as with another delimiter, is brought into the form that it reads, and labels that are
    too many for it are combined.
    """
    opened = open_jtl(samples)
    if not isinstance(opened, str):
        fewer = _with_fewer_labels(opened)
        if fewer is not opened or not opened.is_usual:
            fewer.write(scratch / samples.name)
            samples = scratch / samples.name
    n_bytes = whole_rows(samples) if samples.exists() else 0
    with samples.open("rb") if n_bytes else io.BytesIO() as file:
        if len(file.readline()) >= n_bytes:
            raise FramestormError("JMeter makes no dashboard: samples.jtl has no sample")
        if n_bytes == samples.stat().st_size:
            return samples
        whole = scratch / samples.name
        file.seek(0)
        with whole.open("wb") as copy:
            shutil.copyfileobj(file, copy)
            copy.truncate(n_bytes)
    return whole


def _with_fewer_labels(jtl: JtlFile) -> JtlFile:
    """Return the samples with their rarest labels combined into one if there are too many, or else `jtl` itself."""
    of_label = jtl.rows.group_by("label").len().sort(["len", "label"], descending=[True, False])
    labels = of_label.collect(engine="streaming").get_column("label")
    if labels.len() <= MAX_LABELS:
        return jtl
    shown, n_others = labels.head(MAX_LABELS), labels.len() - MAX_LABELS
    note(
        f"JMeter's dashboard shows the {count(MAX_LABELS)} most frequent labels and combines the other "
        f"{count(n_others)} in one row, because JMeter would run out of memory. Take ids out of the labels to see more"
    )
    others = pl.lit(plural(n_others, "other label"))
    is_shown = pl.col("label").is_in(shown.implode(), nulls_equal=True)
    label = pl.when(is_shown).then("label").otherwise(others).alias("label")
    return replace(jtl, rows=jtl.rows.with_columns(label))
