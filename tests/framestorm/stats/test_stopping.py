"""When repetitions end; how often their interval then holds the truth is shown by benchmarks/statistics_coverage.py."""

import pytest

from framestorm.stats.means import is_enough


@pytest.mark.parametrize(
    ("values", "least", "is_over"),
    [
        ([10, 10], 2, False),  # narrow, by chance perhaps
        ([10, 10, 14, 6], 2, False),
        ([10, 10, 14, 6, 14], 2, True),  # whatever the further ones are
        ([10, 10, 14, 6, 14], 3, False),  # three are looked at first, and these are not narrow
        ([6, 14, 10, 10, 10, 10, 10], 2, False),
        ([0, 0, 0, 0, 0], 2, True),  # of 0 there is no share
    ],
)
def test_three_repetitions_follow_the_first_narrow_interval(values, least, is_over):
    assert is_enough(values, least, 0.05) == is_over
