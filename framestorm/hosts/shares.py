"""The parts of a run's totals that each slave gets; every slave runs the whole plan with its part."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from framestorm.errors import UsageError
from framestorm.model.plan import Plan


def split(plan: Plan, values: Mapping[str, str], slaves: int) -> list[dict[str, str]]:
    """What each of the slaves is given of the totals; the parts add up exactly to the whole.

    A slave may get 0 users: it is then left out of the run by the caller.
    """
    shares: list[dict[str, str]] = [{} for _ in range(slaves)]
    for total in plan.totals:
        if total.name not in values:
            raise UsageError(f"-J{total.name}= has to be set: it is split over the slaves")
        # What is whole stays whole: 5 users on 2 slaves are 3 and 2.
        if total.is_whole_number:
            parts = [str(part) for part in _whole_parts(int(values[total.name]), slaves)]
        else:
            parts = [f"{part:f}" for part in _even_parts(Decimal(values[total.name]), slaves)]
        for share, part in zip(shares, parts, strict=True):
            share[total.name] = part
    return shares


def _whole_parts(total: int, count: int) -> Sequence[int]:
    each, more = divmod(total, count)
    return [each + (index < more) for index in range(count)]


def _even_parts(total: Decimal, count: int) -> Sequence[Decimal]:
    """Equal to a millionth; the first takes what rounding leaves, so that the sum is exact."""
    each = round(total / count, 6).normalize()
    return [(total - each * (count - 1)).normalize(), *[each] * (count - 1)]
