"""The first run of the kit's scripts: alone, they find mistakes in the properties that only they can find."""

import copy
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.model import plan as plans
from framestorm.model.plan_files import BASE_DIR, Known
from framestorm.results.jmeter_log import read_log
from framestorm.run import jmeter
from framestorm.run.preparation import Prepared

WITHIN_S = 120


def check(prepared: Prepared) -> None:
    """Run in JMeter what a plan's set-up runs of the kit's scripts, and nothing else of the plan: nothing is sent.

    Raises:
        UsageError: a script cannot use a property.
        FramestormError: JMeter cannot run them.
    """
    folder = prepared.plan.path.absolute().parent
    root = copy.deepcopy(prepared.plan.root)
    known = Known(plans.enabled_elements(root), prepared.values, folder)
    top = root.find("hashTree")
    if not prepared.plan.is_for_kit or top is None or len(top) < 2 or top[0].tag != "TestPlan":
        return
    del top[2:]
    _keep_set_up(top[1], known)
    if top.find(".//JSR223Sampler") is None:
        return
    for each in root.iter():
        each.text = (each.text or "").replace(BASE_DIR, str(folder))
    with tempfile.TemporaryDirectory(prefix="framestorm-check-") as scratch:
        plan = Path(scratch) / "plan.jmx"
        plans.write(root, plan)
        values = {**prepared.values, **prepared.jmeter_values, "framestorm.warm_up": "false"}
        words = prepared.options.for_jmeter
        command = jmeter.run_command(plan, values, plan.parent, java_options=jmeter.QUICK_START, words=words)
        with (plan.parent / "jmeter.out").open("wb") as output:
            try:
                done = subprocess.run(
                    command, stdout=output, stderr=output, env=jmeter.environment(), timeout=WITHIN_S, check=False
                )
            except subprocess.TimeoutExpired:
                raise FramestormError(f"the scripts that set the plan up took more than {WITHIN_S} s") from None
        if refusal := read_log(plan.parent).refusal:
            raise UsageError(refusal)
        if done.returncode:
            raise FramestormError(f"JMeter cannot run the scripts that set the plan up{jmeter.failure(plan.parent)}")


def _keep_set_up(tree: ET.Element, known: Known) -> None:
    """Leave of a test plan its variables, and its set-up thread groups with the kit's scripts."""
    for element, below in zip(tree[::2], tree[1::2], strict=False):
        is_enabled = element.get("enabled") != "false"
        if is_enabled and element.tag == "SetupThreadGroup":
            for sampler, others in zip(below[::2], below[1::2], strict=False):
                if not _is_of_kit(sampler, known):
                    below.remove(sampler)
                    below.remove(others)
        elif not (is_enabled and element.tag == "Arguments"):
            tree.remove(element)
            tree.remove(below)


def _is_of_kit(sampler: ET.Element, known: Known) -> bool:
    script = known.value(plans.field_text(sampler, "filename")) if sampler.tag == "JSR223Sampler" else None
    return bool(script) and Path(script or "").resolve().is_relative_to(paths.JMX / "groovy")
