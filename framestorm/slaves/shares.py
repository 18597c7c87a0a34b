"""The parts of a run's totals that each slave gets; every slave runs the whole plan with its part."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

# Properties that mean the total over all slaves. What is whole stays whole: 5 users on 2 slaves are 3 and 2.
WHOLE_TOTALS = ("users", "concurrency_limit")
EVEN_TOTALS = ("rate_per_s",)


def split(values: Mapping[str, str], slaves: int) -> list[dict[str, str]]:
    """What each of the slaves is given of the totals; the parts add up exactly to the whole.

    A slave may get 0 users: it is then left out of the run by the caller.
    """
    shares: list[dict[str, str]] = [{} for _ in range(slaves)]
    for name in WHOLE_TOTALS:
        if name in values:
            for share, part in zip(shares, _whole_parts(int(values[name]), slaves), strict=True):
                share[name] = str(part)
    for name in EVEN_TOTALS:
        if name in values:
            for share, even_part in zip(shares, _even_parts(Decimal(values[name]), slaves), strict=True):
                share[name] = f"{even_part:f}"
    return shares


def _whole_parts(total: int, count: int) -> Sequence[int]:
    each, more = divmod(total, count)
    return [each + (index < more) for index in range(count)]


def _even_parts(total: Decimal, count: int) -> Sequence[Decimal]:
    """Equal to a millionth; the first takes what rounding leaves, so that the sum is exact."""
    each = round(total / count, 6).normalize()
    return [(total - each * (count - 1)).normalize(), *[each] * (count - 1)]
