"""How the totals of a plan are divided among slaves."""

import math
import xml.etree.ElementTree as ET
from decimal import Decimal
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.hosts import shares
from framestorm.hosts.division import Division
from framestorm.load.schedule import read_schedule
from framestorm.model import plan
from framestorm.model.plan_files import Known

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


CAS = "com.blazemeter.jmeter.threads"


def divide(xml: str, slaves: int = 2, **values: str) -> tuple[list[ET.Element], Division]:
    """The elements as they go to the slaves, and how their numbers are divided."""
    elements = list(ET.fromstring(f"<hashTree>{xml}</hashTree>"))  # noqa: S314 - of this test
    return elements, shares.divide(elements, Known(elements, values, Path("/plans")), values, slaves)


def on(division: Division, slave: int, text: str | None) -> str:
    """A text as a slave has it."""
    for name, value in division.properties[slave].items():
        text = (text or "").replace(f"${{__P({name},)}}", value)
    return text or ""


def users(text: str) -> str:
    field = f'<stringProp name="ThreadGroup.num_threads">{text}</stringProp>'
    return f'<ThreadGroup testname="load">{field}</ThreadGroup>'


@pytest.mark.parametrize("text", ["5", "${__P(n,5)}", "${__P(m, 7)}", "${__property(n,,5)}", "${count}"])
def test_users_of_a_thread_group_are_divided_however_they_are_written(text: str) -> None:
    variables = (
        "<Arguments><elementProp elementType='Argument'><stringProp name='Argument.name'>count</stringProp>"
        "<stringProp name='Argument.value'>${__P(n,5)}</stringProp></elementProp></Arguments>"
    )
    elements, division = divide(variables + users(text), m="5")
    assert [on(division, slave, elements[1][0].text) for slave in (0, 1)] == ["3", "2"]
    assert division.shares == [{"users of load": "3"}, {"users of load": "2"}]
    assert division.totals == {"users of load": "5"}


@pytest.mark.parametrize("text", ["${__Random(1,9)}", "${unknown}", "${__P(n,${m})}", "many", "-1", "2.5"])
def test_users_known_only_under_load_stay_whole_and_are_told(text: str) -> None:
    elements, division = divide(users(text))
    assert elements[0][0].text == text
    assert len(division.undivided) == 1 and text in division.undivided[0]
    assert division.totals == {}


@pytest.mark.parametrize(
    ("xml", "parts"),
    [
        (f"<{CAS}.concurrency.ConcurrencyThreadGroup><stringProp name='TargetLevel'>5</stringProp>"
         f"</{CAS}.concurrency.ConcurrencyThreadGroup>", [["3"], ["2"]]),
        (f"<{CAS}.arrivals.ArrivalsThreadGroup><stringProp name='TargetLevel'>7</stringProp>"
         f"</{CAS}.arrivals.ArrivalsThreadGroup>", [["3.5"], ["3.5"]]),
        ("<ConstantThroughputTimer><intProp name='calcMode'>2</intProp><doubleProp><name>throughput</name>"
         "<value>60.0</value><savedValue>0.0</savedValue></doubleProp></ConstantThroughputTimer>", [["30"], ["30"]]),
        ("<ConstantThroughputTimer><intProp name='calcMode'>0</intProp><stringProp name='throughput'>60</stringProp>"
         "</ConstantThroughputTimer>", [[], []]),
    ],
)  # fmt: skip
def test_the_groups_and_timers_of_foreign_plans_are_divided(xml: str, parts: list[list[str]]) -> None:
    _, division = divide(xml)
    assert [list(properties.values()) for properties in division.properties] == parts
    assert division.undivided == []


def table(tag: str, name: str, *rows: tuple[object, ...]) -> str:
    cells = ("".join(f"<stringProp name='x'>{cell}</stringProp>" for cell in row) for row in rows)
    collections = "".join(f"<collectionProp name='row'>{row}</collectionProp>" for row in cells)
    return f"<{tag} testname='load'><collectionProp name='{name}'>{collections}</collectionProp></{tag}>"


def tables(element: ET.Element, division: Division) -> list[list[list[str]]]:
    rows = element.findall("collectionProp/collectionProp")
    return [[[on(division, slave, cell.text) for cell in row] for row in rows] for slave in range(division.slaves)]


