"""The files that a plan names, found as JMeter finds them before the run."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from framestorm.model import plan as plans
from framestorm.model.variables import PREDEFINED, likely_names, names_of_run

# The fields that hold a path, by their name, with the elements that have them.
_FIELDS = {
    "filename": r"CSVDataSet|.*RandomCSVDataSetConfig|(JSR223|BeanShell|BSF)\w+",
    "BeanShellSampler.filename": ".*",
    "BeanShellAssertion.filename": ".*",
    "BSFSampler.filename": ".*",
    "File.path": ".*",
    "FTPSampler.localfilename": ".*",
    "SMTPSampler.attachFile": ".*",
    "SMTPSampler.emlMessageToSend": ".*",
    "SystemSampler.stdin": ".*",
    "jms.input_file": ".*",
    "xmlschema_assertion_filename": ".*",
    "IncludeController.includepath": ".*",
    "TestPlan.user_define_classpath": ".*",
}
_DATA_SETS = ("CSVDataSet", "RandomCSVDataSetConfig")
_LISTS = {"SMTPSampler.attachFile": ";", "TestPlan.user_define_classpath": ","}
# Files that are read only where another field says so.
_ONLY_IF = {"FTPSampler.localfilename": "FTPSampler.upload", "SMTPSampler.emlMessageToSend": "SMTPSampler.use_eml"}
_FUNCTION = re.compile(r"\$\{__(?:FileToString|StringFromFile|CSVRead|XPath)\(\s*([^,()]*(?:\$\{[^{}]*\}[^,()]*)*)")
_CALL = re.compile(r"\$\{__(\w+)\(\s*$")
# What JMeter looks for beside the plan too, if it is not in the folder that JMeter was started in: what these fields of
# these elements name, and this function.
_BESIDE = re.compile(r".*CSVDataSet.*|IncludeController.*|SmtpSampler.*|.* File\.path|CSVRead")
# A sequence of files by its pattern, as in __StringFromFile(PIN#'.'DAT,,1,2): JMeter makes the names.
_SEQUENCE = re.compile(r"\$\{__StringFromFile\([^,()]*,[^,()]*,\s*[^,()\s]")
_PROPERTY = re.compile(r"\$\{__(P|property)\(((?:[^(){}$]|\([^(){}$,]*\))*)\)\}")
_VARIABLE = re.compile(r"\$\{(?!__)([^{}$()\\]+)\}")


class Known:
    """What of a plan's texts is known before the run: properties, and variables that the plan itself defines."""

    def __init__(self, elements: list[ET.Element], values: Mapping[str, str], folder: Path) -> None:
        self._values = values
        self._folder = folder
        self._variables: dict[str, str | None] = {}
        self._of_run = {name for element in elements for name in names_of_run(element)}
        for element in elements:
            for each in element.iterfind(".//elementProp[@elementType='Argument']"):
                if element.tag in ("Arguments", "TestPlan"):
                    name = plans.field_text(each, "Argument.name")
                    # Defined twice, it depends on the order of the run.
                    is_new = name not in self._variables
                    self._variables[name] = plans.field_text(each, "Argument.value") if is_new else None
        self._of_run |= {name for element in elements for name in self._header(element)}

    def _header(self, element: ET.Element) -> list[str]:
        """Return the variables that the first line of a CSV data set's file names; none if the element names them."""
        is_data_set = element.tag.endswith(_DATA_SETS) and not plans.field_text(element, "variableNames").strip()
        fields = ("filename", "delimiter", "fileEncoding")
        name, delimiter, encoding = (
            self.value(plans.field_text(element, each)) if is_data_set else None for each in fields
        )
        if not name or delimiter is None or encoding is None:
            return []
        paths = (Path.cwd() / name.strip(), self._folder / name.strip())
        return next((header(path, delimiter, encoding) for path in paths if path.is_file()), [])

    def included(self, path: str) -> str:
        """Return the path of a fragment as JMeter puts it together."""
        return self._values.get("includecontroller.prefix", "") + path

    def value(self, text: str) -> str | None:
        """Return the text as JMeter will have it; None if that is known only under load."""
        for _ in range(10):
            before = text
            text = _PROPERTY.sub(self._property, text)
            text = _VARIABLE.sub(self._variable, text)
            if text == before:
                break
        return None if "${" in text else text

    def value_in_run(self, text: str) -> str | None:
        """Return the text as JMeter will have it each time that it runs an element; None if that is known only then.

        A variable of the plan may be a mere placeholder for what an element sets during the run.
        """
        return None if any(name in self._of_run for name in self._names_in(text)) else self.value(text)

    def _names_in(self, text: str) -> set[str]:
        names, todo = set[str](), [text]
        while todo:
            new = {*_VARIABLE.findall(todo.pop())} - names
            names |= new
            todo += filter(None, (self._variables.get(name) for name in new))
        return names

    @property
    def names(self) -> list[str]:
        """The variables that are there before any element has run."""
        return list(self._variables)

    def defines(self, name: str) -> bool:
        """Return whether a variable is there before any element has run."""
        return name in self._variables or name in PREDEFINED

    def hint(self, name: str) -> str:
        """Return what was probably meant by a variable that is not there before the run, as the end of a sentence."""
        if name in self._of_run:
            return " before the run, when JMeter reads it"
        if name in self._values:
            return f" (-J{name} sets a property, which is ${{__P({name})}})"
        return likely_names(name, self.names)

    def _variable(self, reference: re.Match[str]) -> str:
        value = self._variables.get(reference[1])
        return reference[0] if value is None else value

    def _property(self, call: re.Match[str]) -> str:
        words = [word.strip() for word in re.split(r"(?<!\\),", call[2])]
        default = 1 if call[1] == "P" else 2
        fallback = words[default] if len(words) > default else "1" if default == 1 else words[0]
        return plans.trim(self._values.get(words[0], fallback))


