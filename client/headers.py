r"""Headers that the user adds to each request. They come by the environment: a process list shows no secret.

A line each (or \n between them), or @file with a line each. `${env:NAME}` is the value of a variable, which is
read here only, and masked where a server repeats it.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "FRAMESTORM_HEADERS"
_HEADER = re.compile(r"([!#-'*+.^`|~\w-]+)\s*:(.*)", re.ASCII)
_SECRET = re.compile(r"\$\{env:(\w+)\}")
_PORT = re.compile(r":\d*$", re.ASCII)
_LEAST_MASKED = 8  # characters of a word of a value, such as the key in `Bearer KEY`
_NOT_IN_HEADER = re.compile(r"[^\t -~\xa0-\xff]")

# What the value of a secret may look like in an answer, and how the headers have it.
_references: dict[str, str] = {}


def given() -> dict[str, str]:
    """Return the headers of FRAMESTORM_HEADERS, as jmx/java/plan/Given.java reads them; raise ValueError for others.

    Of a name that is given twice the values are joined. The length of a body is the client's own matter.
    """
    _references.clear()
    text = os.environ.get(VARIABLE, "")
    text = Path(text[1:]).read_text(encoding="utf-8-sig") if text.startswith("@") else text.replace("\\n", "\n")
    headers: dict[str, str] = {}
    for line in filter(None, map(str.strip, re.split(r"[\r\n]", text))):
        parts = _HEADER.fullmatch(line)
        if parts is None:
            raise ValueError(f"header {line!r} is not of the form Name: value")
        name, value = parts[1], _SECRET.sub(_value, parts[2].strip())
        if name.lower() == "transfer-encoding":
            raise ValueError("headers: leave Transfer-Encoding out: bodies are sent with their length")
        if wrong := _NOT_IN_HEADER.search(value):  # the value may be a secret
            raise ValueError(f"headers: {name}: its value has the character U+{ord(wrong[0]):04X}, which no header has")
        if name.lower() != "content-length":
            known = next((each for each in headers if each.lower() == name.lower()), name)
            between = "; " if name.lower() == "cookie" else ", "
            headers[known] = f"{headers[known]}{between}{value}" if known in headers else value
    return headers


def with_given(usual: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Return the usual headers and the others, which take the place of usual ones with the same name in any case."""
    names = {name.lower() for name in others}
    return {**{name: value for name, value in usual.items() if name.lower() not in names}, **others}


def server_name(headers: Mapping[str, str]) -> str | None:
    """Return the name in the Host header, as a TLS handshake has it: without a port; None if there is no such header.

    Gateways that route by name look at both (jmx/java/TlsSockets.java does the same for JMeter's samplers).
    """
    host = next((value for name, value in headers.items() if name.lower() == "host"), "")
    return _PORT.sub("", host).strip("[]") or None


def masked(text: str) -> str:
    """Return what a server says for a line, with ${env:NAME} in place of each secret that the headers have."""
    for form in sorted(_references, key=len, reverse=True):
        text = text.replace(form, _references[form])
    return text


def _value(secret: re.Match[str]) -> str:
    value = os.environ.get(secret[1])
    if value is None:
        raise ValueError(f"the environment has no variable {secret[1]}, which {secret[0]} asks for")
    words = (word for word in value.split() if len(word) >= _LEAST_MASKED)
    _references.update((form, secret[0]) for form in (value, json.dumps(value)[1:-1], *words) if form.strip())
    return value
