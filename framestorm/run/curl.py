"""Reads a curl command line as curl would."""

import re
import shlex
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from getopt import GetoptError, gnu_getopt
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from framestorm.errors import UsageError
from framestorm.model import form as forms

FORM_OPTIONS = ("form", "form-string")
FORM = "application/x-www-form-urlencoded"
BODY = ("data", "data-ascii", "data-binary", "data-raw", "data-urlencode", "json")
# Options by their long names; what stands before an equals sign is the short name. First those that a plan follows.
WITH_VALUE = """
    F=form form-string d=data data-ascii data-binary data-raw data-urlencode json X=request H=header url T=upload-file
    u=user oauth2-bearer A=user-agent e=referer r=range b=cookie x=proxy U=proxy-user cacert E=cert m=max-time
    connect-timeout
"""
FLAGS = "G=get I=head k=insecure compressed"
# These change neither the request nor what counts as its answer.
WITHOUT_EFFECT_WITH_VALUE = """
    o=output w=write-out D=dump-header c=cookie-jar retry retry-delay retry-max-time limit-rate trace trace-ascii
    stderr max-redirs y=speed-time Y=speed-limit keepalive-time tls-max ciphers proto proto-default proto-redir
    noproxy output-dir parallel-max
"""
WITHOUT_EFFECT = """
    s=silent S=show-error v=verbose i=include f=fail fail-with-body N=no-buffer g=globoff O=remote-name
    J=remote-header-name L=location location-trusted #=progress-bar no-progress-meter 0=http1.0 http1.1 http2
    http2-prior-knowledge http3 1=tlsv1 tlsv1.2 tlsv1.3 4=ipv4 6=ipv6 j=junk-session-cookies tcp-nodelay path-as-is
    retry-connrefused retry-all-errors basic q=disable Z=parallel fail-early create-dirs no-keepalive
"""
REFUSED = {
    "key pass": "put the certificate and its key into one PEM file for --cert",
    "K=config next": "give one command with all of its options",
    "aws-sigv4": "the signature of a request depends on its time: sign it in a plan of your own",
    "resolve connect-to": "put the address into the URL, and the name into -H 'Host: NAME'",
    "unix-socket abstract-unix-socket": "JMeter cannot connect to a Unix socket: let the function listen on a TCP port",
    "socks4 socks4a socks5 socks5-hostname preproxy": (
        "leave it out, and run the plan with -D socksProxyHost=HOST -D socksProxyPort=PORT"
    ),
}
REFUSED_FLAGS = {
    "digest ntlm negotiate anyauth": (
        "the plan can log in by Basic or by a header; for other ways, add an HTTP Authorization Manager to a plan of "
        "your own in JMeter's window"
    ),
}
# JMeter makes these headers itself.
OF_THE_BODY = ("content-length", "transfer-encoding")
# https://www.gnu.org/software/bash/manual/html_node/ANSI_002dC-Quoting.html, which browsers use in what they copy.
# Outside of quotes, a backslash joins two lines in a shell, and a backtick in PowerShell.
_QUOTED = re.compile(
    r"""\$'((?:[^'\\]|\\.)*)'|'[^']*'|"(?:[^"\\]|\\.)*"|\\(?:\r?\n|.)|\$\(|`(?:\r?\n)?|\$\{?[A-Za-z_]\w*\}?"""
    r"""|(;\s|\s(?:[\\`]\r?\n)*(?:[|&;]|\d?[<>])).*""",
    re.DOTALL,
)
# In double quotes or in none: an escaped character, a variable, a command.
_EXPANDED = re.compile(r"\\(\r?\n|.)|\$(?:\{(\w+)\}|([A-Za-z_]\w*))|(\$\(|`)", re.DOTALL)
# What curl makes several URLs of, unless -g is given; not an address in brackets, nor a variable.
_SEVERAL = re.compile(r"(?<!\$)\{[^{}]*,[^{}]*\}|\[\w+-\w+(?::\d+)?\]")
# For the shell of Windows, ^ stands before a character that means something to it, and before the end of a line.
_FOR_WINDOWS = re.compile(r'\^"|\^\r?$', re.MULTILINE)
_CARET = re.compile(r'\^(?:\r?\n(\r?\n)?|(.))|("[^"\r\n]*")')
# Browsers write a character beyond the first 65,536 as two halves.
_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|u((?:[dD][89abAB][0-9A-Fa-f]{2}\\u)?[0-9A-Fa-f]{1,4})"
    r"|U([0-9A-Fa-f]{1,8})|(.))",
    re.DOTALL,
)
_BYTE = re.compile("[\udc80-\udcff]")  # one that is no UTF-8, as Python's surrogateescape has it
_LINE_ENDS = re.compile(r"[\r\n\0]")  # what -d leaves out of a file
_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    **{sign: sign for sign in "\\'\"?"},
}  # fmt: skip


