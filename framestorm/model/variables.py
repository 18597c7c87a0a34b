"""The variables of a plan: which names its elements, functions and scripts define, and which its texts refer to.

What may define a name that only the run knows, such as a script that computes it, makes the definitions `open`.
"""

import difflib
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from framestorm.model import plan as plans

# A variable; a function has brackets, and without them begins with two underscores, as do variables of controllers.
_VARIABLE = re.compile(r"(?<!\\)(?:\\\\)*\$\{(?!__)([^{}$()\\]+)\}")
_FUNCTION = re.compile(r"\$\{__(\w+)\(")
# Which JMeter sets itself, and cookies where a property asks for them.
PREDEFINED = (
    "START.MS", "START.YMD", "START.HMS", "TESTSTART.MS", "JMeterThread.last_sample_ok", "JMeterThread.pack",
    "StringFromFile_",
)  # fmt: skip
_COOKIES = "COOKIE_.*"
# How further names of a list of results end: of its members, their groups, their number.
_OF_LIST, _OF_GROUPS, _OF_ROWS = r"(_\d+|_matchNr|_ALL)?", r"(_\d+)?(_g\d*)?|.*_matchNr", r"(_\d+|_#)?"
# The fields that name variables: by element, the field, what separates several, and how further names end.
_DEFINING: dict[str, tuple[tuple[str, str, str], ...]] = {
    "CounterConfig": (("CounterConfig.name", "", ""),),
    "RandomVariableConfig": (("variableName", "", ""),),
    "CSVDataSet": (("variableNames", ",", ""),),
    "com.blazemeter.jmeter.RandomCSVDataSetConfig": (("variableNames", ",", ""),),
    "RegexExtractor": (("RegexExtractor.refname", "", _OF_GROUPS),),
    "HtmlExtractor": (("HtmlExtractor.refname", "", _OF_LIST),),
    "BoundaryExtractor": (("BoundaryExtractor.refname", "", _OF_LIST),),
    "XPathExtractor": (("XPathExtractor.refname", "", _OF_LIST),),
    "XPath2Extractor": (("XPathExtractor2.refname", "", _OF_LIST),),
    "JSONPostProcessor": (("JSONPostProcessor.referenceNames", ";", _OF_LIST),),
    "JMESPathExtractor": (("JMESExtractor.referenceName", "", _OF_LIST),),
    "ForeachController": (("ForeachController.returnVal", "", ""),),
    "JDBCSampler": (("variableNames", ",", _OF_ROWS), ("resultVariable", "", "")),
    "JDBCPreProcessor": (("variableNames", ",", _OF_ROWS), ("resultVariable", "", "")),
    "JDBCPostProcessor": (("variableNames", ",", _OF_ROWS), ("resultVariable", "", "")),
    "BoltSampler": (("resultVariable", "", ""),),
}
_OF_USER_PARAMETERS = "collectionProp[@name='UserParameters.names']/stringProp"
_SCRIPTS = ("JSR223", "BeanShell", "BSF")
# Functions none of whose parameters, or not the first, is the name of a variable that they set.
_READING = {"P", "V", "eval", "evalVar", "isVarDefined", "isPropDefined", "setProperty", "log", "logn", "urlencode"}
_READING_FIRST = {"property", "env"}
# What runs code that may set any variable: classes of a user. JMeter's own two of Java Requests set none.
_OF_CODE = ("JavaSampler", "JUnitSampler")
_JAVA_REQUESTS = "org.apache.jmeter.protocol.java."
# Plug-ins that name the variables that they set in a field; others may set any, unless they only pace or show.
_NAMING = re.compile(r"(kg\.apc\.jmeter|com\.blazemeter\.jmeter|eu\.luminis|org\.apache\.jmeter)\.(?!.*FromCSVFile)")
_NOT_SETTING = re.compile(r".*(ThreadGroup|Timer|Listener|Collector|Gui|Visualizer|Controller|Assertion)")
_PUT = re.compile(r"\bvars\s*\.\s*put(?:Object)?\s*\(\s*|\bvars\s*\[\s*")
_LITERAL = re.compile(r"""(["'])((?:(?!\1)[^\\\n])*)\1""")
_GET = re.compile(r"\.\s*(?:get|getObject|getProperty|remove)\s*\(\s*$")
# What the kit's classes set that plans call (jmx/java/plan); a test compares the two.
OF_KIT = {
    "Answer": ("further_figures", "index", "intended_ms", "handler_ms", "model_ms", "cold", "faces", "worker"),
    "Frames": ("index", "frame_file", "content_type", "accept"),
    "Pacer": ("intended_ms",),
    "Requests": ("index", "request_url", "filling"),
}
_OF_KIT = re.compile(re.escape(plans.KIT_CALL) + r"(\w+)")
# A script that hands the variables to other code, or sets many at once.
_ANY = re.compile(r"\bvars\s*\.\s*putAll|\bgetVariables\s*\(|\bJMeterVariables\b|[(,]\s*vars\s*[,)]|\bevaluate\s*\(")


