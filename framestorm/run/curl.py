"""Reads a curl command line as curl would."""

import argparse
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from framestorm.errors import UsageError

FORM = "application/x-www-form-urlencoded"
BODY = ("-d", "--data", "--data-ascii", "--data-binary", "--data-raw", "--data-urlencode", "--json")
REFUSED = {
    "-F --form --form-string": "multipart forms are not supported; send the body by --data-binary @file",
    "--key --pass": "put the certificate and its key into one PEM file for --cert",
    "-K --config --next -:": "give one command with all of its options",
}
# What changes neither the request nor what counts as its answer.
WITHOUT_EFFECT = (
    "-s --silent -S --show-error -v --verbose -i --include -f --fail --fail-with-body -N --no-buffer -g --globoff -O "
    "--remote-name -J --remote-header-name -L --location --location-trusted -# --progress-bar --no-progress-meter "
    "-0 --http1.0 --http1.1 --http2 --http2-prior-knowledge --tlsv1 --tlsv1.2 --tlsv1.3 -4 --ipv4 -6 --ipv6 -j "
    "--tcp-nodelay --path-as-is --retry-connrefused --retry-all-errors --basic"
)
WITHOUT_EFFECT_WITH_VALUE = (
    "-o --output -w --write-out -D --dump-header -c --cookie-jar --retry --retry-delay --retry-max-time --limit-rate "
    "--trace --trace-ascii --stderr --max-redirs -y --speed-time -Y --speed-limit --keepalive-time --tls-max --ciphers"
)
# https://www.gnu.org/software/bash/manual/html_node/ANSI_002dC-Quoting.html, which browsers use in what they copy.
_QUOTED = re.compile(r"""\$'((?:[^'\\]|\\.)*)'|'[^']*'|"(?:[^"\\]|\\.)*"|\\.""", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|[uU]([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass
class Request:
    """What a curl command sends; a path in it is as curl resolves it, relative to the working directory."""

    url: str
    method: str
    headers: list[tuple[str, str]]
    body: str = ""
    body_file: str = ""  # sent as it is, in place of `body`
    login: str = ""  # user:password
    proxy: str = ""
    ca: str = ""
    is_insecure: bool = False
    certificate: str = ""
    timeouts: dict[str, str] = field(default_factory=dict)  # s, by the property of the plan
    without_effect: list[str] = field(default_factory=list)

    def has(self, header: str) -> bool:
        return any(name.lower() == header.lower() for name, _ in self.headers)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"--curl: {message}")


class _Part(argparse.Action):
    """An option that gives a part of the body; its name says how."""

    def __call__(self, _: Any, given: argparse.Namespace, value: Any, option: str | None = None) -> None:
        given.parts.append((option, value))


class _WithoutEffect(argparse.Action):
    def __call__(self, _: Any, given: argparse.Namespace, value: Any, option: str | None = None) -> None:
        given.without_effect.append(option)


class _Refused(argparse.Action):
    def __call__(self, parser: Any, given: Any, value: Any, option: str | None = None) -> None:
        parser.error(f"{option}: {next(why for names, why in REFUSED.items() if option in names.split())}")


def _parser() -> _Parser:
    parser = _Parser(prog="curl", add_help=False, allow_abbrev=False)
    add = parser.add_argument
    parser.set_defaults(parts=[], without_effect=[])
    add("words", nargs="*")
    add("--url", action="append", default=[], dest="urls")
    add("-X", "--request")
    add("-H", "--header", action="append", default=[], dest="headers")
    for option in BODY:
        add(option, action=_Part)
    add("-T", "--upload-file")
    add("-G", "--get", action="store_true")
    add("-I", "--head", action="store_true")
    add("-u", "--user", default="")
    add("--oauth2-bearer")
    add("-A", "--user-agent")
    add("-e", "--referer")
    add("-r", "--range")
    add("-b", "--cookie", action="append", default=[], dest="cookies")
    add("--compressed", action="store_true")
    add("-x", "--proxy", default="")
    add("-U", "--proxy-user")
    add("-k", "--insecure", action="store_true")
    add("--cacert", default="")
    add("-E", "--cert", default="")
    add("-m", "--max-time")
    add("--connect-timeout")
    add(*WITHOUT_EFFECT.split(), nargs=0, action=_WithoutEffect)
    add(*WITHOUT_EFFECT_WITH_VALUE.split(), action=_WithoutEffect)
    for names in REFUSED:
        add(*names.split(), action=_Refused)
    return parser


def parse(command: str) -> Request:
    """The request of a command as one would type it, or as a browser copies it.

    Raises:
        UsageError: it is no curl command, or asks for what a plan cannot do.
    """
    given = _parser().parse_intermixed_args(_words(command))
    urls = [*given.urls, *given.words]
    if len(urls) != 1:
        raise UsageError(f"--curl: expected one URL, found {' and '.join(urls) or 'none'}")
    url, login = _without_login(urls[0] if "://" in urls[0] else f"http://{urls[0]}")
    body = ""
    is_file = len(given.parts) == 1 and not given.get and _names_file(*given.parts[0])
    if not is_file:
        for option, value in given.parts:  # JSON follows JSON; all else is joined like the fields of a form
            body += ("&" if body and option != "--json" else "") + _part(option, value)
    if given.get and body:
        url, body = f"{url}{'&' if urlsplit(url).query else '?'}{body}", ""
    body_file = given.upload_file or (given.parts[0][1][1:] if is_file else "")
    method = "HEAD" if given.head else "PUT" if given.upload_file else "POST" if body or body_file else "GET"
    request = Request(url, given.request or method, _headers(given), body, body_file, given.user or login)
    if any(option == "--json" for option, _ in given.parts):
        for name in ("Content-Type", "Accept"):
            if not request.has(name):
                request.headers.append((name, "application/json"))
    elif body and not request.has("Content-Type") and body.lstrip()[:1] not in "{[<":
        request.headers.append(("Content-Type", FORM))  # as curl; JSON and XML are known by how they begin
    request.proxy, request.ca, request.is_insecure = given.proxy, given.cacert, given.insecure
    if given.proxy_user:
        scheme, sign, host = given.proxy.rpartition("://")
        request.proxy = f"{scheme}{sign}{given.proxy_user}@{host}"
    request.certificate = given.cert.partition(":")[0]
    timeouts = {"timeout_s": given.max_time, "connect_timeout_s": given.connect_timeout}
    request.timeouts = {name: value for name, value in timeouts.items() if value}
    request.without_effect = list(dict.fromkeys(given.without_effect))
    return request


def _words(command: str) -> Sequence[str]:
    try:
        words = shlex.split(_QUOTED.sub(_plainly_quoted, command.replace("\\\r\n", " ").replace("\\\n", " ")))
    except ValueError as error:
        raise UsageError(f"--curl: the command is cut off: {error}") from None
    if words[:1] == ["$"]:  # the prompt
        words = words[1:]
    if not words or Path(words[0]).name not in ("curl", "curl.exe"):
        raise UsageError(f"--curl: expected a command that begins with curl, found {' '.join(words[:1]) or 'nothing'}")
    return words[1:]


def _plainly_quoted(match: re.Match[str]) -> str:
    if match[1] is None:  # in double quotes, shlex knows fewer escapes than a shell
        return re.sub(r"(?s)\\(.)", lambda escape: escape[1] if escape[1] in "$`" else escape[0], match[0])
    return shlex.quote(_ESCAPE.sub(_unescaped, match[1]))


def _unescaped(match: re.Match[str]) -> str:
    hexadecimal, octal, letter = match[1] or match[2], match[3], match[4]
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    return chr(int(octal, 8)) if octal else _ESCAPES.get(letter, letter)


def _without_login(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    return (urlunsplit(parts._replace(netloc=host)), unquote(login)) if at else (url, "")


def _headers(given: argparse.Namespace) -> list[tuple[str, str]]:
    headers = []
    for line in given.headers:
        name, colon, value = line.partition(":")
        if not colon:
            raise UsageError(f"--curl: -H {line}: expected Name: value")
        if value.strip():  # else curl leaves its own header of this name out
            headers.append((name.strip(), value.strip()))
    if files := [cookie for cookie in given.cookies if "=" not in cookie]:
        raise UsageError(f"--curl: -b {files[0]}: give the cookies themselves, name=value")
    more = {
        "Cookie": "; ".join(given.cookies),
        "Authorization": given.oauth2_bearer and f"Bearer {given.oauth2_bearer}",
        "User-Agent": given.user_agent,
        "Referer": given.referer,
        "Range": given.range and f"bytes={given.range}",
        "Accept-Encoding": "gzip, deflate" if given.compressed else "",
    }
    return headers + [(name, value) for name, value in more.items() if value]


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
