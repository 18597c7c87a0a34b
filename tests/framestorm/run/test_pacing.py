"""Timers and pools that would do otherwise than a plan says, found before the load."""

from pathlib import Path

import pytest

from framestorm.load.reading import read_loads
from framestorm.model import plan as plans
from framestorm.model.plan_files import Known
from framestorm.run import pacing
from framestorm.run.finding import Finding
from tests.framestorm.load.test_reading import APC, CAS, element, users


def findings(content: str, folder: Path, **values: str) -> list[Finding]:
    path = folder / "plan.jmx"
    path.write_text(
        f"<jmeterTestPlan><hashTree><TestPlan/><hashTree>{content}</hashTree></hashTree></jmeterTestPlan>",
        encoding="utf-8",
    )
    plan = plans.read(path)
    known = Known(plan.elements, values, folder)
    return list(pacing.findings("plan.jmx", [plan.root], known, values, read_loads(plan, (), values)))


def pool(level: str) -> str:
    return element(f"{CAS}.concurrency.ConcurrencyThreadGroup", "pool", {"TargetLevel": level, "Hold": 9})


def shaping(name: str, attributes: str = "") -> str:
    timer = element(f"{APC}.timers.VariableThroughputTimer", name, {}, ("load_profile", [(1, 1, 9)]))
    return timer.replace(" testname", f" {attributes} testname", 1) + "<hashTree/>"


def sync(size: object, timeout_ms: int = 0) -> str:
    return element("SyncTimer", "together", {"groupSize": size, "timeoutInMs": timeout_ms}) + "<hashTree/>"


def loops(number: int) -> str:
    field = f"<stringProp name='LoopController.loops'>{number}</stringProp>"
    return f"<elementProp name='ThreadGroup.main_controller'>{field}</elementProp></ThreadGroup>"


@pytest.mark.parametrize(
    ("content", "is_fatal", "words"),
    [
        (pool("${__tstFeedback(tst,1,9,1)}") + f"<hashTree>{shaping('other')}</hashTree>", True,
         "no enabled Throughput Shaping Timer of this name, but 'other'"),
        (pool("${__tstFeedback(tst,1,9,1)}") + "<hashTree>" + shaping('tst', "enabled='false'") + "</hashTree>", True,
         "no enabled Throughput Shaping Timer of this name: its users would stay"),
        (pool("2.5") + "<hashTree/>", True, "asks for '2.5' users, which JMeter takes for 0"),
        (users("g", 3, sync(4)), True, "waits for 4 users, and its thread group has 3: they would wait for ever"),
        (users("g", 3, sync(4, 500)), False, "they would wait until its time-out of 500 ms"),
        (users("g", 6, sync(4)).replace("</ThreadGroup>", loops(3), 1), False, "the last 2 would wait for ever"),
        (users("g", 1, element("ConstantThroughputTimer", "slow", {"throughput": 0, "calcMode": 1})), False,
         "'slow' has no rate"),
        (users("g", 1, 2 * (element("PreciseThroughputTimer", "p", {"throughput": 1, "throughputPeriod": 1,
                                                                    "duration": 9}) + "<hashTree/>")), False,
         "the 2 Precise Throughput Timers of thread group 'g' share one schedule"),
    ],
)  # fmt: skip
def test_what_a_timer_would_not_do_is_told(content: str, is_fatal: bool, words: str, tmp_path: Path) -> None:
    (finding,) = findings(content, tmp_path)
    assert words in finding.text
    assert finding.is_fatal == is_fatal


@pytest.mark.parametrize(
    "content",
    [
        pool("${__tstFeedback(tst,1,9,1)}") + f"<hashTree>{shaping('tst')}</hashTree>",
        pool("${__tstFeedback(${__P(name,tst)},1,9,1)}") + f"<hashTree>{shaping('${__P(name,tst)}')}</hashTree>",
        pool("${__tstFeedback(${unknown},1,9,1)}") + f"<hashTree>{shaping('tst')}</hashTree>",
        users("g", 4, sync(4)),
        users("g", "${__Random(1,9)}", sync(4)),
        users("a", 2) + users("b", 2) + sync(4),
        users("g", 4, sync(4)).replace("</ThreadGroup>", loops(3), 1),
    ],
)
def test_what_may_be_as_the_plan_says_is_not_told(content: str, tmp_path: Path) -> None:
    assert findings(content, tmp_path) == []
