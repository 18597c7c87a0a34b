"""What the thread groups and timers of a plan ask for."""

from pathlib import Path

import pytest

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.load.reading import read_loads, users_at_once
from framestorm.load.schedule import read_schedule
from framestorm.model import plan as plans
from framestorm.model.load import Load

APC, CAS = "kg.apc.jmeter", "com.blazemeter.jmeter.threads"
Table = tuple[str, list[tuple[object, ...]]]
SAMPLER = "<HTTPSamplerProxy testname='call'/><hashTree/>"


def element(tag: str, name: str, fields: dict[str, object], table: Table | None = None) -> str:
    """An element of a plan with its fields and the rows of its table."""
    texts = "".join(f"<stringProp name='{field}'>{text}</stringProp>" for field, text in fields.items())
    if table:
        rows = ("".join(f"<stringProp name='x'>{cell}</stringProp>" for cell in row) for row in table[1])
        cells = "".join(f"<collectionProp name='row'>{row}</collectionProp>" for row in rows)
        texts += f"<collectionProp name='{table[0]}'>{cells}</collectionProp>"
    return f"<{tag} testname='{name}'>{texts}</{tag}>"


def users(name: str, number: object, timers: str = "", **fields: object) -> str:
    threads = {"ThreadGroup.num_threads": number} | {f"ThreadGroup.{field}": text for field, text in fields.items()}
    return element("ThreadGroup", name, threads) + f"<hashTree>{SAMPLER}{timers}</hashTree>"


def read(content: str, folder: Path, values: dict[str, str] | None = None, serial: str = "false") -> tuple[Load, ...]:
    """What a plan asks for that has this below its Test Plan."""
    test = f"<TestPlan><boolProp name='TestPlan.serialize_threadgroups'>{serial}</boolProp></TestPlan>"
    path = folder / "plan.jmx"
    path.write_text(
        f"<jmeterTestPlan><hashTree>{test}<hashTree>{content}</hashTree></hashTree></jmeterTestPlan>", encoding="utf-8"
    )
    plan = plans.read(path)
    return read_loads(plan, (), values or {})


def timer(tag: str, throughput: object, **fields: object) -> str:
    return element(tag, "pace", {"throughput": throughput, **fields}) + "<hashTree/>"


@pytest.mark.parametrize(
    ("xml", "model", "total", "points"),
    [
        (users("g", 4, ramp_time=2), "users", 4, [(0, 0), (2, 4)]),
        (users("g", 4, ramp_time=2, scheduler="true", duration=9, delay=3), "users", 4, [(0, 0), (2, 4), (9, 4)]),
        (users("g", "10.0"), "users", 0, [(0, 0)]),  # which JMeter takes for 0, as 1e2 and 1_0
        (users("g", "${__P(n,7)}", ramp_time=0), "users", 9, [(0, 0), (0, 9)]),
        (element(f"{CAS}.concurrency.ConcurrencyThreadGroup", "g",
                 {"TargetLevel": 4, "RampUp": 1, "Steps": 2, "Hold": 2, "Unit": "M"}),
         "users", 4, [(0, 0), (0, 2), (30, 2), (30, 4), (60, 4), (180, 4)]),
        (element(f"{CAS}.arrivals.ArrivalsThreadGroup", "g",
                 {"TargetLevel": 2.5, "RampUp": "", "Steps": "", "Hold": 10, "Unit": "S"}),
         "arrivals", 25, [(0, 0), (0, 2.5), (10, 2.5)]),
        (element(f"{CAS}.arrivals.ArrivalsThreadGroup", "g",
                 {"TargetLevel": 90, "RampUp": 2, "Hold": 1, "Unit": "M"}),
         "arrivals", 180, [(0, 0), (120, 1.5), (180, 1.5)]),
        (element(f"{CAS}.arrivals.FreeFormArrivalsThreadGroup", "g", {"Unit": "S"},
                 ("Schedule", [(0, 5, 10), (5, 5, 2)])),
         "arrivals", 35, [(0, 0), (10, 5), (12, 5)]),
        (element("org.apache.jmeter.threads.openmodel.OpenModelThreadGroup", "g",
                 {"OpenModelThreadGroup.schedule": "rate(60/min) even_arrivals(10 s) rate(3/s) pause(1 s)"}),
         "arrivals", 20, [(0, 1), (10, 3), (10, 0), (11, 0)]),
        (element(f"{APC}.threads.SteppingThreadGroup", "g",
                 {"ThreadGroup.num_threads": 5, "Threads initial delay": 1, "Start users count": 2,
                  "Start users count burst": 3, "Start users period": 10, "Stop users count": 5,
                  "Stop users period": 1, "flighttime": 20, "rampUp": 0}),
         "users", 5, [(0, 0), (1, 0), (1, 3), (11, 3), (11, 5), (31, 5), (31, 0)]),
        (element(f"{APC}.threads.UltimateThreadGroup", "g", {},
                 ("ultimatethreadgroupdata", [(4, 0, 2, 6, 0), (1, 4, 0, 2, 0)])),
         "users", 5, [(0, 0), (2, 4), (4, 4), (4, 5), (6, 5), (6, 4), (8, 4), (8, 0)]),
    ],
)  # fmt: skip
def test_a_thread_group_asks_for_a_curve(
    xml: str, model: str, total: int, points: list[tuple[float, float]], tmp_path: Path
) -> None:
    (load,) = read(xml if "<hashTree>" in xml else xml + f"<hashTree>{SAMPLER}</hashTree>", tmp_path, {"n": "9"})
    assert (load.model, load.total, load.points) == (model, total, points)


