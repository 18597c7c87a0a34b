"""Plans that nobody made for this kit: each label has the figures that plain JMeter's file has by a second count."""

import os
import re
import shutil
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from framestorm import conductor, paths, report
from framestorm.run.jmeter import BASE_PACKAGES, QUICK_START
from framestorm.run.options import Output, RunOptions, What
from tests.foreign import independent
from tests.foreign.site import Site, card_gateway
from tests.runs import RunFiles
from tests.stand_in import serving

PLANS = Path(__file__).with_name("plans")
TEMPLATES = paths.JMETER_HOME / "bin" / "templates"
JMETER_TIMEOUT_S = 120


@dataclass(frozen=True)
class Foreign:
    """A plan, what its user sets, whether each run sends the same samples, and which labels are of parts of others.

    causes: those that all its failures must have, if the plan is about that.
    """

    name: str
    properties: str = "host port"
    repeats: bool = True
    parts: str = ""
    causes: str = ".*"

    @property
    def is_template(self) -> bool:
        return (TEMPLATES / f"{self.name}.jmx").exists()


FOREIGN = [
    Foreign("build-web-test-plan", "", repeats=False),  # a duration
    Foreign("build-adv-web-test-plan", "resources_folder"),
    Foreign("build-webservice-test-plan", ""),
    Foreign("simple-http-request-test-plan", ""),
    Foreign("database", "user.classpath"),
    Foreign("messages", "user.classpath"),
    Foreign("tcp", "host tcp_port"),
    Foreign("login", parts=r"Submit login-\d"),
    # One user: in JMeter 5.5, downloads side by side can use a connection of another user, and fail when that one ends.
    Foreign("pages", parts=r".+-\d"),
    # Sub-results of sub-results: a picture that is redirected, and those of a script, with labels of its own.
    Foreign("nested", parts=r".+-\d|read page|find words"),
    Foreign("recorded"),
    Foreign("polling"),
    Foreign("modules"),
    Foreign("rest"),
    Foreign("labels"),
    Foreign("assertions", "", causes="failed-check: not done yet"),
    Foreign("dummy", ""),
    Foreign("ultimate", repeats=False),
    Foreign("shaped", repeats=False),
]


@dataclass(frozen=True)
class Servers:
    """What a run is against, for each run its own."""

    site: Site
    tcp_port: int

    def set(self, folder: Path, names: str) -> list[str]:
        """The properties as their user sets them."""
        values = {
            "host": self.site.host,
            "port": self.site.server_port,
            "tcp_port": self.tcp_port,
            "resources_folder": folder,
            "user.classpath": os.pathsep.join(map(str, sorted(paths.TEST_JARS.glob("*.jar")))),
        }
        return [f"-J{name}={values[name]}" for name in names.split()]

    def requests(self) -> Counter[tuple[str, str]]:
        """How often each method and path was asked for; numbers in paths differ from run to run."""
        return Counter((one.method, re.sub(r"\d+", "N", one.path)) for one in self.site.received)


@pytest.fixture
def start_servers() -> Iterator[Any]:
    with ExitStack() as stack:

        def start() -> Servers:
            site = Site()
            stack.enter_context(serving(server=site))
            return Servers(site, stack.enter_context(card_gateway()))

        yield start


def adapted(name: str, folder: Path, site: Site) -> Path:
    """One of JMeter's templates, its hosts, port and times set as it asks its user to."""
    text = (TEMPLATES / f"{name}.jmx").read_text()
    url = f"http://{site.host}:{site.server_port}/api/items"
    text = text.replace("[=url]", url).replace("[=method]", "POST").replace("[=contentType]", "application/json")
    text = text.replace("[=body]", "{}")
    text = re.sub(r">[\w.]+\.(example|org|com)<", f">{site.host}<", text).replace(">https<", "><")
    changes = {
        "HTTPSampler.port": site.server_port,
        "ThreadGroup.duration": 3,
        "ThreadGroup.delay": 0,
        "ThreadGroup.ramp_time": 1,
        "ConstantTimer.delay": 100,
        "RandomTimer.range": 50,
    }
    for field, value in changes.items():
        text = re.sub(rf'(name="{re.escape(field)}">)[^<]*<', rf"\g<1>{value}<", text)
    plan = folder / f"{name}.jmx"
    plan.write_text(text)
    (folder / "login.csv").write_text("ada,lovelace\nbo,derek\n")
    return plan