@dataclass(frozen=True)
class Request:
    """What a curl command sends; a path in it is as curl resolves it, relative to the working directory.

    body_file: sent as it is, in place of `body`. form: in place of both.
    login: user:password; empty beside a header Authorization, which curl sends in its place.
    timeouts: in s, by the property of the plan.
    without_effect: options that a plan need not follow.
    """

    url: str
    method: str
    headers: list[tuple[str, str]]
    body: str
    body_file: str
    form: list[forms.Field]
    login: str
    proxy: str
    ca: str
    is_insecure: bool
    certificate: str
    timeouts: dict[str, str]
    without_effect: list[str]


def parse(command: str) -> Request:
    """Return the request of a command as one would type it, or as a browser copies it.

    Raises:
        UsageError: it is not a curl command, or asks for what a plan cannot do.
    """
    options, urls = _options(_words(command))
    values: dict[str, list[str]] = defaultdict(list)
    for name, value in options:
        values[name].append(value)
    last = {name: given[-1] for name, given in values.items()}
    urls += values["url"]
    if len(urls) != 1:
        raise UsageError(f"--curl: expected one URL, found {' and '.join(urls) or 'none'}")
    url, login = _without_login(urls[0] if "://" in urls[0] else f"http://{urls[0]}")
    if "globoff" not in values and (several := _SEVERAL.search(url)):
        raise UsageError(f"--curl: {several[0]} stands for several URLs: write one out, or add -g to send it as it is")
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"--curl: {url}: expected http:// or https://")
    if "${env:" in urlsplit(url).netloc:
        raise UsageError(f"--curl: {url}: write scheme, host and port out; a variable may follow them")
    url = url.partition("#")[0]
    if "upload-file" in values and "?" not in url and (path := urlsplit(url).path)[-1:] in ("", "/"):
        url += ("" if path else "/") + quote(re.split(r"[/\\]", last["upload-file"])[-1], safe="")
    if "@-" in last.values():
        raise UsageError("--curl: @-: put the body into a file of its own, and give its name")
    body, body_file = _body([each for each in options if each[0] in BODY], is_query="get" in values)
    if "get" in values and body:
        url, body = f"{url}{'&' if urlsplit(url).query else '?'}{body}", ""
    body_file = last.get("upload-file", body_file)
    form = [_field(*each) for each in options if each[0] in FORM_OPTIONS]
    if form and (body or body_file):
        raise UsageError("--curl: -F: a request has either a form or a body")
    is_post = body_file or form or ("get" not in values and any(name in values for name in BODY))
    method = "HEAD" if "head" in values else "PUT" if "upload-file" in values else "POST" if is_post else "GET"
    proxy = last.get("proxy", "")
    if "proxy-user" in last:
        scheme, sign, host = proxy.rpartition("://")
        proxy = f"{scheme}{sign}{last['proxy-user']}@{host}"
    timeouts = {"timeout_s": last.get("max-time"), "connect_timeout_s": last.get("connect-timeout")}
    ignored = _short_names(WITHOUT_EFFECT, WITHOUT_EFFECT_WITH_VALUE)
    own_headers = {line.partition(":")[0].strip().lower() for line in values["header"]}
    has_authorization = "oauth2-bearer" in values or "authorization" in own_headers
    return Request(
        url=url,
        method=last.get("request", method),
        headers=_headers(values, body),
        body=body,
        body_file=body_file,
        form=form,
        login="" if has_authorization else last.get("user", login),
        proxy=proxy,
        ca=last.get("cacert", ""),
        is_insecure="insecure" in values,
        certificate=last.get("cert", "").partition(":")[0],
        timeouts={name: value for name, value in timeouts.items() if value},
        without_effect=[
            *(f"--{name}" for name in values if name in ignored),
            *(["the password in --cert (-Jcertificate_password sets it)"] if ":" in last.get("cert", "") else []),
            *(f"-H '{line}'" for line in values["header"] if line.partition(":")[0].strip().lower() in OF_THE_BODY),
        ],
    )


