"""A plan as it goes to the slaves: with the files that it names, and with references to each slave's own numbers.

JMeter's controller reads the plan and sends it to the slaves, which open its files themselves. So the controller gets
a copy in which each file is `${__P(framestorm.plan)}/...`, and each slave the files in a folder of the run, laid out
as they are beside the plan; a file from elsewhere is in a folder of its own there.
"""

import copy
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.hosts import shares
from framestorm.hosts.division import Division, title
from framestorm.model import facets, form, units
from framestorm.model import plan as plans
from framestorm.model.plan_files import Known, NamedFile, named_files
from framestorm.run import jmeter, proxy
from framestorm.run.preparation import Prepared
from framestorm.run.values import SECRET

FOLDER = "plan"  # in the run's folder on a slave, and in the controller's folder
JARS = "elsewhere/jars"  # the user's, from jmx/lib/ and from the class path of the plan
_THERE = "${__P(framestorm.plan)}"
# JMeter's properties with the path of a script or of settings.
_PROPERTY_FILES = re.compile(r"groovy\.utilities|(?:jsr223|beanshell)\.init\.file|beanshell\.\w+\.init|hc\.\w+\.file")
_OUTPUTS = ("ResultCollector",)
_ENVIRONMENT = re.compile(r"\$\{__env\(\s*(\w+)|System\.getenv\(\s*['\"](\w+)['\"]\s*\)")
_TEMPLATE_AT_MOST_BYTES = 1 << 20