@dataclass(frozen=True)
class Place:
    """An enabled element of a plan, with those that it stands in, the outermost first."""

    element: ET.Element
    above: tuple[ET.Element, ...]

    @property
    def group(self) -> ET.Element | None:
        """The thread group that it is in; None if it is in none, such as a part that others include."""
        return next((each for each in (*self.above, self.element) if each.tag.endswith("ThreadGroup")), None)

    @property
    def is_of_plan(self) -> bool:
        """Whether it counts in every thread group."""
        return all(each.tag == "TestPlan" for each in self.above)


@dataclass
class Definitions:
    """Names, each with the places that define it; a name of a list has others with it, which `patterns` match.

    is_open: the plan may define further ones that only the run knows.
    """

    names: dict[str, list[Place]] = field(default_factory=dict)
    patterns: list[tuple[re.Pattern[str], Place]] = field(default_factory=list)
    is_open: bool = False

    def places(self, name: str) -> list[Place]:
        """Return where a name is defined."""
        return [*self.names.get(name, []), *(place for pattern, place in self.patterns if pattern.fullmatch(name))]

    def add(self, name: str, place: Place, ends: str = "") -> None:
        """Add a name, with those that begin so and end in these ways; one that the run computes is not known."""
        if "${" in name:
            if prefix := name.partition("${")[0].strip():
                self.patterns.append((re.compile(re.escape(prefix) + ".*"), place))
            else:
                self.is_open = True
        elif name:
            self.names.setdefault(name, []).append(place)
            if ends:
                self.patterns.append((re.compile(f"{re.escape(name)}(?:{ends})"), place))


def walk(tree: ET.Element, above: tuple[ET.Element, ...] = (), *, with_disabled: bool = False) -> Iterator[Place]:
    """Yield each enabled element of a plan or fragment in its order, with what it stands in."""
    element = None
    for child in tree:
        if child.tag != "hashTree":
            element = child if with_disabled or child.get("enabled") != "false" else None
            if element is not None:
                yield Place(element, above)
        elif tree.tag == "jmeterTestPlan" or element is not None:
            yield from walk(child, above if element is None else (*above, element), with_disabled=with_disabled)


def names_in(text: str) -> list[str]:
    """Return the variables that a text refers to, also within functions."""
    return list(dict.fromkeys(_VARIABLE.findall(text)))


def names_of_run(element: ET.Element) -> Iterator[str]:
    """Yield the variables that an element sets during the run; not those of scripts in files."""
    for name, separator, _ in _DEFINING.get(element.tag, ()):
        text = plans.field_text(element, name)
        yield from (each.strip() for each in (text.split(separator) if separator else [text]))
    yield from (each.text or "" for each in element.iterfind(_OF_USER_PARAMETERS))
    for text in _texts(element):
        for put in _PUT.finditer(text):
            if literal := _LITERAL.match(text, put.end()):
                yield literal[2]


