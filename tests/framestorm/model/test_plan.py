import re
from collections.abc import Callable
from pathlib import Path

import pytest

import expect
from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model import plan as plans
from framestorm.model.facets import EMBEDDED, VIDEO
from framestorm.model.plan import Plan

WritePlan = Callable[..., Plan]
PLAN = """<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2"><hashTree>
  <TestPlan testname="orders" enabled="true"/>
  <hashTree>
    <Arguments testname="User Defined Variables" enabled="true">
      <collectionProp name="Arguments.arguments">
        VARIABLES
      </collectionProp>
      <stringProp name="TestPlan.comments">not a property: ${__P(comment,1)}</stringProp>
    </Arguments>
    <hashTree/>
    <SetupThreadGroup testname="set-up" enabled="true"/>
    <hashTree><JSR223Sampler testname="compile" enabled="true"/><hashTree/></hashTree>
    <kg.apc.UltimateThreadGroup testname="buyers" enabled="true">
      <stringProp name="threads">${__P(my.threads,4)}</stringProp>
      <stringProp name="TestPlan.comments">Steady load.
my.threads: number of buyers [whole number >= 1; total over all slaves]</stringProp>
    </kg.apc.UltimateThreadGroup>
    <hashTree>
      <IfController testname="if ${__P(when,)}" enabled="true"/>
      <hashTree>
        <HTTPSamplerProxy testname="order" enabled="true">
          <stringProp name="path">/${__P(path,a\\,b(c))}?x=${__urlencode(${__P(query,)})}</stringProp>
        </HTTPSamplerProxy>
        <hashTree><SampleTimeout testname="timeout" enabled="true"/><hashTree/></hashTree>
      </hashTree>
    </hashTree>
    <ThreadGroup testname="off" enabled="false"/>
    <hashTree><SystemSampler testname="user" enabled="true"><p>${__P(off,1)}</p></SystemSampler><hashTree/></hashTree>
  </hashTree>
</hashTree></jmeterTestPlan>
"""


@pytest.fixture
def write_plan(tmp_path: Path) -> WritePlan:
    """Return a function that writes a plan with these variables, each (value, description), and reads it."""

    def write(**variables: tuple[str, str]) -> Plan:
        arguments = "".join(
            f'<elementProp name="{name}" elementType="Argument"><stringProp name="Argument.name">{name}</stringProp>'
            f'<stringProp name="Argument.value">{value}</stringProp>'
            f'<stringProp name="Argument.desc">{description.replace("<", "&lt;")}</stringProp></elementProp>'
            for name, (value, description) in variables.items()
        )
        path = tmp_path / "orders.jmx"
        path.write_text(PLAN.replace("VARIABLES", arguments))
        return plans.read(path)

    return write


def test_a_plan_is_its_enabled_elements(write_plan: WritePlan) -> None:
    plan = write_plan(a=("${__P(a,1)}", "first"))
    assert (plan.name, plan.label, plan.has_users) == ("orders", "order", False)
    assert plan.defaults == {"a": "1", "my.threads": "4", "when": "", "path": "a,b(c)", "query": ""}
    assert [each.name for each in plan.totals] == ["my.threads"]
    assert plan.settable["my.threads"].meaning == "number of buyers"


@pytest.mark.parametrize(
    ("value", "defaults"),
    [
        ("${__P(x)}", {}),
        ("${__property(x)}", {}),
        ("${__property(x,variable)}", {}),
        ("${__property(x,variable,5)}", {"x": "5"}),
        ("${__P(x,${__P(y,2)})}", {"y": "2"}),
        ("${__property(x,${__P(y,2)},5)}", {"x": "5", "y": "2"}),
        ("${__P(x,1)} and ${__P(x,2)}", {}),
        ("${__P(x,1)} and ${__P(x,1)}", {"x": "1"}),
        ("${__P(${name},1)} ${__Px(x,1)} __P(x,1) ${__P(x,1", {}),
        ("https://host/${__P(x,http://h/?a=b)}", {"x": "http://h/?a=b"}),
    ],
)
def test_references_as_jmeter_reads_them(write_plan: WritePlan, value: str, defaults: dict[str, str]) -> None:
    of_plan = write_plan(v=(value, "")).defaults
    assert {name: of_plan[name] for name in ("x", "y") if name in of_plan} == defaults


