"""Whether JMeter can read the tree of a plan's elements, and what stands under its thread groups.

In a hashTree, JMeter takes elements and hashTrees by turns (HashTreeConverter of JMeter 5.5).
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import pairwise

from framestorm.errors import UsageError
from framestorm.model import plan as plans
from framestorm.model.variables import walk
from framestorm.run.finding import Finding

# What runs samplers of its own or of other files; of a plug-in's elements, all but those that end like these may.
_MAY_SAMPLE = (*plans.SAMPLERS, "IncludeController", "ModuleController")
_OF_PLUGIN = re.compile(
    r".+\.(?!\w*(Controller|ParallelSampler|Timer|Assertion|Manager|Config|Element|Processor|Extractor|Collector"
    r"|Listener|DataSet|Modifier|Gui|Writer|Reporter|Visualizer)$)\w+"
)
_RESTORE = "restore it from a copy that JMeter can open"


def check(name: str, root: ET.Element) -> None:
    """Raise UsageError if JMeter cannot read the tree of a plan or fragment, by the first place where it stops."""
    top = next(iter(root), None)
    if top is None or top.tag != "hashTree" or not len(top):
        raise UsageError(f"{name} has no hashTree with elements in it, so JMeter cannot read it")
    for tree in root.iter("hashTree"):
        for before, child in pairwise((ET.Element("hashTree"), *tree)):
            if child.tag == "hashTree" and before.tag == "hashTree":
                raise UsageError(f"{name}: JMeter cannot read a hashTree that follows no element; {_RESTORE}")
            if "hashTree" not in (child.tag, before.tag):
                between = f"a hashTree is missing between {plans.title(before)} and {plans.title(child)}"
                raise UsageError(f"{name}: {between}, so JMeter cannot read it; {_RESTORE}")


def check_elements(name: str, root: ET.Element) -> None:
    """Raise UsageError if JMeter cannot read an element: each has to name the class of its window."""
    for element in (child for tree in root.iter("hashTree") for child in tree if child.tag != "hashTree"):
        if element.get("guiclass") is None:
            what = f"{plans.title(element)} has no attribute guiclass, without which JMeter cannot read it"
            raise UsageError(f"{name}: {what}; {_RESTORE}")


def findings(name: str, root: ET.Element) -> Iterator[Finding]:
    """Yield the thread groups that have nothing to send; fatal if all are so."""
    sampling: dict[ET.Element, bool] = {}
    for place in walk(root):
        if place.group is place.element:
            sampling[place.element] = False
        elif place.group is not None:
            sampling[place.group] |= may_sample(place.element)
    if sampling and not any(sampling.values()):
        text = f"{name}: no thread group has an enabled sampler, so nothing would be sent: enable or add one"
        yield Finding(text, is_fatal=True)
        return
    for group in dict.fromkeys(plans.title(group) for group, is_sampling in sampling.items() if not is_sampling):
        yield Finding(f"{name}: {group} has no enabled sampler: its users send nothing")


def may_sample(element: ET.Element) -> bool:
    """Return whether an element may be a sampler or run one: one of a plug-in may unless its name says otherwise."""
    tag = element.tag
    return bool(_OF_PLUGIN.fullmatch(tag)) if "." in tag else tag.endswith(_MAY_SAMPLE)
