"""How long the probes of a search are."""

import pytest

from framestorm import paths
from framestorm.find.lengths import ProbeLengths
from framestorm.model import plan as plans
from framestorm.model.search import LoadRange


@pytest.mark.parametrize(
    ("objective", "least_s", "per_s", "expected_s"),
    [
        ("p50 < 1 s", 2.5, 100, 3),
        ("p99 < 500 ms", 1, 400, 2),
        ("p99 < 500 ms", 1, 500, 1),
        ("p99 < 500 ms", 20, 10, 50),
    ],
)
def test_a_probe_has_the_samples_that_it_needs(objective: str, least_s: float, per_s: float, expected_s: float) -> None:
    plan = plans.read(paths.JMX / "request-rate.jmx")
    lengths = ProbeLengths(plan, LoadRange("rate_per_s", 10, 500), [objective], least_s, {})
    assert lengths.at(per_s) == expected_s