@dataclass(frozen=True)
class NamedFile:
    """A file of a plan: the element that names it, the field, and in that the text at `start`.

    path: what JMeter opens, whether it is there or not; None if only JMeter can work it out.
    beside: the file of this name beside the plan, if there is one, even if JMeter does not look for it there.
    """

    element: ET.Element
    field: ET.Element
    text: str
    start: int
    path: Path | None
    beside: Path | None = None

    @property
    def is_data_set(self) -> bool:
        return self.element.tag.endswith(_DATA_SETS)

    @property
    def is_script(self) -> bool:
        return self.element.tag.startswith(("JSR223", "BeanShell", "BSF"))

    @property
    def is_fragment(self) -> bool:
        return self.element.tag == "IncludeController"

    @property
    def is_of_class_path(self) -> bool:
        return self.element.tag == "TestPlan" and self.field.get("name") == "TestPlan.user_define_classpath"

    @property
    def shown(self) -> str:
        """How a message names it."""
        return f"{self.element.tag} {self.element.get('testname', '')!r}: {self.text}"


def header(path: Path, delimiter: str, encoding: str) -> list[str]:
    """Return the names in the first line of a data set; none if the encoding is not known."""
    try:
        with path.open(encoding=encoding or "UTF-8", errors="replace") as file:
            line = file.readline().rstrip("\n").removeprefix("\ufeff")
    except LookupError:
        return []
    separator = (delimiter or ",").replace("\\t", "\t")[:1]
    return [name.removeprefix('"').removesuffix('"').strip() for name in line.split(separator)]


def named_files(elements: list[ET.Element], known: Known, folder: Path, working_dir: Path) -> Iterator[NamedFile]:
    """Yield each file that the enabled elements of the plan in `folder` name, once for each place that names it.

    JMeter looks for all in the folder that it was started in, and then for some beside the plan.
    """
    for element in elements:
        for field, text, start in _paths(element):
            whole = field.text or ""
            is_of_start = element.tag.endswith((*_DATA_SETS, "TestPlan"))
            value = known.value(text) if is_of_start else known.value_in_run(text)
            if element.tag == "IncludeController":  # JMeter takes what is written there
                value = text
            if _SEQUENCE.match(whole, whole.rfind("${", 0, start)):
                value = None
            if value is not None and not value.strip():
                continue
            if value is None:
                yield NamedFile(element, field, text, start, None)
                continue
            if element.tag == "IncludeController":
                value = known.included(value)
            here, beside = working_dir / value.strip(), folder / value.strip()
            call = _CALL.search(whole[:start])
            looks_beside = _BESIDE.fullmatch(call[1] if call else f"{element.tag} {field.get('name')}")
            path = beside if looks_beside and not here.exists() else here
            yield NamedFile(element, field, text, start, path, beside if beside.exists() else None)


def _paths(element: ET.Element) -> Iterator[tuple[ET.Element, str, int]]:
    """Yield each field that names a file, the text that does, and where in the field it begins."""
    for field in element.iter():
        name, whole = field.get("name", ""), field.text or ""
        if name in _FIELDS and re.fullmatch(_FIELDS[name], element.tag):
            if name not in _ONLY_IF or plans.field_text(element, _ONLY_IF[name]) == "true":
                separator = _LISTS.get(name, "\0")
                yield from _stripped(field, re.finditer(f"[^{separator}]+", whole), 0)
        elif name != "TestPlan.comments":
            yield from _stripped(field, _FUNCTION.finditer(whole), 1)


def _stripped(field: ET.Element, matches: Iterable[re.Match[str]], group: int) -> Iterator[tuple[ET.Element, str, int]]:
    for match in matches:
        if text := match[group].strip():
            yield field, text, match.start(group) + match[group].index(text)
