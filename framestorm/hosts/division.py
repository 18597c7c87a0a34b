"""A plan's totals and each slave's parts of them: every slave runs the whole plan, so what is a total is divided."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation


def parts(whole: str, slaves: int, is_whole_number: bool) -> list[str]:
    """Return the parts of a total; they differ by as little as possible and add up exactly."""
    if is_whole_number:
        # 5 users on 2 slaves are 3 and 2.
        each, more = divmod(int(whole), slaves)
        return [str(each + (number < more)) for number in range(slaves)]
    # Equal to a millionth; the first slave gets the rounding remainder, so that the sum is exact.
    total = Decimal(whole)
    part = round(total / slaves, 6).normalize()
    return [f"{(total - part * (slaves - 1)).normalize():f}", *[f"{part:f}"] * (slaves - 1)]


@dataclass
class Division:
    """The division of the totals of a plan that declares none.

    totals: each total by its name. shares: each slave's parts of them. properties: as the slaves need the parts.
    undivided: what stays whole on each slave, and why. ones: what is one for each slave and not one for all of them.
    """

    slaves: int
    totals: dict[str, str] = field(default_factory=dict)
    shares: list[dict[str, str]] = field(default_factory=list)
    properties: list[dict[str, str]] = field(default_factory=list)
    undivided: list[str] = field(default_factory=list)
    ones: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shares = [{} for _ in range(self.slaves)]
        self.properties = [{} for _ in range(self.slaves)]

    def reference(self, texts: Sequence[str]) -> str:
        """Return the reference to a property that has these texts on the slaves."""
        name = f"framestorm.share.{len(self.properties[0]) + 1}"
        for properties, text in zip(self.properties, texts, strict=True):
            properties[name] = text
        return f"${{__P({name},)}}"

    def divided(self, name: str, whole: str, is_whole_number: bool, least: int = 0) -> list[str]:
        """Return the parts of a total, which are noted by its name; none is smaller than `least`."""
        of_slaves = parts(whole, self.slaves, is_whole_number)
        if least:
            of_slaves = [str(max(least, int(part))) for part in of_slaves]
        self.shared(name, whole, of_slaves)
        return of_slaves

    def has_users(self, slave: int, groups: Sequence[str]) -> bool:
        """Whether a slave has a part of one of the thread groups with these names, or of any that is not divided."""
        for group in groups:
            own = [
                part
                for name, part in self.shares[slave].items()
                if re.search(rf" of {re.escape(group)}(?:,|'|$)", name)
            ]
            if not own or any(part != "0" for part in own):
                return True
        return not groups

    def shared(self, name: str, whole: str, of_slaves: Sequence[str]) -> None:
        """Record a total and the parts of the slaves under its name."""
        while name in self.totals:
            name += "'"
        self.totals[name] = whole
        for share, part in zip(self.shares, of_slaves, strict=True):
            share[name] = part


def holder(element: ET.Element, name: str) -> ET.Element | None:
    """Return the field's element; a number of a test bean, whose value is in a child, is made a text first."""
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


def number_text(text: str | None, is_whole_number: bool) -> str | None:
    """Return the text of a number as `parts` takes it, None if it is none."""
    try:
        number = Decimal((text or "").strip())
    except InvalidOperation:
        return None
    if not number.is_finite() or number < 0 or (is_whole_number and number != int(number)):
        return None
    return str(int(number)) if is_whole_number else f"{number.normalize():f}"


def title(element: ET.Element) -> str:
    return element.get("testname") or element.tag
