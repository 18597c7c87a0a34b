"""The load of the kit's plans, by their properties."""

import pytest

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.load import kit_load
from framestorm.model import plan as plans


@pytest.mark.parametrize(
    ("plan", "values", "expected"),
    [
        (
            "request-rate",
            {"rate_per_s": "10", "ramp_s": "2", "hold_s": "3", "arrivals": "even", "seed": "1"},
            ("arrivals", 40, True, "0.0:0.0 2.0:10.0 2.0:10.0 5.0:10.0"),
        ),
        # Of some 40, of which the same seed always gives as many.
        (
            "request-rate",
            {"rate_per_s": "10", "ramp_s": "2", "hold_s": "3", "arrivals": "poisson", "seed": "7"},
            ("arrivals", 37, False, "0.0:0.0 2.0:10.0 2.0:10.0 5.0:10.0 seed=7"),
        ),
        (
            "request-rate",
            {"load": "10/s for 30.5 s", "arrivals": "even", "seed": "1"},
            ("arrivals", 305, False, "0.0:10.0 30.5:10.0"),
        ),
        ("requests", {"load": "0 to 50 users in 1 min"}, ("users", 50, False, "0.0:0.0 60.0:50.0")),
    ],
)
def test_what_the_properties_ask_for(plan: str, values: dict[str, str], expected: tuple[str, int, bool, str]) -> None:
    load = kit_load.read(plans.read(paths.JMX / f"{plan}.jmx"), values)
    assert load is not None
    assert (load.model, load.total, load.is_plain, load.written) == expected


@pytest.mark.parametrize(
    ("plan", "values"), [("requests", {"users": "3"}), ("tasks", {}), ("request-rate", {"rate_per_s": "many"})]
)
def test_elsewhere_the_thread_groups_have_it(plan: str, values: dict[str, str]) -> None:
    assert kit_load.read(plans.read(paths.JMX / f"{plan}.jmx"), values) is None


def test_more_random_arrivals_than_can_be_drawn_are_refused() -> None:
    plan = plans.read(paths.JMX / "request-rate.jmx")
    with pytest.raises(UsageError, match="36,000,000,000 arrivals"):
        kit_load.read(plan, {"load": "1000000/s for 10 h", "arrivals": "poisson", "seed": "1"})


def test_each_of_several_jmeters_has_its_part_of_the_same_file() -> None:
    assert [kit_load.reference("/runs/a b", number, 2) for number in range(2)] == [
        "@/runs/a b/load.txt 0/2",
        "@/runs/a b/load.txt 1/2",
    ]
