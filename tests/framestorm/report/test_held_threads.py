"""Threads that wait for requests that fail: more threads would wait for these too."""

import numpy as np
import pytest

from framestorm.model.summary import Facts
from framestorm.report.overload import Arrivals
from framestorm.report.trust.load import arrivals
from framestorm.report.trust.overload import overload as warnings
from tests.framestorm.conftest import summary_of
from tests.framestorm.report.test_overload import even, judged, steady


@pytest.mark.parametrize("is_paced", [False, True])
def test_threads_that_failed_requests_hold_need_no_others(is_paced: bool) -> None:
    """Each fifth request hangs for 5 s and fails, the others take 20 ms: more threads would hang too."""
    starts, limit, length_s = even(20, 60), 20, 60
    hangs = np.arange(starts.size) % 5 == 0
    ends = starts + np.where(hangs, 5.0, 0.02)
    found = judged(
        starts, ends, steady(40, length_s), hangs, "reset", Arrivals(2400, 1200), limit=limit, is_paced=is_paced
    )
    assert found is not None and found.signs == ["unsent"] and found.is_held_by_failures
    summary = summary_of(9, facts=Facts(0, 0, 2400, dropped=1200, overload=found))
    (text,), (of_arrivals,) = warnings(summary), arrivals(summary)
    text = text.replace("\u00a0", " ")
    assert text.startswith("The load was not answered: ") and " % of that time was for requests that failed" in text
    assert "Requests that failed took 5.00 s each (mean)" in text and "give the load more" not in text
    assert "Find the cause of the errors first" in of_arrivals and "Raise the limit" not in of_arrivals