@pytest.mark.parametrize(
    ("forever", "loops", "ends"),
    [("false", "3", True), ("false", "${n}", True), ("false", "-1", False), ("true", "3", False)],
)
def test_users_of_a_schedule_may_end_by_their_loops(forever: str, loops: str, ends: bool, tmp_path: Path) -> None:
    group = element(f"{APC}.threads.UltimateThreadGroup", "g", {}, ("ultimatethreadgroupdata", [(4, 0, 2, 6, 0)]))
    controller = (
        f"<elementProp name='ThreadGroup.main_controller'><boolProp name='LoopController.continue_forever'>{forever}"
        f"</boolProp><stringProp name='LoopController.loops'>{loops}</stringProp></elementProp>"
    )
    xml = group.replace("<collectionProp name='ultimate", f"{controller}<collectionProp name='ultimate")
    (load,) = read(xml + f"<hashTree>{SAMPLER}</hashTree>", tmp_path)
    assert (load.total, bool(load.unknown)) == (4, ends)


@pytest.mark.parametrize(
    ("xml", "total", "points"),
    [
        (timer("ConstantThroughputTimer", 120, calcMode=1), None, [(0, 2)]),
        (timer("ConstantThroughputTimer", 120, calcMode=0), None, [(0, 0), (4, 20), (30, 20)]),
        (timer("PreciseThroughputTimer", 100, throughputPeriod=60, duration=600), 1000, [(0, 1.6667), (600, 1.6667)]),
        (timer("PreciseThroughputTimer", 2, throughputPeriod=1, duration=3, batchSize=4), 8, [(0, 2), (3, 2)]),
        (element(f"{APC}.timers.VariableThroughputTimer", "pace", {}, ("load_profile", [(0, 9, 60), (9, 9, 30)]))
         + "<hashTree/>", 540, [(0, 0), (60, 9), (90, 9)]),
    ],
)  # fmt: skip
def test_a_timer_asks_for_a_rate(
    xml: str, total: int | None, points: list[tuple[float, float]], tmp_path: Path
) -> None:
    _, load = read(users("g", 10, xml, ramp_time=4, scheduler="true", duration=30), tmp_path)
    assert (load.total, [(x, round(y, 4)) for x, y in load.points]) == (total, points)
    assert (load.groups, load.labels, load.is_timer, load.is_open) == (("g",), ("call",), True, False)


def test_a_property_replaces_the_schedule_of_a_plug_in(tmp_path: Path) -> None:
    shaped = element(f"{APC}.timers.VariableThroughputTimer", "pace", {}, ("load_profile", [(1, 1, 1)])) + "<hashTree/>"
    values = {"load_profile": "const(10,1m) line(10,20,30s) step(5,10,5,10s)"}
    _, load = read(users("g", 1, shaped), tmp_path, values)
    assert load.points == [(0, 10), (60, 10), (90, 20), (90, 5), (100, 5), (100, 10), (110, 10)]


def test_a_timer_of_the_whole_plan_paces_each_group_or_all_together(tmp_path: Path) -> None:
    groups = users("a", 1) + users("b", 2)
    precise = timer("PreciseThroughputTimer", 1, throughputPeriod=1, duration=10)
    assert [load.groups for load in read(precise + groups, tmp_path)[2:]] == [("a",), ("b",)]
    assert [load.groups for load in read(timer("ConstantThroughputTimer", 60, calcMode=1) + groups, tmp_path)[2:]] == [
        ("a", "b")
    ]


def test_what_is_known_only_during_the_run_is_told(tmp_path: Path) -> None:
    (load,) = read(users("g", "${__Random(1,9)}"), tmp_path)
    assert (load.total, load.points, load.unknown) == (None, [], "${__Random(1,9)} is known only during the run")


@pytest.mark.parametrize(
    ("xml", "unknown"),
    [
        (element(f"{CAS}.arrivals.ArrivalsThreadGroup", "g", {"TargetLevel": 1e300, "Hold": 1e300}), ""),
        (element(f"{CAS}.arrivals.ArrivalsThreadGroup", "g", {"TargetLevel": "sNaN", "Hold": "1e400"}), ""),
        (element(f"{CAS}.concurrency.ConcurrencyThreadGroup", "g", {"TargetLevel": 4, "RampUp": 1, "Steps": 10**9}),
         "each of its steps is known only during the run"),
    ],
)  # fmt: skip
def test_absurd_numbers_of_a_plan_are_read(xml: str, unknown: str, tmp_path: Path) -> None:
    (load,) = read(f"{xml}<hashTree>{SAMPLER}</hashTree>", tmp_path)
    assert load.unknown == unknown


