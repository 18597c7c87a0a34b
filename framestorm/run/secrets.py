"""Secrets in the values of properties: what stands there as it is, is recorded with the run."""

import re
from collections.abc import Iterable, Iterator, Mapping

from framestorm.run.properties import assigned
from framestorm.run.values import SECRET

_HEADER = re.compile(r"\s*(?P<name>[\w-]+)\s*:\s*(?P<value>.*\S)\s*")
# Headers, properties and parameters of an address whose values are secrets.
_SECRET_NAME = re.compile(
    r".*(?:authorization|cookie|token|secret|password|passwd|api[-_.]?key|access[-_.]?key|credential|signature).*",
    re.IGNORECASE,
)
# What says how it is meant, such as the name of the cookie or of the file, is none.
_NO_SECRET_NAME = re.compile(r".*(?:_file|_path|_url|token_?type|max_?tokens?|tokens)$|set-cookie", re.IGNORECASE)
_USER_INFO = re.compile(r"(?:^|//)[^/@\s:]*:(?P<value>[^/@\s]+)@")
_PARAMETER = re.compile(r"[?&](?P<name>[^=&#]+)=(?P<value>[^&#]+)")


def literal_secrets(given: Mapping[str, str], letter: str = "-J", *, is_for_kit: bool = True) -> list[str]:
    """Return a sentence for each secret that stands as it is in a value that the command line sets by this letter.

    Only the kit's plans read `${env:NAME}`, in their own properties; any other can read the environment by a function.
    """
    return list(dict.fromkeys(_literal(given, letter, is_for_kit=is_for_kit)))


def secrets_of_java(words: Iterable[str]) -> list[str]:
    """Return a sentence for each secret that stands as it is in a word of -D."""
    given = assigned((word[2:] for word in words if word.startswith("-D")), "-D")
    recorded = "has a literal value, which is recorded in the run's files; a file of -S keeps it out"
    return [f"-D{name} {recorded}" for name, value in given.items() if _is_secret(name, value)]


def is_secret_header(name: str, value: str) -> bool:
    """Return whether a header has a secret that stands as it is in its value; each key is one."""
    return _is_secret(name, value) or ("key" in name.lower() and _is_literal(value))


def _literal(given: Mapping[str, str], letter: str, *, is_for_kit: bool) -> Iterator[str]:
    for name, value in given.items():
        if name == "headers" and not value.startswith("@"):
            for line in re.split(r"\n|\\n", value):
                header = _HEADER.fullmatch(line)
                if header and is_secret_header(header["name"], header["value"]):
                    kept = f"{header['name']}: " + ("Bearer ${env:NAME}" if "bearer" in line.lower() else "${env:NAME}")
                    yield _sentence(f"the header {header['name']} has a literal value", f"{letter}headers='{kept}'")
        elif _is_secret(name, value):
            of_plan = f"${{__groovy(System.getenv('NAME'))}} in place of {letter}{name}, in the plan,"
            kept = f"{letter}{name}='${{env:NAME}}'" if is_for_kit else of_plan
            yield _sentence(f"{letter}{name} has a literal value", kept)
        info = _USER_INFO.search(value) if name in ("url", "proxy") else None
        if info and not SECRET.search(info["value"]):
            yield _sentence(f"{letter}{name} has a literal password", "user:${env:NAME}@ in single quotes")
        for parameter in _PARAMETER.finditer(value) if name == "url" else ():
            is_key = parameter["name"].lower() in ("key", "sig", "code")
            if (is_key and not SECRET.search(parameter["value"])) or _is_secret(*parameter.groups()):
                kept = f"{parameter['name']}=${{env:NAME}} in single quotes"
                yield _sentence(f"{parameter['name']} in {letter}url has a literal value", kept)


def _is_secret(name: str, value: str) -> bool:
    if not _SECRET_NAME.fullmatch(name) or _NO_SECRET_NAME.fullmatch(name):
        return False
    return _is_literal(value)


def _is_literal(value: str) -> bool:
    # A value from a row or a function of the plan is not known here.
    return bool(value) and not SECRET.search(value) and not re.search(r"\{[^{}]+\}|\$\{", value)


def _sentence(what: str, kept_out: str) -> str:
    return f"{what}, which is recorded in the run's files; {kept_out} keeps it out, after export NAME=…"
