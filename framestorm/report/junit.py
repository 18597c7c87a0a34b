"""junit.xml, as CI systems read it: of a run a test case a label and criterion, and one for completeness.

A CI system follows a test case over its builds by its names, so these are the same for each run of a plan.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from framestorm.model.summary import BaselineCheck, Summary
from framestorm.plain import as_label, visible
from framestorm.report.document import moment


@dataclass(frozen=True)
class Case:
    """A test case: how it failed and why, in lines of which the first says it; or why it was skipped.

    label: under which it is grouped.
    """

    name: str
    failure: tuple[str, str] | None = None
    skipped: str | None = None
    output: str | None = None
    label: str | None = None


def junit_xml(summary: Summary) -> str:
    """Return the verdict of a run as JUnit's XML."""
    run, load, missing = summary.run, summary.load, summary.missing
    cases = [
        Case(
            f"not ({criterion.text})",
            None if criterion.state == "passed" else (criterion.state, criterion.why),
            output=f"measured: {criterion.measured}",
            label=criterion.label,
        )
        for criterion in summary.criteria
    ]
    cases += [_against(check, summary) for check in summary.against.checks] if summary.against else []
    cases.append(Case("the run is complete", ("partial", "\n".join(missing)) if missing else None))
    return suite_xml(
        [suite_name(summary)],
        cases,
        {
            "folder": summary.name,
            "plan": run.plan or run.source or "not known",
            **({"url": run.url} if run.url else {}),
            "verdict": summary.verdict.word,
        },
        run.started_ms or (load.start_ms if load else None),
        load.duration_ms if load else 0,
    )


def _against(check: BaselineCheck, summary: Summary) -> Case:
    """Return the test case of a threshold; an undecided one is skipped, or fails with `--undecided fail`."""
    is_failure = check.state == "failed" or (check.state == "undecided" and summary.run.undecided == "fail")
    return Case(
        check.name,
        (check.state, check.text) if is_failure else None,
        skipped=check.text if check.state == "undecided" and not is_failure else None,
        output=check.text,
        label="baseline",
    )


def suite_name(summary: Summary) -> str:
    """Return the run's title, or else the name of its plan or JTL; of a run without any, that of its folder."""
    run = summary.run
    path = run.plan or run.source
    return (run.title or (PurePath(path).stem if path else summary.name)).strip()


def suite_xml(
    names: Sequence[str],
    cases: Sequence[Case],
    properties: Mapping[str, str],
    started_ms: float | None,
    duration_ms: float,
) -> str:
    """Return one suite of test cases as JUnit's XML; `started_ms` is epoch time, None if it is not known.

    names: the parts of the suite's name; those of a case's class name are these and its label.
    """
    full_name = ".".join(["framestorm", *map(_part, names)])
    failures = sum(case.failure is not None for case in cases)
    skipped = sum(case.skipped is not None for case in cases)
    counts = {"tests": len(cases), "failures": failures, "errors": 0, "skipped": skipped}
    texts = {name: str(n) for name, n in counts.items()} | {"time": f"{duration_ms / 1000:.3f}"}
    root = ET.Element("testsuites", {"name": "framestorm", **texts})
    suite = ET.SubElement(root, "testsuite", {"name": full_name, **texts})
    if (started := moment(started_ms)) is not None:
        suite.set("timestamp", started.strftime("%Y-%m-%dT%H:%M:%S"))
    of_suite = ET.SubElement(suite, "properties")
    for key, value in properties.items():
        ET.SubElement(of_suite, "property", {"name": legal(key), "value": legal(value)})
    for case in cases:
        classname = full_name if case.label is None else f"{full_name}.{_part(as_label(case.label))}"
        made = ET.SubElement(suite, "testcase", {"classname": classname, "name": legal(case.name), "time": "0"})
        if case.failure:
            kind, why = case.failure[0], legal(case.failure[1])
            message = why.splitlines()[0] if why else kind
            ET.SubElement(made, "failure", {"type": kind, "message": message}).text = why
        if case.skipped is not None:
            ET.SubElement(made, "skipped", {"message": legal(case.skipped)})
        if case.output is not None:
            ET.SubElement(made, "system-out").text = legal(case.output)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _part(name: str) -> str:
    """Return a name as one part of a class name, which a CI system divides at each dot."""
    return legal(name).replace(".", "_")


def legal(text: str) -> str:
    """`text` without the characters that XML 1.0 has no place for, and with those that nobody sees written out."""
    return re.sub("[\ufffe\uffff]", "?", visible(text))
