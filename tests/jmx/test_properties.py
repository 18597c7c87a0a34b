"""What the classes that plans call make of properties: a form as the conductor reads it too, mistakes, conditions."""

import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from framestorm.model import form
from framestorm.paths import JMETER_HOME
from tests.jmx.conftest import groovy

OfClasses = Callable[[Iterable[dict[str, Any]]], list[dict[str, Any]]]

# The fields of each form (name, sign, value, content type), or None if it is refused. Its file `f` holds "text".
FORMS: dict[str, list[tuple[str, str, str, str]] | None] = {
    "a=b": [("a", "", "b", "")],
    "a=": [("a", "", "", "")],
    r" a=b \n\n c=d": [("a", "", "b", ""), ("c", "", "d", "")],
    "a=C:\\new\n": [("a", "", "C:\\new", "")],
    "a=b\nc=x\\ny": [("a", "", "b", ""), ("c", "", "x\\ny", "")],
    "a=b\r\nc=d\re=f": [("a", "", "b", ""), ("c", "", "d", ""), ("e", "", "f", "")],
    "a b=c=d": [("a b", "", "c=d", "")],
    "~!=1": [("~!", "", "1", "")],
    "a=grün\u2028\x0b\x85rot": [("a", "", "grün\u2028\x0b\x85rot", "")],
    "a=@f": [("a", "@", "f", "")],
    "a=<f": [("a", "<", "f", "")],
    "a=x@f": [("a", "", "x@f", "")],
    "a=@f;type=image/png": [("a", "@", "f", "image/png")],
    "a=<f;type=text/x": [("a", "<", "f", "text/x")],
    "a=b;type=application/vnd.x+json": [("a", "", "b", "application/vnd.x+json")],
    "a=b;type=text/plain; charset=utf-8": [("a", "", "b", "text/plain; charset=utf-8")],
    "a=b;type=text/x;type=text/y": [("a", "", "b;type=text/x", "text/y")],
    "a=b;type=text": [("a", "", "b;type=text", "")],
    "a=b;type=text/x;y=z": [("a", "", "b;type=text/x;y=z", "")],
    "a=b;type=größe/x": [("a", "", "b;type=größe/x", "")],
    "a": None,
    "=b": None,
    "größe=1": None,
    "a\tb=1": None,
    "a=b\nc": None,
}


@pytest.mark.parametrize("text", FORMS)
def test_the_conductor_reads_a_form(text: str) -> None:
    fields = FORMS[text]
    if fields is None:
        with pytest.raises(ValueError, match="not of the form"):
            form.parse(text)
    else:
        assert [(f.name, f.sign, f.value, f.content_type.removeprefix(";type=")) for f in form.parse(text)] == fields