@pytest.mark.parametrize(
    ("description", "right", "wrong"),
    [
        ("n [whole number >= 1]", ["1", "12"], ["0", "1.5", "-1", "five", "", "1_0", "٣", " 5", str(2**31)]),
        ("n [number >= 0, in s]", ["0", "0.5", "1e3"], ["-0.1", "nan", "inf", "1 s", "1,5", "1e7", "0x1"]),
        ("n [number -1 to 1]", ["-1", "0.5"], ["-1.1", "2"]),
        ("n [one of png-base64, png]", ["png"], ["gif", "png-base64, png", ""]),
        (
            "n [status codes such as 2xx,304 or 200-299]",
            ["2xx", "2xx,304", "204, 4XX, 201-299"],
            ["", "2yy", "200-2xx", "200,", "99", "20"],
        ),
        ("n", ["anything", ""], []),
        ("n [see below]", ["anything"], []),
    ],
)
def test_a_value_is_of_its_kind(write_plan: WritePlan, description: str, right: list[str], wrong: list[str]) -> None:
    plan = write_plan(x=("${__P(x,1)}", description))
    for value in right:
        plan.check("x", value)
    for value in wrong:
        with pytest.raises(UsageError, match="x must be"):
            plan.check("x", value)


@pytest.mark.parametrize(
    ("description", "value", "is_told"),
    [
        ("n [whole number >= 1]", str(2**31), True),
        ("n [whole number >= 1]", "-12345", False),
        ("n [one of png-base64, png]", "png-base32", False),
    ],
)
def test_a_number_that_is_too_large_is_told_the_largest(
    write_plan: WritePlan, description: str, value: str, is_told: bool
) -> None:
    with pytest.raises(UsageError) as caught:
        write_plan(x=("${__P(x,1)}", description)).check("x", value)
    assert ("at most 2147483647" in str(caught.value)) == is_told


def test_what_a_plan_asks_of_the_kit(write_plan: WritePlan) -> None:
    plan = write_plan(
        target=("${__P(target,)}", "URL of it [URL; required unless mode is local]"),
        mode=("${__P(mode,local)}", "where [one of local, remote]"),
        film=("${__P(film,a.mp4)}", "film [video file]"),
        stop=("${__P(stop,stop)}", "stop file [filled in by Framestorm]"),
        label=("purchase", "the label [read by Framestorm]"),
        sample_variables=("a,b", "columns [read by Framestorm]"),
    )
    assert plan.url and (video := plan.having(VIDEO))
    assert (plan.url.name, video.name, plan.filled_in) == ("target", "film", ("stop",))
    assert (plan.label, plan.sample_variables) == ("purchase", ("a", "b"))
    assert not plan.url.is_needed({"mode": "local"}) and plan.url.is_needed({"mode": "remote"})
    assert "stop" not in plan.defaults and EMBEDDED not in plan.url.facets


@pytest.mark.parametrize(
    ("name", "description", "words"),
    [
        ("x", "n [whole number >= 1; total over slaves]", "'total over slaves'"),
        ("x", "n [text; total over all slaves]", "is a number"),
        ("x", "a constant [read by Framestorm]", "only label and sample_variables"),
    ],
)
def test_facets_that_are_wrong_are_refused(write_plan: WritePlan, name: str, description: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        write_plan(**{name: ("${__P(x,1)}", description)})


def test_what_anyone_may_write_is_no_facet(write_plan: WritePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "PLAN", PLAN.replace("; total over all slaves", ""))
    plan = write_plan(x=("${__P(x,)}", "port [required; default 80]"), y=("${__P(y,)}", "[number]"))
    assert not plan.is_for_kit and plan.settable["x"].meaning == "port [required; default 80]"


def test_properties_that_a_plan_does_not_have(write_plan: WritePlan) -> None:
    plan = write_plan(users=("${__P(users,1)}", ""), stop=("${__P(stop,s)}", "[x] file [filled in by Framestorm]"))
    with pytest.raises(UsageError, match=r"no property user; did you mean users\? Its properties: my.threads"):
        plan.check("user", "5")
    with pytest.raises(UsageError, match="filled in by Framestorm"):
        plan.check("stop", "x")


def test_many_properties_are_named_in_lines(write_plan: WritePlan) -> None:
    plan = write_plan(**{f"property_{n:02}": (f"${{__P(property_{n:02},1)}}", "") for n in range(20)})
    with pytest.raises(UsageError) as caught:
        plan.check("zzz", "5")
    first, *lines = str(caught.value).split("\n")
    assert first.endswith("no property zzz. Its properties:") and len(lines) > 1
    assert all(line.startswith("  ") and len(line) <= 110 for line in lines)
    assert re.findall(r"property_\d\d", "".join(lines)) == [f"property_{n:02}" for n in range(20)]


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "no plan"), ("<jmeterTestPlan", "cannot be read"), ("<project/>", "<project>"), ("", "cannot be read")],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "x.jmx"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=words):
        plans.read(path)


