"""Checks and completes the values that users set for properties of plans: files, forms, figures, programs, secrets."""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from framestorm.errors import UsageError
from framestorm.model import facets, form
from framestorm.model.foreign import read_utf_8
from framestorm.model.goodput import parse_objectives
from framestorm.model.plan import Plan
from framestorm.model.sample import is_figure_name, is_measured

# Resolved by jmx/java/plan/Secrets.java and the clients when a request is sent: no file or process list has the value.
SECRET = re.compile(r"\$\{env:(\w+)\}")
# What the value of a property has where it names a file, by its facet.
_SIGNS = {facets.FILE: "^@", facets.FORM: "[@<]", facets.PROGRAM: "/", facets.VIDEO: ""}
_HEADER = re.compile(r"(?P<name>[!#-'*+.^`|~\w-]+)\s*:(?P<value>.*)", re.ASCII)
_NOT_IN_HEADER = re.compile(r"[^\t -~\xa0-\xff]")


def complete(
    plan: Plan, properties: Mapping[str, str], given: Mapping[str, str], *, is_over_slaves: bool, is_for_gui: bool
) -> dict[str, str]:
    """Return the plan's properties with absolute paths, a name for each figure, and the paths of programs.

    Args:
        plan: whose properties they are.
        properties: as they are set, with the plan's defaults.
        given: those that the command line sets. Their files are relative to the working folder, others to the plan.
        is_over_slaves: programs are looked up on the slaves.
        is_for_gui: a missing value is not an error, because it can be set in the GUI.

    Raises:
        UsageError: a value cannot be used, or one that is needed is missing.
    """
    properties = dict(properties)
    _check_secrets(plan, properties)
    for name, each in plan.settable.items():
        if (is_form := facets.FORM in each.facets) or facets.FILE in each.facets:
            properties[name] = with_file(plan, name, properties.get(name, ""), given)
            if is_form:
                properties[name] = _form(name, properties[name], folder_of(plan, name, given))
            if name == "headers" and plan.is_for_kit:
                headers_of(properties[name])
        if facets.FIGURES in each.facets and properties.get(name):
            properties[name] = _figures(name, properties[name], plan.sample_variables)
        if facets.OBJECTIVES in each.facets:
            parse_objectives(properties.get(name, ""))
        if facets.PROGRAM in each.facets and properties.get(name):
            properties[name] = _program(name, properties[name], is_over_slaves)
        if is_for_gui:  # it can be set in the GUI
            continue
        if each.is_required and each.is_needed(properties) and not properties.get(name):
            of_function = facets.URL in each.facets and facets.GRPC not in each.facets
            example = f", for example -J{name}=http://gateway:8080/function/noop" if of_function else ""
            raise UsageError(f"{plan.path.name} needs -J{name}=…: {each.meaning}{example}")
    return properties


def folder_of(plan: Plan, name: str, given: Mapping[str, str]) -> Path:
    """Return the folder that a property's file is relative to: the working folder, or that of the plan for its own."""
    return Path.cwd() if name in given else plan.path.absolute().parent


def check_working_dir(began_in: str, plan: Plan, given: Mapping[str, str]) -> None:
    """Check that what goes on finds the files of its properties where it began; `began_in` may be empty: not known.

    Raises:
        UsageError: the working folder is another one, and a property has a path that is relative to it.
    """
    if began_in in ("", str(Path.cwd())):
        return
    for name, value in given.items():
        of = plan.settable[name].facets if name in plan.settable else ()
        is_path = any(facet in of and re.search(sign, value) for facet, sign in _SIGNS.items())
        if is_path and not value.removeprefix("@").startswith(("/", "~")):
            raise UsageError(f"--resume: {name}={value} is relative to {began_in}, where this began: go on there")


def with_file(plan: Plan, name: str, value: str, given: Mapping[str, str]) -> str:
    """Return a property's value; where that is `@FILE`, with the whole path.

    Raises:
        UsageError: the file is not there, or empty.
    """
    return _file_reference(name, value, folder_of(plan, name, given)) if value.startswith("@") else value


def _check_secrets(plan: Plan, properties: Mapping[str, str]) -> None:
    for name, value in properties.items():
        for variable in SECRET.findall(value):
            if plan.settable[name].facets[:1] == (facets.SHELL,):
                raise UsageError(f"-J{name}: the program itself can read {variable} from its environment")
            _secret(name, variable)


def _secret(name: str, variable: str) -> str:
    if variable not in os.environ:
        raise UsageError(f"-J{name}: ${{env:{variable}}} is not set: export {variable}=… before the run")
    return os.environ[variable]