@dataclass
class Parcel:
    """What the hosts of a run get of its plan.

    plan: the controller's copy; fragments: the copies of what it includes, by their path beside it.
    files, jars: of the plan and of the user, by their path in the slaves' folder of the plan.
    class_paths: the places there of what JMeter's properties of this name list. tls: system properties of Java for the
    users' keys, with a reference to the folder of the plan. outputs: what listeners write, in a run's folder.
    parts: for each slave, its own in place of some files.
    references: values of the kit's properties that name files or folders, with a reference to the folder of the plan.
    secrets: variables of the environment that the slaves need too. notes: what may not be as the user expects it.
    """

    folder: Path
    plan: Path
    division: Division
    files: dict[str, Path] = field(default_factory=dict)
    fragments: dict[str, Path] = field(default_factory=dict)
    parts: list[dict[str, Path]] = field(default_factory=list)
    jars: dict[str, Path] = field(default_factory=dict)
    class_paths: dict[str, list[str]] = field(default_factory=dict)
    tls: dict[str, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    references: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def files_of(self, slave: int) -> dict[str, Path]:
        """Return the files for a slave, by their path in the run's folder."""
        files = {**self.files, **self.parts[slave], **self.jars}
        return {f"{FOLDER}/{name}": path for name, path in files.items()}

    def files_of_controller(self) -> dict[str, Path]:
        """Return the files for a controller on another host, by their path in the run's folder."""
        files = {self.plan.name: self.plan, **self.fragments, **self.jars}
        return {f"{FOLDER}/{name}": path for name, path in files.items()}

    def class_paths_on(self, plan_folder: str) -> dict[str, str]:
        """Return JMeter's properties for the user's jars, on a host where the plan's folder is `plan_folder`."""
        return {
            name: jmeter.CLASS_PATHS[name].join(f"{plan_folder}/{place}" for place in places)
            for name, places in self.class_paths.items()
        }

    def jars_on(self, plan_folder: str) -> dict[str, str]:
        """Return what Java takes for the user's jars as the variable of jmx/jmeter-server; empty without any."""
        places = [f"{plan_folder}/{place}" for places in self.class_paths.values() for place in places]
        words = [word for place in places for word in ([place] if place.endswith(".jar") else [place, f"{place}/*"])]
        return {"JARS": ":".join(words)} if words else {}

    @property
    def of_fragments(self) -> dict[str, str]:
        """JMeter's properties for the controller's copies of fragments: their paths are whole."""
        return {"includecontroller.prefix": ""} if self.fragments else {}

    def tls_on(self, plan_folder: str) -> dict[str, str]:
        """Return Java's system properties for the users' keys, on a host where the plan's folder is `plan_folder`."""
        return {name: value.replace(_THERE, plan_folder) for name, value in self.tls.items()}

    def values_on(self, slave: int, plan_folder: str) -> dict[str, str]:
        """Return properties for a slave where the plan's folder is `plan_folder`."""
        named = {name: value.replace(_THERE, plan_folder) for name, value in self.references.items()}
        own = {"framestorm.plan": plan_folder, **self.class_paths_on(plan_folder)}
        return {**named, **own, **self.division.properties[slave]}


def make(prepared: Prepared, slaves: int, folder: Path, master: str = "") -> Parcel:
    """Lay out the controller's copy of a plan in `folder`, and find all that the slaves need.

    master: the host that has the controller, unless this one has.

    Raises:
        UsageError: the rows of a data set cannot be split.
    """
    return _Packer(prepared, slaves, folder, master).pack()


class _Packer:
    def __init__(self, prepared: Prepared, slaves: int, folder: Path, master: str) -> None:
        self._prepared = prepared
        self._master = master
        self._slaves = slaves
        self._plan = prepared.plan.path.absolute()
        self._values = {**prepared.settings.given, **prepared.settings.extra}
        plan = folder / FOLDER / self._plan.name
        self.parcel = Parcel(folder, plan, Division(slaves), parts=[{} for _ in range(slaves)])
        self._places: dict[Path, str] = {}
        self._groups: dict[ET.Element, list[str]] = {}
        self._templates: list[Path] = []

    def pack(self) -> Parcel:
        parcel = self.parcel
        (parcel.folder / FOLDER).mkdir(parents=True)
        # With SSL, JMeter looks for its key at the same relative path everywhere.
        (parcel.folder / ".local").symlink_to(paths.LOCAL)
        trees = self._trees()
        elements = [element for _, root in trees for element in plans.enabled_elements(root)]
        known = Known(elements, self._values, self._plan.parent)
        self._divide(elements, known)
        self._groups = _groups_of(trees[0][1])
        texts = [(named, self._take(named)) for named in named_files(elements, known, self._plan.parent, Path.cwd())]
        # From the end, so that what is before in the same field stays where it was found.
        for named, text in sorted(texts, key=lambda each: each[0].start, reverse=True):
            whole = named.field.text or ""
            named.field.text = whole[: named.start] + text + whole[named.start + len(named.text) :]
        self._keep_outputs(elements, known)
        self._take_properties()
        self._find_secrets(elements)
        self._take_class_paths()
        self._take_keys()
        for path, root in trees:
            path.parent.mkdir(parents=True, exist_ok=True)
            plans.write(root, path)
        parcel.notes += [f"whole on each slave: {each}" for each in parcel.division.undivided]
        parcel.notes += [f"one for each slave, not for all of them: {each}" for each in parcel.division.ones]
        return parcel

    def _divide(self, elements: list[ET.Element], known: Known) -> None:
        """Divide what the plan asks for; of a plan that declares its totals, what else it has once for all users."""
        if self._prepared.where.whole_plan:
            return
        values = {**self._prepared.settings.values, **self._values}
        if not self._prepared.plan.is_for_kit:
            self.parcel.division = shares.divide(elements, known, values, self._slaves)
        else:
            self.parcel.division = shares.divide_ones(elements, known, values, self._slaves)

    def _trees(self) -> list[tuple[Path, ET.Element]]:
        """Return the plan and what it includes, with the paths of their copies."""
        trees = [(self.parcel.plan, copy.deepcopy(self._prepared.plan.root))]
        for path, root in self._prepared.needs.fragments.items():
            if (place := self._place(path)) not in self.parcel.fragments:
                self.parcel.fragments[place] = self.parcel.folder / FOLDER / place
                trees.append((self.parcel.fragments[place], copy.deepcopy(root)))
        return trees

    def _place(self, path: Path) -> str:
        """Return where a file is beside the copy of the plan: as beside the plan, or in a folder of its own."""
        path = Path(os.path.normpath(path.absolute()))
        if path not in self._places:
            is_beside = path.is_relative_to(self._plan.parent)
            own = f"elsewhere/{len(self._places)}/{path.name}"
            self._places[path] = str(path.relative_to(self._plan.parent)) if is_beside else own
        return self._places[path]

    def _take(self, named: NamedFile) -> str:
        """Put a file into the parcel; returns the text that replaces its path in the plan."""
        if named.path is None:
            self.parcel.notes.append(
                f"not sent to the slaves, because its name is known only during the run: {named.shown}"
            )
            return named.text
        # One that is missing here is made by a thread group that sets up.
        if not named.path.exists():
            return named.text
        place = self._place(named.path)
        if named.is_fragment:
            return place
        if named.element.tag == "TestPlan":
            # JMeter takes its class path as it is written, without references.
            self.parcel.jars |= _files(named.path, place)
            self.parcel.class_paths.setdefault("search_paths", []).append(place)
            return named.text
        self._add(named.path, place)
        if named.is_data_set and self._prepared.where.split_csv:
            has_header = not plans.field_text(named.element, "variableNames").strip()
            has_header |= plans.field_text(named.element, "ignoreFirstLine") == "true"
            # The plug-in's data set always reads quotes.
            is_plain = plans.field_text(named.element, "quotedData") != "true" and named.element.tag == "CSVDataSet"
            groups = self._groups.get(named.element, [])
            self._split(place, named.path, groups, has_header, may_be_quoted=not is_plain)
        return f"{_THERE}/{place}"

    def _take_class_paths(self) -> None:
        """The user's jars: those of jmx/lib/, and those that JMeter's properties name."""
        jars = {f"{JARS}/{path.name}": path for path in jmeter.user_jars()}
        self.parcel.jars |= jars
        if jars:
            self.parcel.class_paths.setdefault("search_paths", []).append(JARS)
        for name, path in jmeter.class_path(self._values):
            if path.exists():
                place = self._place(path)
                self.parcel.jars |= _files(path, place)
                self.parcel.class_paths.setdefault(name, []).append(place)

    def _take_keys(self) -> None:
        """Add the key stores and trust stores that -D and -S name; Java opens them before JMeter reads the plan."""
        for name, value in proxy.system_properties(self._prepared.what.jmeter_options).items():
            if name.startswith("javax.net.ssl."):
                is_file = name.endswith("Store") and Path(value).is_file()
                self.parcel.tls[name] = self._take_named(value) if is_file else value

    def _keep_outputs(self, elements: list[ET.Element], known: Known) -> None:
        """The controller writes to where it would without slaves, a master into the run's folder."""
        for each in (each for element in elements if element.tag.endswith(_OUTPUTS) for each in element):
            text = each.text or ""
            if each.get("name") != "filename" or not text:
                continue
            # The listener of the kit's own plans writes tree.xml, which comes in any case.
            if self._master and not self._prepared.plan.is_for_kit and (path := known.value(text)):
                each.text = f"listener-{len(self.parcel.outputs) + 1}-{Path(path).name}"
                self.parcel.outputs.append(each.text)
                self.parcel.notes.append(
                    f"{self._master} writes {text} of a listener: see {each.text} in the run's folder"
                )
            elif not text.startswith(("${", "~")):
                each.text = str(Path.cwd() / text)

    def _take_properties(self) -> None:
        """Take the files that properties of the kit and of JMeter name."""
        for name, value in self._values.items():
            if _PROPERTY_FILES.fullmatch(name) and Path(value).is_file():
                self.parcel.references[name] = self._take_named(value)
        for name, each in self._prepared.plan.settable.items():
            value = self._prepared.settings.values.get(name, "")
            if facets.FORM in each.facets and value:
                self.parcel.references[name] = form.with_paths(value, self._take_named)
            elif facets.FILE in each.facets and value.startswith("@"):
                self.parcel.references[name] = f"@{self._take_named(value.removeprefix('@'))}"

    def _take_named(self, name: str) -> str:
        """Take a file or folder that a property names; returns how it is named on slaves."""
        path = Path(name)
        place = self._place(path)
        self._add(path, place)
        if path.is_file() and self._prepared.where.split_csv and path.suffix in (".csv", ".jsonl"):
            self._split(place, path, [], has_header=path.suffix == ".csv", may_be_quoted=path.suffix == ".csv")
        return f"{_THERE}/{place}"

    def _add(self, path: Path, place: str) -> None:
        """Add a file or folder to what the slaves receive; small files are searched for environment variables later."""
        self.parcel.files |= _files(path, place)
        if path.is_file() and path.stat().st_size <= _TEMPLATE_AT_MOST_BYTES:
            self._templates.append(path)

    def _split(self, place: str, path: Path, groups: Sequence[str], has_header: bool, may_be_quoted: bool) -> None:
        """Split the rows of a data set among the slaves with users of these groups; each slave gets the header line."""
        if place in self.parcel.parts[0]:
            return
        parts = [self.parcel.folder / "parts" / str(slave) / place for slave in range(self._slaves)]
        division = self.parcel.division
        senders = [slave for slave in range(self._slaves) if division.has_users(slave, groups)]
        senders = senders or list(range(self._slaves))
        n_rows = 0
        with ExitStack() as stack:
            files = []
            for part in parts:
                part.parent.mkdir(parents=True, exist_ok=True)
                files.append(stack.enter_context(part.open("wb")))
            source = stack.enter_context(path.open("rb"))
            if source.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                raise UsageError(f"--split-csv: {path} is in UTF-16; save it as UTF-8")
            source.seek(0)
            for number, text in enumerate(rows(source, may_be_quoted)):
                row = text if text.endswith(b"\n") else text + b"\n"
                if number == 0 and has_header:
                    for file in files:
                        file.write(row)
                elif row.strip():
                    files[senders[n_rows % len(senders)]].write(row)
                    n_rows += 1
        if n_rows < len(senders):
            raise UsageError(
                f"--split-csv: {path} has {units.plural(n_rows, 'row')} for {len(senders)} slaves: add rows, name "
                "fewer slaves with -R, or leave --split-csv out, so that each slave has all rows"
            )
        for of_slave, part in zip(self.parcel.parts, parts, strict=True):
            of_slave[place] = part

    def _find_secrets(self, elements: list[ET.Element]) -> None:
        files = [path.read_text(errors="replace") for path in self._templates]
        names = {name for text in (*self._prepared.settings.values.values(), *files) for name in SECRET.findall(text)}
        for text in (*files, *(text for element in elements for text in element.itertext())):
            names |= {name for match in _ENVIRONMENT.findall(text) for name in match if name}
        self.parcel.secrets = {name: os.environ[name] for name in sorted(names) if name in os.environ}


def _groups_of(root: ET.Element) -> dict[ET.Element, list[str]]:
    """The names of the thread groups whose users read each data set of a plan: of the one that it is in, or of all."""
    elements = plans.enabled_elements(root)
    groups = [each for each in elements if each.tag.endswith("ThreadGroup")]
    parents = {child: parent for parent in root.iter() for child in parent}
    names: dict[ET.Element, list[str]] = {}
    for element in elements:
        tree, own = parents.get(element), [title(group) for group in groups]
        while tree is not None and (above := parents.get(tree)) is not None:
            owner = list(above)[list(above).index(tree) - 1]
            if tree.tag == "hashTree" and owner in groups:
                own = [title(owner)]
                break
            tree = above
        names[element] = own
    return names


def _files(path: Path, place: str) -> dict[str, Path]:
    """Return a file, or all below a folder, by their places where this has the place `place`."""
    if path.is_file():
        return {place: path}
    return {f"{place}/{each.relative_to(path)}": each for each in sorted(path.rglob("*")) if each.is_file()}


def rows(file: Iterable[bytes], may_be_quoted: bool) -> Iterator[bytes]:
    """Yield the rows of a CSV file as they stand there; a line break within quotes belongs to its row."""
    row = b""
    for line in file:
        row += line
        if not may_be_quoted or row.count(b'"') % 2 == 0:
            yield row
            row = b""
    if row:
        yield row
