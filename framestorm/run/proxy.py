"""The HTTP proxy of a run's requests, found as JMeter finds it: in Java's system properties."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm.endpoint import host_and_port
from framestorm.run.jmeter import JAVA_VARIABLES
from framestorm.run.properties import assigned

# The variables of the environment with options of Java, in the order in which they count.
_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "HEAP", *JAVA_VARIABLES, "_JAVA_OPTIONS")
# What JMeter's own letters set, for http and https alike.
_LETTERS = {"-H": "proxyHost", "-P": "proxyPort", "-N": "nonProxyHosts"}
NAMES = {f"{scheme}.{name}" for scheme in ("http", "https") for name in ("proxyHost", "proxyPort")}
# Java's own client calls this machine without a proxy, unless it is told otherwise.
_LOCAL = "localhost|127.*|[::1]"


@dataclass(frozen=True)
class Proxies:
    """The proxies that the system properties of a JMeter name."""

    system: Mapping[str, str]

    @property
    def has_ignored_https(self) -> bool:
        """Whether there is a proxy for https of its own, which HttpClient, JMeter's default, does not read."""
        https, http = (
            tuple(self.system.get(f"{scheme}.{name}", "") for name in ("proxyHost", "proxyPort"))
            for scheme in ("https", "http")
        )
        return bool(https[0]) and https != http

    def way_to(self, url: str, *, is_java_client: bool = False) -> str:
        """Return host:port of the proxy by which JMeter sends a request to `url`; empty if it goes there by itself.

        HttpClient, JMeter's default, reads the properties of http for https too. Java's own client has some of each,
        and takes a * at the end of a host as well.
        """
        scheme = url.partition(":")[0].lower() if is_java_client else "http"
        proxy, port = (self.system.get(f"{scheme}.{name}", "") for name in ("proxyHost", "proxyPort"))
        if is_java_client:
            port = port or {"http": "80", "https": "443"}.get(scheme, "")
        if not (proxy and port.isdecimal() and int(port)):
            return ""
        host = host_and_port(url)[0]
        host = f"[{host}]" if ":" in host else host
        without = self.system.get("http.nonProxyHosts", _LOCAL if is_java_client else "").split("|")
        is_direct = any(_fits(host, each, is_java_client=is_java_client) for each in without)
        return "" if is_direct else f"{proxy}:{port}"


def read(words: Sequence[str], environment: Mapping[str, str]) -> Proxies:
    """Return the proxies of a JMeter on this machine.

    words: JMeter's own options, each with its letter; they count more than the options of Java in the environment.
    """
    system: dict[str, str] = {}
    for name in _VARIABLES:
        for word in _words(environment.get(name, "")):
            if word.startswith("-D"):
                property_name, _, value = word[2:].partition("=")
                system[property_name] = value
    return Proxies(system | system_properties(words) | _of_letters(words))


def system_properties(words: Sequence[str]) -> dict[str, str]:
    """Return the system properties of Java that JMeter's options -D and -S set."""
    return assigned(word[2:] if word.startswith("-D") else Path(word[2:]) for word in words if word[:2] in ("-D", "-S"))


def _of_letters(words: Sequence[str]) -> dict[str, str]:
    values = {_LETTERS[word[:2]]: word[2:] for word in words if word[:2] in _LETTERS}
    return {f"{scheme}.{name}": value for name, value in values.items() for scheme in ("http", "https")}


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote that does not end
        return text.split()


def _fits(host: str, pattern: str, *, is_java_client: bool) -> bool:
    if is_java_client:
        host, pattern = host.lower(), pattern.lower()
        return (
            host == pattern
            or (pattern[:1] == "*" and host.endswith(pattern[1:]))
            or (pattern[-1:] == "*" and host.startswith(pattern[:-1]))
        )
    return host == pattern or (pattern[:1] == "*" and host.endswith(pattern[1:]))
