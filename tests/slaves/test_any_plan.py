"""Plans that nobody wrote for the kit over slaves, and what slaves need of this machine."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from lab.hosts import CONTROLLER_ADDRESS
from tests.conftest import Lab
from tests.run import foreign
from tests.runs import RunSh
from tests.slaves.test_slave_runs import without_master
from tests.stand_in import Answer, StandIn, ask_for_certificate, serving

SECRET = "tok-5e2c&s=1"  # noqa: S105
ULTIMATE = "kg.apc.jmeter.threads.UltimateThreadGroup"


def group(tag: str, name: str, fields: str, children: str) -> str:
    controller = (
        '<elementProp name="ThreadGroup.main_controller" elementType="LoopController" guiclass="LoopControlPanel" '
        'testclass="LoopController"><boolProp name="LoopController.continue_forever">false</boolProp>'
        '<intProp name="LoopController.loops">-1</intProp></elementProp>'
        '<stringProp name="ThreadGroup.on_sample_error">continue</stringProp>'
    )
    names = f'testclass="{tag}" testname="{name}" enabled="true"'
    return f'<{tag} guiclass="{tag}Gui" {names}>{controller}{fields}</{tag}><hashTree>{children}</hashTree>'


def plan(elements: str) -> str:
    head = '<jmeterTestPlan version="1.2" properties="5.0" jmeter="5.5">'
    return f"{head}<hashTree>{elements}</hashTree></jmeterTestPlan>"


def upload(url: str) -> str:
    """Return a sampler that uploads a file over TLS; its query calls a function of a script and one of a jar."""
    part = '<elementProp name="data/scan.json" elementType="HTTPFileArg"><stringProp name="File.path">data/scan.json'
    part += '</stringProp><stringProp name="File.paramname">scan</stringProp>'
    part += '<stringProp name="File.mimetype">text/plain</stringProp></elementProp>'
    parts = f'<collectionProp name="HTTPFileArgs.files">{part}</collectionProp>'
    form = f'<elementProp name="HTTPsampler.Files" elementType="HTTPFileArgs">{parts}</elementProp>'
    form += '<boolProp name="HTTPSampler.DO_MULTIPART_POST">true</boolProp>'
    keys = '<KeystoreConfig guiclass="TestBeanGUI" testclass="KeystoreConfig" testname="keys" enabled="true">'
    keys += '<stringProp name="preload">true</stringProp></KeystoreConfig><hashTree/>'
    sent = foreign.REQUEST.format(url=f"{url}?${{__groovy(who())}}${{__twice(!)}}").replace(">GET<", ">POST<")
    return keys + sent.replace("</HTTPSamplerProxy>", f"{form}</HTTPSamplerProxy>")


def include(path: str) -> str:
    field = f'<stringProp name="IncludeController.includepath">{path}</stringProp>'
    head = '<IncludeController guiclass="IncludeControllerGui" testclass="IncludeController" testname="include">'
    return f"{head}{field}</IncludeController><hashTree/>"


def write_foreign_plan(folder: Path, url: str) -> Path:
    """A plan beside which are its rows and a script; what it does stands in files of other folders."""
    (folder / "a plan" / "data").mkdir(parents=True)
    names = "".join(f"row{number}\n" for number in range(11))
    (folder / "a plan" / "data" / "rows.csv").write_text(f"name\n{names}")
    (folder / "a plan" / "name.groovy").write_text("SampleResult.sampleLabel = vars.get('name')")
    rows = (
        '<CSVDataSet guiclass="TestBeanGUI" testclass="CSVDataSet" testname="rows" enabled="true">'
        '<stringProp name="filename">data/rows.csv</stringProp><stringProp name="delimiter">,</stringProp>'
        '<boolProp name="recycle">false</boolProp><boolProp name="stopThread">true</boolProp>'
        '<stringProp name="shareMode">shareMode.all</stringProp><stringProp name="variableNames"></stringProp>'
        "</CSVDataSet><hashTree/>"
    )
    (folder / "a plan" / "data" / "scan.json").write_text("a scan")
    in_file = foreign.script("", "named by its row").replace('"filename">', f'"filename">{folder}/a plan/name.groovy')
    does = rows + in_file
    fragment = '<TestFragmentController guiclass="TestFragmentControllerGui" testclass="TestFragmentController" '
    for name, parts in (("fragment.jmx", does + include("data/deep.jmx")), ("a plan/data/deep.jmx", upload(url))):
        (folder / name).write_text(plan(f'{fragment}testname="{name}"/><hashTree>{parts}</hashTree>'))
    rows_of_users = ((1, 0, 0, 3, 0), (2, 0, 0, 3, 0))
    cells = ("".join(f'<stringProp name="c">{cell}</stringProp>' for cell in row) for row in rows_of_users)
    table = "".join(f'<collectionProp name="row">{row}</collectionProp>' for row in cells)
    elements = '<TestPlan guiclass="TestPlanGui" testclass="TestPlan" testname="foreign"/><hashTree>'
    users = '<stringProp name="ThreadGroup.num_threads">${__P(people,3)}</stringProp>'
    elements += group("ThreadGroup", "load", users, include("../fragment.jmx"))
    table = f'<collectionProp name="ultimatethreadgroupdata">{table}</collectionProp>'
    elements += group(ULTIMATE, "ultimate", table, foreign.script("sleep(500)", "waits"))
    path = folder / "a plan" / "my plan.jmx"
    path.write_text(plan(f"{elements}</hashTree>"))
    return path


def test_a_foreign_plan_runs_with_its_files_rows_and_parts(
    run_sh: RunSh, deployed: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHO", "ada")
    (tmp_path / "who.groovy").write_text("def who() { System.getenv('WHO') }")
    (tmp_path / "my.properties").write_text(
        f"groovy.utilities={tmp_path}/who.groovy\npeople=5\nsearch_paths={tmp_path}/jars\n"
    )
    (tmp_path / "jars").mkdir()
    foreign.jar_with_function(tmp_path / "jars/twice.jar", tmp_path)
    with serving(server=StandIn([Answer(body=b"ok")], CONTROLLER_ADDRESS)) as server:
        keys = tmp_path / "keys.p12"
        make = ["openssl", "pkcs12", "-export", "-passout", "pass:secret", "-out", keys]
        subprocess.run([*make, "-in", ask_for_certificate(server, tmp_path)], check=True)
        path = write_foreign_plan(tmp_path, server.url)
        before = path.read_bytes()
        tls = (f"-Djavax.net.ssl.keyStore={keys}", "-Djavax.net.ssl.keyStorePassword=secret")
        done = run_sh("-r", "-X", "-t", str(path), *tls, "-q", f"{tmp_path}/my.properties", "--split-csv", out="my run")
        forms = Counter((each.path.partition("?")[2], b"a scan" in each.body) for each in server.received)
    assert forms == {("ada!!", True): 11}
    assert {row["responseCode"] for row in done.rows() if row["label"] == "call"} == {"200"}
    sent = [row for row in done.rows() if row["label"] not in ("waits", "call")]
    assert sorted(row["label"] for row in sent) == sorted(f"row{number}" for number in range(11)), "each row once"
    assert {row["Hostname"] for row in sent} == {"slave1", "slave2"}
    threads = {row["threadName"] for row in done.rows() if row["label"] == "waits"}
    assert len(threads) == 3, "and not 3 on each slave"
    shares = {host["inventory_name"]: host["share"] for host in done.json("run.json")["hosts"]}
    assert shares["slave1"] == {
        "users of load": "3", "users of ultimate, row 1": "1", "users of ultimate, row 2": "1"
    }  # fmt: skip
    assert shares["slave2"]["users of load"] == "2"
    assert path.read_bytes() == before
    assert [each.name for each in done.folder.iterdir() if each.name.startswith("tmp")] == []
    left = "sudo ls /var/lib/framestorm/runs; ls /opt/framestorm/kit | grep plan"
    assert deployed.look("slave1", left) == ""


@pytest.mark.parametrize("controller", ["on the master", "here"])
def test_an_interrupt_loses_no_request(run_sh: RunSh, deployed: Lab, tmp_path: Path, controller: str) -> None:
    own = ("-i", str(without_master(tmp_path))) if controller == "here" else ()
    with serving(server=StandIn([Answer(delay_s=0.1)], CONTROLLER_ADDRESS)) as server:
        path = foreign.write_plan(tmp_path / "endless.jmx", foreign.REQUEST.format(url=server.url))
        running = run_sh.start("-R", "slaves", *own, "-t", str(path))
        running.until(lambda: len(server.received) > 40)
        running.interrupt()
        done = running.ended(4)
    assert len(done.rows()) == len(server.received)
    assert {row["Hostname"] for row in done.rows()} == {"slave1", "slave2"}
    assert done.json("run.json")["jmeter"]["exit_code"] == 0, "it ended by itself"


def test_a_secret_reaches_the_slaves_and_stands_nowhere(
    run_sh: RunSh, deployed: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", SECRET)
    (tmp_path / "rows.csv").write_text("name\n" + "".join(f"n{number}\n" for number in range(6)))
    (tmp_path / "scan.json").write_text("a scan")
    (tmp_path / "headers").write_text("Authorization: Bearer ${env:API_TOKEN}\n")
    with serving(server=StandIn([Answer(body=b"ok")], CONTROLLER_ADDRESS)) as server:
        running = run_sh.start(
            "-R", "slaves", "-t", "jmx/requests.jmx", f"-Jurl={server.url}", "-Jramp_s=0", "-Jhold_s=12", "-Jusers=2",
            f"-Jrows=@{tmp_path}/rows.csv", f"-Jheaders=@{tmp_path}/headers", "-Jsleep_s=0.2", "--split-csv",
            f"-Jform=name={{name}}\\nfile=@{tmp_path}/scan.json",
        )  # fmt: skip
        running.until(lambda: len(server.received) > 20)
        # The pattern is in no process list: it is a group of characters there.
        pattern = SECRET.replace("tok", "to[k]")
        folders = "/var/lib/framestorm /var/log /etc/framestorm /run /tmp /opt/framestorm"
        found = f"sudo grep -rlIs -D skip '{pattern}' {folders}; ps axww | grep '{pattern}'; "
        found += f"sudo journalctl --no-pager | grep '{pattern}'"
        for host in ("slave1", "slave2", "master1"):
            assert deployed.look(host, found) == ""
        done = running.ended(0)
    assert {request.headers["Authorization"] for request in server.received} == {f"Bearer {SECRET}"}
    forms = [request.body.decode().split("\r\n") for request in server.received]
    assert {line for form in forms for line in form if line.startswith("n")} == {f"n{number}" for number in range(6)}
    assert all("a scan" in form for form in forms)
    assert {(row["Hostname"], row["index"]) for row in done.rows()} == {
        (host, str(index)) for host in ("slave1", "slave2") for index in range(3)
    }, "three of the six rows each"
    files = [path for path in done.folder.rglob("*") if path.is_file()]
    assert [path for path in files if SECRET in path.read_text(errors="replace")] == []
    for host in ("slave1", "slave2", "master1"):
        assert deployed.look(host, found) == ""