def likely_names(name: str, names: Iterable[str]) -> str:
    """What was probably meant by a name that is not defined, as the end of a sentence; empty if nothing is alike."""
    close = next((each for each in names if _folded(each) == _folded(name) and each != name), None)
    if close is not None and close != close.strip():
        return f" ({close!r} is, with a blank in its name)"
    if close is None:
        close = next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=0.8)), None)
    return f" (did you mean {close}?)" if close is not None else ""


def _folded(name: str) -> str:
    return re.sub(r"[\s_.-]", "", name).casefold()


def definitions(
    places: Sequence[Place], scripts: Iterable[tuple[Place, str]], headers: Iterable[tuple[Place, Sequence[str]]]
) -> Definitions:
    """Return the variables that the elements at these places define.

    scripts: the texts of script files; headers: the names in the first line of a data set, where those count.
    """
    defined = Definitions()
    for place in places:
        element = place.element
        for name, separator, ends in _DEFINING.get(element.tag, ()):
            text = plans.field_text(element, name)
            for each in text.split(separator) if separator else [text]:
                defined.add(each.strip(), place, ends)
        if element.tag in ("Arguments", "TestPlan"):
            for argument in element.iterfind(".//elementProp[@elementType='Argument']"):
                defined.add(plans.field_text(argument, "Argument.name"), place)
        elif element.tag == "UserParameters":
            for name_of in element.iterfind(_OF_USER_PARAMETERS):
                defined.add(name_of.text or "", place)
        elif element.tag == "CookieManager":
            defined.patterns.append((re.compile(_COOKIES), place))
        elif "." in element.tag:
            _add_plugin(element, place, defined)
        elif element.tag in _OF_CODE:
            defined.is_open |= not plans.field_text(element, "classname").startswith(_JAVA_REQUESTS)
        is_script = element.tag.startswith(_SCRIPTS)
        for text in (element.get("testname", ""), *_texts(element)):
            _add_functions(text, place, defined)
            if is_script or "vars" in text:
                _add_script(text, place, defined)
    for place, text in scripts:
        _add_script(text, place, defined)
    for place, names in headers:
        for name in names:
            defined.add(name, place)
    return defined


def _texts(element: ET.Element) -> Iterator[str]:
    return (each.text for each in element.iter() if each.text and each.get("name") != "TestPlan.comments")


def _add_plugin(element: ET.Element, place: Place, defined: Definitions) -> None:
    """Any word of a field of a plug-in may be the name of a variable that it sets."""
    if not _NAMING.match(element.tag):
        defined.is_open |= not _NOT_SETTING.fullmatch(element.tag)
    for text in _texts(element):
        if "${" not in text and len(text) < 1000:
            for name in {text.strip(), *re.split(r"[\s,;]+", text)}:
                defined.add(name, place, _OF_LIST)


def _add_functions(text: str, place: Place, defined: Definitions) -> None:
    for call in _FUNCTION.finditer(text):
        if call[1] in _READING:
            continue
        parameters = plans.parameters(text[call.end() :])
        for each in parameters[1 if call[1] in _READING_FIRST else 0 :]:
            if (name := each.strip()) and len(name) < 200 and "${" not in name:
                defined.add(name, place, f"{_OF_GROUPS}|_n|_\\d+")


def _add_script(text: str, place: Place, defined: Definitions) -> None:
    """Names that a script puts; every text in quotes may be one, if only the run knows what it is used for."""
    defined.is_open |= bool(_ANY.search(text))
    for call in _OF_KIT.finditer(text):
        for name in OF_KIT.get(call[1], ()):
            defined.add(name, place)
    for put in _PUT.finditer(text):
        literal = _LITERAL.match(text, put.end())
        if literal is None:
            defined.is_open = True
            continue
        is_whole = re.match(r"\s*[,\]]", text[literal.end() :]) is not None and "$" not in literal[2]
        defined.add(literal[2] if is_whole else f"{literal[2].partition('$')[0]}${{}}", place)
    for literal in _LITERAL.finditer(text):
        is_read = _GET.search(text, max(0, literal.start() - 40), literal.start())
        if "$" not in literal[2] and literal[2].strip() and len(literal[2]) < 200 and not is_read:
            defined.add(literal[2], place)
