"""Elements that plans share: those of one class and name are the same in every plan, but for what is listed here.

After a change of a shared element in one plan (in JMeter's GUI), `python tests/jmx/shared_elements.py jmx/PLAN.jmx`
copies it into the others.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

JMX = Path(__file__).resolve().parents[2] / "jmx"
# What may differ of elements of the same class and name: their properties, or the variables of User Defined Variables.
MAY_DIFFER = {
    ("Arguments", "properties"): {
        *("url", "users", "ramp_s", "hold_s", "frames", "sleep_s", "timeout_s", "user_timeout_s"),
        "TestPlan.comments",
    },
    ("Arguments", "internal"): {"label"},
    ("SystemSampler", "user"): {"SystemSampler.arguments", "TestPlan.comments"},
    ("HeaderManager", "headers"): {"HeaderManager.headers"},
    ("JSR223PostProcessor", "answer"): {"TestPlan.comments"},
    ("ResultCollector", "View Results Tree"): {"saveConfig"},
}
ELEMENT = re.compile(
    r'^(?P<indent> +)<(?P<tag>\S+) guiclass="[^>]* testname="(?P<name>[^"]*)".*?^(?P=indent)</(?P=tag)>\n', re.M | re.S
)
PART = re.compile(  # of User Defined Variables: a variable, or the comment
    r'^(?P<indent> +)<(?P<tag>elementProp|stringProp) name="(?P<name>\w+|TestPlan.comments)".*?</(?P=tag)>\n',
    re.M | re.S,
)


def _elements(text: str) -> Iterator[tuple[tuple[str, str], str]]:
    for match in ELEMENT.finditer(text):
        yield (match["tag"], match["name"]), match[0]


def spread(source: Path) -> list[Path]:
    """Copy the shared elements and variables of one plan into the others beside it; returns those that changed."""
    shared = dict(_elements(source.read_text()))
    changed = []
    for plan in sorted(source.parent.glob("*.jmx")):
        old = new = plan.read_text()
        for key, block in _elements(old):
            if key not in shared or plan == source:
                continue
            if key[0] == "Arguments":
                new = new.replace(block, _with_parts(block, shared[key], MAY_DIFFER.get(key, set())))
            elif key not in MAY_DIFFER:
                new = new.replace(block, shared[key])
        if new != old:
            plan.write_text(new)
            changed.append(plan)
    return changed


def _with_parts(block: str, source: str, may_differ: set[str]) -> str:
    """An element of User Defined Variables with those parts of another that both have."""
    parts = {match["name"]: match[0] for match in PART.finditer(source) if match["name"] not in may_differ}
    return PART.sub(lambda match: parts.get(match["name"], match[0]), block)


if __name__ == "__main__":
    for path in spread(Path(sys.argv[1]).resolve()):
        print(f"changed {path}")