def _short_names(*names: str) -> dict[str, str]:
    """Map each long option name to its short name, or to an empty string if there is none."""
    parts = (name.rpartition("=") for name in " ".join(names).split())
    return {long: short for short, _, long in parts}


def _options(words: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the options by their long names with their values, in order, and the other words."""
    flags = _short_names(FLAGS, WITHOUT_EFFECT, *REFUSED_FLAGS)
    with_value = _short_names(WITH_VALUE, WITHOUT_EFFECT_WITH_VALUE, *REFUSED)
    letters = "".join(flags.values()) + "".join(f"{short}:" for short in with_value.values() if short)
    try:
        given, others = gnu_getopt(list(words), letters, [*flags, *(f"{name}=" for name in with_value)])
    except GetoptError as error:
        hint = "; leave it out if the request is the same without it" if "not recognized" in error.msg else ""
        raise UsageError(f"--curl: {error.msg}{hint}") from None
    long_names = {f"-{short}": long for long, short in (flags | with_value).items() if short}
    options = [(long_names.get(option) or option.removeprefix("--"), value) for option, value in given]
    for names, why in (REFUSED | REFUSED_FLAGS).items():
        if refused := _short_names(names).keys() & {name for name, _ in options}:
            raise UsageError(f"--curl: --{min(refused)}: {why}")
    return options, others


def _words(command: str) -> Sequence[str]:
    if _FOR_WINDOWS.search(command):
        text = _CARET.sub(lambda match: match[3] or match[2] or match[1] or "", command)
    else:
        text = _QUOTED.sub(_plainly_quoted, command)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--curl: the command is cut off: {error}") from None
    if words[:1] == ["$"]:  # the prompt
        words = words[1:]
    if not words or Path(words[0]).name not in ("curl", "curl.exe"):
        raise UsageError(f"--curl: expected a command that begins with curl, found {' '.join(words[:1]) or 'nothing'}")
    return words[1:]


def _plainly_quoted(match: re.Match[str]) -> str:
    if match[1] is not None:
        text = _ESCAPE.sub(_unescaped, match[1]).encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
        # Browsers write the letters of Latin-1 as one byte each.
        return shlex.quote(_BYTE.sub(lambda byte: chr(ord(byte[0]) - 0xDC00), text))
    if match[2]:  # what is done with the answer
        return ""
    if match[0].startswith("`") and match[0].endswith("\n"):
        return " "
    return match[0] if match[0].startswith("'") else _EXPANDED.sub(_expanded, match[0])


def _expanded(match: re.Match[str]) -> str:
    if match[4]:
        raise UsageError(f"--curl: {match[4]}: put the output of that command into a variable of the environment")
    if match[1] is None:
        return f"${{env:{match[2] or match[3]}}}"
    if match[1].endswith("\n"):
        return ""
    return match[1] if match[1] in "$`" else match[0]  # in double quotes, shlex knows fewer escapes than a shell


def _unescaped(match: re.Match[str]) -> str:
    hexadecimal, octal, halves, code, letter = match.groups()
    if hexadecimal or octal:
        byte = int(hexadecimal, 16) if hexadecimal else int(octal, 8) & 0xFF
        return chr(byte if byte < 0x80 else 0xDC00 + byte)
    if halves:
        units = b"".join(int(half, 16).to_bytes(2, "little") for half in halves.split(r"\u"))
        return units.decode("utf-16-le", "replace")
    if code:
        try:
            return int(code, 16).to_bytes(4, "little").decode("utf-32-le")
        except UnicodeDecodeError:
            raise UsageError(f"--curl: {match[0]}: there is no such character") from None
    return _ESCAPES.get(letter, match[0])


def _without_login(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise UsageError(f"--curl: {url}: {error}") from None
    login, at, host = parts.netloc.rpartition("@")
    return (urlunsplit(parts._replace(netloc=host)), unquote(login)) if at else (url, "")


def _headers(values: dict[str, list[str]], body: str) -> list[tuple[str, str]]:
    headers = []
    for line in values["header"]:
        name, colon, value = line.partition(":")
        if not colon:
            raise UsageError(f"--curl: -H {line}: expected Name: value")
        if re.search(r"[\r\n]", line.strip()):
            raise UsageError(f"--curl: -H {line!r}: a header is one line: write a -H for each")
        headers.append((name.strip(), value.strip()))
    if files := [cookie for cookie in values["cookie"] if "=" not in cookie]:
        raise UsageError(f"--curl: -b {files[0]}: give the cookies themselves, name=value")
    texts = {"oauth2-bearer": ("Authorization", "Bearer {}"), "range": ("Range", "bytes={}")}
    texts |= {"user-agent": ("User-Agent", "{}"), "referer": ("Referer", "{}")}
    usual = [(name, text.format(values[option][-1])) for option, (name, text) in texts.items() if values[option]]
    if values["cookie"]:
        usual.append(("Cookie", "; ".join(values["cookie"])))
    if values["compressed"]:
        usual.append(("Accept-Encoding", "gzip, deflate"))
    if values["json"]:
        usual += [("Content-Type", "application/json"), ("Accept", "application/json")]
    elif body and not _is_json(body):  # which is known by how it begins, and needs no -H here
        usual.append(("Content-Type", FORM))
    own = {name.lower() for name, _ in headers}
    headers += [each for each in usual if each[0].lower() not in own]
    # With nothing after the colon, curl leaves its own header of this name out.
    return [(name, value) for name, value in headers if value and name.lower() not in OF_THE_BODY]


def _body(parts: Sequence[tuple[str, str]], *, is_query: bool) -> tuple[str, str]:
    """Return the text of the body, or the path of a file to send unchanged; the other of the two is empty."""
    if len(parts) == 1 and not is_query and _names_file(*parts[0]):
        (option, value), file = parts[0], Path(parts[0][1][1:])
        # -d sends a file without its line ends, and as a form.
        if option not in ("data", "data-ascii") or not file.is_file():
            return "", value[1:]
        if _is_json(text := _text(value[1:])) and _LINE_ENDS.search(text) is None:
            return "", value[1:]
    body = ""
    for option, value in parts:  # JSON follows JSON; all else is joined like the fields of a form
        body += ("&" if body and option != "json" else "") + _part(option, value)
    return body, ""


def _field(option: str, text: str) -> forms.Field:
    """Return a field of a form; raises UsageError if the plan's property `form` cannot hold it as curl sends it."""
    quoted = re.fullmatch(r'(?s)([^=]*=[@<]?)"((?:[^"\\]|\\.)*)"(.*)', text) if option == "form" else None
    plain = quoted[1] + re.sub(r'\\(["\\])', r"\1", quoted[2]) + quoted[3] if quoted else text
    try:
        field, *_ = forms.parse(plain)
    except ValueError as error:
        raise UsageError(f"--curl: -F {text}: {error}") from None
    is_literal = option == "form-string" or (quoted and quoted[1].endswith("="))
    is_other = is_literal and (field.sign or field.content_type != (quoted[3] if quoted else ""))
    if is_other or "\\n" in plain or "\n" in plain:
        raise UsageError(f"--curl: --{option} {text}: put the value into a file: -F '{field.name}=<file'")
    if field.sign and (further := re.search(r";(filename|headers|encoder)=|,", field.value)):
        raise UsageError(f"--curl: -F {text}: {further[0]} is not supported; give one file, by its own name")
    return field


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _names_file(option: str, value: str) -> bool:
    return value.startswith("@") and option not in ("data-raw", "data-urlencode")


def _part(option: str, value: str) -> str:
    """Return one part of a body as curl sends it."""
    if _names_file(option, value):
        text = _text(value[1:])
        return text if option in ("data-binary", "json") else _LINE_ENDS.sub("", text)
    if option != "data-urlencode":
        return value
    name, sign, content = re.fullmatch(r"(?s)([^=@]*)([=@]?)(.*)", value).groups()  # type: ignore[union-attr]
    if not sign:
        name, content = "", name
    encoded = quote(_text(content) if sign == "@" else content, safe="")
    return f"{name}={encoded}" if name else encoded


def _text(file: str) -> str:
    try:
        return Path(file).read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        why = (
            f"{file} cannot be read as a part of the body: {error}; --data-binary @{file} alone sends any file as it is"
        )
        raise UsageError(f"--curl: {why}") from None
