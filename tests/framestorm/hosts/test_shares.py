"""How the totals of a plan are divided among slaves."""

import xml.etree.ElementTree as ET
from decimal import Decimal
from pathlib import Path

import pytest

from framestorm import paths
from framestorm.hosts import shares
from framestorm.hosts.shares import Division
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
    return elements, shares.divide(elements, Known(elements, values, Path("/plans")), slaves)


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
        ("<PreciseThroughputTimer><stringProp name='throughput'>1</stringProp></PreciseThroughputTimer>",
         [["0.5"], ["0.5"]]),
        (f"<{shares._OPEN_MODEL}><stringProp name='OpenModelThreadGroup.schedule'>rate(0/s) even_arrivals(1 min) "
         f"rate( 9 / min)</stringProp></{shares._OPEN_MODEL}>", [["0", "4.5"], ["0", "4.5"]]),
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
    assert tables(element, division) == [[["0", "4.5", "60"]]] * 2


@pytest.mark.parametrize(("step", "count", "period"), [("4", "2", "30"), ("1", "1", "60")])
def test_a_stepping_group_rises_as_fast_as_before(step: str, count: str, period: str) -> None:
    fields = {"ThreadGroup.num_threads": "10", "Start users count": step, "Start users period": "30"}
    xml = "".join(f"<stringProp name='{name}'>{text}</stringProp>" for name, text in fields.items())
    tag = "kg.apc.jmeter.threads.SteppingThreadGroup"
    (element,), division = divide(f"<{tag}>{xml}</{tag}>")
    assert [on(division, 1, field.text) for field in element] == ["5", count, period]
