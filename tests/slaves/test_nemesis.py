"""One fault with a fixed seed over slaves; `python -m tests.nemesis --slaves` injects random ones for a given time."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import Lab
from tests.nemesis.faults import scheme_of
from tests.nemesis.run import suffer


@pytest.mark.long
def test_what_a_half_cut_slave_had_is_lost_aloud(deployed: Lab, tmp_path: Path) -> None:
    scheme = scheme_of(1, 1, over_slaves=True)
    scheme = replace(scheme, plan="face-blur", fault="slave mute", phase="load", after_s=1, lasts_s=18)
    assert "exit 4" in suffer(scheme, tmp_path)
