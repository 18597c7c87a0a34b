"""Every plan of the kit as JMeter reads it, and JMeter's own home; test_runs.py runs them, test_gui.py saves them."""

import json
import re
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from framestorm import probe
from framestorm.errors import UsageError
from framestorm.model import plan as plans
from framestorm.model.variables import OF_KIT
from framestorm.paths import JMETER_HOME as HOME
from framestorm.paths import JMX, ROOT
from framestorm.setup import pieces
from tests.jmx.conftest import groovy

PLANS = sorted(JMX.glob("*.jmx"))
COMMAND = 'exec timeout --kill-after=5 "$@" 2>>"$0"'
# What Answer.java and User.java read only where a plan sends frames, has arrivals, or is for any function.
OF_SOME_PLANS = {
    "client_server", "accept", "min_faces", "index", "intended_ms", "method", "expect_status", "expect", "reject",
    "figures",
}  # fmt: skip
# What may differ of elements of the same class and name: their properties, or the variables of User Defined Variables.
MAY_DIFFER = {
    ("Arguments", "properties"): {
        *(
            "load",
            "url",
            "users",
            "ramp_s",
            "hold_s",
            "frames",
            "sleep_s",
            "timeout_s",
            "user_timeout_s",
            "expect",
            "goodput",
        ),
        "TestPlan.comments",
    },
    ("Arguments", "internal"): {"label"},
    ("SystemSampler", "user"): {"SystemSampler.arguments", "SystemSampler.environment", "TestPlan.comments"},
    ("JSR223PostProcessor", "answer"): {"TestPlan.comments"},
    ("ResultCollector", "View Results Tree"): {"saveConfig"},
    ("JSR223Sampler", "needs framestorm-plugin.jar in lib/ext of JMeter"): {"script", "TestPlan.comments"},
}
every_plan = pytest.mark.parametrize("plan", PLANS, ids=lambda path: path.stem)


@dataclass(frozen=True)
class Element:
    """An element of a plan: the XML of each of its properties by name, and of each of its variables; all its texts."""

    plan: Path
    kind: str
    name: str
    properties: dict[str, str]
    texts: tuple[str, ...]


@pytest.fixture(scope="module")
def elements() -> list[Element]:
    """Every element of every plan in order, as JMeter writes what it has read."""
    command = groovy(Path(__file__).with_name("elements.groovy"), HOME, *PLANS)
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [_element(json.loads(line)) for line in output.splitlines()]


def _element(line: dict[str, str]) -> Element:
    root = ET.fromstring(line["xml"])  # noqa: S314 - JMeter has just written it
    parts = list(root) + list(root.iterfind("collectionProp[@name='Arguments.arguments']/*"))
    kept = [part for part in parts if part.get("name") != "Arguments.arguments"]
    properties = {part.get("name") or part.findtext("name", ""): ET.tostring(part, "unicode").strip() for part in kept}
    texts = tuple(part.text or "" for part in root.iter())
    return Element(Path(line["plan"]), root.tag, root.get("testname", ""), properties, texts)


def test_shared_elements_are_the_same(elements: list[Element]) -> None:
    shared: dict[tuple[str, str], dict[str, str]] = {}
    count = 0
    for element in elements:
        key = (element.kind, element.name)
        first = shared.setdefault(key, {})
        # Each plan has variables of its own; any other element has the same properties in each.
        is_whole = bool(first) and element.kind != "Arguments"
        names = first.keys() | element.properties.keys() if is_whole else first.keys() & element.properties.keys()
        for name in names - MAY_DIFFER.get(key, set()):
            assert first.get(name) == element.properties.get(name), f"{name} of {key} in {element.plan.name}"
        count += bool(first)
        shared[key] = element.properties | first
    assert count > 40


@every_plan
def test_what_to_set_comes_first(plan: Path, elements: list[Element]) -> None:
    of_plan = plans.read(plan)
    first = [element for element in elements if element.plan == plan][1:4]
    names = ["properties", "filled in by Framestorm", "internal"]
    assert [(element.kind, element.name) for element in first] == [("Arguments", name) for name in names]
    properties, filled_in, _ = (element.properties.keys() - {"TestPlan.comments"} for element in first)
    assert filled_in == set(of_plan.filled_in) - {"tree"}
    assert set(of_plan.settable) - properties in (set(), {"users", "ramp_s", "hold_s"}), "those are read by a chart"


@every_plan
def test_a_timeout_of_0_is_refused(plan: Path) -> None:
    """JMeter, clients and curl take it for different things."""
    timeouts = [each for name, each in plans.read(plan).settable.items() if name in ("timeout_s", "connect_timeout_s")]
    assert timeouts or plan.stem == "process"
    for each in timeouts:
        with pytest.raises(UsageError, match=f"-J{each.name}=0"):
            each.check("0")
        each.check("0.001")


