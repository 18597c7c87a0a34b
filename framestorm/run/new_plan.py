"""Makes a plan of one of the kit's with other defaults: from a curl command, or for a model that is called by gRPC."""

import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path

from framestorm.endpoint import proxy_url
from framestorm.errors import UsageError
from framestorm.model import form
from framestorm.model import plan as plans
from framestorm.plain import note
from framestorm.run import curl
from framestorm.run.secrets import is_secret_header, literal_secrets

LOGIN = "BASIC_LOGIN"
_DEFAULT = re.compile(r"\$\{__P\((\w+),.*\)\}", re.DOTALL)


def write_for_model(plan: Path, url: str, headers: Sequence[str], base: Path) -> list[Path]:
    """Write a plan that calls a model by gRPC; its headers get a file beside it.

    Args:
        plan: the file of the new plan.
        url: of the model, with grpc:// or grpcs://.
        headers: as curl's -H takes them.
        base: the plan whose properties get new defaults.

    Returns:
        All files that were written.

    Raises:
        UsageError: a file exists, or the URL is of no model.
    """
    texts: dict[str, tuple[Path, str | bytes]] = {
        "headers": (plan.with_suffix(".headers"), "".join(f"{header}\n" for header in headers))
    }
    return _write(plan, base, {"url": url}, texts)


def write(plan: Path, command: str, base: Path, expect: str = "", body: bytes = b"") -> list[Path]:
    """Write a plan that sends the request of a curl command; its headers, body and form get files beside it.

    Args:
        plan: the file of the new plan.
        command: the curl command, as one would type it.
        base: the plan whose properties get new defaults.
        expect: what a right answer has, as the property of that name says it.
        body: sent in place of the command's, if it is not empty.

    Returns:
        All files that were written.

    Raises:
        UsageError: a file exists, or the command needs something that the plan cannot do.
    """
    request = curl.parse(command)
    folder = plan.absolute().parent
    # What a file holds is sent as it is.
    is_inline = "${env:" in request.body
    texts: dict[str, tuple[Path, str | bytes]] = {
        "headers": (plan.with_suffix(".headers"), _headers(request)),
        "body": (_body_file(plan, request), "" if is_inline else request.body),
        **({"body": (plan.with_suffix(".body.bin"), body)} if body else {}),
        "form": (plan.with_suffix(".form"), _form(request, folder)),
    }
    ca = "" if request.is_insecure else request.ca
    files = {"body": request.body_file, "certificate": request.certificate, "ca": ca}
    values = {
        # A bracket that no other one closes would end JMeter's function.
        "url": request.url.replace("(", "%28").replace(")", "%29"),
        "method": request.method,
        "proxy": request.proxy,
        **({"ca": "none"} if request.is_insecure else {}),
        **{name: f"@{os.path.relpath(path, folder)}" for name, path in files.items() if path},
        **({"body": request.body} if is_inline else {}),
        **request.timeouts,
        **({"expect": expect} if expect else {}),
    }
    proxy_url(request.proxy)
    written = _write(plan, base, values, texts)
    _say_notes(request)
    return written


def _write(
    plan: Path, base: Path, values: Mapping[str, str], texts: Mapping[str, tuple[Path, str | bytes]]
) -> list[Path]:
    """Write the base with these defaults, and each text that is not empty to its file, which is a default too."""
    texts = {name: (path, text) for name, (path, text) in texts.items() if text}
    for path in (plan, *(path for path, _ in texts.values())):
        if path.exists():
            raise UsageError(f"{path} exists; choose another name")
    values = {**values, **{name: f"@{path.name}" for name, (path, _) in texts.items()}}
    described = plans.read(base)
    for name, value in values.items():
        described.check(name, value)
    _with_defaults(base, plan, values).write(plan, encoding="UTF-8", xml_declaration=True)
    for path, text in texts.values():
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [plan, *(path for path, _ in texts.values())]


def _with_defaults(base: Path, plan: Path, values: Mapping[str, str]) -> "ET.ElementTree[ET.Element]":
    """Return the base with its new name and other defaults of its properties."""
    tree = ET.parse(base)  # noqa: S314 - one of the kit's
    for element in tree.iter():
        text = element.text or ""
        if element.tag == "TestPlan":
            element.set("testname", plan.stem)
        elif (match := _DEFAULT.fullmatch(text)) and match[1] in values:
            element.text = _call(match[1], values[match[1]])
    return tree


def _headers(request: curl.Request) -> str:
    lines = [f"{name}: {value}\n" for name, value in request.headers]
    if request.login:
        lines.append(f"Authorization: ${{env:{LOGIN}}}\n")
    return "".join(lines)


def _form(request: curl.Request, folder: Path) -> str:
    lines = form.with_paths("\n".join(map(str, request.form)), lambda path: os.path.relpath(path, folder))
    return lines and f"{lines}\n"


def _body_file(plan: Path, request: curl.Request) -> Path:
    return plan.with_suffix(".body.json" if request.body.lstrip()[:1] in ("{", "[") else ".body.txt")


def _call(name: str, value: str) -> str:
    """Return the call of JMeter's function that gives a property, or else this value."""
    escaped = re.sub(r"([\\,$])", r"\\\1", value)
    call = f"${{__P({name},{escaped})}}"
    if dict(plans.references(call)) != {name: value}:
        raise UsageError(f"--curl: {name}: JMeter cannot read a value that has both ${{env:…}} and an unpaired bracket")
    return call


def _say_notes(request: curl.Request) -> None:
    notes = []
    if request.login:
        how = f"{LOGIN}=\"Basic $(printf %s 'user:password' | base64 -w0)\""
        notes.append(f"the plan reads the login of -u from the environment: export {how}")
    for name, value in request.headers:
        if is_secret_header(name, value):
            notes.append(f"the header {name} is written to a file; ${{env:NAME}} keeps its value out of it")
    notes += [
        f"the plan has a secret: {each}" for each in literal_secrets({"url": request.url, "proxy": request.proxy})
    ]
    if request.without_effect:
        notes.append(f"without effect here: {' '.join(request.without_effect)}")
    for text in notes:
        note(text)
