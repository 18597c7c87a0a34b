"""A command line is checked as a whole: what is missing is named before the load, and nothing is sent."""

import re
from pathlib import Path

import pytest

from framestorm import cli, paths
from framestorm.model import plan as plans
from framestorm.run import new_plan
from tests.run.foreign import REQUEST, THREADS, script, write_plan
from tests.stand_in import StartServer

DATA = """<CSVDataSet guiclass="TestBeanGUI" testclass="CSVDataSet" testname="names" enabled="true">
  <stringProp name="filename">{file}</stringProp><stringProp name="variableNames">name</stringProp></CSVDataSet>
  <hashTree/>"""
PERFMON = """<kg.apc.jmeter.perfmon.PerfMonCollector guiclass="x" testclass="kg.apc.jmeter.perfmon.PerfMonCollector"
  testname="servers" enabled="false"/><hashTree/>"""
OTHER = """<org.example.Sampler guiclass="x" testclass="org.example.Sampler" testname="other"/><hashTree/>"""
INCLUDE = """<IncludeController guiclass="IncludeControllerGui" testclass="IncludeController" testname="part"
  enabled="true"><stringProp name="IncludeController.includepath">part.jmx</stringProp></IncludeController>
  <hashTree/>"""
FRAGMENT = """<TestFragmentController guiclass="TestFragmentControllerGui" testclass="TestFragmentController"/>"""
SET_UP = THREADS.replace("ThreadGroup ", "SetupThreadGroup ").replace("</ThreadGroup>", "</SetupThreadGroup>")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")


def test_what_a_command_line_means(stand_in: StartServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = stand_in({"body": b"ok"})
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "ada.csv").write_text("ada\n")
    elements = DATA.format(file="elsewhere/../${__P(folder,${__P(nested,data)})}/${__property(of,,ada)}.csv")
    plan = write_plan(tmp_path / "theirs.jmx", elements + REQUEST.format(url="${__P(url)}/search"))
    words = ["-n", "-t", str(plan), f"-Jurl={server.url}", "-o", str(tmp_path / "run"), "--check"]
    assert cli.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"plan: {plan}" in lines and "sampler: call" in lines
    assert f"property: url={server.url}" in lines and "property: nested=data (default)" in lines
    assert f"file: {tmp_path}/data/ada.csv" in lines
    assert f"target: http://127.0.0.1:{server.server_port}" in lines
    assert server.received == [] and not (tmp_path / "run").exists()
    assert cli.main(["-t", "jmx/requests.jmx", "-Jusers=3", f"-Jurl={server.url}", "--check"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {"property: users=3", "sampler: request"} <= set(lines) and "sampler: compile" not in lines
    assert cli.main([*words, "-Jurl=http://127.0.0.1:9"]) == 1
    assert "127.0.0.1:9" in capsys.readouterr().err
    write_plan(plan, REQUEST.format(url="http://[oops/search"))
    assert cli.main(["-t", str(plan), "--check"]) == 2
    assert server.received == []


def test_a_plan_writes_nothing_that_the_terminal_obeys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elements = script("1").replace('testname="', 'testname="&#155;2J') + DATA.format(file="\u202egone.csv")
    plan = write_plan(tmp_path / "theirs.jmx", elements, loops=1)
    plan.write_text(
        plan.read_text().replace(THREADS[:12], SET_UP[:17]).replace("</ThreadGroup>", "</SetupThreadGroup>")
    )
    assert cli.main(["-t", str(plan), "--check"]) == 0
    shown = "".join(capsys.readouterr())
    assert "sampler: [U+009B]2Jscript" in shown and "[U+202E]gone.csv" in shown
    assert "\x9b" not in shown and "\u202e" not in shown


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"expect": "$.["}, "-Jexpect=$.[: "),
        ({"expect_status": "200-2xx"}, "-Jexpect_status=200-2xx: "),
        ({"rows": "@rows.csv", "body": "{a}"}, "row 1 has 1 values, its header 2"),
        ({"headers": "@headers"}, "${env:NOT_SET_HERE} is not set"),
        ({"expect_status": "200-299", "expect": "$.a"}, None),
    ],
)
def test_the_scripts_of_a_plan_find_mistakes(
    properties: dict[str, str], reason: str | None, stand_in: StartServer, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "elsewhere" / "rows.csv").write_text("a,b\n1\n")
    (tmp_path / "elsewhere" / "headers").write_text("X-Key: ${env:NOT_SET_HERE}\n")
    server = stand_in()
    new_plan.write(tmp_path / "mine.jmx", f"curl -d x {server.url}", paths.JMX / "requests.jmx")
    words = [f"-J{name}={value}" for name, value in properties.items()]
    assert cli.main(["-t", str(tmp_path / "mine.jmx"), "--check", *words]) == (2 if reason else 0)
    assert (reason or "") in capsys.readouterr().err
    made = {path.name for path in tmp_path.iterdir() if path.name.startswith("mine.")}
    assert server.received == [] and made == {"mine.jmx", "mine.body.txt", "mine.headers"}


