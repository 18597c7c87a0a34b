"""When a mean needs no further repetitions, if its interval decides that."""

from collections.abc import Sequence

from framestorm.stats.means import relative_half_width, student

# One who looks after each repetition ends when the interval happens to be narrow: it then holds the true mean in as few
# as 88 of 100 studies. A fixed number of further repetitions mends that (Simons, On the Cost of not Knowing the
# Variance when Making a Fixed-Width Confidence Interval for the Mean, Annals of Mathematical Statistics 39, 1968); with
# three of them it is 93 or more. benchmarks/statistics_coverage.py simulates it.
FURTHER = 3


def is_enough(values: Sequence[float], least: int, within: float) -> bool:
    """Whether a mean's interval was narrow enough `FURTHER` repetitions ago, or before that.

    Args:
        values: one a repetition, in their order.
        least: the number of repetitions after which the first look is taken, 2 at least.
        within: half the interval's width may be this share of the mean. A mean of 0 has no such share: any will do.
    """
    for n in range(least, len(values) - FURTHER + 1):
        width = relative_half_width(student(values[:n]))
        if width is None or width <= within:
            return True
    return False
