"""A form is read by the conductor, which packs its files, and by request.groovy, which sends it: both read the same."""

import json
import subprocess
from pathlib import Path

import pytest

from framestorm.model import form
from framestorm.paths import JAVA_HOME, JMETER_HOME, JMX

# The fields of each form (name, sign, value, content type), or None if it is refused. Its file `f` holds "text".
FORMS: dict[str, list[tuple[str, str, str, str]] | None] = {
    "a=b": [("a", "", "b", "")],
    "a=": [("a", "", "", "")],
    r" a=b \n\n c=d": [("a", "", "b", ""), ("c", "", "d", "")],
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


def test_the_script_reads_the_same(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("text")
    command = [
        JAVA_HOME / "bin" / "java",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{JMETER_HOME}/lib/*:{JMETER_HOME}/lib/ext/*",
    ]
    command += ["groovy.ui.GroovyMain", Path(__file__).with_name("form.groovy"), JMETER_HOME]
    command += [JMX / "groovy" / "request.groovy", tmp_path]
    lines = "\n".join(map(json.dumps, FORMS))
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = [
        fields
        and [
            [name, ["f"] if sign == "@" else None, {"@": "", "<": "text"}.get(sign, value), content_type or None]
            for name, sign, value, content_type in fields
        ]
        for fields in FORMS.values()
    ]
    assert dict(zip(FORMS, map(json.loads, done.stdout.splitlines()), strict=True)) == dict(
        zip(FORMS, expected, strict=True)
    )