def test_rows_without_users_are_the_last_ones_of_an_ultimate_thread_group() -> None:
    tag = "kg.apc.jmeter.threads.UltimateThreadGroup"
    (element,), division = divide(
        table(tag, "ultimatethreadgroupdata", (1, 0, 5, 60, 5), ("${__P(n)}", 9, 5, 6, 7)), n="4"
    )
    assert tables(element, division) == [
        [["1", "0", "5", "60", "5"], ["2", "9", "5", "6", "7"]],
        [["2", "9", "5", "6", "7"], ["0", "0", "5", "60", "5"]],
    ]


def test_the_schedule_of_a_timer_is_divided() -> None:
    (element,), division = divide(table("kg.apc.jmeter.timers.VariableThroughputTimer", "load_profile", (0, 9, 60)))
    assert tables(element, division) == [[["0", "5", "60"]], [["0", "4", "60"]]]


@pytest.mark.parametrize(("step", "count", "period"), [("4", "2", "30"), ("1", "1", "60")])
def test_a_stepping_group_rises_as_fast_as_before(step: str, count: str, period: str) -> None:
    fields = {"ThreadGroup.num_threads": "10", "Start users count": step, "Start users period": "30"}
    xml = "".join(f"<stringProp name='{name}'>{text}</stringProp>" for name, text in fields.items())
    tag = "kg.apc.jmeter.threads.SteppingThreadGroup"
    (element,), division = divide(f"<{tag}>{xml}</{tag}>")
    assert [on(division, 1, field.text) for field in element] == ["5", count, period]


OPEN_MODEL = "org.apache.jmeter.threads.openmodel.OpenModelThreadGroup"


def field(name: str, text: object) -> str:
    return f"<stringProp name='{name}'>{text}</stringProp>"


@pytest.mark.parametrize(
    "schedule",
    [
        "rate(50/s) random_arrivals(10 s)",
        "rate(1/s) random_arrivals(3 s) rate(2/s) even_arrivals(7 s) rate(9/min) random_arrivals(1 min) pause(5 s)",
        "rate(0) even_arrivals(9 s) rate(${__P(top,7)}/s) even_arrivals(13 s)",
    ],
)
@pytest.mark.parametrize("slaves", [2, 3, 7])
def test_the_parts_of_an_open_model_schedule_send_as_many_as_the_whole(schedule: str, slaves: int) -> None:
    name = "OpenModelThreadGroup.schedule"
    whole = read_schedule(schedule.replace("${__P(top,7)}", "7"))
    (element,), division = divide(f"<{OPEN_MODEL}>{field(name, schedule)}</{OPEN_MODEL}>", slaves)
    parts = [read_schedule(on(division, slave, element[0].text)) for slave in range(slaves)]
    of_all = sum(step.arrivals for step in whole)
    assert [sum(step.arrivals for part in parts for step in part)] == [of_all]
    assert max(sum(step.arrivals for step in part) for part in parts) - of_all / slaves < 2
    assert division.totals == {f"arrivals of {OPEN_MODEL}": str(of_all)}
    # With the same seed, all slaves would send at the same times.
    xml = f"<{OPEN_MODEL}>{field(name, schedule)}{field('OpenModelThreadGroup.random_seed', 42)}</{OPEN_MODEL}>"
    (element,), division = divide(xml, slaves)
    assert [on(division, slave, element[1].text) for slave in range(slaves)] == [str(42 + n) for n in range(slaves)]


@pytest.mark.parametrize(("rate", "period_s", "lasts_s", "batch"), [(20, 1, 10, 1), (201, 60, 61, 1), (7, 1, 3, 4)])
@pytest.mark.parametrize("slaves", [2, 3])
def test_the_parts_of_a_precise_timer_send_as_many_as_the_whole(
    rate: int, period_s: int, lasts_s: int, batch: int, slaves: int
) -> None:
    fields = {
        "throughput": rate,
        "throughputPeriod": period_s,
        "duration": lasts_s,
        "batchSize": batch,
        "randomSeed": 5,
    }
    xml = "".join(field(name, text) for name, text in fields.items())
    (element,), division = divide(f"<PreciseThroughputTimer>{xml}</PreciseThroughputTimer>", slaves)

    def sent(throughput: float) -> int:
        """As ConstantPoissonProcessGenerator counts them."""
        return math.ceil(throughput / period_s / batch * lasts_s) * batch

    assert sum(sent(float(on(division, slave, element[0].text))) for slave in range(slaves)) == sent(rate)
    assert [on(division, slave, element[4].text) for slave in range(slaves)] == [str(5 + n) for n in range(slaves)]


