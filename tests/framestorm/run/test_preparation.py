"""Properties of a run: the plan's, those that Framestorm fills in, and JMeter's own."""

import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from framestorm import endpoint, paths
from framestorm.errors import FramestormError, UsageError
from framestorm.model import form
from framestorm.model import plan as plans
from framestorm.model.facets import GRPC
from framestorm.run import new_plan, output, plugins, preparation, settings, target, video
from framestorm.run import properties as java_properties
from framestorm.run.options import Output, What, Where
from framestorm.run.preparation import check_criteria, prepare
from tests.run import foreign


@pytest.fixture(autouse=True)
def no_services(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation.Embedded, "_check_port", lambda *_: None)
    monkeypatch.setattr(target, "check_reachable", lambda *_: None)
    monkeypatch.setattr(video, "cut", lambda video, properties: Path("/cache") / properties["encoding"])


def what(name: str, **given: str) -> What:
    return What(plan=paths.JMX / f"{name}.jmx", given=given)


@pytest.mark.parametrize(
    ("name", "given", "slaves", "kind", "url"),
    [
        ("face-blur", {}, None, "embedded", "http://127.0.0.1:8080/function/face-blur"),
        ("face-blur", {"url": "http://h/f"}, None, "url", "http://h/f"),
        ("face-blur", {}, "slaves", "url", "http://inventory/f"),
        ("requests", {"url": "http://h/f"}, "slaves", "url", "http://h/f"),
        ("tasks", {}, None, "none", ""),
        ("tasks", {"mode": "push", "url": "http://h/f"}, None, "url", "http://h/f"),
    ],
)
def test_where_the_function_is(
    name: str, given: dict[str, str], slaves: str | None, kind: str, url: str, tmp_path: Path
) -> None:
    prepared = prepare(what(name, **given), tmp_path / "run", Where(slaves), "http://inventory/f")
    assert (prepared.platform.kind, prepared.platform.url, prepared.settings.values["url"]) == (kind, url, url)


def test_properties_that_nothing_reads_are_told_from_those_of_the_plan_and_of_jmeter(tmp_path: Path) -> None:
    set_by_user = {"ci.build": "7", "method": "GET", "httpclient4.retrycount": "1", "httpclient4.new": "1"}
    asked = replace(what("requests", url="http://h/f", **set_by_user), extra={"team": "a", "jmeter.exit.check": "1"})
    assert prepare(asked, tmp_path / "run").unread == ("ci.build", "team")


@pytest.mark.parametrize(
    ("own", "sent"),
    [("", "traceparent: new"), ("X-Key: 1", r"X-Key: 1\ntraceparent: new"), ("Traceparent: 00-1-2-01",) * 2],
)
def test_a_trace_id_is_asked_for_beside_the_headers_of_the_user(own: str, sent: str, tmp_path: Path) -> None:
    asked = replace(what("requests", url="http://h/f", headers=own), is_traced=True)
    assert prepare(asked, tmp_path / "run").settings.values["headers"] == sent
    assert prepare(replace(asked, is_traced=False), tmp_path / "run").settings.values["headers"] == own
    with pytest.raises(UsageError, match=r"--trace: process\.jmx has neither an HTTP sampler nor"):
        prepare(replace(what("process", command="true"), is_traced=True), tmp_path / "run")


@pytest.mark.parametrize(("name", "given"), [("requests", {}), ("tasks", {"mode": "push"})])
def test_a_url_that_is_needed_is_not_guessed(name: str, given: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="-Jurl="):
        prepare(what(name, **given), tmp_path / "run", function_url="http://inventory/f")
    in_gui = What(plan=paths.JMX / f"{name}.jmx", given=given, is_for_gui=True)
    assert prepare(in_gui, tmp_path / "run").platform.url == ""


def test_a_plan_is_edited_without_its_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "check_reachable", endpoint.check_reachable)
    asked = what("requests", url="https://127.0.0.1:1/f")
    with pytest.raises(FramestormError, match="nothing answers at 127"):
        prepare(asked, tmp_path / "run")
    assert prepare(replace(asked, is_for_gui=True), tmp_path / "run").platform.url == "https://127.0.0.1:1/f"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/f", "https://127.0.0.1:1/f"])
