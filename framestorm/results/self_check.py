"""Whether the rows of a run are those of what was sent: they have to agree with what JMeter counted by itself."""

import math
from collections.abc import Sequence

from framestorm.model.summary import SelfCheck
from framestorm.results.jmeter_log import CountedByJmeter
from framestorm.results.jtl import HostRows


def read_self_check(counted: Sequence[CountedByJmeter], of_hosts: Sequence[HostRows]) -> SelfCheck | None:
    """Return what was counted beside what the rows say; None if not each JMeter that made load says what it counted.

    The number in progress on each host is the time that samplers took there by the time for which they ran. By Little's
    law (A Proof for the Queuing Formula L = lambda W, Operations Research 9, 1961) it is the rate of the rows times
    their mean response time, in the time that the rows span.
    """
    if not counted or len(counted) != len(of_hosts):
        return None
    n, rows = sum(each.samples for each in counted), sum(each.n for each in of_hosts)
    of_rows = sum(each.busy_ms / each.span_ms if each.span_ms else math.nan for each in of_hosts)
    if any(each.unknown or not each.span_ms for each in counted) or math.isnan(of_rows):
        return SelfCheck(n, rows)
    span_ms = sum(each.span_ms for each in counted) / len(counted)
    return SelfCheck(n, rows, sum(each.busy_ms / each.span_ms for each in counted), of_rows, span_ms)
