"""What JMeter runs, the kit runs; what a run would refuse, `--check` refuses."""

import re
from pathlib import Path

import pytest

from framestorm import cli, conductor
from framestorm.run import proxy
from framestorm.run.options import Output, RunOptions, What
from tests.run.foreign import THREADS, script, write_plan
from tests.runs import RunFiles
from tests.stand_in import StartServer

CASES = Path(__file__).parent


def case(name: str, folder: Path, port: int) -> str:
    """A plan of this folder in another one, against a server on that port."""
    text = re.sub(r"(?<=[>,])(21001|21040|23000)(?=[<)])", str(port), (CASES / name).read_text())
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_blanks_around_a_property_are_left_out(
    stand_in: StartServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = case("blank-users.jmx", tmp_path, stand_in().server_port)
    (tmp_path / "users.properties").write_text("users=3 \n")
    for words in (["-Jusers= 3\t"], ["-q", "users.properties"]):
        assert cli.main(["-t", plan, "--check", *words]) == 0
        assert "property: users=3" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("words", "variable"),
    [
        ("-H 127.0.0.1 -P {port}", ""),
        ("-Dhttp.proxyHost=127.0.0.1 -D http.proxyPort={port}", ""),
        ("-S proxy.properties", ""),
        ("", "JVM_ARGS"),
        ("", "JMETER_OPTS"),
        ("", "JAVA_TOOL_OPTIONS"),
    ],
)
def test_the_host_behind_a_proxy_is_not_looked_up(
    words: str, variable: str, stand_in: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    server = stand_in()
    plan = case("proxy-any-host.jmx", tmp_path, server.server_port)
    (tmp_path / "proxy.properties").write_text(f"http.proxyHost=127.0.0.1\nhttp.proxyPort: {server.server_port}\n")
    monkeypatch.setenv(variable or "NONE", f"-Xss1m -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={server.server_port}")
    given = words.format(port=server.server_port).split()
    assert cli.main(["-t", plan, "--check", *given]) == 0
    assert f"by the proxy 127.0.0.1:{server.server_port}" in capsys.readouterr().out
    # Nor is it called by the proxy if JMeter calls it without.
    assert cli.main(["-t", plan, "--check", *given, "-N", "*.invalid"]) == 1
    assert "shop.invalid:80" in capsys.readouterr().err
    assert server.received == []


@pytest.mark.parametrize(
    ("words", "is_ignored"),
    [
        ("-Dhttps.proxyHost=p -Dhttps.proxyPort=1", True),
        ("-Dhttp.proxyHost=p -Dhttp.proxyPort=1 -Dhttps.proxyHost=other", True),
        ("-Dhttp.proxyHost=p -Dhttp.proxyPort=1 -Dhttps.proxyHost=p -Dhttps.proxyPort=1", False),
        ("-Hp -P1 -Dhttps.proxyHost=other", False),
        ("-Hp -P1", False),
    ],
)
def test_a_proxy_for_https_that_jmeter_ignores(words: str, is_ignored: bool) -> None:
    assert proxy.read(words.split(), {}).has_ignored_https is is_ignored


def test_a_proxy_for_https_alone_is_noted(
    stand_in: StartServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = stand_in().server_port
    plan = case("proxy-any-host.jmx", tmp_path, port)
    assert cli.main(["-t", plan, "--check", "-H", "127.0.0.1", "-P", str(port)]) == 0
    assert "https.proxyHost" not in capsys.readouterr().err
    words = ["-Dhttp.proxyHost=127.0.0.1", f"-Dhttp.proxyPort={port}", "-Dhttps.proxyHost=other.invalid"]
    assert cli.main(["-t", plan, "--check", *words]) == 0
    assert "https.proxyHost: only samplers with the implementation Java read it" in capsys.readouterr().err


def test_a_sampler_s_own_proxy(stand_in: StartServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = stand_in()
    plan = case("proxy-in-sampler.jmx", tmp_path, server.server_port)
    assert cli.main(["-t", plan, "--check", "-H", "other.invalid", "-P", "1"]) == 0
    assert f"by the proxy 127.0.0.1:{server.server_port}" in capsys.readouterr().out
    plan = case("proxy-any-host.jmx", tmp_path, server.server_port)
    assert cli.main(["-t", plan, "--check", "-Jhttp.proxyHost=127.0.0.1"]) == 1
    shown = capsys.readouterr().err
    assert "http.proxyHost: JMeter takes a proxy from -H and -P" in shown and "shop.invalid:80" in shown
    assert cli.main(["-t", plan, "--check", "-H", "127.0.0.1", "-P", "9"]) == 1
    assert "nothing answers at the proxy 127.0.0.1:9" in capsys.readouterr().err


def test_a_proxy_gets_the_plan_s_requests_alone(stand_in: StartServer, tmp_path: Path) -> None:
    server = stand_in({"body": b"ok"})
    plan = case("proxy-any-host.jmx", tmp_path, server.server_port)
    (tmp_path / "proxy.properties").write_text(f"http.proxyHost=127.0.0.1\nhttp.proxyPort={server.server_port}\n")
    assert cli.main(["-t", plan, "-S", "proxy.properties", "-o", str(tmp_path / "run")]) == 0
    assert [one.path for one in server.received] == ["http://shop.invalid/via"] * 3


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        # JMeter runs the first two, and sends nothing; it cannot read the others.
        ("", "", "no thread group has an enabled sampler"),
        ("<hashTree></hashTree></hashTree></hashTree>", "</hashTree></hashTree>", "no thread group has an enabled"),
        ("<hashTree></hashTree>", "<hashTree/><hashTree/>", "follows no element"),
        ("</ThreadGroup>", "</ThreadGroup><Arguments testname='a'/>", "ThreadGroup 'users' and Arguments 'a'"),
        ("hashTree", "tree", "no hashTree with elements"),
    ],
)
def test_a_plan_that_would_send_nothing_is_refused(
    old: str, new: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Path(case("no-sampler.jmx", tmp_path, 1))
    plan.write_text(plan.read_text().replace(old, new) if old else plan.read_text())
    assert cli.main(["-t", str(plan), "--check"]) == 2
    assert reason in capsys.readouterr().err
    assert cli.main(["-t", str(plan), "--check", "--anyway"]) == (
        0 if "sampler" in reason or "enabled" in reason else 2
    )


def test_a_group_without_a_sampler_beside_others_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = write_plan(tmp_path / "theirs.jmx", script("1"))
    off = script("2").replace('enabled="true"', 'enabled="false"')
    idle = f"{THREADS.format(loop='').replace('threads', 'idle')}<hashTree>{off}</hashTree>"
    plan.write_text(plan.read_text().replace("<ThreadGroup ", f"{idle}<ThreadGroup ", 1))
    assert cli.main(["-t", str(plan), "--check"]) == 2  # it has no loops either
    cli.main(["-t", str(plan), "--check", "--anyway"])
    assert "ThreadGroup 'idle' has no enabled sampler" in capsys.readouterr().err


def test_a_function_that_jmeter_lacks_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = Path(case("unknown-function.jmx", tmp_path, 1))
    # Of JMeter, of a plug-in, and in another one.
    known = "${__time()}${__P(a,${__isDefined(b)})}${__jm__Loop__idx}\\${__none()}"
    plan.write_text(plan.read_text().replace(">/x<", f">/x{known}<"))
    assert cli.main(["-t", str(plan), "--check"]) == 0
    assert re.findall(r"no function (\w+)", capsys.readouterr().err) == ["__GetSecret"]


def test_the_class_of_an_element_is_its_tag(
    stand_in: StartServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Path(case("testclass-unknown.jmx", tmp_path, stand_in().server_port))
    assert cli.main(["-t", str(plan), "--check"]) == 0
    text = plan.read_text()
    plan.write_text(re.sub("HTTPSamplerProxy (.*)</HTTPSamplerProxy>", r'x class="HTTPSamplerProxy" \1</x>', text))
    assert cli.main(["-t", str(plan), "--check"]) == 0
    assert "sampler: get" in capsys.readouterr().out
    plan.write_text(text.replace("<HTTPSamplerProxy ", '<HTTPSamplerProxy class="org.example.Gone" '))
    assert cli.main(["-t", str(plan), "--check"]) == 2
    assert "org.example.Gone" in capsys.readouterr().err


def test_a_jar_of_another_machine_may_not_be_needed(
    stand_in: StartServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = stand_in({"body": b"ok"})
    plan = case("user-classpath-of-another-machine.jmx", tmp_path, server.server_port)
    run = RunFiles(conductor.run(RunOptions(What(Path(plan)), output=Output(tmp_path / "run"))))
    assert run.json("run.json")["state"] == "complete" and len(server.received) == 2
    shown = capsys.readouterr().err
    assert "there is no file E:\\apache-jmeter-5.2.1\\lib\\mysql" in shown and "E:/" not in shown


def test_the_groups_that_lack_no_file_run_if_asked_to(
    stand_in: StartServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = stand_in({"body": b"ok"})
    plan = case("csv-missing-in-one-group.jmx", tmp_path, server.server_port)
    assert cli.main(["-t", plan, "-o", "run"]) == 2
    shown = capsys.readouterr().err
    assert "\n  CSVDataSet 'csv': there is no file /home/author/users.csv\n" in shown and "--anyway" in shown
    run = RunFiles(conductor.run(RunOptions(What(Path(plan), anyway=True), output=Output(tmp_path / "run"))))
    assert "CSVDataSet 'csv': there is no file /home/author/users.csv" in capsys.readouterr().err
    assert run.json("run.json")["state"] == "complete" and len(server.received) == 2


def test_the_plug_in_of_a_missing_class_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JMeter reads no plan that has an element without its class, not even a disabled one."""
    plan = Path(case("ffw-disabled.jmx", tmp_path, 1))
    ours = "kg.apc.jmeter.reporters.FlexibleFileWriter"
    text = plan.read_text()
    for name, place in {
        ours: "kg.apc:jmeter-plugins-ffw:",
        "kg.apc.jmeter.perfmon.PerfMonCollector": "kg.apc:jmeter-plugins-perfmon:2.1\n",
        "com.atlantbh.jmeter.plugins.jsonutils.jsonpathextractor.JSONPathExtractor": "kg.apc:jmeter-plugins-json:",
        "kg.apc.jmeter.samplers.UDPSampler": "kg.apc:jmeter-plugins-udp:",
        "kg.apc.jmeter.reporters.AutoStop": "kg.apc:jmeter-plugins-autostop:",
        "kg.apc.jmeter.reporters.ConsoleStatusLogger": "kg.apc:jmeter-plugins-csl:",
        "org.jmeterplugins.protocol.http.control.HttpSimpleTableControl": "kg.apc:jmeter-plugins-table-server:",
        "net.xmeter.samplers.ConnectSampler": "mqtt-xmeter",
        "vn.zalopay.benchmark.GRPCSampler": "jmeter-grpc-request",
        "org.example.Gone": "not known here",
    }.items():
        plan.write_text(text.replace(ours, name))
        assert cli.main(["-t", str(plan), "--check"]) == 2
        shown = capsys.readouterr().err
        assert f"  {name}: " in shown and place in shown and "disabled" in shown


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_an_element_that_jmeter_cannot_read_is_named(
    enabled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "theirs.jmx"
    text = (CASES / "no-host.jmx").read_text()
    timer = f'<ConstantTimer testclass="ConstantTimer" testname="pause" enabled="{enabled}"/><hashTree/>'
    plan.write_text(text.replace("<HTTPSamplerProxy", f"{timer}<HTTPSamplerProxy", 1))
    assert cli.main(["-t", str(plan), "--check"]) == 2
    assert "theirs.jmx: ConstantTimer 'pause' has no attribute guiclass" in capsys.readouterr().err
    plan.write_text(plan.read_text().replace("<ConstantTimer ", '<ConstantTimer guiclass="" '))
    assert cli.main(["-t", str(plan), "--check"]) == 0
