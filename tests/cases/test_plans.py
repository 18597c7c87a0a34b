"""What a plan would do otherwise than it says is named before the load, by `--check` too."""

import zipfile
from pathlib import Path
from typing import Any

import pytest

from framestorm import cli
from framestorm.errors import UsageError
from framestorm.run import data_sets
from framestorm.run.options import What, Where
from framestorm.run.preparation import prepare
from tests.run import foreign
from tests.runs import RunSh
from tests.stand_in import StartServer

CASES = Path(__file__).parent


class Checked:
    """What is said of a plan before its load: why it is refused, empty if it is not, and the notes."""

    def __init__(self, plan: Path, capsys: pytest.CaptureFixture[str], *, anyway: bool = False, **given: str) -> None:
        self.refusal = ""
        capsys.readouterr()
        try:
            prepare(What(plan, given=given, anyway=anyway), plan.parent / "run")
        except UsageError as error:
            self.refusal = str(error)
        self.notes = [line.removeprefix("note: ") for line in capsys.readouterr().err.splitlines()]

    @property
    def text(self) -> str:
        return "\n".join([self.refusal, *self.notes])


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("loop-without-forever", ["'users' has no LoopController.continue_forever", "after 3 loops", "never ends"]),
        ("setup-loop-without-forever", ["SetupThreadGroup 'set up'", "after 1 loop", "never ends"]),
        ("no-loop-controller", ["'users' has no main controller"]),
        ("open-model-without-controller", ["'open' has no main controller"]),
        ("group-zero", ["no thread group has a user"]),
        ("lifetime-variable-with-blank", ["${duration}", "'duration ' is, with a blank in its name"]),
        (
            "module-target-renamed",
            ["ModuleController 'mod' names Modular > Fragments > Browse", "'Browse' is at Modular > Pieces > Browse"],
        ),
        ("engine-dies", ["'ultimate' has 1 of 5 columns in row 1"]),
        ("feedback-of-no-timer", ["'concurrency' follows the timer 'tst' by __tstFeedback", "but 'other'"]),
        ("sync-timer-too-many", ["'together' waits for 4 users, and its thread group has 3", "wait for ever"]),
        ("ultimate-many", ["5,000,000 users need"]),
    ],
)
def test_a_load_that_is_not_the_plan_s_is_refused(
    case: str, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CASES)
    checked = Checked(CASES / f"{case}.jmx", capsys)
    assert [word for word in words if word not in checked.refusal] == []
    anyway = Checked(CASES / f"{case}.jmx", capsys, anyway=True)
    assert not anyway.refusal and all(word in anyway.text for word in words), "a way past it"


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("delay-undefined", ["'delay ' is, with a blank in its name", "starts at once"]),
        (
            "undefined-in-query-body-header",
            ["nothing defines ${user}", "HeaderManager 'headers' (Header.value)", "HTTPSamplerProxy 'body'"],
        ),
        ("jsr223-javascript", ["JSR223Sampler 'script' is in javascript", "org.mozilla:rhino-engine:1.7.15"]),
        ("preprocessor-javascript-silent", ["JSR223PreProcessor 'pre' is in javascript", "so it fails each time"]),
        ("function-in-cached-script", ["JSR223Sampler 'script' uses ${__UUID}", "it keeps the first value"]),
        ("property-without-default", ["host, port and protocol have no default", "give -Jhost= -Jport= -Jprotocol="]),
        ("csv-blank-line-recycle", ["row 3 and 1 more are blank", "<EOF>", "row 4 has 1 value, its header 2"]),
        ("csv-latin1", ["accounts-latin1.csv is not in UTF-8", "row 1"]),
        ("csv-runs-out", ["has 2 rows for 10 iterations", "<EOF>"]),
        ("csv-semicolon-body", ["seems to be separated by ';'", "nothing defines ${user}"]),
    ],
)
def test_what_is_sent_otherwise_is_noted(
    case: str, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CASES)
    checked = Checked(CASES / f"{case}.jmx", capsys)
    assert not checked.refusal
    assert [word for word in words if word not in checked.text] == []


