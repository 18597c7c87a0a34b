"""Each slave's part of a plan's totals: every slave runs the whole plan, so users and rates are divided among them."""

import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from framestorm.errors import UsageError
from framestorm.load.thread_groups import kind_of
from framestorm.model import plan as plans
from framestorm.model.plan import Plan
from framestorm.model.plan_files import Known

_OPEN_MODEL = "org.apache.jmeter.threads.openmodel.OpenModelThreadGroup"
_OPEN_MODEL_RATE = re.compile(r"(?<=\brate\()\s*[\d.]+")


def parts(whole: str, slaves: int, is_whole_number: bool) -> list[str]:
    """The parts of a total; they differ by as little as possible and add up exactly."""
    if is_whole_number:
        # 5 users on 2 slaves are 3 and 2.
        each, more = divmod(int(whole), slaves)
        return [str(each + (number < more)) for number in range(slaves)]
    # Equal to a millionth; the first slave gets the rounding remainder, so that the sum is exact.
    total = Decimal(whole)
    part = round(total / slaves, 6).normalize()
    return [f"{(total - part * (slaves - 1)).normalize():f}", *[f"{part:f}"] * (slaves - 1)]


def split(plan: Plan, values: Mapping[str, str], slaves: int) -> list[dict[str, str]]:
    """Each slave's part of the totals that a plan declares, by their properties.

    A slave may get 0 users: it is then left out of the run by the caller.
    """
    shares: list[dict[str, str]] = [{} for _ in range(slaves)]
    for total in plan.totals:
        if total.name not in values:
            raise UsageError(f"-J{total.name}= has to be set: it is split over the slaves")
        for share, part in zip(shares, parts(values[total.name], slaves, total.is_whole_number), strict=True):
            share[total.name] = part
    return shares


@dataclass
class Division:
    """The division of the totals of a plan that declares none.

    totals: each total by its name. shares: each slave's parts of them. properties: as the slaves need the parts.
    undivided: what stays whole on each slave, and why.
    """

    slaves: int
    totals: dict[str, str] = field(default_factory=dict)
    shares: list[dict[str, str]] = field(default_factory=list)
    properties: list[dict[str, str]] = field(default_factory=list)
    undivided: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shares = [{} for _ in range(self.slaves)]
        self.properties = [{} for _ in range(self.slaves)]

    def reference(self, texts: Sequence[str]) -> str:
        """The reference to a property that has these texts on the slaves."""
        name = f"framestorm.share.{len(self.properties[0]) + 1}"
        for properties, text in zip(self.properties, texts, strict=True):
            properties[name] = text
        return f"${{__P({name},)}}"

    def divided(self, name: str, whole: str, is_whole_number: bool) -> list[str]:
        """The parts of a total, which are noted by its name."""
        while name in self.totals:
            name += "'"
        self.totals[name] = whole
        of_slaves = parts(whole, self.slaves, is_whole_number)
        for share, part in zip(self.shares, of_slaves, strict=True):
            share[name] = part
        return of_slaves


def divide(elements: Sequence[ET.Element], known: Known, slaves: int) -> Division:
    """Divide the users and rates of JMeter's own and the plug-ins' elements: each becomes a reference to a property."""
    division = Division(slaves)
    for element in elements:
        for what, holder in _totals(element):
            name = f"{what} of {_title(element)}"
            is_whole = what != "rate"
            number = _number(known.value(holder.text or ""), is_whole)
            if number is None:
                division.undivided.append(f"{name}: {holder.text} is known only during the run")
            elif number != "0":
                holder.tag, holder.text = "stringProp", division.reference(division.divided(name, number, is_whole))
        kind = kind_of(element)
        if kind and kind.table:
            _divide_table(element, kind.table, known, division)
        for step in kind.steps if kind else ():
            _divide_step(element, step, known, division)
        if element.tag == _OPEN_MODEL:
            _divide_schedule(element, division)
    return division


def _title(element: ET.Element) -> str:
    return element.get("testname") or element.tag


def _totals(element: ET.Element) -> Iterator[tuple[str, ET.Element]]:
    # In mode 0 the timer's rate is that of each thread.
    if element.tag == "ConstantThroughputTimer" and plans.field_text(element, "calcMode") in ("", "0"):
        return
    kind = kind_of(element)
    for name, what in kind.totals.items() if kind else ():
        holder = _holder(element, name)
        if holder is not None and (holder.text or "").strip():
            yield what, holder


def _holder(element: ET.Element, name: str) -> ET.Element | None:
    """The field's element; a number of a test bean, whose value is in a child, is made a text first."""
    for child in element:
        if child.get("name") == name:
            return child
        if child.findtext("name") == name:
            text = child.findtext("value")
            child.clear()
            child.tag, child.text = "stringProp", text
            child.set("name", name)
            return child
    return None


def _divide_table(element: ET.Element, table: tuple[str, tuple[int, ...]], known: Known, division: Division) -> None:
    """Divide the columns of a table with totals.

    A row of an Ultimate Thread Group without users would still start one: on each slave such rows are the last ones,
    which it does not reach.
    """
    name, columns = table
    title = _title(element)
    has_users = columns == (0,)
    rows = [list(row) for row in element.findall(f"collectionProp[@name='{name}']/collectionProp")]
    values = [[known.value(cell.text or "") for cell in row] for row in rows]
    for number, row in enumerate(values, 1):
        if any(_number(row[column], has_users) is None for column in columns) or None in row:
            division.undivided.append(f"row {number} of {title}: its numbers are known only during the run")
            return
    tables: list[list[list[str]]] = [[] for _ in range(division.slaves)]
    for number, row in enumerate(values, 1):
        cells = [[str(cell)] * division.slaves for cell in row]
        for column in columns:
            what = "users" if has_users else "rate at the start" if column == 0 else "rate at the end"
            label = f"{what} of {title}, row {number}"
            cells[column] = division.divided(label, _number(row[column], has_users) or "0", has_users)
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
    count, period = (_holder(element, name) for name in step)
    if count is None or period is None:
        return
    users, period_s = (_number(known.value(each.text or ""), is_whole_number=True) for each in (count, period))
    if users is None or period_s is None:
        division.undivided.append(f"{step[0]} of {_title(element)}: known only during the run")
    elif int(users) % division.slaves == 0:
        count.text = str(int(users) // division.slaves)
    else:
        period.text = str(int(period_s) * division.slaves)


def _divide_schedule(element: ET.Element, division: Division) -> None:
    holder = _holder(element, "OpenModelThreadGroup.schedule")
    text = (holder.text or "") if holder is not None else ""
    title = _title(element)
    if holder is None or text.count("rate(") != len(_OPEN_MODEL_RATE.findall(text)):
        division.undivided.append(f"schedule of {title}: its rates are known only during the run")
        return
    rates = itertools.count(1)
    holder.text = _OPEN_MODEL_RATE.sub(
        lambda rate: division.reference(division.divided(f"rate {next(rates)} of {title}", rate[0].strip(), False)),
        text,
    )


def _number(text: str | None, is_whole_number: bool) -> str | None:
    """The text of a number as `parts` takes it, None if it is none."""
    try:
        number = Decimal((text or "").strip())
    except InvalidOperation:
        return None
    if not number.is_finite() or number < 0 or (is_whole_number and number != int(number)):
        return None
    return str(int(number)) if is_whole_number else f"{number.normalize():f}"
