"""docs/properties.md, made from the plans: `python -m framestorm.setup.property_docs` writes it anew."""

import inspect

from framestorm import paths
from framestorm.model import facets
from framestorm.model import plan as plans
from framestorm.model.facets import Property
from framestorm.model.files import write_text
from framestorm.model.plan import Plan

FILE = paths.ROOT / "docs" / "properties.md"
INTRODUCTION = """\
# Properties of the plans

Set a property with `-Jname=value`, or change its default in the plan in JMeter's GUI. Totals over all slaves are split:
5 users on 2 slaves are 3 and 2. A name that is neither the plan's nor JMeter's own is refused.

This file is made from the plans by `.local/test-venv/bin/python -m framestorm.setup.property_docs`.
"""


def text() -> str:
    """Return the whole document: a section for each plan of the kit."""
    sections = [_section(plans.read(path)) for path in sorted(paths.JMX.glob("*.jmx"))]
    grammar = inspect.cleandoc(facets.__doc__ or "").partition("\n\n")[2]
    return "\n".join([INTRODUCTION, *sections, f"## Properties of your own plan\n\n{grammar}\n"])


def _section(plan: Plan) -> str:
    rows = [_row(each) for each in plan.settable.values()]
    filled_in = ", ".join(f"`{name}`" for name in plan.filled_in)
    head = f"## {plan.name}\n\n{plan.comment}\n\n| property | default | meaning | value |\n|---|---|---|---|\n"
    return f"{head}{''.join(rows)}\nFilled in by Framestorm: {filled_in}.\n"


def _row(each: Property) -> str:
    default = {None: "computed by JMeter", "": "empty"}.get(each.default, f"`{each.default}`")
    if facets.EMBEDDED in each.facets:
        default = "the embedded target's"
    return f"| `{each.name}` | {default} | {each.meaning} | {'; '.join(each.facets) or 'text'} |\n"


if __name__ == "__main__":
    write_text(FILE, text())
