"""What of a plan goes to the slaves."""

import io
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.hosts import parcel
from framestorm.hosts.parcel import Parcel
from framestorm.run import target
from framestorm.run.options import RunOptions
from framestorm.run.preparation import prepare

GROUP = """<{tag} testname="load"><stringProp name="ThreadGroup.num_threads">3</stringProp>
<elementProp name="ThreadGroup.main_controller" elementType="LoopController">
<boolProp name="LoopController.continue_forever">false</boolProp><stringProp name="LoopController.loops">1</stringProp>
</elementProp></{tag}>"""
PLAN = f"""<jmeterTestPlan version="1.2"><hashTree><TestPlan testname="mine"/><hashTree>
{GROUP.format(tag="ThreadGroup")}<hashTree>
<DebugSampler testname="debug"/><hashTree/>
{{elements}}
</hashTree></hashTree></hashTree></jmeterTestPlan>
"""


def element(tag: str, more: str = "", **fields: str) -> str:
    texts = "".join(
        f'<stringProp name="{name.replace("__", ".")}">{text}</stringProp>' for name, text in fields.items()
    )
    return f'<{tag} testname="{tag}" {more}>{texts}</{tag}><hashTree/>'


def csv(filename: str, more: str = "", **fields: str) -> str:
    return element("CSVDataSet", more, filename=filename, **fields)


Pack = Callable[..., Parcel]


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pack:
    """Make the parcel of a plan with these elements, in the folder `plans`, for two slaves."""
    monkeypatch.setattr(target, "check_reachable", lambda *_: None)
    (tmp_path / "plans" / "data").mkdir(parents=True)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def make(
        *elements: str, plan: Path | None = None, master: str = "", folder: str = "parcel", **options: Any
    ) -> Parcel:
        if plan is None:
            plan = tmp_path / "plans" / "mine.jmx"
            plan.write_text(PLAN.format(elements="".join(elements)))
        asked = RunOptions.of(plan=plan, slaves="slaves", **options)
        prepared = prepare(asked.what, tmp_path / "run", asked.where)
        return parcel.make(prepared, 2, tmp_path / folder, master)

    return make


def fields(contents: Parcel, name: str) -> list[str]:
    tree = ET.parse(contents.plan)  # noqa: S314 - written by this test
    return [each.text or "" for each in tree.iter() if each.get("name") == name]


def test_files_beside_the_plan_stay_there_and_others_get_a_folder(pack: Pack, tmp_path: Path) -> None:
    for name in ("plans/data/users.csv", "above.csv", "here/script.groovy", "absolute.jar"):
        (tmp_path / name).write_text("x")
    contents = pack(
        csv("data/users.csv"),
        csv("${__P(file,../above.csv)}"),
        csv("none.csv", 'enabled="false"'),
        element("JSR223Sampler", filename="script.groovy"),
        element("HTTPSamplerProxy", HTTPSampler__path=f"/${{__FileToString({tmp_path}/absolute.jar,,)}}"),
    )
    assert set(contents.files) == {"data/users.csv", "elsewhere/1/above.csv", "elsewhere/2/script.groovy",
                                   "elsewhere/3/absolute.jar"}  # fmt: skip
    assert contents.files["elsewhere/2/script.groovy"] == tmp_path / "here" / "script.groovy"
    there = "${__P(framestorm.plan)}"
    assert fields(contents, "filename") == [
        f"{there}/data/users.csv", f"{there}/elsewhere/1/above.csv", "none.csv", f"{there}/elsewhere/2/script.groovy"
    ]  # fmt: skip
    assert fields(contents, "HTTPSampler.path") == [f"/${{__FileToString({there}/elsewhere/3/absolute.jar,,)}}"]
    assert "framestorm.plan" not in (tmp_path / "plans" / "mine.jmx").read_text()
    assert contents.values_on(1, "/state/plan")["framestorm.plan"] == "/state/plan"


