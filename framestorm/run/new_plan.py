"""Makes a plan from a curl command: requests.jmx or request-rate.jmx with other defaults."""

import base64
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.run import jmeter

BODY = ("-d", "--data", "--data-ascii", "--data-binary", "--data-raw", "--json")
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
    words, properties = [], {}
    given = iter(shlex.split(curl.replace("\\\n", " ")))
    for word in given:
        option, _, joined = word.partition("=") if word.startswith("--") else (word[:2], "", word[2:])
        if option not in (*BODY, *CERTIFICATE):
            words.append(word)
            continue
        value = joined or next(given, "")
        if option in CERTIFICATE:
            properties["certificate"] = f"@{os.path.relpath(value.partition(':')[0], folder)}"
        elif value.startswith("@") and option != "--data-raw":
            properties["body"] = f"@{os.path.relpath(value[1:], folder)}"
            words += ["--data-raw", "x"]
        else:
            words += ["--data-raw", value]
        if option == "--json":
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
        raise UsageError("--curl: forms (-F, --data-urlencode) are not supported; send the body by --data-binary @file")
    for option in request["ignored"]:
        print(f"note: curl's option {option} has no effect here", file=sys.stderr)
    return request, properties


def _headers(request: Request) -> str:
    lines = [f"{name}: {value}" for name, value in request["headers"]]
    if request["login"]:
        lines.append(f"Authorization: Basic {base64.b64encode(request['login'].encode()).decode()}")
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
