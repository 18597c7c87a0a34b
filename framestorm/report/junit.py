"""junit.xml: a test case a criterion, and one for completeness, as CI systems read them."""

import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from typing import Any


def junit_xml(summary: dict[str, Any]) -> str:
    """The verdict of summary.json as JUnit's XML."""
    run, load = summary["run"], summary["load"]
    suite_name = f"framestorm.{summary['name']}"
    started_ms = run["started_ms"] or (load["start_ms"] if load else 0)
    seconds = f"{load['duration_ms'] / 1000:.3f}" if load else "0"
    n_failed = summary["verdict"]["failed"] + summary["verdict"]["unjudged"] + bool(summary["missing"])
    counts = {"tests": str(len(summary["criteria"]) + 1), "failures": str(n_failed), "errors": "0", "skipped": "0"}
    root = ET.Element("testsuites", {"name": "framestorm", **counts, "time": seconds})
    timestamp = datetime.fromtimestamp(started_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    suite = ET.SubElement(root, "testsuite", {"name": suite_name, **counts, "time": seconds, "timestamp": timestamp})
    properties = ET.SubElement(suite, "properties")
    for name, value in {"plan": run["plan"], "verdict": summary["verdict"]["verdict"]}.items():
        ET.SubElement(properties, "property", {"name": name, "value": _legal(str(value))})
    for criterion in summary["criteria"]:
        case = _case(suite, suite_name, f"not ({criterion['text']})")
        if criterion["state"] != "passed":
            _failure(case, criterion["state"], criterion["why"])
        ET.SubElement(case, "system-out").text = _legal(f"measured: {criterion['measured']}")
    complete = _case(suite, suite_name, "the run is complete")
    if summary["missing"]:
        _failure(complete, "partial", "\n".join(summary["missing"]))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, class_name: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", {"classname": class_name, "name": _legal(name), "time": "0"})


def _failure(case: ET.Element, kind: str, text: str) -> None:
    message = text.splitlines()[0] if text else kind
    ET.SubElement(case, "failure", {"type": kind, "message": _legal(message)}).text = _legal(text)


def _legal(text: str) -> str:
    """`text` without the characters that XML 1.0 has no place for."""
    return "".join(
        c if c in "\t\n\r" or (c >= " " and not 0xD800 <= ord(c) < 0xE000 and ord(c) < 0xFFFE) else "?" for c in text
    )