def test_whole_rates_of_a_shaping_timer_have_whole_parts() -> None:
    tag = "kg.apc.jmeter.timers.VariableThroughputTimer"
    (element,), division = divide(table(tag, "load_profile", (0, 7, 60), ("2.5", 3, 60)))
    assert tables(element, division) == [
        [["0", "4", "60"], ["1.25", "2", "60"]],
        [["0", "3", "60"], ["1.25", "1", "60"]],
    ]
    # A property replaces the table, and is divided in its place.
    _, division = divide(table(tag, "load_profile", (0, 7, 60)), load_profile="const(7,1m) step(2,10,4,30s)")
    assert [of["load_profile"] for of in division.properties] == [
        "const(4,60s) const(1,30s) const(3,30s) const(5,30s)",
        "const(3,60s) const(1,30s) const(3,30s) const(5,30s)",
    ]
    # Each step is divided, so that all slaves have as many of them as the plan.
    profile = "step(5,7,1,10s) line(1,0,10s)"
    _, division = divide(table(tag, "load_profile", (0, 7, 60)), load_profile=profile)
    assert [of["load_profile"] for of in division.properties] == [
        "const(3,10s) const(3,10s) const(4,10s) line(1,0,10s)",
        "const(2,10s) const(3,10s) const(3,10s) line(0,0,10s)",
    ]
    for unknown in ("step(1,9,0,10s)", "const(x,10s)"):
        _, division = divide(table(tag, "load_profile", (0, 7, 60)), load_profile=unknown)
        assert division.undivided == [f"load_profile: {unknown}"]


@pytest.mark.parametrize(
    ("mode", "parts"),
    [("2", ["30", "30"]), ("all active threads", ["30", "30"]), ("Alle aktiven Threads", ["30", "30"]),
     ("this thread only", []), ("Nur dieser Thread", []), ("0", []), ("", [])],
)  # fmt: skip
def test_a_timers_mode_may_be_in_words(mode: str, parts: list[str]) -> None:
    xml = field("calcMode", mode) + field("throughput", 60)
    _, division = divide(f"<ConstantThroughputTimer>{xml}</ConstantThroughputTimer>")
    assert [text for of in division.properties for text in of.values()] == parts


def test_a_limit_of_a_pool_is_divided_and_never_none() -> None:
    tag = f"{CAS}.arrivals.ArrivalsThreadGroup"
    _, division = divide(f"<{tag}>{field('TargetLevel', 9)}{field('ConcurrencyLimit', 2)}</{tag}>", 3)
    assert [list(of.values()) for of in division.properties] == [["3", "1"]] * 3
    tag = f"{CAS}.concurrency.ConcurrencyThreadGroup"
    (element,), division = divide(f"<{tag}>{field('TargetLevel', '${__tstFeedback(tst, 1, 41, 5)}')}</{tag}>")
    assert [on(division, slave, element[0].text) for slave in (0, 1)] == [
        "${__tstFeedback(tst,1,21,5)}",
        "${__tstFeedback(tst,1,20,5)}",
    ]


def test_a_pool_of_a_timer_may_be_a_property() -> None:
    tag = f"{CAS}.concurrency.ConcurrencyThreadGroup"
    pool = "${__tstFeedback(tst,${__P(first,2)},${__P(most,100)},5)}"
    (element,), division = divide(f"<{tag}>{field('TargetLevel', pool)}</{tag}>", most="41")
    assert [on(division, slave, element[0].text) for slave in (0, 1)] == [
        "${__tstFeedback(tst,1,21,5)}",
        "${__tstFeedback(tst,1,20,5)}",
    ]
    unknown = "${__tstFeedback(tst,1,${users},5)}"
    (element,), division = divide(f"<{tag}>{field('TargetLevel', unknown)}</{tag}>")
    assert element[0].text == unknown
    assert division.undivided == [f"users of {tag}: {unknown} is known only during the run"]


