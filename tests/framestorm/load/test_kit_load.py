"""The load of the kit's plans, by their properties."""

from pathlib import Path

import pytest

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.load import kit_load
from framestorm.load.reading import read_loads
from framestorm.model import plan as plans
from framestorm.model.plan import Plan


@pytest.mark.parametrize(
    ("plan", "values", "expected"),
    [
        (
            "request-rate",
            {"rate_per_s": "10", "ramp_s": "2", "hold_s": "3", "arrivals": "even", "seed": "1"},
            ("arrivals", 40, True, "arrivals 0.0:0.0 2.0:10.0 2.0:10.0 5.0:10.0"),
        ),
        # Of some 40, of which the same seed always gives as many.
        (
            "request-rate",
            {"rate_per_s": "10", "ramp_s": "2", "hold_s": "3", "arrivals": "poisson", "seed": "7"},
            ("arrivals", 37, False, "arrivals 0.0:0.0 2.0:10.0 2.0:10.0 5.0:10.0 seed=7"),
        ),
        (
            "request-rate",
            {"load": "10/s for 30.5 s", "arrivals": "even", "seed": "1"},
            ("arrivals", 305, False, "arrivals 0.0:10.0 30.5:10.0"),
        ),
        ("requests", {"load": "0 to 50 users in 1 min"}, ("users", 50, False, "users 0.0:0.0 60.0:50.0")),
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


@pytest.mark.parametrize(
    ("given", "seeds"),
    [
        ({"arrivals": "poisson"}, ["1", "2"]),
        ({"arrivals": "poisson", "load": "5/s for 2 s"}, ["1", "2"]),
        ({"arrivals": "poisson", "seed": "7"}, ["7", "8"]),
        ({"arrivals": "poisson", "seed": "2147483647"}, ["2147483647", "0"]),
        ({"arrivals": "even"}, [None, None]),
    ],
)
def test_each_of_several_runs_draws_random_arrivals_of_its_own(given: dict[str, str], seeds: list[str | None]) -> None:
    plan = plans.read(paths.JMX / "request-rate.jmx")
    drawn = [kit_load.drawn(plan, given, number) for number in (1, 2)]
    assert [each.get("seed") for each in drawn] == seeds
    others = {name: value for name, value in given.items() if name != "seed"}
    assert [{name: each[name] for name in others} for each in drawn] == [others, others], "nothing else changes"


def test_each_of_several_jmeters_has_its_part_of_the_same_file() -> None:
    assert [kit_load.reference("/runs/a b", number, 2) for number in range(2)] == [
        "@/runs/a b/load.txt 0/2",
        "@/runs/a b/load.txt 1/2",
    ]


GROUP = "com.blazemeter.jmeter.threads.concurrency.ConcurrencyThreadGroup"
MORE = f'<{GROUP} testname="more"><stringProp name="TargetLevel">3</stringProp></{GROUP}><hashTree/>'


def with_another_group(name: str, before: str, folder: Path) -> Plan:
    """A plan of the kit to which its user has added users."""
    path = folder / "more.jmx"
    path.write_text((paths.JMX / f"{name}.jmx").read_text().replace(f"<{before} ", f"{MORE}<{before} ", 1))
    return plans.read(path)


def test_a_load_in_words_is_that_of_one_thread_group(tmp_path: Path) -> None:
    plan = with_another_group("requests", GROUP, tmp_path)
    with pytest.raises(
        UsageError, match=r"the load of one ConcurrencyThreadGroup, and more\.jmx has 2: more and users"
    ):
        kit_load.resolve(plan, {"load": "5 users for 1 s"}, {})


def test_other_thread_groups_of_a_plan_with_a_rate_have_their_own_load(tmp_path: Path) -> None:
    plan = with_another_group("request-rate", "ThreadGroup", tmp_path)
    values = {"rate_per_s": "10", "ramp_s": "0", "hold_s": "3", "concurrency_limit": "9"}
    loads = [load for load in read_loads(plan, (), values) if not load.is_aside]
    assert [(load.name, load.model, load.total) for load in loads] == [
        ("more", "users", 3),
        ("arrivals", "arrivals", 30),
    ]
