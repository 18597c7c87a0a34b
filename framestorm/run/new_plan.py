"""Makes a plan from a curl command: requests.jmx or request-rate.jmx with other defaults."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.run import jmeter

BODY = ("-d", "--data", "--data-ascii", "--data-binary", "--data-raw", "--data-urlencode", "--json")
LOGIN = "BASIC_LOGIN"
FORM = "application/x-www-form-urlencoded"
CERTIFICATE = ("-E", "--cert")
Request = dict[str, Any]
# Headers whose values should not be stored in a file.
SECRET_HEADER = re.compile(r"authorization|cookie|.*(key|token|secret).*", re.IGNORECASE)


def write(plan: Path, curl: str, base: Path) -> list[Path]:
    """Write a plan that sends the request of a curl command; headers and a body that curl holds get files beside it.

    Args:
        plan: the file of the new plan.
        curl: the command, as one would type it.
        base: the plan whose properties get new defaults.

    Returns:
        All files that were written.

    Raises:
        UsageError: a file exists, or the command needs something that the plan cannot do.
    """
    request, properties = _parsed(curl, plan.absolute().parent)
    texts = {
        "headers": (plan.with_suffix(".headers"), _headers(request)),
        "body": (_body_file(plan, request), request["body"]),
    }
    files = {path: text for name, (path, text) in texts.items() if text and name not in properties}
    for name, (path, text) in texts.items():
        if text:
            properties.setdefault(name, f"@{path.name}")
    for path in (plan, *files):
        if path.exists():
            raise UsageError(f"{path} exists; choose another name")
    # A bracket that no other one closes would end JMeter's function.
    url = request["url"].replace("(", "%28").replace(")", "%29")
    properties |= {"url": url, "method": request["method"]}
    if proxy := request["proxy"]:
        properties["proxy"] = f"{proxy['servername']}:{proxy['port']}"
    text = base.read_text().replace(f'testname="{base.stem}"', f'testname="{escape(plan.stem)}"', 1)
    scripts = os.path.relpath(paths.JMX / "groovy", plan.absolute().parent)
    text = text.replace("}/groovy</stringProp>", f"}}/{scripts}</stringProp>")
    for name, value in properties.items():
        call = f"${{__P({name},"
        text = re.sub(rf"{re.escape(call)}[^)]*\)\}}", lambda _: f"{call}{_parameter(value)})}}", text)  # noqa: B023 - used at once
    plan.write_text(text)
    for path, content in files.items():
        path.write_text(content, encoding="utf-8")
    return [plan, *files]


def _parsed(curl: str, folder: Path) -> tuple[Request, dict[str, str]]:
    """The request as JMeter parses the command, and the properties that JMeter's parser does not cover."""
    words: list[str] = []
    properties: dict[str, str] = {}
    parts: list[tuple[str, str]] = []
    is_query = False
    given = iter(shlex.split(curl.replace("\\\n", " ")))
    for word in given:
        option, _, joined = word.partition("=") if word.startswith("--") else (word[:2], "", word[2:])
        if option in ("-G", "--get"):
            is_query = True
        elif option in CERTIFICATE:
            certificate = (joined or next(given, "")).partition(":")[0]
            properties["certificate"] = f"@{os.path.relpath(certificate, folder)}"
        elif option in ("-k", "--insecure"):
            properties["ca"] = "none"
        elif option == "--cacert":
            properties["ca"] = f"@{os.path.relpath(joined or next(given, ''), folder)}"
        elif option in BODY:
            parts.append((option, joined or next(given, "")))
        else:
            words.append(word)
    body = ""
    if len(parts) == 1 and not is_query and _names_file(*parts[0]):
        properties["body"] = f"@{os.path.relpath(parts[0][1][1:], folder)}"
        body = "x"  # for the parser, which then chooses POST
    else:
        for option, value in parts:  # JSON follows JSON; all else is joined like the fields of a form
            body += ("&" if body and option != "--json" else "") + _part(option, value)
    if body and not is_query:
        words += ["--data-raw", body]
    if any(option == "--json" for option, _ in parts):
        words += ["-H", "Content-Type: application/json", "-H", "Accept: application/json"]
    jars = ":".join(str(paths.JMETER_HOME / folder) for folder in ("bin/ApacheJMeter.jar", "lib/*", "lib/ext/*"))
    script = str(Path(__file__).with_name("curl.groovy"))
    command = [str(paths.JAVA_HOME / "bin" / "java"), "-cp", jars, "groovy.ui.GroovyMain", script, shlex.join(words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=jmeter.environment())
    if done.returncode != 0:
        reason = next((line for line in done.stderr.splitlines() if "Exception" in line), done.stderr.strip())
        raise UsageError(f"--curl: JMeter cannot read this command: {reason}")
    request = json.loads(done.stdout.strip().splitlines()[-1])
    if not request["url"]:
        raise UsageError("--curl: the command has no URL")
    if request["forms"]:
        raise UsageError("--curl: multipart forms (-F) are not supported; send the body by --data-binary @file")
    if is_query and body:
        request["url"] += ("&" if "?" in request["url"] else "?") + body
    elif body and "body" not in properties:
        request["body"] = body  # the parser takes off line ends
    has_type = any(name.lower() == "content-type" for name, _ in request["headers"])
    if request["body"] and "body" not in properties and not has_type and request["body"].lstrip()[:1] not in "{[<":
        request["headers"].append(["Content-Type", FORM])  # as curl; JSON and XML are known by how they begin
    for option in request["ignored"]:
        print(f"note: curl's option {option} has no effect here", file=sys.stderr)
    return request, properties


def _names_file(option: str, value: str) -> bool:
    return value.startswith("@") and option not in ("--data-raw", "--data-urlencode")


def _part(option: str, value: str) -> str:
    """One part of a body as curl sends it."""
    if _names_file(option, value):
        text = _text(value[1:])
        return text if option in ("--data-binary", "--json") else re.sub(r"[\r\n]", "", text)
    if option != "--data-urlencode":
        return value
    name, sign, content = re.fullmatch(r"(?s)([^=@]*)([=@]?)(.*)", value).groups()  # type: ignore[union-attr]
    if not sign:
        name, content = "", name
    encoded = quote(_text(content) if sign == "@" else content, safe="")
    return f"{name}={encoded}" if name else encoded


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--curl: {file} cannot be read as a part of the body: {error}") from None


def _headers(request: Request) -> str:
    lines = [f"{name}: {value}" for name, value in request["headers"]]
    if request["login"]:
        lines.append(f"Authorization: ${{env:{LOGIN}}}")
        how = f"{LOGIN}=\"Basic $(printf %s 'user:password' | base64 -w0)\""
        print(f"note: the plan reads the login of -u from the environment: export {how}", file=sys.stderr)
    if request["cookies"]:
        lines.append(f"Cookie: {'; '.join(request['cookies'])}")
    for name, _, value in (line.partition(": ") for line in lines):
        if SECRET_HEADER.fullmatch(name) and "${env:" not in value:
            print(
                f"note: the header {name} is written to a file; ${{env:NAME}} keeps its value out of it",
                file=sys.stderr,
            )
    return "".join(f"{line}\n" for line in lines)


def _body_file(plan: Path, request: Request) -> Path:
    return plan.with_suffix(".body.json" if request["body"].lstrip()[:1] in ("{", "[") else ".body.txt")


def _parameter(value: str) -> str:
    """A value as a parameter of a JMeter function, in XML."""
    return escape(re.sub(r"([\\,$])", r"\\\1", value))