BEGIN = '<boolProp name="LoopController.continue_forever">false</boolProp>'
LOOPS = '<stringProp name="LoopController.loops">2</stringProp>'
USERS = '<stringProp name="ThreadGroup.num_threads">2</stringProp>'
LIFETIME = '<boolProp name="ThreadGroup.scheduler">true</boolProp>'
BY_PROPERTY = '<stringProp name="ThreadGroup.scheduler">${{__P(lasts,{})}}</stringProp>'
DURATION = '<stringProp name="ThreadGroup.duration">{}</stringProp>'


@pytest.mark.parametrize(
    ("old", "new", "refusal", "note"),
    [
        (BEGIN, BEGIN.replace("false", "true"), "sets LoopController.continue_forever", ""),
        (BEGIN, "", "has no LoopController.continue_forever", ""),
        (LOOPS, LOOPS.replace(">2<", ">-1<"), "", ""),
        (LOOPS, "", "has no number of loops", ""),
        (LOOPS, LOOPS.replace(">2<", "><"), "has no number of loops", ""),
        (LOOPS, LOOPS.replace(">2<", ">-7<"), "", "loops without end, as -1"),
        (LOOPS, LOOPS.replace(">2<", ">0<"), "", "its users start, and send nothing"),
        (LOOPS, LOOPS.replace(">2<", ">${n}<"), "n is not defined: JMeter takes it for 0 and sends nothing", ""),
        (USERS, "", "has no number of users", ""),
        (USERS, USERS.replace(">2<", ">-3<"), "no thread group has a user", ""),
        (USERS, USERS.replace(">2<", ">2.0<"), "asks for '2.0' users", ""),
        (USERS, USERS + LIFETIME, "the duration ''", ""),
        (USERS, USERS + LIFETIME + DURATION.format(5), "", ""),
        (USERS, USERS + LIFETIME.replace("true", "false") + DURATION.format(5), "", ""),
        (USERS, USERS + BY_PROPERTY.format("true"), "the duration ''", ""),
        (USERS, USERS + BY_PROPERTY.format("false"), "", ""),
        (USERS, USERS + DURATION.format(5), "", "has no ThreadGroup.scheduler: JMeter does not use it"),
        (USERS, USERS + USERS.replace("num_threads", "ramp_time").replace(">2<", ">1.5<"), "", "starts all users at"),
        ("continue</stringProp>", "stop</stringProp>", "", "'stop' as its action after an error"),
    ],
)
def test_every_field_of_a_group_counts_as_in_jmeter(
    old: str, new: str, refusal: str, note: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = foreign.write_plan(tmp_path / "theirs.jmx", foreign.REQUEST.format(url="http://h/"), loops=2)
    text = plan.read_text()
    assert old in text
    plan.write_text(text.replace(old, new))
    checked = Checked(plan, capsys)
    assert refusal in checked.refusal and bool(refusal) == bool(checked.refusal)
    assert note in checked.text and bool(note) == bool(checked.notes)


@pytest.mark.parametrize(
    ("loops", "refusal", "note"),
    [
        ("3", "", ""),
        ("", "", "so JMeter runs nothing in it"),
        ("3.5", "asks for '3.5' loops", ""),
        ("${x}", "", "${x}"),
    ],
)
def test_the_loops_of_a_controller(
    loops: str, refusal: str, note: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elements = element("LoopController", LoopController__loops=loops) + foreign.REQUEST.format(url="http://h/")
    checked = Checked(foreign.write_plan(tmp_path / "theirs.jmx", elements, loops=1), capsys)
    assert refusal in checked.refusal and bool(refusal) == bool(checked.refusal)
    assert note in checked.text and bool(note) == bool(checked.notes)


def test_what_was_meant_by_a_variable_of_a_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A variable of the run is not there when JMeter reads the fields of a group, and -J sets a property."""
    elements = element("CounterConfig", CounterConfig__name="n") + foreign.REQUEST.format(url="http://h/")
    plan = foreign.write_plan(tmp_path / "theirs.jmx", elements, loops=2)
    text = plan.read_text()
    plan.write_text(text.replace(USERS, USERS.replace(">2<", ">${n}<")))
    assert "n is not defined before the run, when JMeter reads it" in Checked(plan, capsys).refusal
    plan.write_text(text.replace(USERS, USERS.replace(">2<", ">${users}<")))
    refusal = Checked(plan, capsys, users="5").refusal
    assert "(-Jusers sets a property, which is ${__P(users)})" in refusal and "no thread group has" not in refusal


def test_a_group_of_nobody_is_noted_beside_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = foreign.write_plan(tmp_path / "theirs.jmx", foreign.REQUEST.format(url="http://h/"), loops=2)
    second = foreign.THREADS.format(loop=foreign.LOOP.format(loops=2)).replace(">2<", ">0<", 1)
    plan.write_text(plan.read_text().replace("<ThreadGroup ", f"{second}<hashTree/><ThreadGroup ", 1))
    checked = Checked(plan, capsys)
    assert not checked.refusal and "asks for 0 users: nobody starts" in checked.text


def arguments(name: str, *values: str) -> str:
    """A User Defined Variables element, each value as name=value."""
    one = """<elementProp name="{0}" elementType="Argument"><stringProp name="Argument.name">{0}</stringProp>
      <stringProp name="Argument.value">{1}</stringProp></elementProp>"""
    fields = "".join(one.format(*value.split("=", 1)) for value in values)
    collection = f'<collectionProp name="Arguments.arguments">{fields}</collectionProp>'
    return f'<Arguments testname="{name}">{collection}</Arguments><hashTree/>'


def element(tag: str, **fields: str) -> str:
    """An element of JMeter's own with these fields; __ in their names is a dot."""
    texts = (f'<stringProp name="{name.replace("__", ".")}">{text}</stringProp>' for name, text in fields.items())
    return f'<{tag} testname="{tag.lower()}">{"".join(texts)}</{tag}><hashTree/>'


CALL = foreign.REQUEST.format(url="http://h/${x}")
SCRIPT = foreign.script("{}").replace("JSR223Sampler", "JSR223PreProcessor")


@pytest.mark.parametrize(
    "elements",
    [
        arguments("vars", "x=1") + CALL,
        CALL + arguments("vars", "x=1"),
        element("CounterConfig", CounterConfig__name="x") + CALL,
        element("RandomVariableConfig", variableName="x") + CALL,
        element("DebugSampler") + element("JSONPostProcessor", JSONPostProcessor__referenceNames="y;x") + CALL,
        element("JDBCSampler", variableNames="a,x", resultVariable="all") + CALL,
        element("ForeachController", ForeachController__inputVal="in", ForeachController__returnVal="x")
        + arguments("vars", "in_1=a")
        + CALL,
        SCRIPT.format("vars.put('x', '1')") + CALL,
        SCRIPT.format("vars.putObject(&quot;x&quot;, 1)") + CALL,
        SCRIPT.format("names.each { vars.put(it, '1') }") + CALL,
        SCRIPT.format("def n = 'x'") + CALL,
        element("DebugSampler", DebugSampler__x="${__Random(1,9,x)}") + CALL,
        element("DebugSampler", DebugSampler__x="${__groovy(vars.put('x'\\, '1'))}") + CALL,
        element("CookieManager") + CALL.replace("${x}", "${COOKIE_session}"),
        CALL.replace("${x}", "${START.MS}${__threadNum}${__jm__threads__idx}"),
        CALL.replace("${x}", "\\${x}"),
        element("IfController", IfController__condition='"${x}" == ""') + foreign.REQUEST.format(url="http://h/"),
        SCRIPT.format("log.info(&quot;${x}&quot;)") + foreign.REQUEST.format(url="http://h/"),
    ],
)
def test_a_variable_that_something_defines_is_no_alarm(
    elements: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checked = Checked(foreign.write_plan(tmp_path / "theirs.jmx", elements, loops=2), capsys)
    assert checked.text.strip() == ""


@pytest.mark.parametrize(
    ("elements", "words"),
    [
        (CALL, ["nothing defines ${x}:", "HTTPSamplerProxy 'call' (HTTPSampler.path)"]),
        (arguments("vars", "X=1") + CALL, ["did you mean X?"]),
        (arguments("vars", " x=1") + CALL, ["(' x' is, with a blank in its name)"]),
        (SCRIPT.format("vars.get('x')") + CALL, ["nothing defines ${x}"]),
        (element("ResponseAssertion", Assertion__test_field="x") + CALL, ["nothing defines ${x}"]),
        (arguments("vars", "x=${y}", "y=1") + CALL, ["Arguments 'vars' uses ${y} in x", "elements before it"]),
        (arguments("a", "x=${token}") + element("RegexExtractor", RegexExtractor__refname="token") + CALL, ["token"]),
        (CALL.replace("<hashTree/>", f"<hashTree>{element('RegexExtractor', RegexExtractor__refname='x')}</hashTree>")
         .replace("${x}", "").join([CALL, ""]), ["set only by RegexExtractor 'regexextractor', which comes later"]),
        (element("ForeachController", ForeachController__inputVal="in", ForeachController__returnVal="y")
         + CALL.replace("${x}", "${y}"), ["in_1"]),
    ],
)  # fmt: skip
def test_a_variable_that_nothing_defines_is_noted(
    elements: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checked = Checked(foreign.write_plan(tmp_path / "theirs.jmx", elements, loops=2), capsys)
    assert not checked.refusal
    assert [word for word in words if word not in checked.text] == []


def test_a_variable_of_another_group_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = foreign.write_plan(tmp_path / "theirs.jmx", CALL, loops=2)
    other = foreign.THREADS.format(loop=foreign.LOOP.format(loops=1)).replace('"threads"', '"log in"')
    other += f"<hashTree>{element('CounterConfig', CounterConfig__name='x')}</hashTree>"
    plan.write_text(plan.read_text().replace("<ThreadGroup ", f"{other}<ThreadGroup ", 1))
    checked = Checked(plan, capsys)
    assert "${x} is defined only in 'log in'" in checked.text and "in 'threads'" in checked.text


def data_set(folder: Path, content: str, encoding: str = "utf-8", **fields: str) -> str:
    """A CSV data set over a file of this content."""
    (folder / "rows.csv").write_bytes(content.encode(encoding))
    return element("CSVDataSet", **{"filename": "rows.csv", "recycle": "true", **fields})


@pytest.mark.parametrize(
    ("content", "fields", "word"),
    [
        ("name,age\nann,1\n", {}, ""),
        ("ann,1\nbob,2", {"variableNames": "name,age"}, ""),
        ("ann\t1\n", {"variableNames": "name,age", "delimiter": "\\t"}, ""),
        ("ann,1,x\nbob,2,y\n", {"variableNames": "name,age"}, ""),
        ('"ann, b",1\n"a\nb",2\n', {"variableNames": "name,age", "quotedData": "true"}, ""),
        ("name,age\n\nann,1\n", {}, "row 1 is blank, which becomes <EOF> in each variable"),
        ("name,age\nann,1\n\n", {"stopThread": "true"}, "row 2 is blank, which is the end of the file for JMeter"),
        ("name,age\nann\n", {}, "row 1 has 1 value, its header 2: JMeter leaves age as in the row before"),
        ("name,age\nann,1,2\n", {}, "row 1 has 3 values, its header 2: JMeter leaves out what is too much"),
        ("ann\nbob,2\n", {"variableNames": "name,age"}, "row 1 has 1 value for 2 variables"),
        ("name;age\nann;1\n", {}, "separated by ';', but the delimiter is ','"),
        ("name\tage\nann\t1\n", {}, "separated by a tab (\\t)"),
        ("ann,1\nbob,2\n", {"variableNames": "name,age", "delimiter": ";"}, "separated by ',', but the delimiter is"),
        ('"ann, b",1\n', {"variableNames": "name,age"}, "row 1 is in quotes, which JMeter sends with the quotes"),
        ('a"b,1\n', {"variableNames": "name,age", "quotedData": "true"}, "row 1 is wrongly quoted"),
        ('"ann,1\n', {"variableNames": "name,age", "quotedData": "true"}, "row 1 is wrongly quoted"),
        ("name,age\nann,1\n", {"variableNames": "name,age"}, "begins with the names of the variables"),
        ("name,age\n", {}, "has no rows"),
        ("name,age\nann,1\n", {"recycle": "false"}, "has 1 row for 4 iterations, and does not begin again"),
        ("name,age\nann,1\nb,2\n", {"recycle": "false", "shareMode": "shareMode.thread"}, ""),
        ("name,age\nann,1\n", {"recycle": "false", "stopThread": "true"}, "each user then ends"),
        ("name,age\nann,1\n", {"recycle": "${__P(again,true)}"}, ""),
        ("name,age\nann,1\n", {"recycle": "${__P(again,false)}"}, "has 1 row for 4 iterations"),
        ("name,age\nann,1\n", {"recycle": "false", "shareMode": "${__threadNum}"}, ""),
        ("name,age\n", {"stopThread": "true"}, "has no rows: each user ends before its first sample"),
        ("login,city\nann,1\n", {}, "the plan uses none of its columns, which are login and city"),
    ],
)
def test_a_data_set_is_read_before_the_load_as_jmeter_will(
    content: str, fields: dict[str, str], word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    elements = data_set(tmp_path, content, **fields) + CALL.replace("${x}", "${name}/${age}")
    checked = Checked(foreign.write_plan(tmp_path / "theirs.jmx", elements, loops=2), capsys)
    assert word in checked.text and bool(word) == bool(checked.notes), checked.text


def test_a_boolean_that_jmeter_does_not_look_up_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of_boolean = '<{0} name="HTTPSampler.use_keepalive">${{__P(keep,true)}}</{0}></HTTPSamplerProxy>'
    call = CALL.replace("${x}", "").replace("</HTTPSamplerProxy>", of_boolean.format("boolProp"))
    plan = foreign.write_plan(tmp_path / "theirs.jmx", call, loops=2)
    (note,) = Checked(plan, capsys).notes
    assert "the boolProp HTTPSampler.use_keepalive has ${__P(keep,true)}, which JMeter takes for false" in note
    plan.write_text(plan.read_text().replace('boolProp name="HTTP', 'stringProp name="HTTP'))
    plan.write_text(plan.read_text().replace("true)}</boolProp>", "true)}</stringProp>"))
    assert Checked(plan, capsys).text == ""
    plan.write_text(plan.read_text().replace('"call" enabled="true"', '"call" enabled="${__P(on,true)}"'))
    checked = Checked(plan, capsys)
    assert checked.notes[0].startswith('theirs.jmx: enabled="${__P(on,true)}" disables an element')
    assert "has an enabled sampler" in checked.refusal


@pytest.mark.parametrize(
    ("rows", "share", "where", "word"),
    [
        (4, "all", {}, "has 4 rows for 8 iterations"),
        (4, "group", {}, "has 4 rows for 8 iterations"),
        (3, "thread", {}, "has 3 rows for 4 iterations"),
        (4, "thread", {}, ""),
        (8, "all", {}, ""),
        (4, "all", {"slaves": "slaves"}, ""),
        (4, "all", {"slaves": "slaves", "whole_plan": True}, "has 4 rows for 8 iterations"),
        (4, "all", {"slaves": "slaves", "split_csv": True}, "has 4 rows for 8 iterations"),
        (3, "thread", {"slaves": "slaves"}, "has 3 rows for 4 iterations"),
        (3, "thread", {"slaves": "slaves", "split_csv": True}, ""),
    ],
)
def test_data_sets_of_one_file_share_its_rows_and_slaves_have_them_all(
    rows: int, share: str, where: dict[str, Any], word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Two of one file, in a group of two users with two loops each."""
    monkeypatch.chdir(tmp_path)
    fields = {"recycle": "false", "shareMode": f"shareMode.{share}"}
    elements = 2 * data_set(tmp_path, "x\n" + "a\n" * rows, **fields) + CALL
    plan = foreign.write_plan(tmp_path / "theirs.jmx", elements, loops=2)
    prepare(What(plan), tmp_path / "run", Where(**where))
    notes = capsys.readouterr().err
    assert word in notes and bool(word) == bool(notes), notes


@pytest.mark.parametrize(
    ("content", "n", "misquoted"),
    [
        ('ann,5" pipe\nbob,2\n', 2, [1]),
        ('ann,"5" pipe\nbob,2\n', 2, [1]),
        ('"ann"",\nb",1\nbob,2\n', 2, []),
        ('\ufeff"a\nnn",1\nbob,2\n', 2, []),
        ('ann,"1\n' + "bob,2\n" * 200_000, 1, [1]),
    ],
)  # fmt: skip
def test_a_quote_within_a_value_spoils_its_own_row_alone(
    content: str, n: int, misquoted: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(content, encoding="utf-8")
    rows = data_sets.read(data_sets.DataSet(path, "UTF-8", ",", True, False, ["name", "age"], False, "<EOF>"))
    assert (rows.n, rows.misquoted) == (n, misquoted)


@pytest.mark.parametrize(
    ("written", "read", "word"),
    [
        ("utf-8", "UTF-8", ""),
        ("utf-8", "", ""),
        ("utf-8-sig", "UTF-8", ""),
        ("iso-8859-1", "ISO-8859-1", ""),
        ("iso-8859-1", "UTF-8", "is not in UTF-8: letters are lost in row 1"),
        ("utf-16", "UTF-8", "in UTF-16 or another encoding of two bytes"),
        ("utf-8", "ISO-8859-1", "is read as ISO-8859-1, but is in UTF-8"),
    ],
)
def test_the_encoding_of_a_data_set(
    written: str, read: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    elements = data_set(tmp_path, "x\nJürgen\n", written, fileEncoding=read) + CALL
    checked = Checked(foreign.write_plan(tmp_path / "theirs.jmx", elements, loops=2), capsys)
    assert word in checked.text and bool(word) == bool(checked.notes)


@pytest.mark.parametrize(
    ("language", "word"),
    [
        ("groovy", ""),
        ("", ""),
        ("beanshell", ""),
        ("jexl3", ""),
        ("${language}", "nothing defines ${language}"),
        ("python", "org.python:jython-standalone:2.7.3"),
        ("js", "org.openjdk.nashorn:nashorn-core:15.4"),
        ("cobol", "put the jar of one"),
    ],
)
def test_the_engine_of_a_language(language: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elements = foreign.script("1").replace(">groovy<", f">{language}<")
    checked = Checked(foreign.write_plan(tmp_path / "theirs.jmx", elements, loops=1), capsys)
    assert word in checked.text and bool(word) == bool(checked.notes)


def test_an_engine_that_the_user_brings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(tmp_path / "jython.jar", "w") as jar:
        jar.writestr("META-INF/services/javax.script.ScriptEngineFactory", "org.python.jsr223.PyScriptEngineFactory\n")
    elements = foreign.script("1").replace(">groovy<", ">python<")
    plan = foreign.write_plan(tmp_path / "theirs.jmx", elements, loops=1)
    assert Checked(plan, capsys, **{"user.classpath": str(tmp_path / "jython.jar")}).notes == []


@pytest.mark.parametrize(
    ("script", "fields", "word"),
    [
        ("log.info('${n}')", "", "uses ${n} in a script"),
        ("log.info('${__time()} ${n}')", "", "uses ${__time} and ${n} in a script"),
        ("log.info('${__P(fixed,1)} ${same}')", "", ""),
        ("def n = 1; log.info(&quot;${m}&quot;)", "", ""),
        ("log.info('${n}')", "false", ""),
    ],
)
def test_what_a_cached_script_keeps(
    script: str, fields: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elements = element("CounterConfig", CounterConfig__name="n") + arguments("vars", "same=1") + foreign.script(script)
    plan = foreign.write_plan(tmp_path / "theirs.jmx", elements, loops=1)
    if fields:
        plan.write_text(plan.read_text().replace('"cacheKey">true<', f'"cacheKey">{fields}<'))
    checked = Checked(plan, capsys)
    assert word in checked.text and bool(word) == bool(checked.notes)


SWITCH = """<SwitchController testname="which"><stringProp name="SwitchController.value">{}</stringProp>
  </SwitchController><hashTree><DebugSampler testname="one"/><hashTree/><GenericController testname="two"/><hashTree/>
  </hashTree>"""
LISTENER = '<BackendListener testname="{}"/><hashTree/>'


@pytest.mark.parametrize(
    ("elements", "word"),
    [
        (SWITCH.format("two"), ""),
        (SWITCH.format("1"), ""),
        (SWITCH.format("Two"), "switches to 'Two', but none of its parts has that name"),
        (SWITCH.format("2"), "has only 2 parts, counted from 0: JMeter runs the first"),
        (SWITCH.format("Two").replace("one", "Default"), ""),
        (element("JDBCDataSource", dataSource="db") + element("JDBCSampler", dataSource="db"), ""),
        (element("JDBCDataSource", dataSource="db") + element("JDBCSampler", dataSource="DB"), "uses the pool 'DB'"),
        (element("JDBCPreProcessor", dataSource="db"), "which no JDBC Connection has, and it has none"),
        (LISTENER.format("a") + LISTENER.format("b"), ""),
        (LISTENER.format("a") * 2, "2 Backend Listeners have the name 'a', and JMeter serves only the first"),
        (LISTENER.format("a") + LISTENER.format("a").replace("/>", ' enabled="false"/>', 1), ""),
    ],
)
def test_what_elements_name_of_others(
    elements: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checked = Checked(foreign.write_plan(tmp_path / "theirs.jmx", elements + CALL.replace("${x}", ""), loops=1), capsys)
    assert word in checked.text and bool(word) == bool(checked.notes)


def test_a_disabled_module_controller_is_looked_at_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (CASES / "module-target-renamed.jmx").read_text()
    plan = tmp_path / "theirs.jmx"
    plan.write_text(text.replace('testname="mod" enabled="true"', 'testname="mod" enabled="false"'))
    assert "names Modular > Fragments > Browse" in Checked(plan, capsys).refusal, "JMeter does not run it"
    plan.write_text(text.replace(">Fragments<", ">Pieces<"))
    assert Checked(plan, capsys).text.strip() == ""


def test_a_file_without_a_test_fragment_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    include = (
        '<IncludeController testname="part"><stringProp name="IncludeController.includepath">part.jmx</stringProp>'
    )
    plan = foreign.write_plan(
        tmp_path / "theirs.jmx", CALL.replace("${x}", "") + f"{include}</IncludeController><hashTree/>"
    )
    part = foreign.write_plan(tmp_path / "part.jmx", CALL.replace("${x}", ""))
    assert "part.jmx has no Test Fragment, so JMeter includes nothing" in Checked(plan, capsys).text
    part.write_text(part.read_text().replace("<ThreadGroup ", "<TestFragmentController/><hashTree/><ThreadGroup ", 1))
    assert Checked(plan, capsys).text.strip() == ""


def test_a_property_without_a_default_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stand_in: StartServer
) -> None:
    url = stand_in().url
    plan = foreign.write_plan(tmp_path / "theirs.jmx", foreign.REQUEST.format(url=f"{url}/${{__P(path)}}"), loops=1)
    assert cli.main(["-t", str(plan), "--check"]) == 0
    shown = capsys.readouterr()
    assert "property: path has no default: give -Jpath=" in shown.out.splitlines() and "give -Jpath=" in shown.err
    assert cli.main(["-t", str(plan), "--check", "-Jpath=a"]) == 0
    shown = capsys.readouterr()
    assert "property: path=a" in shown.out.splitlines() and "no default" not in shown.err


def test_elements_that_fail_are_counted(run_sh: RunSh, stand_in: StartServer, tmp_path: Path) -> None:
    """What JMeter only logs is a warning, by element; so is a text that was sent in place of a value."""
    text = (CASES / "elements-fail.jmx").read_text().replace(">21001<", f">{stand_in().server_port}<")
    (tmp_path / "elements-fail.jmx").write_text(text)
    (tmp_path / "users-blank-line.csv").write_bytes((CASES / "users-blank-line.csv").read_bytes())
    run = run_sh("-t", str(tmp_path / "elements-fail.jmx"))
    summary = run.json("summary.json")
    failed = {each["element"]: each["n"] for each in summary["facts"]["element_errors"]}
    assert failed.pop("BackendListener (HttpMetricsSender)") > 0
    # Which of the two is lost depends on which thread is first.
    assert sum(failed.pop(f"sampler {name!r}", 0) for name in ("inner", "p2")) > 0
    assert failed == {
        "JSR223PreProcessor 'read id'": 3,
        "JSR223Timer 'pace'": 3,
        "BeanShellPreProcessor": 3,
        "JSONPostProcessor 'find'": 3,
        "IfController 'is ready'": 3,
        "function groovy": 3,
        "function jexl3": 3,
    }
    assert summary["facts"]["unreplaced"] == [
        {"label": "req", "text": "${__GetSecret(a)}", "n": 3},
        {"label": "req", "text": "${id}", "n": 3},
        {"label": "req", "text": "<EOF>", "n": 1},
    ]
    warnings = "\n".join(summary["warnings"]).replace("\u00a0", " ")
    assert "3 samples of req had the text ${id} in place of a value: nothing had defined that variable" in warnings
    assert "the text ${__GetSecret(a)} in place of a value: JMeter has no function of that name" in warnings
    assert "1 sample of req had the text <EOF> in place of a value: a CSV data set had no row left" in warnings
    assert {"element_failed", "unreplaced"} <= set(summary["doubts"])


def test_what_was_sent_in_place_of_values_is_counted(run_sh: RunSh, stand_in: StartServer, tmp_path: Path) -> None:
    """In addresses, bodies and headers."""
    server = stand_in()
    text = (CASES / "undefined-in-query-body-header.jmx").read_text().replace("21001", str(server.server_port))
    (tmp_path / "theirs.jmx").write_text(text)
    run = run_sh("-t", str(tmp_path / "theirs.jmx"))
    summary = run.json("summary.json")
    assert [(each["label"], each["text"], each["n"]) for each in summary["facts"]["unreplaced"]] == [
        ("body", "${user}", 2),
        ("q", "${user}", 2),
    ]
    assert b"${user}" in server.received[-1].body
    warnings = "\n".join(summary["warnings"]).replace("\u00a0", " ")
    assert "2 samples of body and 2 samples of q had the text ${user} in place of a value" in warnings