def test_slaves_may_reach_a_function_that_this_machine_does_not(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "check_reachable", endpoint.check_reachable)
    asked, where = what("requests", url=url), Where("slaves")
    assert prepare(asked, tmp_path / "run", where).target == "127.0.0.1:1"
    asked = replace(asked, given={**asked.given, "proxy": "user:word@127.0.0.2:3128"})
    assert prepare(asked, tmp_path / "run", where).target == "127.0.0.2:3128"


@pytest.mark.parametrize("path", sorted(paths.JMX.glob("*.jmx")), ids=lambda path: path.stem)
def test_only_what_the_plan_declares_is_filled_in(path: Path, tmp_path: Path) -> None:
    plan = plans.read(path)
    program = {"command": "sh"} if "command" in plan.settable else {}
    url = "grpc://h/m" if plan.url and GRPC in plan.url.facets else "http://h/f"
    prepared = prepare(what(path.stem, url=url, **program), tmp_path / "run")
    assert prepared.settings.values.keys() == {*plan.filled_in, *plan.settable}
    assert prepared.settings.properties.keys() == set(plan.settable)
    assert prepared.settings.of_jmeter.get("sample_variables", "") == ",".join(plan.sample_variables)
    assert prepared.settings.values["tree"] == str(tmp_path / "run" / "tree.xml")


def test_the_video_is_cut_as_it_is_sent(tmp_path: Path) -> None:
    prepared = prepare(what("face-blur-http", video="mine.mp4", encoding="jpeg"), tmp_path / "run")
    assert prepared.settings.values["frame_dir"] == "/cache/jpeg"
    assert prepared.settings.properties["video"] == str(Path("mine.mp4").absolute())
    assert prepare(what("face-blur"), tmp_path / "run").settings.properties["video"] == str(paths.SAMPLE_VIDEO)


def test_a_plan_may_not_ask_for_what_is_not_there(tmp_path: Path) -> None:
    text = (paths.JMX / "face-blur.jmx").read_text().replace("__P(python,", "__P(interpreter,")
    (tmp_path / "plan.jmx").write_text(text)
    with pytest.raises(UsageError, match=r"interpreter, .*python, client_dir"):
        prepare(What(plan=tmp_path / "plan.jmx"), tmp_path / "run")


def test_jmeters_own_properties_are_passed_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"summariser.interval": "6", "server_port": "1", "my.own": "x"}
    of_rows = {"jmeter.save.saveservice.output_format": "xml"}
    prepared = prepare(what("face-blur", users="4", hold_s="", **given, **of_rows), tmp_path / "run")
    assert prepared.settings.of_jmeter == {**given, **settings.kit_settings(prepared.plan)}
    assert (prepared.settings.properties["users"], prepared.settings.properties["hold_s"]) == ("4", "30")
    notes = capsys.readouterr().err
    assert "-Jmy.own" in notes and "server_port" not in notes
    assert "left out: jmeter.save.saveservice.output_format" in notes and "-Jhold_s without a value" in notes


@pytest.mark.parametrize(
    "given", [{"user": "5"}, {"users": "0"}, {"python": "python3"}, {"hold_s": "0.3"}, {"ramp_s": "0", "hold_s": "0"}]
)
def test_other_properties_are_refused(given: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"-J{next(iter(given))}="):
        prepare(what("face-blur", **given), tmp_path / "run")


