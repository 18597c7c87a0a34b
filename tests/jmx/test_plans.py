"""What every plan keeps to, read from its file; that JMeter reads it too is shown by test_runs.py and test_gui.py."""

import html
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

JMX = Path(__file__).resolve().parents[2] / "jmx"
PLANS = sorted(JMX.glob("*.jmx"))
KNOB = re.compile(r"__P\(([^,()]+),([^()]*)\)")
THREAD_GROUP_KNOBS = {
    "face-blur": {"users", "ramp_s", "hold_s"},
    "face-blur-http": set(),
    "request-rate": set(),
    "requests": {"users", "ramp_s", "hold_s"},
    "tasks": set(),
    "video-per-user": set(),
}
# What answer.groovy reads only where a plan sends frames, or has arrivals.
OF_SOME_PLANS = {"accept", "min_faces", "index", "intended_ms"}
FILLED_IN = {"python", "client", "cache", "journal", "client_log", "tree", "stop", "frame_dir"}

pytestmark = pytest.mark.parametrize("plan", PLANS, ids=lambda path: path.stem)


def variables(plan: Path) -> dict[str, tuple[str, str]]:
    """Return name -> (value, description) of the plan's User Defined Variables."""
    found = {}
    for argument in ET.parse(plan).getroot().iterfind(".//Arguments//elementProp[@elementType='Argument']"):  # noqa: S314
        fields = {field.get("name"): field.text or "" for field in argument}
        found[fields["Argument.name"]] = (fields["Argument.value"], fields.get("Argument.desc", ""))
    return found


def test_knobs_are_read_once_and_described(plan: Path) -> None:
    text = plan.read_text()
    described = {
        name for name, (value, description) in variables(plan).items() if f"__P({name}," in value and description
    }
    in_comments = set(re.findall(r"^(?:.*>)?(\w+): ", text, flags=re.MULTILINE))
    knobs = [name for name, _ in KNOB.findall(text)]
    assert len(knobs) == len(set(knobs)), "a knob has one default"
    assert set(knobs) - described == THREAD_GROUP_KNOBS[plan.stem] | {"tree"}, "only the preview chart excuses a knob"
    assert set(knobs) - described <= in_comments


def test_descriptions_give_the_unit(plan: Path) -> None:
    for name, (value, description) in variables(plan).items():
        if name.endswith("_s") and name in value:
            assert description.startswith("1/s" if name.endswith("_per_s") else "s"), f"{name}: {description}"
        if name in FILLED_IN:
            assert "filled in by the kit" in description


def test_no_host_nor_absolute_path(plan: Path) -> None:
    values = [element.text or "" for element in ET.parse(plan).getroot().iter("stringProp")]  # noqa: S314
    defaults = [default for value in values for _, default in KNOB.findall(value)]
    for value in values + defaults:
        assert not re.match(r"/|[A-Za-z]:\\|~", value), value
        assert set(re.findall(r"https?://([^/:]+)", value)) <= {"127.0.0.1"}, value


def test_every_variable_used_is_defined(plan: Path) -> None:
    text = html.unescape(plan.read_text())
    scripts = re.findall(r"\$\{scripts\}/(\w+\.groovy)", text)
    code = "".join((JMX / "groovy" / script).read_text() for script in scripts)
    put = set(re.findall(r"vars\.put\('(\w+)'", code))
    used = set(re.findall(r"\$\{(\w+)\}", text)) | set(re.findall(r"vars\.get\([\"'](\w+)[\"']\)", text + code))
    assert used - put - OF_SOME_PLANS <= set(variables(plan))
    assert set(variables(plan)) - used <= {"video"}, "a variable nobody reads"


def test_scripts_are_files_compiled_once(plan: Path) -> None:
    for element in ET.parse(plan).getroot().iter():  # noqa: S314
        if element.tag.startswith("JSR223"):
            fields = {field.get("name"): field.text or "" for field in element}
            assert fields["script"] == ""
            assert fields["cacheKey"] == "true"
            assert (JMX / fields["filename"].replace("${scripts}", "groovy")).is_file()


def test_return_code_is_checked(plan: Path) -> None:
    for sampler in ET.parse(plan).getroot().iter("SystemSampler"):  # noqa: S314
        fields = {field.get("name"): field.text or "" for field in sampler}
        assert fields["SystemSampler.checkReturnCode"] == "true"
        assert fields["SystemSampler.expectedReturnCode"] == "0"
