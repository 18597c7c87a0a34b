"""The files that a plan names, found as JMeter finds them before the run."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from framestorm.model import plan as plans

# The fields that hold a path, by their name, with the elements that have them.
_FIELDS = {
    "filename": r"CSVDataSet|.*RandomCSVDataSetConfig|(JSR223|BeanShell|BSF)\w+",
    "BeanShellSampler.filename": ".*",
    "BeanShellAssertion.filename": ".*",
    "BSFSampler.filename": ".*",
    "File.path": ".*",
    "FTPSampler.localfilename": ".*",
    "SMTPSampler.attachFile": ".*",
    "jms.input_file": ".*",
    "xmlschema_assertion_filename": ".*",
    "IncludeController.includepath": ".*",
    "TestPlan.user_define_classpath": ".*",
}
_LISTS = {"SMTPSampler.attachFile": ";", "TestPlan.user_define_classpath": ","}
_FUNCTION = re.compile(r"\$\{__(?:FileToString|StringFromFile|CSVRead|XPath)\(\s*([^,()]*(?:\$\{[^{}]*\}[^,()]*)*)")
_PROPERTY = re.compile(r"\$\{__(P|property)\(([^(){}$]*)\)\}")
_VARIABLE = re.compile(r"\$\{(\w[\w.-]*)\}")
BASE_DIR = "${__groovy(org.apache.jmeter.services.FileServer.getFileServer().getBaseDir())}"


class Known:
    """What of a plan's texts is known before the run: properties, and variables that the plan itself defines."""

    def __init__(self, elements: list[ET.Element], values: Mapping[str, str], folder: Path) -> None:
        self._values = values
        self._folder = folder
        self._variables: dict[str, str | None] = {}
        for element in elements:
            for each in element.iterfind(".//elementProp[@elementType='Argument']"):
                if element.tag in ("Arguments", "TestPlan"):
                    name = plans.field_text(each, "Argument.name")
                    # Defined twice, it depends on the order of the run.
                    is_new = name not in self._variables
                    self._variables[name] = plans.field_text(each, "Argument.value") if is_new else None

    def included(self, path: str) -> str:
        """The path of a fragment as JMeter puts it together."""
        return self._values.get("includecontroller.prefix", "") + path

    def value(self, text: str) -> str | None:
        """The text as JMeter will have it; None if that is known only under load."""
        for _ in range(10):
            before = text
            text = text.replace(BASE_DIR, str(self._folder))
            text = _PROPERTY.sub(self._property, text)
            text = _VARIABLE.sub(lambda match: self._variables.get(match[1]) or match[0], text)
            if text == before:
                break
        return None if "${" in text else text

    def _property(self, call: re.Match[str]) -> str:
        words = [word.strip() for word in re.split(r"(?<!\\),", call[2])]
        given = self._values.get(words[0])
        if call[1] == "P":
            return given or (words[1] if len(words) > 1 else "1")
        return given or (words[2] if len(words) > 2 else words[0])


@dataclass(frozen=True)
class NamedFile:
    """A file of a plan: the element that names it, the text of the field and in it the path.

    path: what JMeter opens, whether it is there or not; None if only JMeter can work it out.
    """

    element: ET.Element
    field: ET.Element
    text: str
    path: Path | None

    @property
    def is_data_set(self) -> bool:
        return self.element.tag == "CSVDataSet"

    @property
    def is_fragment(self) -> bool:
        return self.element.tag == "IncludeController"

    @property
    def shown(self) -> str:
        """How a message names it."""
        return f"{self.element.tag} {self.element.get('testname', '')!r}: {self.text}"


def named_files(elements: list[ET.Element], known: Known, folder: Path, working_dir: Path) -> Iterator[NamedFile]:
    """Each file that the enabled elements of the plan in `folder` name, once for each place that names it.

    JMeter looks for most files beside the plan, and in the folder that it was started in; for scripts only there.
    """
    for element in elements:
        for field, text in _paths(element):
            value = known.value(text)
            if value is not None and not value.strip():
                continue
            path = None
            if value is not None and element.tag == "IncludeController":
                value = known.included(value)
            if value is not None:
                beside = folder / Path(value.strip().removeprefix("~/"))
                here = working_dir / value.strip()
                is_script = element.tag.startswith(("JSR223", "BSF", "BeanShell", "TestPlan"))
                path = here if is_script or (not beside.exists() and here.exists()) else beside
            yield NamedFile(element, field, text, path)


def _paths(element: ET.Element) -> Iterator[tuple[ET.Element, str]]:
    for field in element.iter():
        name, text = field.get("name", ""), (field.text or "").strip()
        if not text:
            continue
        if name in _FIELDS and re.fullmatch(_FIELDS[name], element.tag):
            # A file of an FTP sampler is read only where it uploads.
            if name != "FTPSampler.localfilename" or plans.field_text(element, "FTPSampler.upload") == "true":
                yield from ((field, part) for part in text.split(_LISTS.get(name, "\0")) if part.strip())
        elif name != "TestPlan.comments":
            yield from ((field, call[1].strip()) for call in _FUNCTION.finditer(text) if call[1].strip())