@pytest.mark.parametrize("plan", ["face-blur", "video-per-user", "face-blur-http", "requests", "request-rate"])
@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ("no colon", "'no colon' is not of the form Name: value"),
        (r"X-A: 1\nTransfer-Encoding: chunked", "leave Transfer-Encoding out"),
        ("X-Key: ${env:KEY_OF_HEADERS}", r"X-Key: its value has the character U\+000A"),
        ("@headers", "KEY_NOT_SET"),
    ],
)
def test_headers_that_no_plan_can_send_are_refused(
    plan: str, headers: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("headers").write_text("X-Key: ${env:KEY_NOT_SET}\n")
    monkeypatch.setenv("KEY_OF_HEADERS", "s3cr3t\n")
    with pytest.raises(UsageError, match=rf"-Jheaders: .*{why}") as refusal:
        prepare(what(plan, url="http://127.0.0.1:9/", headers=headers), tmp_path / "run")
    assert "s3cr3t" not in str(refusal.value)


def test_a_plan_made_in_jmeter_may_read_any_property(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"url": "http://h/f", "of_a_script": "1"}
    asked = What(paths.ROOT / "tests" / "run" / "shop.jmx", given=given, is_for_gui=True)
    prepared = prepare(asked, tmp_path / "run")
    assert prepared.settings.properties["url"] == "http://h/f"
    assert prepared.settings.of_jmeter == {"of_a_script": "1"}
    assert prepared.settings.values == {"url": "http://h/f"}, "JMeter works out its defaults"
    assert "-Jof_a_script" in capsys.readouterr().err


def test_only_a_property_that_nobody_reads_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fragments and scripts refer to properties, too."""
    monkeypatch.chdir(tmp_path)
    script = '<JSR223Sampler testname="s"><stringProp name="{}">{}</stringProp></JSR223Sampler><hashTree/>'
    include = (
        '<IncludeController><stringProp name="IncludeController.includepath">part.jmx</stringProp></IncludeController>'
    )
    inline, in_file = script.format("script", "props.get('of_script')"), script.format("filename", "a.groovy")
    within = "<TestFragmentController testname='${__P(of_fragment)}'/><hashTree/>"
    for name, elements in {"mine.jmx": include + "<hashTree/>" + inline + in_file, "part.jmx": within}.items():
        text = f"<jmeterTestPlan><hashTree>{elements}</hashTree></jmeterTestPlan>"
        (tmp_path / name).write_text(text)
    (tmp_path / "a.groovy").write_text('log.info(props["of_file"])')
    given = dict.fromkeys(("of_script", "of_fragment", "of_file", "of_nobody"), "1")
    prepare(What(tmp_path / "mine.jmx", given=given, is_for_gui=True), tmp_path / "run")
    notes = capsys.readouterr().err
    assert [name for name in given if name in notes] == ["of_nobody"]


@pytest.mark.parametrize("state", ["true", "false"])
def test_of_an_included_file_the_first_test_fragment_counts(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in JMeter, whether that is enabled or not, and neither a thread group beside it nor a second fragment."""
    monkeypatch.chdir(tmp_path)
    include = (
        '<IncludeController testname="part"><stringProp name="IncludeController.includepath">part.jmx</stringProp>'
    )
    plan = foreign.write_plan(tmp_path / "shop.jmx", f"{include}</IncludeController><hashTree/>", loops=3)
    foreign.write_plan(tmp_path / "part.jmx", foreign.REQUEST.format(url="http://debug/${none}"))
    fragments = "".join(
        f'<TestFragmentController testname="{name}" enabled="{state}"/>'
        f"<hashTree>{foreign.REQUEST.format(url=f'http://{name}/')}</hashTree>"
        for name in ("first", "second")
    )
    part = tmp_path / "part.jmx"
    part.write_text(part.read_text().replace("<ThreadGroup ", f"{fragments}<ThreadGroup ", 1))
    prepared = prepare(What(plan), tmp_path / "run")
    assert [(load.name, load.total) for load in prepared.loads] == [("threads", 2)]
    assert [address.url for address in prepared.called] == ["http://first"]
    assert capsys.readouterr().err == ""


def test_a_reference_in_the_path_of_an_include_controller_is_refused(tmp_path: Path) -> None:
    """JMeter would look for a file of that very name, and go on without it."""
    include = (
        '<IncludeController testname="i"><stringProp name="IncludeController.includepath">{}/part.jmx</stringProp>'
    )
    elements = include.format("${__P(dir,.)}") + "</IncludeController><hashTree/>" + foreign.script("x")
    plan = foreign.write_plan(tmp_path / "shop.jmx", elements, loops=1)
    fragment = "<TestFragmentController/><hashTree/>"
    (tmp_path / "part.jmx").write_text(f"<jmeterTestPlan><hashTree>{fragment}</hashTree></jmeterTestPlan>")
    with pytest.raises(UsageError, match=r"JMeter looks up nothing in this path: write it out"):
        prepare(What(plan), tmp_path / "run")
    plan.write_text(plan.read_text().replace("${__P(dir,.)}", "."))
    assert prepare(What(plan), tmp_path / "run").needs.fragments


SETTING = {
    "extractor": '<RegexExtractor testname="e"><stringProp name="RegexExtractor.refname">v</stringProp>'
    "</RegexExtractor>",
    "columns": '<CSVDataSet testname="c"><stringProp name="filename">rows.csv</stringProp>'
    '<stringProp name="variableNames">a,v</stringProp></CSVDataSet>',
    "header": '<CSVDataSet testname="c"><stringProp name="filename">rows.csv</stringProp></CSVDataSet>',
    "parameters": '<UserParameters testname="u"><collectionProp name="UserParameters.names">'
    '<stringProp name="1">v</stringProp></collectionProp></UserParameters>',
    "script": '<JSR223PreProcessor testname="s"><stringProp name="script">vars.put("v", "1")</stringProp>'
    "</JSR223PreProcessor>",
}
USING = (
    '<LoopController testname="l"><stringProp name="LoopController.loops">{v}</stringProp></LoopController><hashTree>'
    '<HTTPSamplerProxy testname="call"><stringProp name="HTTPSampler.domain">h{v}</stringProp>'
    '<elementProp name="HTTPsampler.Files" elementType="HTTPFileArgs"><collectionProp name="HTTPFileArgs.files">'
    '<elementProp name="" elementType="HTTPFileArg"><stringProp name="File.path">of-{v}</stringProp></elementProp>'
    '</collectionProp></elementProp></HTTPSamplerProxy><hashTree/></hashTree><ConstantThroughputTimer testname="t">'
    '<stringProp name="throughput">{v}</stringProp></ConstantThroughputTimer><hashTree/>'
)


@pytest.mark.parametrize("setting", [*SETTING, None])
def test_a_variable_that_is_set_during_the_run_has_no_value_before(
    setting: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("a,v\n1,2\n")
    placeholder = (
        '<Arguments testname="defaults"><collectionProp name="Arguments.arguments"><elementProp name="v" '
        'elementType="Argument"><stringProp name="Argument.name">v</stringProp><stringProp name="Argument.value">tbd'
        "</stringProp></elementProp></collectionProp></Arguments><hashTree/>"
    )
    elements = placeholder + (f"{SETTING[setting]}<hashTree/>" if setting else "") + USING.format(v="${v}")
    asked = What(foreign.write_plan(tmp_path / "shop.jmx", elements, loops=1), anyway=setting is None)
    if setting is None:
        with pytest.raises(UsageError, match=r"there is no file .*of-tbd"):
            prepare(replace(asked, anyway=False), tmp_path / "run")
    prepared = prepare(asked, tmp_path / "run")
    assert [address.url for address in prepared.called] == ([] if setting else ["http://htbd"])
    assert [load.unknown for load in prepared.loads][1:] == ["${v} is known only during the run" if setting else ""]


def test_a_criterion_names_a_plans_own_labels_user_and_all(tmp_path: Path) -> None:
    scripts = "".join(foreign.script("", name).replace("JSR223Sampler", "DebugSampler") for name in ("user", "all"))
    plan = foreign.write_plan(tmp_path / "own.jmx", scripts)
    assert plans.read(plan).known_labels == {"user (label)", "all (label)", "all"}
    assert plans.read(paths.JMX / "face-blur.jmx").known_labels == {"user", "frame", "all"}
    assert plans.read(paths.JMX / "requests.jmx").known_labels == {"request", "all"}, "not the kit's own calls"


def test_a_criterion_names_any_label_that_the_page_may_show(tmp_path: Path) -> None:
    def words(criterion: str, elements: str = "") -> str:
        path = foreign.write_plan(tmp_path / "their.jmx", foreign.REQUEST.format(url="http://h/") + elements)
        group = foreign.THREADS.replace("ThreadGroup ", "SetupThreadGroup ").replace("</Thread", "</SetupThread")
        set_up = group.format(loop=foreign.LOOP.format(loops=1))
        set_up += "<hashTree><DebugSampler testname='log in'/><hashTree/></hashTree>"
        path.write_text(path.read_text().replace("<ThreadGroup ", f"{set_up}<ThreadGroup ", 1))
        try:
            check_criteria(plans.read(path), Output(criteria=(f"{criterion} p95 > 1 s",)))
        except UsageError as error:
            return str(error)
        return ""

    renaming = foreign.script("prev.sampleLabel = 'paid'").replace("JSR223Sampler", "JSR223Listener")
    assert [words(label) for label in ("call", "call-0-1", "'log in'")] == [""] * 3
    assert words("paid", renaming) == ""
    assert "latency_ms is the time to the first byte. Its labels: call, " in words("latency")
    assert "no label paid; " in words("paid", renaming.replace("sampleLabel", "responseMessage"))


def test_users_that_jmeter_would_not_start_are_refused(tmp_path: Path) -> None:
    path = foreign.write_plan(tmp_path / "their.jmx", foreign.REQUEST.format(url="http://h/"))
    text = path.read_text()

    def reason(old: str, new: str, **given: str) -> str:
        path.write_text(text.replace(old, new))
        try:
            prepare(What(path, given=given), tmp_path / "run")
        except UsageError as error:
            return str(error)
        return ""

    assert "no enabled thread group" in reason('testname="threads" enabled="true"', 'testname="off" enabled="false"')
    assert "no enabled thread group" in reason('testname="theirs" enabled="true"', 'enabled="false"')
    assert "'threads' asks for ' 2 ' users" in reason(">2<", "> 2 <")
    assert "asks for '1e3' users" in reason(">2<", ">${__P(n,5)}<", n="1e3")
    assert "loops" in reason(">-1<", ">ten<")
    users = '<stringProp name="ThreadGroup.num_threads"'
    lifetime = '<boolProp name="ThreadGroup.scheduler">true</boolProp>'
    lifetime += '<stringProp name="ThreadGroup.duration">{}</stringProp>'
    reasons = {value: reason(users, lifetime.format(value) + users) for value in ("", "0", "2.5", "+3", "${n}")}
    assert [value for value, why in reasons.items() if "thread lifetime" in why] == ["", "0", "2.5", "${n}"]
    assert [reason(">2<", f">{value}<") for value in ("${__P(n,5)}", "${__Random(1,2)}")] == [""] * 2
    assert "no thread group has a user" in reason(">2<", ">0<")
    assert "n is not defined" in reason(">2<", ">${n}<")


def test_what_files_of_properties_set_counts_as_in_jmeter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = foreign.write_plan(tmp_path / "their.jmx", foreign.REQUEST.format(url="http://h/${__P(base,/api)}"))
    file = tmp_path / "my.properties"
    file.write_text("base=\nframestorm.warm_up=false\nsampleresult.timestamp.start=false\n")
    given = java_properties.read(file)
    prepared = prepare(What(path, given=given, property_files=(file,)), tmp_path / "run")
    assert prepared.settings.properties["base"] == "" and "base" not in prepared.settings.values
    assert prepared.settings.of_jmeter["framestorm.warm_up"] == "false"
    assert "sampleresult.timestamp.start" not in prepared.settings.of_jmeter, "samples.jtl has the starts of samples"
    assert "-Jbase" not in capsys.readouterr().err


def test_a_property_of_a_kit_plan_counts_in_jmeters_own_file(tmp_path: Path) -> None:
    file = tmp_path / "jmeter.properties"
    file.write_text("users=9\nhold_s=7\nramp_s=\n")
    asked = replace(what("requests", url="http://h/f", hold_s="5"), jmeter_options=(f"-p{file}",))
    values = prepare(asked, tmp_path / "run").settings.values
    assert [values[name] for name in ("users", "hold_s", "ramp_s")] == ["9", "5", "2"]
    file.write_text("users=none\n")
    with pytest.raises(UsageError, match="users must be a whole number"):
        prepare(asked, tmp_path / "run")


@pytest.mark.parametrize("where", ["given", "extra", "of a file"])
def test_functions_are_not_looked_for_where_the_kit_s_is_not(where: str, tmp_path: Path) -> None:
    path = foreign.write_plan(tmp_path / "their.jmx", foreign.REQUEST.format(url="http://h/"))
    (tmp_path / "my.properties").write_text("classfinder.functions.contain=.mine.\n")
    values = {"classfinder.functions.contain": ".mine."}
    options = {"property_files": (tmp_path / "my.properties",)} if where == "of a file" else {where: values}
    with pytest.raises(UsageError, match=r"contain=\.mine\.: JMeter would not find framestorm\.functions\.Beginning"):
        prepare(What(path, **options), tmp_path / "run")
    allowed = {"classfinder.functions.contain": ".functions."}
    assert prepare(What(path, allowed), tmp_path / "run").settings.given == allowed


@pytest.mark.parametrize(("name", "letter"), [("samples_copy", "-l"), ("log_copy", "-j")])
def test_where_files_cannot_be_copied_is_found_before_the_load(name: str, letter: str, tmp_path: Path) -> None:
    (tmp_path / "a-file").touch()
    copies = dict.fromkeys(("samples_copy", "log_copy"), None) | {name: tmp_path / "a-file" / "copy"}
    with pytest.raises(FramestormError, match=letter):
        output.check_output(tmp_path / "run", **copies)


def test_a_folder_is_no_place_for_a_log(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"-j .* is a folder; name a file"):
        output.check_output(tmp_path / "run", None, tmp_path)


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to a file", "link to nothing"])
def test_what_is_there_already_is_refused_before_the_load(kind: str, tmp_path: Path) -> None:
    there = tmp_path / "there"
    if kind == "folder":
        there.mkdir()
    elif kind == "pipe":
        os.mkfifo(there)
    else:
        there.symlink_to("/dev/full" if kind == "link to a file" else tmp_path / "nowhere")
    with pytest.raises(UsageError, match="there exists; a run makes its own folder"):
        output.check_output(there, None, None)
    with pytest.raises(UsageError, match="there: the file exists"):
        output.check_output(tmp_path / "run", there, None)


def test_a_file_is_found_from_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scan.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    given = {"url": "http://127.0.0.1:1/", "body": "@scan.json"}
    asked = What(paths.JMX / "requests.jmx", given=given, is_for_gui=True)
    assert prepare(asked, tmp_path / "run").settings.values["body"] == f"@{tmp_path / 'scan.json'}"
    with pytest.raises(UsageError, match=r"no file or folder .*none\.json"):
        prepare(replace(asked, given=given | {"body": "@none.json"}), tmp_path / "run")


def test_a_secret_stays_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"url": "http://127.0.0.1:1/", "headers": "Authorization: ${env:TOKEN}"}
    asked = What(paths.JMX / "requests.jmx", given=given, is_for_gui=True)
    monkeypatch.delenv("TOKEN", raising=False)
    with pytest.raises(UsageError, match="export TOKEN="):
        prepare(asked, tmp_path / "run")
    monkeypatch.setenv("TOKEN", "a-secret")
    assert "a-secret" not in str(prepare(asked, tmp_path / "run"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$.usage.tokens", "tokens=$.usage.tokens"),
        ("t = $.a['b,c'],$.Items.length()", "t=$.a['b,c'], items=$.Items.length()"),
    ],
)
def test_names_of_figures(text: str, expected: str, tmp_path: Path) -> None:
    chosen = what("requests", url="http://h/f", figures=text)
    assert prepare(chosen, tmp_path / "run").settings.values["figures"] == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("usage.tokens", "not of the form"),
        ("Tokens=$.x", "cannot be the name"),
        ("rtt=$.x", "cannot be the name"),
        ("$.model", "two figures model"),
        ("$.a.x, $.b.x", "two figures x"),
    ],
)
def test_names_of_figures_that_are_refused(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=reason):
        prepare(what("requests", url="http://h/f", figures=text), tmp_path / "run")


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").touch()
    with pytest.raises(UsageError, match="empty"):
        prepare(what("requests", url="http://h/f", rows=f"@{tmp_path}/rows.csv"), tmp_path / "run")