def test_a_fragment_is_found_as_jmeter_finds_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "parts").mkdir()
    request = REQUEST.format(url="${__P(url)}")
    write_plan(tmp_path / "parts" / "part.jmx", request.replace('"call"', '"in part"'), group=FRAGMENT)
    plan = write_plan(tmp_path / "theirs.jmx", request + INCLUDE)
    words = ["-t", str(plan), "--check", "-Jincludecontroller.prefix=parts/"]
    assert cli.main(words) == 0
    assert {"sampler: call", "sampler: in part"} <= set(capsys.readouterr().out.splitlines())
    assert plans.read(plan).label == "all", "the call is not the only sampler"


def test_the_page_s_check(tmp_path: Path, stand_in: StartServer, capsys: pytest.CaptureFixture[str]) -> None:
    """From another folder than the plan's."""
    for name in ("shop.jmx", "names.csv"):
        (tmp_path / name).write_text((Path(__file__).parent / "shop.jmx").read_text())
    (tmp_path / "shop.properties").write_text(f"visits=4\nurl={stand_in().url}\n")
    words = "./run.sh --check -t shop.jmx -q shop.properties"
    assert cli.main(words.replace("shop.", f"{tmp_path}/shop.").split()[1:]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {"sampler: log in", "sampler: search", "property: visits=4", f"file: {tmp_path}/names.csv"} <= set(lines)


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        (DATA.format(file="none.csv"), ["CSVDataSet 'names': none.csv", "there is no file"]),
        (DATA.format(file="${__P(of,none)}.csv"), ["none.csv"]),
        (DATA.format(file="empty.csv"), ["is empty"]),
        (DATA.format(file="."), ["is not a file"]),
        (script("").replace('"filename">', '"filename">none.groovy'), ["JSR223Sampler 'script'"]),
        (INCLUDE.replace("part.jmx", "none.jmx"), ["IncludeController 'part'", "none.jmx"]),
        (INCLUDE, ["org.example.Sampler"]),
        (PERFMON, ["kg.apc.jmeter.perfmon.PerfMonCollector: kg.apc:jmeter-plugins-perfmon:", "jmx/pom.xml", "jmx/lib"]),
        (OTHER, ["org.example.Sampler: of a plug-in that is not known here"]),
    ],
)
def test_what_is_missing_is_named(
    elements: str, expected: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.csv").touch()
    write_plan(tmp_path / "part.jmx", OTHER)
    plan = write_plan(tmp_path / "theirs.jmx", elements)
    assert cli.main(["-t", str(plan), "-o", str(tmp_path / "run")]) == 2
    message = capsys.readouterr().err
    assert [word for word in expected if word not in message] == []
    assert not (tmp_path / "run").exists()


def test_a_class_may_come_from_a_place_of_the_user(tmp_path: Path) -> None:
    plan = write_plan(tmp_path / "theirs.jmx", OTHER)
    place = tmp_path / "classes" / "org" / "example"
    place.mkdir(parents=True)
    settings = f"user.classpath={tmp_path}/none.jar\nplugin_dependency_paths={tmp_path}/none;{tmp_path}/classes\n"
    (tmp_path / "my.properties").write_text(settings)
    words = ["-t", str(plan), "-q", str(tmp_path / "my.properties"), "--check"]
    assert cli.main(words) == 2
    (place / "Sampler.class").touch()
    assert cli.main(words) == 0


def test_a_class_that_jmeter_starts_without_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = "<JavaSampler guiclass='' testname='x'><stringProp name='classname'>{}</stringProp></JavaSampler>"
    names = ("org.apache.jmeter.protocol.java.test.JavaTest", "org.example.Mine", "${mine}")
    plan = write_plan(tmp_path / "theirs.jmx", "".join(of.format(name) + "<hashTree/>" for name in names))
    assert cli.main(["-t", str(plan), "--check"]) == 0
    assert re.findall(r"no class (\S+),", capsys.readouterr().err) == ["org.example.Mine"]


def test_a_group_that_sets_up_may_write_the_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = write_plan(tmp_path / "theirs.jmx", DATA.format(file="none.csv") + script(""), SET_UP)
    assert cli.main(["-t", str(plan), "--check"]) == 0
    assert "none.csv" in capsys.readouterr().err


def test_plans_that_jmeter_brings_lack_no_class(stand_in: StartServer, capsys: pytest.CaptureFixture[str]) -> None:
    proxy = ["-H", "127.0.0.1", "-P", str(stand_in().server_port)]
    plans = sorted((paths.JMETER_HOME / "bin" / "templates").glob("*.jmx"))
    checked = [cli.main(["-t", str(plan), "--check", *proxy]) for plan in plans]
    errors = capsys.readouterr().err.splitlines()
    # One has a data set in CHANGE_FOLDER; three are parts of plans, three for the requests that somebody records.
    assert sum("CHANGE_FOLDER/login.csv" in error for error in errors) == 1
    assert sum("no enabled thread group" in error for error in errors) == 3
    assert sum("no thread group has an enabled sampler" in error for error in errors) == 3
    assert sum(checked) == 2 * 7 and not any("no class" in error for error in errors)