@every_plan
def test_a_property_is_read_once(plan: Path, elements: list[Element]) -> None:
    texts = [text for element in elements if element.plan == plan for text in element.texts]
    for name in (*plans.read(plan).settable, *plans.read(plan).filled_in):
        assert sum(text.count(f"__P({name},") for text in texts) == 1, name


@every_plan
def test_no_host_nor_absolute_path(plan: Path, elements: list[Element]) -> None:
    for text in [
        *plans.read(plan).defaults.values(),
        *(text for element in elements if element.plan == plan for text in element.texts),
    ]:
        assert not re.match(r"/|[A-Za-z]:\\|~", text), text
        assert set(re.findall(r"https?://([^/:]+)", text)) <= {"127.0.0.1"}, text


@every_plan
def test_every_variable_used_is_defined(plan: Path, elements: list[Element]) -> None:
    of_plan = [element for element in elements if element.plan == plan]
    text = "\n".join(text for element in of_plan for text in element.texts)
    classes = set(re.findall(r"framestorm\.plan\.(\w+)\.", text))
    code = "".join((JMX / "java/plan" / f"{name}.java").read_text() for name in classes)
    variables = {name for element in of_plan if element.kind == "Arguments" for name in element.properties}
    put = {name for each in classes for name in OF_KIT.get(each, ())}
    used = set(re.findall(r"\$\{(\w+)\}", text)) | set(
        re.findall(r'\b(?:vars|ofUser|getVariables\(\))\.get\("(\w+)"\)', text + code)
    )
    assert used - put - OF_SOME_PLANS <= variables
    has_default = set(re.findall(r'property\((?:\w+, )?"(\w+)"', code))
    read_by_framestorm = {"load", "speed", "goodput", "video", "ca", "label", "sample_variables", "TestPlan.comments"}
    assert variables - used - has_default <= read_by_framestorm, "a variable that nothing reads"


def test_what_classes_set_is_known_before_the_load() -> None:
    for path in (JMX / "java" / "plan").glob("*.java"):
        put = set(re.findall(r'\b(?:vars|ofUser)\.put(?:Object)?\("(\w+)"', path.read_text()))
        assert put <= {*OF_KIT.get(path.stem, ())}, path.name


CALLS = """
import framestorm.Elements
import org.apache.jmeter.save.SaveService
import org.apache.jmeter.util.JMeterUtils
import org.apache.jmeter.util.JSR223TestElement
import org.apache.jorphan.collections.SearchByClass

JMeterUtils.setJMeterHome(args[0])
JMeterUtils.loadJMeterProperties(args[0] + "/bin/jmeter.properties")
args.tail().each { plan ->
    def tree = SaveService.loadTree(new File(plan))
    def left = { def search = new SearchByClass(JSR223TestElement); tree.traverse(search); search.searchResults }
    def before = left().size()
    Elements.exchange(tree, [])
    println("$before ${left().size()}")
}
"""


def test_a_run_calls_the_classes_without_a_script(tmp_path: Path) -> None:
    """In place of the elements whose whole script is a call; one that does more stays a script."""
    of_user = tmp_path / "of-user.jmx"
    text = (JMX / "process.jmx").read_text()
    of_user.write_text(text.replace("framestorm.plan.User.read(ctx)<", "framestorm.plan.User.read(ctx); log.info('')<"))
    done = subprocess.run(groovy("-e", CALLS, HOME, *PLANS, of_user), capture_output=True, text=True, check=False)
    counts = [[*map(int, line.split())] for line in done.stdout.splitlines()]
    assert len(counts) == len(PLANS) + 1, done.stderr
    assert all(before > 0 and left == 0 for before, left in counts[:-1])
    assert counts[-1][1] == 1


@every_plan
def test_a_client_is_ended_and_its_return_code_checked(plan: Path) -> None:
    for sampler in ET.parse(plan).getroot().iter("SystemSampler"):  # noqa: S314
        fields = {field.get("name"): field.text or "" for field in sampler}
        assert fields["SystemSampler.checkReturnCode"] == "true"
        assert fields["SystemSampler.expectedReturnCode"] == "0"
        words = [value.text for value in sampler.iterfind(".//stringProp[@name='Argument.value']")]
        if plan.stem == "process":  # its shell stays, to end what a client leaves behind
            words[1] = "exec " + (words[1] or "").partition(" & ")[0]
        assert words[:4] == ["-c", COMMAND, "${client_log}", "${user_timeout_s}"]
        launcher = ["perl", "${client_dir}/launch.pl", "${client_server}"]
        by_fork = launcher if "client_server" in plans.read(plan).filled_in else []
        if plan.stem == "process":
            assert words[4:8] == ["sh", "-c", 'exec "$0" ${arguments}', "${command}"]
        else:
            *start, program = words[4 : 6 + len(by_fork)]
            assert start == [*by_fork, "${python}"] and (program or "").startswith("${client_dir}/")