def test_slaves_start_their_users_in_turn() -> None:
    xml = field("ThreadGroup.num_threads", 4) + field("ThreadGroup.ramp_time", "${__P(ramp,2)}")
    (element,), division = divide(f"<ThreadGroup>{xml}</ThreadGroup>", 2, ramp="8")
    assert [on(division, slave, element[2].text) for slave in (0, 1)] == ["0", "2000"]


ONES = {
    "ThroughputController": {"ThroughputController.style": 0, "ThroughputController.maxThroughput": 10},
    "SyncTimer": {"groupSize": 4, "timeoutInMs": 0},
    "CounterConfig": {"CounterConfig.start": 1, "CounterConfig.incr": 1, "CounterConfig.end": ""},
    "RandomVariableConfig": {"randomSeed": 7, "maximumValue": 1000},
    "JDBCDataSource": {"poolMax": 10},
}


@pytest.mark.parametrize(
    ("tag", "fields", "parts"),
    [
        ("ThroughputController", {}, [["5"], ["5"]]),
        ("ThroughputController", {"ThroughputController.perThread": "true"}, [[], []]),
        ("ThroughputController", {"ThroughputController.style": 1}, [[], []]),
        ("SyncTimer", {}, [["2"], ["2"]]),
        ("SyncTimer", {"groupSize": 1}, [["1"], ["1"]]),
        ("SyncTimer", {"groupSize": 0}, [[], []]),
        ("CounterConfig", {}, [["1"], ["2"]]),
        ("CounterConfig", {"CounterConfig.start": 1_700_000_000_000}, [["1700000000000"], ["1700000000001"]]),
        ("CounterConfig", {"CounterConfig.per_user": "true"}, [[], []]),
        ("RandomVariableConfig", {}, [["7"], ["8"]]),
        ("JDBCDataSource", {}, [["5"], ["5"]]),
        ("JDBCDataSource", {"poolMax": 1}, [["1"], ["1"]]),
        ("JDBCDataSource", {"poolMax": 0}, [[], []]),  # each user has one
        ("RandomVariableConfig", {"randomSeed": ""}, [[], []]),
        ("RandomVariableConfig", {"perThread": "true"}, [[], []]),
    ],
)
def test_what_is_one_for_all_users_of_a_jvm_is_divided(
    tag: str, fields: dict[str, object], parts: list[list[str]]
) -> None:
    xml = "".join(field(name, text) for name, text in (ONES[tag] | fields).items())
    (element,), division = divide(f"<{tag} testname='it'>{xml}</{tag}>")
    assert [list(of.values()) for of in division.properties] == parts
    assert bool(division.ones) == (tag == "SyncTimer")
    if tag == "CounterConfig":
        assert element[1].text == ("2" if parts[0] else "1")


def test_the_function_counter_counts_in_turn() -> None:
    xml = "<HTTPSamplerProxy testname='a'><stringProp name='path'>/a/${__counter(FALSE,id)}/${__counter(TRUE,)}"
    (element,), division = divide(f"{xml}</stringProp></HTTPSamplerProxy>")
    assert [on(division, slave, element[0].text) for slave in (0, 1)] == [
        "/a/${__jexl3((${__counter(FALSE,)}-1)*2+1,id)}/${__counter(TRUE,)}",
        "/a/${__jexl3((${__counter(FALSE,)}-1)*2+2,id)}/${__counter(TRUE,)}",
    ]


COLUMNS = """<collectionProp name='UserParameters.thread_values'>
<collectionProp name='1'><stringProp name='1'>ada</stringProp></collectionProp>
<collectionProp name='2'><stringProp name='1'>bob</stringProp></collectionProp></collectionProp>"""


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        ("<CriticalSectionController testname='lock'/>", "lock (CriticalSectionController): one user at a time"),
        ("<HTTPSamplerProxy testname='a${__threadNum}'/>", "numbers of threads repeat on each slave (in a$"),
        (f"<UserParameters testname='who'>{COLUMNS}</UserParameters>", "(UserParameters): by the number of the user"),
        ("<JSR223Sampler testname='s'><stringProp name='script'>props.put('a', '1')</stringProp></JSR223Sampler>",
         "properties that the plan sets are set on one slave only (in s)"),
    ],
)  # fmt: skip
def test_what_cannot_be_divided_is_told_by_name(xml: str, words: str) -> None:
    assert words in divide(xml)[1].ones[0]
    assert divide(xml, 1)[1].ones == []
