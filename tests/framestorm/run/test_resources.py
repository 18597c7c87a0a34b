import contextlib
import csv
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from framestorm.guard import Guarded
from framestorm.machine import in_background, wait_until
from framestorm.run.resources import log_resources

# Children that come and go between two samples, each busy for a while; at last what they took, by the kernel's account.
BUSY = """
import resource, subprocess, sys, time
until = time.monotonic() + 5
while time.monotonic() < until:
    subprocess.run([sys.executable, "-S", "-c", "for _ in range(2_000_000): pass"])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, flush=True)
time.sleep(2.5)
"""


def test_short_lived_children_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "resources.csv"
    with (
        Guarded([sys.executable, "-c", BUSY], tmp_path / "log", os.environ) as guarded,
        in_background(partial(log_resources, path, "here", {"generator": guarded.processes})),
    ):
        assert guarded.wait(60) == 0
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["host"] for row in rows} == {"here"}
    parts = [row for row in rows if row["part"] == "generator"]
    times_s = [float(row["time_ms"]) / 1000 for row in parts]
    shares = [float(row["cpu_percent"]) / 100 for row in parts]
    assert all(share >= 0 for share in shares)
    counted_s = shares[0] + sum(
        share * (end_s - start_s) for share, start_s, end_s in zip(shares[1:], times_s, times_s[1:], strict=False)
    )
    # A sum over living processes alone would see but a fraction: each child lives for a tenth of a second.
    assert float((tmp_path / "log").read_text()) * 0.7 < counted_s < float((tmp_path / "log").read_text()) * 1.3 + 0.2


def test_a_full_disk_takes_whole_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path], check=True)
    path, said = tmp_path / "resources.csv", []
    try:
        with (tmp_path / "others").open("wb", buffering=0) as others, contextlib.suppress(OSError):
            while others.write(bytes(4096)):
                pass
        with in_background(partial(log_resources, path, "here", {})):
            assert wait_until(lambda: said.append(capsys.readouterr().err) or "".join(said), 10)
            (tmp_path / "others").unlink()
            assert wait_until(lambda: len(path.read_text().splitlines()) > 2, 10)
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert {(row["host"], row["part"]) for row in rows} == {("here", "host")}
    said.append(capsys.readouterr().err)
    assert "".join(said).count("No space left on device") == 1