def _file_reference(name: str, reference: str, folder: Path) -> str:
    path = folder / Path(reference.removeprefix("@")).expanduser()
    if reference == "@" or not path.exists():
        raise UsageError(f"-J{name}={reference}: there is no file or folder {path}")
    if not (any(path.iterdir()) if path.is_dir() else path.is_file() and path.stat().st_size):
        raise UsageError(f"-J{name}={reference}: {path} is empty, or neither a file nor a folder")
    return f"@{path}"


def headers_of(text: str, *, is_file: bool = False) -> list[tuple[str, str]]:
    """Read headers as clients and plans do that send them: client/headers.py and jmx/java/plan/Given.java.

    Raises:
        UsageError: they refuse them.
    """
    headers = []
    if text.startswith("@"):
        text, is_file = read_utf_8(Path(text[1:]), f"-Jheaders={text}"), True
    text = text if is_file else text.replace("\\n", "\n")
    for line in filter(None, map(str.strip, re.split(r"[\r\n]", text))):
        header = _HEADER.fullmatch(line)
        if header is None:
            raise UsageError(f"-Jheaders: header {line!r} is not of the form Name: value")
        name = header["name"]
        if name.lower() == "transfer-encoding":
            raise UsageError("-Jheaders: leave Transfer-Encoding out: bodies are sent with their length")
        value = SECRET.sub(lambda match: _secret("headers", match[1]), header["value"].strip())
        if wrong := _NOT_IN_HEADER.search(value):  # it may be of a secret: the value is not shown
            what = f"its value has the character U+{ord(wrong[0]):04X}, which cannot be sent in a header"
            raise UsageError(f"-Jheaders: {name}: {what}: percent-encode it, or leave it out")
        headers.append((name, value))
    return headers


def _form(name: str, text: str, folder: Path) -> str:
    """Return the form with the file paths in its fields made absolute."""
    try:
        if text.startswith("@"):
            path = Path(text.removeprefix("@"))
            folder, text = path.parent, read_utf_8(path, f"-J{name}={text}") + "\n"
        return form.with_paths(text, lambda path: _file_reference(name, f"@{path}", folder).removeprefix("@"))
    except ValueError as error:
        raise UsageError(f"-J{name}: {error}") from None


def _figures(name: str, text: str, columns: Sequence[str]) -> str:
    """Return figures of a JSON answer with the name of each: `$.usage.tokens` is `tokens=$.usage.tokens`."""
    paths_by_name: dict[str, str] = {}
    for each in re.split(r",\s*(?=(?:\w+\s*=\s*)?\$)", text):
        parts = re.fullmatch(r"\s*(?:(\w+)\s*=)?\s*(\$.*?)\s*", each)
        if parts is None:
            raise UsageError(f"-J{name}={text}: {each!r} is not of the form name=$.path")
        words = re.findall(r"[A-Za-z_]\w*(?!\w*\()", parts[2])
        figure = parts[1] or (words[-1].lower() if words else "")
        if not is_figure_name(figure) or not is_measured(figure):
            raise UsageError(
                f"-J{name}={text}: {figure!r} cannot be the name of a figure: use a-z, 0-9 and _, and a name that "
                f"samples do not have already; write it before the path, as in tokens={parts[2]}"
            )
        if figure.removesuffix("_ms") in {known.removesuffix("_ms") for known in (*paths_by_name, *columns)}:
            raise UsageError(f"-J{name}={text}: there are two figures {figure}; write another name before its path")
        paths_by_name[figure] = parts[2]
    return ", ".join(f"{figure}={path}" for figure, path in paths_by_name.items())


def _program(name: str, program: str, is_over_slaves: bool) -> str:
    """Return the path of a program; over slaves it is looked up there."""
    is_path = "/" in program
    if is_over_slaves:
        if is_path and not Path(program).is_absolute():
            raise UsageError(f"-J{name}={program}: slaves need an absolute path, or a name in their PATH")
        return program
    path = shutil.which(str(Path(program).expanduser().absolute()) if is_path else program)
    if path is None:
        place = "at this path" if is_path else f"in PATH; a file in this folder is ./{program}"
        raise UsageError(f"-J{name}={program}: there is no executable program {place}")
    if why := _why_not_run(Path(path)):
        raise UsageError(f"-J{name}={program}: {why}")
    return path


def _why_not_run(program: Path) -> str | None:
    """Return what is wrong with the interpreter that a script names, which the system would call a missing program."""
    if not os.access(program, os.R_OK):
        return None
    with program.open("rb") as file:
        line = file.readline(256).rstrip(b"\n").decode(errors="replace")
    if not line.startswith("#!"):
        return None
    if line.endswith("\r"):
        return "its lines end as on Windows, so that no interpreter is found; sed -i 's/\\r$//' corrects them"
    interpreter = next(iter(line[2:].split()), "")
    return None if Path(interpreter).is_file() else f"its first line asks for {interpreter!r}, which is not there"
