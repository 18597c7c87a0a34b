"""Each slave's part of a plan's totals: every slave runs the whole plan, so users and rates are divided among them."""

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence

from framestorm.errors import UsageError
from framestorm.hosts import one_per_jvm, schedules
from framestorm.hosts.division import Division, holder, number_text, parts, title
from framestorm.load import kit_load, timers
from framestorm.load.fields import Fields
from framestorm.load.thread_groups import LoadKind, kind_of
from framestorm.model.plan import Plan
from framestorm.model.plan_files import Known

SHIFT_MS = "framestorm.shift_ms"


def split(plan: Plan, values: Mapping[str, str], slaves: int) -> list[dict[str, str]]:
    """Return each slave's part of the totals that a plan declares, by their properties.

    A slave may get 0 users: it is then left out of the run by the caller.
    """
    shares: list[dict[str, str]] = [{} for _ in range(slaves)]
    load = kit_load.read(plan, values)
    for total in plan.totals:
        if load is not None and load.model == "arrivals" and load.takes_place_of(total.name):
            continue  # each slave takes its arrivals
        if total.name not in values:
            raise UsageError(f"-J{total.name}= has to be set: it is split over the slaves")
        for share, part in zip(shares, parts(values[total.name], slaves, total.is_whole_number), strict=True):
            share[total.name] = part
    return shares


def divide(elements: Sequence[ET.Element], known: Known, values: Mapping[str, str], slaves: int) -> Division:
    """Divide what a plan asks for, and what it has once for all users: each number becomes a reference to a property.

    values: the properties of the plan and of JMeter.
    """
    division = Division(slaves)
    for element in elements:
        kind, fields = kind_of(element), Fields(element, known, values)
        if kind is None:
            continue
        if element.tag.endswith("PreciseThroughputTimer"):
            schedules.divide_precise_timer(fields, division)
        elif element.tag.endswith("OpenModelThreadGroup"):
            schedules.divide_open_model(fields, division)
        else:
            _divide_fields(fields, kind, division)
        if kind.table and (name := next((each for each in timers.property_names(fields) if values.get(each)), None)):
            schedules.divide_property(name, values[name], division)
        elif kind.table:
            _divide_table(element, kind.table, known, division)
        for step in kind.steps:
            _divide_step(element, step, known, division)
    one_per_jvm.divide_ones(elements, lambda element: Fields(element, known, values), division)
    return division


def divide_ones(elements: Sequence[ET.Element], known: Known, values: Mapping[str, str], slaves: int) -> Division:
    """Divide what a plan that declares its totals has once for all users besides, and the times of its ramp-up."""
    division = Division(slaves)
    for element in elements:
        fields = Fields(element, known, values)
        users = number_text(known.value(fields.raw("ThreadGroup.num_threads")), is_whole_number=True)
        if element.tag == "ThreadGroup" and users:
            _shift_ramp(fields, int(users), division)
    one_per_jvm.divide_ones(elements, lambda element: Fields(element, known, values), division)
    return division


def _divide_fields(fields: Fields, kind: LoadKind, division: Division) -> None:
    # "This thread only": the timer's rate is that of each thread.
    if fields.element.tag == "ConstantThroughputTimer" and timers.mode_of(fields) in timers.OF_EACH_THREAD:
        return
    schedules.divide_feedback(fields, division)
    for name, what in kind.totals.items():
        field = holder(fields.element, name)
        if field is None or not (field.text or "").strip() or "__tstFeedback(" in (field.text or ""):
            continue
        total, is_whole = f"{what} of {title(fields.element)}", what != "rate"
        number = number_text(fields.known.value(field.text or ""), is_whole)
        if number is None:
            division.undivided.append(f"{total}: {field.text} is known only during the run")
        elif number != "0":
            if name == "ThreadGroup.num_threads" and fields.element.tag == "ThreadGroup":
                _shift_ramp(fields, int(number), division)
            # A limit of 0 is none.
            least = 1 if name == "ConcurrencyLimit" else 0
            field.tag, field.text = "stringProp", division.reference(division.divided(total, number, is_whole, least))


def _shift_ramp(fields: Fields, users: int, division: Division) -> None:
    """Have the slaves start their users in turn, by a field that jmx/java/Schedules.java reads.

    Each slave starts its first user at once: of 2 users in 4 s on 2 slaves, both would start together.
    """
    ramp_s = number_text(fields.known.value(fields.raw("ThreadGroup.ramp_time")), is_whole_number=True)
    if not ramp_s or ramp_s == "0" or users < 2:
        return
    waits_ms = [str(round(1000 * int(ramp_s) * slave / users)) for slave in range(division.slaves)]
    ET.SubElement(fields.element, "stringProp", name=SHIFT_MS).text = division.reference(waits_ms)


def _divide_table(element: ET.Element, table: tuple[str, tuple[int, ...]], known: Known, division: Division) -> None:
    """Divide the columns of a table with totals.

    A row of an Ultimate Thread Group without users would still start one: on each slave such rows are the last ones,
    which it does not reach.
    """
    name, columns = table
    of = title(element)
    has_users = columns == (0,)
    # The timer sends whole samples in each second, so parts of a whole number are whole.
    is_in_whole = has_users or element.tag.endswith("VariableThroughputTimer")
    rows = [list(row) for row in element.findall(f"collectionProp[@name='{name}']/collectionProp")]
    values = [[known.value(cell.text or "") for cell in row] for row in rows]
    for number, row in enumerate(values, 1):
        if any(number_text(row[column], has_users) is None for column in columns) or None in row:
            division.undivided.append(f"row {number} of {of}: its numbers are known only during the run")
            return
    tables: list[list[list[str]]] = [[] for _ in range(division.slaves)]
    for number, row in enumerate(values, 1):
        cells = [[str(cell)] * division.slaves for cell in row]
        for column in columns:
            what = "users" if has_users else "rate at the start" if column == 0 else "rate at the end"
            label, whole = f"{what} of {of}, row {number}", number_text(row[column], has_users) or "0"
            cells[column] = division.divided(label, whole, is_in_whole and whole.isdecimal())
        for slave, own in enumerate(tables):
            own.append([cell[slave] for cell in cells])
    if has_users:
        for own in tables:
            own.sort(key=lambda row: row[0] == "0")
    for number, fields in enumerate(rows):
        for column, cell in enumerate(fields):
            cell.text = division.reference([own[number][column] for own in tables])


def _divide_step(element: ET.Element, step: tuple[str, str], known: Known, division: Division) -> None:
    """Divide a step of users where that is possible; else each slave takes it whole, in as many times the period."""
    count, period = (holder(element, name) for name in step)
    if count is None or period is None:
        return
    users, period_s = (number_text(known.value(each.text or ""), is_whole_number=True) for each in (count, period))
    if users is None or period_s is None:
        division.undivided.append(f"{step[0]} of {title(element)}: known only during the run")
    elif int(users) % division.slaves == 0:
        count.text = str(int(users) // division.slaves)
    else:
        period.text = str(int(period_s) * division.slaves)