def test_no_artifact_twice() -> None:
    names = [re.sub(r"-r?\d[\w.]*(-b\d+)?(?=(-data)?\.jar$)", "", jar.name) for jar in HOME.glob("lib/**/*.jar")]
    assert sorted(names) == sorted(set(names))


def test_pom_pins_versions_and_names_no_registry() -> None:
    pom = (JMX / "pom.xml").read_text()
    assert "<repositor" not in pom
    versions = re.findall(r"<version>([^<]*)</version>", pom)
    assert all(re.fullmatch(r"[\d.]+(-GA)?|\$\{jmeter\.version\}", version) for version in versions), versions
    artifacts = re.findall(r"<(?:dependency|plugin|artifactItem)>", pom)
    assert len(versions) == len(artifacts) + 1  # and the project's own


# Of all modules of the distribution, and of the plug-ins that people's plans use.
CLASSES = """
org.apache.jmeter.protocol.jdbc.sampler.JDBCSampler org.apache.jmeter.protocol.jms.sampler.JMSSampler
org.apache.jmeter.protocol.ldap.sampler.LDAPSampler org.apache.jmeter.protocol.ftp.sampler.FTPSampler
org.apache.jmeter.protocol.tcp.sampler.TCPSampler org.apache.jmeter.protocol.smtp.sampler.SmtpSampler
org.apache.jmeter.protocol.mail.sampler.MailReaderSampler org.apache.jmeter.protocol.java.sampler.JUnitSampler
org.apache.jmeter.protocol.bolt.sampler.BoltSampler org.apache.jmeter.protocol.mongodb.sampler.MongoScriptSampler
com.blazemeter.jmeter.threads.concurrency.ConcurrencyThreadGroup kg.apc.jmeter.threads.SteppingThreadGroup
com.blazemeter.jmeter.threads.arrivals.ArrivalsThreadGroup kg.apc.jmeter.threads.UltimateThreadGroup
com.blazemeter.jmeter.threads.arrivals.FreeFormArrivalsThreadGroup kg.apc.jmeter.timers.VariableThroughputTimer
kg.apc.jmeter.samplers.DummySampler kg.apc.jmeter.functions.MD5 com.blazemeter.jmeter.controller.ParallelSampler
com.blazemeter.jmeter.RandomCSVDataSetConfig eu.luminis.jmeter.wssampler.RequestResponseWebSocketSampler
"""


def test_jmeter_has_all_modules_and_the_common_plug_ins() -> None:
    command = groovy("-e", "args.each { Class.forName(it); println it }", *CLASSES.split())
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == CLASSES.split(), done.stderr


def test_the_jar_says_which_sources_it_is_made_of() -> None:
    with zipfile.ZipFile(HOME / probe.ADDITIONS) as jar:
        made_of = jar.read(probe.ADDITIONS_OF).decode()
    assert made_of == probe.digest(ROOT, [str(path) for path in pieces.ADDITIONS.inputs]), "slaves have the same"


NOTIFIED_AT_ONCE = """
import com.blazemeter.jmeter.threads.DynamicThread
import framestorm.Arrivals
import org.apache.jmeter.control.LoopController
import org.apache.jmeter.engine.StandardJMeterEngine
import org.apache.jmeter.threads.JMeterThread
import org.apache.jmeter.threads.ListenerNotifier
import org.apache.jmeter.util.JMeterUtils
import org.apache.jorphan.collections.HashTree
import org.apache.jorphan.collections.ListedHashTree

JMeterUtils.loadJMeterProperties(args[0] + "/bin/jmeter.properties")
def ends = { Closure work ->
    def thread = new Thread(work)
    thread.start()
    thread.join(20000)
    assert !thread.isAlive()
}

[new Arrivals.Group(), new Arrivals.FreeFormGroup()].each { group ->
    group.running = true
    200.times {
        def user = new DynamicThread(new HashTree(new LoopController()), group, null)
        def pooled = new Thread({ group.movedToPool(user) })
        pooled.start()
        while (!group.releasedPoolThread()) Thread.onSpinWait()
        pooled.join(20000)
        assert !pooled.isAlive()
    }
}

class ArrivesAtOnce extends Arrivals.Group {
    protected Thread getThreadStarter(int index, ListenerNotifier n, ListedHashTree t, StandardJMeterEngine e) {
        def group = this
        new Thread({ synchronized (group) { group.notify() } })
    }
    JMeterThread addNewThread(int delay, StandardJMeterEngine engine) { null }
}
ends { new ArrivesAtOnce().start(0, null, null, null) }

def empty = new Arrivals.Group()
empty.targetLevel = "0"
empty.rampUp = "0"
empty.steps = "0"
empty.hold = "0"
ends { empty.start(0, null, new ListedHashTree(), null) }
System.exit(0)
"""


def test_an_arrivals_thread_group_misses_no_notification() -> None:
    """Of a user in the pool, of the first arrival, and of the end of a schedule without one."""
    done = subprocess.run(groovy("-e", NOTIFIED_AT_ONCE, HOME), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
