from decimal import Decimal

import pytest

from framestorm import paths
from framestorm.hosts import shares
from framestorm.model import plan

VIDEO, RATE, TASKS = (plan.read(paths.JMX / f"{name}.jmx") for name in ("video-per-user", "request-rate", "tasks"))


@pytest.mark.parametrize(
    ("total", "slaves", "parts"), [(5, 2, [3, 2]), (6, 3, [2, 2, 2]), (1, 3, [1, 0, 0]), (10, 4, [3, 3, 2, 2])]
)
def test_users_are_split_whole(total: int, slaves: int, parts: list[int]) -> None:
    assert [int(share["users"]) for share in shares.split(VIDEO, {"users": str(total)}, slaves)] == parts


@pytest.mark.parametrize("total", ["10", "0.5", "7.3", "1000", "0.000001"])
@pytest.mark.parametrize("slaves", [1, 2, 3, 7])
def test_rates_add_up_exactly(total: str, slaves: int) -> None:
    values = {"rate_per_s": total, "concurrency_limit": "9"}
    parts = [Decimal(share["rate_per_s"]) for share in shares.split(RATE, values, slaves)]
    assert sum(parts) == Decimal(total)
    assert max(parts) - min(parts) <= Decimal("0.00001")


def test_what_is_no_total_is_not_split() -> None:
    assert shares.split(TASKS, {"hold_s": "30", "sleep_s": "1"}, 2) == [{}, {}]
