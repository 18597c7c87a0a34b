"""Faults of fixed seeds in real runs; `python -m tests.nemesis` makes as many as there is time for."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.nemesis.faults import scheme_of
from tests.nemesis.run import suffer


@pytest.mark.parametrize(
    ("plan", "fault"),
    [("face-blur", "JMeter killed"), ("requests", "disk full for a while"), ("process", "client killed")],
)
def test_nothing_is_lost_in_silence(plan: str, fault: str, tmp_path: Path) -> None:
    scheme = replace(scheme_of(1, 1, over_slaves=False), plan=plan, fault=fault, phase="load")
    suffer(scheme, tmp_path)