def test_a_schedule_of_very_many_steps_is_not_drawn(tmp_path: Path) -> None:
    shaped = element(f"{APC}.timers.VariableThroughputTimer", "pace", {}) + "<hashTree/>"
    _, load = read(users("g", 1, shaped), tmp_path, {"load_profile": f"step(1,{'9' * 400},1,1s)"})
    assert (load.points, load.unknown) == ([], "each of its steps is known only during the run")


def test_a_pool_that_follows_a_timer_has_its_limit(tmp_path: Path) -> None:
    pool = element(f"{CAS}.concurrency.ConcurrencyThreadGroup", "g", {"TargetLevel": "${__tstFeedback(tst,1,40,5)}"})
    (load,) = read(pool + "<hashTree/>", tmp_path)
    assert (load.limit, load.unknown) == (40, "it follows the timer 'tst', with at most 40 users")


def test_the_plans_of_the_kit_ask_for_what_their_properties_say() -> None:
    plan = plans.read(paths.JMX / "request-rate.jmx")
    values = plan.defaults | {"rate_per_s": "80", "ramp_s": "2", "hold_s": "10", "concurrency_limit": "9"}
    load, _ = read_loads(plan, (), values)
    assert (load.model, load.total, load.limit, load.is_open) == ("arrivals", 880, 9, True)
    assert (load.points, load.length_s, load.unknown) == ([(0, 0), (2, 80), (12, 80)], 12, "")
    plan = plans.read(paths.JMX / "face-blur.jmx")
    load, *_ = read_loads(plan, (), plan.defaults | {"users": "5", "ramp_s": "2", "hold_s": "10"})
    assert (load.model, load.points) == ("users", [(0, 0), (2, 5), (12, 5)])


def test_groups_of_one_name_are_told_apart_by_their_numbers(tmp_path: Path) -> None:
    """JMeter counts those that neither set up nor tear down."""
    setup = (
        users("g", 1)
        .replace("ThreadGroup testname", "SetupThreadGroup testname")
        .replace("</ThreadGroup>", "</SetupThreadGroup>")
    )
    pace = timer("ConstantThroughputTimer", 60, calcMode=1)
    loads = read(users("g", 1) + setup + users("g", 1, timers=pace), tmp_path)
    assert [(load.name, load.numbers) for load in loads] == [("g", (1,)), ("g", ()), ("g", (2,)), ("pace", (2,))]
    assert [load.numbers for load in read(users("a", 1) + users("b", 1, timers=pace), tmp_path)] == [(), (), ()]


@pytest.mark.parametrize(("serial", "most"), [("false", 12), ("true", 7)])
def test_groups_one_after_the_other_need_the_threads_of_the_largest(serial: str, most: int, tmp_path: Path) -> None:
    loads = read(users("a", 5) + users("b", 7), tmp_path, serial=serial)
    assert users_at_once(loads, is_serial=serial == "true") == most


def test_a_startup_delay_is_known_of_a_group_that_waits_for_another(tmp_path: Path) -> None:
    groups = [users(name, 1, ramp_time=0, scheduler="true", duration=9, delay=3) for name in ("a", "b")]
    loads = read("".join(groups), tmp_path, serial="true")
    assert [(load.start_s, load.delay_s) for load in loads] == [(3, 3), (None, 3)]


def test_each_of_several_hosts_makes_the_whole_load() -> None:
    one = Load("g", "ThreadGroup", "users", total=3, limit=3, curve={"x": [0, 5], "y": [0, 3]})
    two = one.on_each_of(2)
    assert (two.total, two.limit, two.points) == (6, 6, [(0, 0), (5, 6)])
    empty = Load("g", "ThreadGroup", "users")
    assert empty.on_each_of(2) == empty


def test_a_curve_is_read_at_any_time() -> None:
    load = Load("g", "ThreadGroup", "arrivals", curve={"x": [0, 10, 10, 20], "y": [0, 10, 2, 2]})
    assert [load.at(time_s) for time_s in (-1, 5, 10, 20, 21)] == [None, 5, 2, 2, None]
    assert (load.between(0, 10), load.between(5, 15), load.between(0, 99), load.most) == (50, 47.5, 70, 10)


@pytest.mark.parametrize(
    "text",
    [
        "rate(1/s", "rate(1/week) even_arrivals(1 s)", "ramp(3)", "rate(1/s) ; pause(1 s)",
        "9" * 400, f"rate({'9' * 400}/s) even_arrivals(1 s)", f"rate(1/s) even_arrivals({'9' * 400} s)",
    ],
)  # fmt: skip
def test_a_schedule_that_jmeter_cannot_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot read the schedule"):
        read_schedule(text)


def test_a_schedule_is_read_as_jmeter_reads_it() -> None:
    text = "RATE(1 per min) /* slow */ even_arrivals(1 min 30 sec) rate(0) random_arrivals(.5h) // end\n"
    first, second = read_schedule(text)
    assert (first.length_s, round(first.start, 6), first.end, first.is_random) == (90, 0.016667, 0, False)
    assert (second.length_s, second.start, second.is_random) == (1800, 0, True)