@pytest.mark.parametrize(
    ("headers", "name"),
    [("", ""), ("X: a\nhost: shop.example:8443", "shop.example"), ("Host: {column}", ""), ("Host: [::1]:80", "::1")],
)
def test_a_certificate_has_to_be_for_the_name_in_a_host_header(
    headers: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    monkeypatch.setattr(target, "check_certificate", lambda *words: names.append(words[-1]))
    prepare(what("requests", url="https://127.0.0.1:9/", headers=headers), tmp_path / "run")
    assert names == [name]


@pytest.mark.parametrize(
    ("plan", "option"), [("requests", "-Jca"), ("chat", "REQUESTS_CA_BUNDLE"), ("face-blur", "REQUESTS_CA_BUNDLE")]
)
def test_a_certificate_is_checked_by_the_authorities_of_who_sends(
    plan: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: list[str] = []
    monkeypatch.setattr(target, "check_certificate", lambda *words: options.append(words[1]))
    monkeypatch.setattr(target, "check_reachable", lambda *_: None)
    prepare(what(plan, url="https://127.0.0.1:9/f"), tmp_path / "run")
    assert options == [option]


@pytest.mark.parametrize(("plan", "is_refused"), [("requests", True), ("face-blur", False)])
def test_the_zone_of_an_address_is_refused_where_jmeter_sends_itself(
    plan: str, is_refused: bool, tmp_path: Path
) -> None:
    url = "http://[fe80::1%25lo]:9/f"
    with pytest.raises(UsageError, match="IPv6 address with a zone") if is_refused else nullcontext():
        assert prepare(what(plan, url=url), tmp_path / "run").settings.properties["url"] == url


def test_a_load_in_words_takes_the_place_of_rate_ramp_and_hold(tmp_path: Path) -> None:
    url = {"url": "http://127.0.0.1:1/f", "load": "10/s for 2 s, to 50/s in 4 s"}
    prepared = prepare(What(paths.JMX / "request-rate.jmx", url), tmp_path / "run", Where("slaves"))
    assert not {"rate_per_s", "ramp_s", "hold_s"} & prepared.settings.properties.keys()
    (load,) = (each for each in prepared.loads if not each.is_aside)
    assert (load.model, load.total, load.length_s, load.at(4)) == ("arrivals", 140, 6, 30)
    both = What(paths.JMX / "request-rate.jmx", {**url, "rate_per_s": "5", "hold_s": "1"})
    with pytest.raises(UsageError, match="-Jload is the whole load: leave out -Jrate_per_s and -Jhold_s"):
        prepare(both, tmp_path / "run", Where("slaves"))


def test_a_line_of_a_form_s_file_ends_where_it_does_there(tmp_path: Path) -> None:
    (tmp_path / "form").write_text(r"path=C:\new")
    values = prepare(what("requests", url="http://h/f", form=f"@{tmp_path}/form"), tmp_path / "run").settings.values
    assert [str(field) for field in form.parse(values["form"])] == [r"path=C:\new"]


def test_secrets_of_a_plan_of_ones_own_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_plan.write(tmp_path / "a.jmx", "curl 'http://h/f?api_key=abc'", paths.JMX / "requests.jmx")
    capsys.readouterr()
    prepare(What(tmp_path / "a.jmx", {}), tmp_path / "run")
    assert "api_key in -Jurl has a literal value" in capsys.readouterr().err


def test_secrets_by_any_letter_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("-Djavax.net.ssl.keyStorePassword=abc",)
    asked = replace(what("requests", url="http://h/f"), extra={"api_token": "abc"}, jmeter_options=words)
    prepare(asked, tmp_path / "run")
    told = capsys.readouterr().err
    assert "-Gapi_token has a literal value" in told
    assert "-Djavax.net.ssl.keyStorePassword has a literal value" in told and "abc" not in told


@pytest.mark.parametrize("name", ["users", "tree"])
def test_a_property_of_a_kit_plan_is_given_by_j_alone(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"-G{name}: it is a property of requests\.jmx: give it by -J"):
        prepare(replace(what("requests", url="http://h/f"), extra={name: "50"}), tmp_path / "run")


def test_a_plan_is_checked_with_the_value_that_counts(tmp_path: Path) -> None:
    path = foreign.write_plan(tmp_path / "their.jmx", foreign.REQUEST.format(url="http://h/"))
    path.write_text(path.read_text().replace(">2<", ">${__P(n,5)}<"))
    prepared = prepare(What(path, given={"n": "3"}, extra={"n": "7"}), tmp_path / "run")
    assert [load.total for load in prepared.loads] == [7]


def test_a_jar_that_is_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "JARS", tmp_path)
    (tmp_path / "broken.jar").write_text("no archive")
    plan = plans.read(foreign.write_plan(tmp_path / "their.jmx", foreign.script("${__unknown()}")))
    with pytest.raises(UsageError, match=r"broken\.jar cannot be read as a jar"):
        plugins.check(plan, plan.root, {})