def test_files_of_a_form_go_with_the_plan(pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t0")
    (tmp_path / "pages").mkdir()
    for name in ("ocr.form", "pages/a.png", "prompt"):
        (tmp_path / name).write_text(
            "file=@pages\ntext=<prompt;type=text/x\nkey=k" if "form" in name else "${env:TOKEN}"
        )
    contents = pack(plan=paths.JMX / "requests.jmx", given={"url": "http://h/f", "form": "@../ocr.form"})
    form = contents.values_on(1, "/there")["form"].splitlines()
    assert form[1].endswith("/prompt;type=text/x") and form[2] == "key=k"
    sent = {name: path.name for name, path in contents.files_of(1).items()}
    assert sent["plan" + form[0].removeprefix("file=@/there") + "/a.png"] == "a.png"
    assert sent["plan" + form[1].removeprefix("text=</there").partition(";")[0]] == "prompt"
    assert contents.secrets == {"TOKEN": "t0"}


def test_what_a_plan_includes_is_searched_too(pack: Pack, tmp_path: Path) -> None:
    (tmp_path / "plans" / "data" / "rows.csv").write_text("x")
    includes = element("IncludeController", IncludeController__includepath="../login.jmx")
    fragment = PLAN.replace(GROUP.format(tag="ThreadGroup"), "<TestFragmentController/>")
    (tmp_path / "login.jmx").write_text(fragment.format(elements=csv("data/rows.csv") + includes))
    contents = pack(includes)
    assert list(contents.files) == ["data/rows.csv"]
    (place,) = contents.fragments
    assert fields(contents, "IncludeController.includepath") == [place]
    assert "${__P(framestorm.plan)}/data/rows.csv" in contents.fragments[place].read_text()


def test_a_field_may_name_files_again_and_again(pack: Pack, tmp_path: Path) -> None:
    for name in ("plans/rows.csv", "here/e"):
        (tmp_path / name).write_text("x")
    contents = pack(
        element(
            "HTTPSamplerProxy",
            HTTPSampler__path=" rows.csv, e: ${__CSVRead(rows.csv,0)}/${__FileToString( e )}/${__CSVRead(rows.csv,1)} ",
        ),
        element("SmtpSampler", SMTPSampler__attachFile="e; rows.csv;e"),
    )
    e, rows = (f"${{__P(framestorm.plan)}}/{name}" for name in sorted(contents.files))
    assert fields(contents, "HTTPSampler.path") == [
        f" rows.csv, e: ${{__CSVRead({rows},0)}}/${{__FileToString( {e} )}}/${{__CSVRead({rows},1)}} "
    ]
    assert fields(contents, "SMTPSampler.attachFile") == [f"{e}; {rows};{e}"]


def test_a_fragment_is_found_by_its_prefix_only_here(pack: Pack, tmp_path: Path) -> None:
    (tmp_path / "part.jmx").write_text(PLAN.format(elements=""))
    include = element("IncludeController", IncludeController__includepath="part.jmx")
    contents = pack(include, given={"includecontroller.prefix": f"{tmp_path}/"})
    assert fields(contents, "IncludeController.includepath") == list(contents.fragments)
    assert contents.of_fragments == {"includecontroller.prefix": ""}


def test_a_file_that_the_plan_itself_makes_stays_as_it_is(pack: Pack) -> None:
    setting_up = f"<hashTree>{element('JSR223Sampler', script='new File()')}</hashTree>"
    contents = pack(csv("made.csv"), GROUP.format(tag="SetupThreadGroup") + setting_up)
    assert (fields(contents, "filename"), contents.files) == (["made.csv"], {})


def test_missing_files_are_named_before_the_load(pack: Pack) -> None:
    with pytest.raises(UsageError, match=r"(?s)CSVDataSet.*none\.csv.*gone\.jmx"):
        pack(csv("none.csv"), element("IncludeController", IncludeController__includepath="gone.jmx"))
    with pytest.raises(UsageError, match=r"write data/users\.csv"):
        pack(csv(r"data\users.csv"))


def test_letters_that_jmeter_would_lose_are_told(
    pack: Pack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plans" / "western.jmx"
    path.write_text(PLAN.format(elements=element("DebugSampler", Größe="1")), encoding="iso-8859-1")
    pack(plan=path)
    assert "western.jmx is not in UTF-8" in capsys.readouterr().err


def test_jmeter_looks_in_the_folder_it_is_started_in_and_for_some_beside_the_plan(pack: Pack, tmp_path: Path) -> None:
    for name in ("plans/both.csv", "here/both.csv", "plans/text"):
        (tmp_path / name).write_text("x")
    assert [*pack(csv("both.csv")).files.values()] == [tmp_path / "here" / "both.csv"]
    with pytest.raises(UsageError, match=rf"no file {tmp_path}/here/text; .* cd {tmp_path}/plans"):
        pack(element("SmtpSampler", SMTPSampler__message="${__FileToString(text)}"))


def test_a_file_known_only_under_load_is_told(pack: Pack) -> None:
    sequence = element("HTTPSamplerProxy", HTTPSampler__path="/${__StringFromFile(PIN#'.'DAT,,1,2)}")
    notes = pack(csv("${chosen}.csv"), sequence).notes
    assert "${chosen}.csv" in notes[0]
    assert "PIN#" in notes[1]


@pytest.mark.parametrize(
    ("settings", "whole", "parts"),
    [
        ({}, "name\na\nb\nc", ["name\na\nc\n", "name\nb\n"]),
        ({"variableNames": "name"}, "a\nb\nc\n", ["a\nc\n", "b\n"]),
        ({"variableNames": "name", "ignoreFirstLine": "true"}, "x\r\na\r\nb\r\n", ["x\r\na\r\n", "x\r\nb\r\n"]),
        ({"quotedData": "true"}, 'name\n"a\n""a"\nb\n', ['name\n"a\n""a"\n', "name\nb\n"]),
        ({}, 'name\n"a\nb"\nc\n', ['name\n"a\nc\n', 'name\nb"\n']),
        ({"quotedData": "true"}, 'name\n"a\nb"\nc\n', ['name\n"a\nb"\n', "name\nc\n"]),
        ({"tag": "com.blazemeter.jmeter.RandomCSVDataSetConfig"}, 'n\na\n"b\n"', ["n\na\n", 'n\n"b\n"\n']),
        ({"variableNames": "name", "ignoreFirstLine": "false"}, "a\n\nb\n", ["a\n", "b\n"]),
    ],
)
def test_rows_are_dealt_out_so_that_each_is_sent_once(
    settings: dict[str, str], whole: str, parts: list[str], pack: Pack, tmp_path: Path
) -> None:
    (tmp_path / "plans" / "rows.csv").write_bytes(whole.encode())
    contents = pack(element(**{"tag": "CSVDataSet", "filename": "rows.csv", **settings}), split_csv=True)
    assert [contents.files_of(slave)["plan/rows.csv"].read_bytes().decode() for slave in (0, 1)] == parts
    assert contents.notes == []


def test_rows_that_are_fewer_than_slaves_are_refused(pack: Pack, tmp_path: Path) -> None:
    (tmp_path / "plans" / "rows.csv").write_text("name\na\n\n")
    with pytest.raises(UsageError, match=r"--split-csv: .*rows\.csv has 1 row for 2 slaves: add rows"):
        pack(csv("rows.csv"), split_csv=True)


def test_rows_are_for_slaves_that_have_users_of_the_thread_group(pack: Pack, tmp_path: Path) -> None:
    loops = "<elementProp name='ThreadGroup.main_controller' elementType='LoopController'>"
    loops += "<boolProp name='LoopController.continue_forever'>false</boolProp>"
    loops += "<stringProp name='LoopController.loops'>1</stringProp></elementProp>"
    one = f"<ThreadGroup testname='one'><stringProp name='ThreadGroup.num_threads'>1</stringProp>{loops}</ThreadGroup>"
    for name in ("one", "all"):
        (tmp_path / "plans" / f"{name}.csv").write_text("name\na\nb\n")
    contents = pack(f"{one}<hashTree>{csv('one.csv')}</hashTree>", csv("all.csv"), split_csv=True)
    parts = [contents.files_of(slave) for slave in (0, 1)]
    assert [part["plan/one.csv"].read_text() for part in parts] == ["name\na\nb\n", "name\n"]
    assert [part["plan/all.csv"].read_text() for part in parts] == ["name\na\n", "name\nb\n"]


def test_without_asking_each_slave_has_all_rows(pack: Pack, tmp_path: Path) -> None:
    rows = tmp_path / "plans" / "rows.csv"
    rows.write_text("name\na\n")
    given = {"url": "http://192.0.2.9/", "rows": f"@{rows}"}
    for contents in (pack(csv("rows.csv")), pack(plan=paths.JMX / "requests.jmx", given=given, folder="kit")):
        assert contents.parts == [{}, {}]
        assert [rows in contents.files_of(slave).values() for slave in (0, 1)] == [True, True]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_the_kit_s_files_and_rows_go_along(ending: str, pack: Pack, tmp_path: Path) -> None:
    (tmp_path / "bodies").mkdir()
    (tmp_path / "bodies" / "a.json").write_text("{}")
    header = "name\n" if ending == "csv" else ""
    (tmp_path / f"rows.{ending}").write_text(f"{header}1\n2\n3\n")
    given = {"url": "http://192.0.2.9/", "rows": f"@{tmp_path}/rows.{ending}", "body": f"@{tmp_path}/bodies"}
    contents = pack(plan=paths.JMX / "requests.jmx", given=given, split_csv=True)
    values = contents.values_on(0, "/state/plan")
    for name, files in (("rows", {""}), ("body", {"/a.json"})):
        place = values[name].removeprefix("@/state/")
        assert {each.removeprefix(place) for each in contents.files_of(0) if each.startswith(place)} == files
    parts = [contents.files_of(slave)[values["rows"].removeprefix("@/state/")].read_text() for slave in (0, 1)]
    assert parts == [f"{header}1\n3\n", f"{header}2\n"]
    assert contents.notes == []


def test_the_users_jars_go_along(pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jmx" / "lib").mkdir(parents=True)
    (tmp_path / "jmx" / "lib" / "driver.jar").write_text("x")
    monkeypatch.setattr(paths, "JARS", tmp_path / "jmx" / "lib")
    (tmp_path / "classes" / "de").mkdir(parents=True)
    for name in ("classes/de/A.class", "mine.jar", "of-plan.jar"):
        (tmp_path / name).write_text("x")
    class_path = element("TestPlan", TestPlan__user_define_classpath=f"{tmp_path}/of-plan.jar")
    contents = pack(class_path, given={"user.classpath": f"{tmp_path}/classes:{tmp_path}/mine.jar"})
    values = contents.values_on(1, "/state/plan")
    assert contents.class_paths_on("/state/plan").items() <= values.items()
    folders = {name: values[name].removeprefix("/state/") for name in ("search_paths", "user.classpath")}
    of_plan, kit = folders["search_paths"].split(";/state/")
    classes, mine = folders["user.classpath"].split(":/state/")
    assert {of_plan, f"{kit}/driver.jar", f"{classes}/de/A.class", mine} <= (
        contents.files_of(1).keys() & contents.files_of_controller().keys()
    )


def test_key_stores_go_along(pack: Pack, tmp_path: Path) -> None:
    (tmp_path / "client.p12").write_text("x")
    (tmp_path / "tls").write_text("javax.net.ssl.keyStorePassword=of-file\nother=1\n")
    contents = pack(jmeter_options=(f"-Djavax.net.ssl.keyStore={tmp_path}/client.p12", f"-S{tmp_path}/tls"))
    values = contents.tls_on("/state/plan")
    assert values.pop("javax.net.ssl.keyStore").removeprefix("/state/") in contents.files_of(1)
    assert values == {"javax.net.ssl.keyStorePassword": "of-file"}


def test_scripts_that_jmeters_properties_name_go_along(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "t0")
    (tmp_path / "utilities.groovy").write_text("def token() { System.getenv('TOKEN') }")
    contents = pack(given={"groovy.utilities": "../utilities.groovy", "jsr223.init.file": "none"}, folder="init")
    there = contents.values_on(1, "/state/plan")
    assert there["groovy.utilities"].removeprefix("/state/") in contents.files_of(1) and "jsr223.init.file" not in there
    assert contents.secrets == {"TOKEN": "t0"}


def test_what_a_listener_writes_on_a_master_comes_into_the_run(pack: Pack, tmp_path: Path) -> None:
    listener = element("ResultCollector", filename="out/${__P(name,a)}.jtl")
    here = pack(listener)
    assert fields(here, "filename") == [f"{tmp_path}/here/out/${{__P(name,a)}}.jtl"]
    there = pack(listener, listener, folder="there", master="master1")
    assert fields(there, "filename") == there.outputs == ["listener-1-a.jtl", "listener-2-a.jtl"]


def test_secrets_are_taken_from_the_environment(pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOKEN", "OF_FILE", "OTHER"):
        monkeypatch.setenv(name, f"secret-{name}")
    (tmp_path / "headers").write_text("X: ${env:OF_FILE}")
    given = {"url": "http://192.0.2.9/${env:TOKEN}", "headers": f"@{tmp_path}/headers"}
    contents = pack(plan=paths.JMX / "requests.jmx", given=given)
    assert contents.secrets == {"TOKEN": "secret-TOKEN", "OF_FILE": "secret-OF_FILE"}
    assert "secret-" not in str(contents.values_on(0, "/p")) + contents.plan.read_text()


def test_the_numbers_of_a_foreign_plan_are_divided_unless_asked_otherwise(pack: Pack, tmp_path: Path) -> None:
    assert [share["users of load"] for share in pack().division.shares] == ["2", "1"]


def test_the_whole_plan_can_be_left_to_each_slave(pack: Pack) -> None:
    assert pack(whole_plan=True).division.shares == [{}, {}]


def test_rows_end_where_quotes_do() -> None:
    assert list(parcel.rows(io.BytesIO(b'a\n"b\nc"\n"d'), may_be_quoted=True)) == [b"a\n", b'"b\nc"\n', b'"d']


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_rows_in_utf_16_are_refused(mark: bytes, pack: Pack, tmp_path: Path) -> None:
    (tmp_path / "plans" / "rows.csv").write_bytes(mark + b"a\0")
    with pytest.raises(UsageError, match=r"rows\.csv is in UTF-16; save it as UTF-8"):
        pack(csv("rows.csv"), split_csv=True)


@pytest.mark.parametrize(("size", "found"), [(1 << 20, {"TOKEN": "t0"}), ((1 << 20) + 1, {})])
def test_small_files_are_searched_for_secrets(
    size: int, found: dict[str, str], pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "t0")
    (tmp_path / "plans" / "rows.csv").write_text("${__env(TOKEN)}".ljust(size))
    assert pack(csv("rows.csv")).secrets == found