@pytest.fixture
def of_classes(tmp_path: Path) -> OfClasses:
    """Each text, judged by the class that reads it: why it is refused, its form, and what its answer meets."""

    def run(each: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        command = groovy(Path(__file__).with_name("properties.groovy"), JMETER_HOME, tmp_path)
        lines = "\n".join(map(json.dumps, each))
        done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_the_class_reads_the_same(of_classes: OfClasses, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("text")
    expected = [
        fields
        and [
            [name, ["f"] if sign == "@" else None, {"@": "", "<": "text"}.get(sign, value), content_type or None]
            for name, sign, value, content_type in fields
        ]
        for fields in FORMS.values()
    ]
    forms = [each["form"] for each in of_classes({"form": text} for text in FORMS)]
    assert dict(zip(FORMS, forms, strict=True)) == dict(zip(FORMS, expected, strict=True))


def test_classes_keep_what_they_are_given() -> None:
    """The numbers of clients' lines, the times of headers, what is made for one test."""
    command = groovy(Path(__file__).with_name("classes.groovy"), JMETER_HOME)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


MISTAKES = [
    ({"headers": "no colon"}, "'no colon' is not of the form Name: value"),
    ({"headers": "X-Name: \N{CJK UNIFIED IDEOGRAPH-65E5}"}, "X-Name: its value has the character U+65E5"),
    ({"headers": "transfer-encoding: chunked"}, "leave Transfer-Encoding out"),
    ({"rows": "@names.jsonl", "headers": "X-Name: {a}"}, "X-Name: its value has the character U+20AC"),
    ({"body": "${env:NOT_SET_HERE}"}, "no variable NOT_SET_HERE"),
    ({"rows": "@empty.csv"}, "empty.csv has no rows"),
    ({"headers": "X Y: 1"}, "'X Y: 1' is not of the form Name: value"),
    ({"rows": "@uneven.jsonl", "url": "http://h/{a}{b}"}, "row 2 has no b, which"),
    ({"body": "@rows.jsonl"}, "rows.jsonl: line 2 is not a JSON object"),
    ({"body": "@pairs.jsonl"}, "pairs.jsonl: line 3 is not a JSON object"),
    ({"rows": "@semicolons.csv", "body": "{a}"}, "none of its columns, which are a;b"),
    ({"rows": "@twice.csv", "body": "{a}"}, "two columns have the same name"),
    ({"rows": "@latin.csv", "body": "{a}"}, "latin.csv is not text in UTF-8"),
    ({"expect": "$.[["}, "-Jexpect=$.[[: "),
    ({"reject": "regex:("}, "-Jreject=regex:(: "),
    ({"expect": "//["}, "-Jexpect=//[: "),
    ({"expect_status": "2yy"}, "-Jexpect_status=2yy: "),
    ({"proxy": "proxy.example"}, "expected host:port"),
    ({"certificate": "@rows.jsonl"}, "neither PEM nor PKCS12"),
    ({"form": "file=@none.png"}, "none.png: "),
    ({"form": "a=b", "body": "x"}, "set only one of them"),
    ({"form": "a=b", "method": "GET"}, "set only one of them"),
    ({"expect": "$.score >= high"}, "-Jexpect=$.score >= high: expected a number after >=, got 'high'"),
    ({"expect": '$.score>="5"'}, "expected a number after >=, got '\"5\"'"),
    ({"reject": "$.code=0"}, "-Jreject=$.code=0: expected ==, !=, >=, <=, > or < after the path"),
    ({"reject": "$.codes[0].n=>0"}, "expected ==, !=, >=, <=, > or < after the path"),
    ({"figures": "tokens=$.["}, "-Jfigures=tokens=$.["),
    ({"figures": "tokens"}, "-Jfigures=tokens: 'tokens' is not of the form name=JSONPath"),
]


def test_mistakes_are_found_before_the_load(of_classes: OfClasses, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("name\n")
    (tmp_path / "semicolons.csv").write_text("a;b\n1;2\n")
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    (tmp_path / "uneven.jsonl").write_text('{"a": 1, "b": 2}\n{"a": 1}\n')
    (tmp_path / "latin.csv").write_bytes(b"a\nJos\xe9\n")
    (tmp_path / "names.jsonl").write_text('{"a": "Jos\\u00e9"}\n{"a": "\\u20ac"}\n')
    (tmp_path / "pairs.jsonl").write_text('{"a": 1}\n\n{"a": 1} {"a": 2}\n')
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\nno JSON\n')
    found = of_classes(properties for properties, _ in MISTAKES)
    for (properties, reason), each in zip(MISTAKES, found, strict=True):
        assert reason in (each["why"] or ""), properties


def test_what_an_answer_meets(of_classes: OfClasses) -> None:
    met = ["$.faces[0]", "$..state", "$.state == done", "regex:f.ces", "text:$", "jsonpath:$.faces", '"done"']
    others = ["$.faces[1]", "$.state == gone", "//faces", "xpath:count(//a) = 0", "regex:^f", "text:DONE", "$.a.b"]
    answer = '{"faces": [1], "state": "done", "cost": "$1"}'
    assert of_classes([{"conditions": [*met, *others], "answer": answer}])[0]["met"] == met
    numbers = ["$.n == 2", "$.n != 3", "$.n >= 2", "$.n <= 2.0", "$.n > 1e0", "$.list[?(@.n > 1 && @.n == 2)].n < 3"]
    not_met = ["$.n > 2", "$.n < 2", "$.n != 2", "$.m >= 0", "$.text > 0", "$.n > {column}", "$.list[?(@.n > 2)].n > 0"]
    answer = '{"n": 2, "text": "7 a", "list": [{"n": 1}, {"n": 2}]}'
    assert of_classes([{"conditions": [*numbers, *not_met], "answer": answer}])[0]["met"] == numbers
    same = ["$.p == 10", "$.p == 10.0", "$.p == 1e1", "$.e == 10", "$.i == 10.0", "$.z == 0", "$.z == -0", "$.d == 0.1"]
    same += ["$.c == 1234567890.12", "$.b == 9007199254740993", "$.h == 12345678901234567890", "$.s == 1.5E-7"]
    same += ["$.text == 10", "$.b != 9007199254740992", "$.p != 10.1", "$.i < 1e999"]
    other = ["$.p != 10", "$.b == 9007199254740992", "$.h != 12345678901234567890", "$.text == 10.0", "$.i == 1e999"]
    exact = (
        '{"p": 10.0, "e": 1e1, "i": 10, "z": -0.0, "d": 0.10000000000000001, "c": 1234567890.12, "s": 0.00000015, '
        '"b": 9007199254740993, "h": 12345678901234567890, "text": "10"}'
    )
    assert of_classes([{"conditions": [*same, *other], "answer": exact}])[0]["met"] == same
    of_json = [
        "$.code!=1", "$.code==0", "$.code>=0", "$.list[?(@.n>1)].n==2", '$.state == "done"', '$.state=="done"',
        "$.error==null", "$.error != done", "$.state != null", "$.none == []", "$.pair == [1,2]", '$.sizes == {"a": 1}',
        '$.quote == "\\"x\\""',
        "$.pairs[?(@.of[0] == 5)]", "$.pairs[?(@.of[0]==5)].n == 3", "$.pairs[?(@.of[1]>5)]",
        '$.digits == "7"', "$.ok == true", '$.null == "null"', "$['a==b'] == 1",
    ]  # fmt: skip
    not_of_json = [
        "$.code!=0", "$.error", "$.error != null", "$.absent == null", "$.absent != null", '$.code == "0"',
        '$.ok == "true"', "$.state == null", "$.null == null", "$.pair == [2,1]", "$.digits > 6",
    ]  # fmt: skip
    answer_of_json = (
        '{"code": 0, "list": [{"n": 1}, {"n": 2}], "state": "done", "error": null, "none": [], "pair": [1, 2], '
        '"pairs": [{"of": [5, 6], "n": 3}], "ok": true, "sizes": {"a": 1}, "quote": "\\"x\\"", "digits": "7", '
        '"null": "null", "a==b": 1}'
    )
    found = of_classes([{"conditions": [*of_json, *not_of_json], "answer": answer_of_json}])[0]["met"]
    assert found == of_json
    of_row = ["$.text == {column}", "{column}", "$.n < {column}", "//a[.='{column}']"]
    answers = [{"conditions": of_row, "answer": answer, "column": column} for column in ("7 a", "3")]
    assert [each["met"] for each in of_classes(answers)] == [
        ["$.text == {column}", "{column}"],
        ["$.n < {column}"],
    ]
    of_page = ["//b[.='2']", "xpath:count(//b) = 1", "//c", "xpath:count(//b) = 2", "$.a"]
    for answer in ("<a><b>2</b></a>", "\ufeff<?xml version='1.0'?><a><b>2</b></a>"):
        assert of_classes([{"conditions": of_page, "answer": answer}])[0]["met"] == of_page[:2]


def test_a_prefix_of_an_xpath_is_that_of_the_answer(of_classes: OfClasses) -> None:
    met = [
        "//soap:Fault", "/soap:Envelope/soap:Body/Added", "//soap:*/soap:Fault[@xlink:href='a:b']", "//@xlink:href",
        "xpath:count(//soap:Fault) = 1", "//child::soap:Body[2 > 1]", "//x:y[. = 'soap:Fault']", "//Added",
        "//*[local-name() = 'Fault']", "xpath:not(//S:Fault)",
    ]  # fmt: skip
    not_met = ["//S:Fault", "//Fault", "//xlink:*", "//soap:Added", "//@xlink:none", "xpath:count(//soap:*) = 1"]
    answer = (
        '<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body><Added xmlns="urn:cart"/>'
        '<soap:Fault xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="a:b"/><x:y>soap:Fault</x:y>'
        "</soap:Body></soap:Envelope>"
    )
    assert of_classes([{"conditions": [*met, *not_met], "answer": answer}])[0]["met"] == met