@pytest.mark.parametrize("path", sorted(paths.JMX.glob("*.jmx")), ids=lambda path: path.stem)
def test_the_kit_s_plans(path: Path) -> None:
    plan = plans.read(path)
    assert plan.name == path.stem and plan.label and plan.url
    for name, each in plan.settable.items():
        assert each.meaning and each.facets, name
        assert each.default is not None, name
        if each.default:
            plan.check(name, each.default)
        units = [facet.partition(", in ")[2] for facet in each.facets if ", in " in facet]
        assert units == (["1/s"] if name.endswith("_per_s") else ["s"] if name.endswith("_s") else []), name


def test_a_plan_is_read_and_written_as_jmeter_does(tmp_path: Path) -> None:
    text = PLAN.replace("UTF-8", "ISO-8859-1").replace('"orders"', '"\N{LATIN SMALL LETTER U WITH DIAERESIS}"')
    path = tmp_path / "recorded.jmx"
    path.write_text(text.replace("/${__P(path", "body &#1;&#x1f;&#13;\n/${__P(path"), encoding="utf-8-sig")
    plans.write(plans.parse(path), tmp_path / "copy.jmx")
    copy = (tmp_path / "copy.jmx").read_text(encoding="utf-8")
    assert "body &#1;&#31;&#13;\n" in copy
    assert plans.read(path).name == plans.read(tmp_path / "copy.jmx").name == "\N{LATIN SMALL LETTER U WITH DIAERESIS}"
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        path.write_text(text.replace("ISO-8859-1", "UTF-16"), encoding=encoding)
        with pytest.raises(UsageError, match="UTF-8"):
            plans.read(path)
    path.write_text(f"\n \n{PLAN}")
    assert plans.read(path).name == "orders"


def test_a_model_and_what_is_expected_of_it_are_checked() -> None:
    plan = plans.read(paths.JMX / "infer.jmx")
    for value in ("grpc://h:1/iris", "grpcs://[::1]:1/iris/2", "grpc://h/a%20b/"):
        plan.check("url", value)
    for value in ("http://h:1/iris", "grpc://h:1", "grpc://h:1/", "grpc://h:1/a/b/c", "grpc://h:1/a?b=c"):
        with pytest.raises(UsageError, match="url must be grpc://host:port/model or grpcs://host:port/model"):
            plan.check("url", value)
    for value in ("$.outputs[0].data", "$.outputs[-1].data[0] >= -0.5", "$.model_version == two words"):
        plan.check("expect", value)
        expect.parse(value)
    for value in ("x > 1", "$", "$..a", "$.a >", "$.a > cat", "$.a[*]"):
        with pytest.raises(UsageError, match="expect must be JSONPath"):
            plan.check("expect", value)


@pytest.mark.parametrize("wrong", ["{", "[1]", "temperature=0", "3", "[" * 100_000])
def test_what_has_to_be_a_json_object_is_looked_at_before_the_load(wrong: str) -> None:
    extra = plans.read(paths.JMX / "chat.jmx").settable["extra"]
    extra.check('{"temperature": 0}')
    extra.check("")
    with pytest.raises(UsageError, match="extra must be fields of a JSON object"):
        extra.check(wrong)


@pytest.mark.parametrize(
    ("text", "is_true"),
    [
        ("true", True),
        ("True", True),
        ("TRUE", True),
        ("False", False),
        ("no", False),
        ("1", False),
        (" true ", False),
        ("${__P(on,true)}", False),
    ],
)
def test_booleans_are_those_of_jmeter(text: str, is_true: bool, tmp_path: Path) -> None:
    """As JMeter 5.5 reads them in an attribute and in a boolProp, in the plan and in what is written of it."""
    path = tmp_path / "orders.jmx"
    serial = f'<boolProp name="TestPlan.serialize_threadgroups">{text}</boolProp>'
    path.write_text(
        PLAN.replace('testname="order" enabled="true"', f'testname="order" enabled="{text}"').replace(
            '<TestPlan testname="orders" enabled="true"/>', f'<TestPlan testname="orders">{serial}</TestPlan>'
        )
    )
    for _ in range(2):
        plan = plans.read(path)
        assert ("order" in plan.labels, plan.is_serial) == (is_true, is_true)
        plans.write(plan.root, path)
