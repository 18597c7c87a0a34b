"""Whether a function answers repeated inputs faster than it answered the same inputs the first time.

Each input is compared with itself, so that it does not matter how different they are. Two tests look for two kinds of
cache: one that makes all repeated inputs somewhat faster, and one that holds only some of them. Each may be wrong in
2.5 % of audits, so that both together raise a false alarm in at most 5 %.
"""

import math
from collections.abc import Sequence
from statistics import median

from framestorm.model.function_audit import Caching, RepeatedInput
from framestorm.stats.estimate import Estimate
from framestorm.stats.pairs import hodges_lehmann, more_often, signed_rank_below
from framestorm.stats.shares import wilson

LEVEL_OF_EACH = 0.025
# So many times as fast is clearly faster, the more the times vary: BEYOND_USUAL times the median of what the two of an
# input differ by. That looks at no sign, and leaves the test as exact as with a fixed limit.
CLEAR, CLEAR_AT_MOST, BEYOND_USUAL = 2.0, 4.0, 3.0
# What a processor's or a disk's cache gives any repeated work is no cache of answers.
MATTERS = 0.02


def judge_caching(pairs: Sequence[RepeatedInput]) -> Caching:
    """Return whether the second answers came faster than the first, by at least 20 inputs."""
    logs = [math.log(each.second_ms / each.first_ms) for each in pairs]
    ratio = hodges_lehmann(logs)
    p_faster = signed_rank_below([each - math.log(1 - MATTERS) for each in logs])
    clear = min(max(math.log(CLEAR), BEYOND_USUAL * median(map(abs, logs))), math.log(CLEAR_AT_MOST))
    hits, reverse = sum(each < -clear for each in logs), sum(each > clear for each in logs)
    p_hits = more_often(hits, reverse)
    low, high = wilson(hits, len(logs)) or (None, None)
    return Caching(
        list(pairs),
        Estimate(math.exp(ratio.value), _exp(ratio.low), _exp(ratio.high), n=len(logs), method=ratio.method),
        p_faster,
        math.exp(clear),
        hits,
        reverse,
        p_hits,
        Estimate(hits / len(logs), low, high, n=len(logs), method="Wilson"),
        is_faster=p_faster <= LEVEL_OF_EACH,
        is_often_hit=p_hits <= LEVEL_OF_EACH,
    )


def _exp(log: float | None) -> float | None:
    return None if log is None else math.exp(log)