def plan_of(foreign: Foreign, folder: Path, site: Site) -> Path:
    """The plan in a folder of its own, with its files."""
    folder.mkdir()
    if foreign.is_template:
        return adapted(foreign.name, folder, site)
    shutil.copytree(PLANS, folder, dirs_exist_ok=True)
    return folder / f"{foreign.name}.jmx"


def plain_jmeter(plan: Path, properties: list[str]) -> subprocess.Popen[bytes]:
    """Start JMeter as its own script does, without the kit."""
    command: list[str | Path] = [paths.JAVA_HOME / "bin" / "java", "-Xmx512m", *QUICK_START]
    command += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in BASE_PACKAGES]
    command += ["-jar", paths.JMETER_HOME / "bin" / "ApacheJMeter.jar", "-n", "-t", plan]
    command += ["-l", plan.parent / "plain.jtl", "-j", plan.parent / "plain.log", *properties]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def shown(label: dict[str, Any]) -> dict[str, object]:
    """Of a label in summary.json, the figures that independent.figures has."""
    bytes_per_s = ("received_bytes_per_s", "sent_bytes_per_s")
    figures = {name: label[name] for name in ("n", "failed", "rate_per_s", "completed_per_s", *bytes_per_s)}
    times = label["times"]["rtt"]
    names = ("mean", "min", "max", *(f"p{p}" for p in independent.PERCENTILES))
    return figures | {name: times[name]["value"] for name in names if times[name] is not None}


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda foreign: foreign.name)
def test_every_label_has_the_figures_of_the_file(foreign: Foreign, start_servers: Any, tmp_path: Path) -> None:
    ours, theirs = start_servers(), start_servers()
    plan = plan_of(foreign, tmp_path / "plain", theirs.site)
    plain = plain_jmeter(plan, theirs.set(plan.parent, foreign.properties))
    plan = plan_of(foreign, tmp_path / "here", ours.site)
    given = dict(word.removeprefix("-J").split("=", 1) for word in ours.set(plan.parent, foreign.properties))
    stop = threading.Timer(JMETER_TIMEOUT_S, os.kill, (os.getpid(), signal.SIGINT))
    stop.start()
    try:
        run = RunFiles(conductor.run(RunOptions(What(plan, given), output=Output(tmp_path / "run"))))
    finally:
        stop.cancel()
    report.build(run.folder)
    assert run.json("run.json")["state"] == "complete"
    assert plain.wait(JMETER_TIMEOUT_S) == 0

    rows = independent.read(run.folder / "samples.jtl")
    check_figures(foreign, rows, run.json("summary.json")["labels"])
    plain_rows = independent.read(tmp_path / "plain" / "plain.jtl")
    if foreign.repeats:
        assert independent.counts(rows) == independent.counts(plain_rows)
        assert ours.requests() == theirs.requests()
    else:
        assert {row.label for row in rows} == {row.label for row in plain_rows}


def check_figures(foreign: Foreign, rows: list[independent.Row], labels: dict[str, Any]) -> None:
    """Each label of summary.json, and all together, have the figures of the rows."""
    assert all(re.fullmatch(foreign.causes, cause) for label in labels.values() for cause in label["causes"])
    samples = [row for row in rows if not row.is_transaction and not re.fullmatch(foreign.parts, row.label)]
    assert any(row.is_ok for row in samples)
    whole = labels.pop("all", None)
    assert whole is None or shown(whole) == independent.figures(samples)
    assert {name: shown(label) for name, label in labels.items()} == {
        name: independent.figures(of) for name, of in independent.by_label(rows).items()
    }
    transactions = {row.label for row in rows if row.is_transaction}
    kinds = {name: label["kind"] for name, label in labels.items()}
    assert kinds == {
        row.label: "transaction" if row.label in transactions else "sampler" if row in samples else "sub-result"
        for row in rows
    }
