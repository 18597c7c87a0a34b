"""Any function by its address, run by somebody else."""

import socket
import urllib.parse
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Literal

from pydantic import Field

from framestorm.errors import FramestormError, UsageError
from framestorm.platform.base import Check, Platform, Settings, attempt

CONNECT_WITHIN_S = 5.0


class UrlSettings(Settings):
    """A function is known by its address alone."""

    kind: Literal["url"] = "url"
    url: str = Field(min_length=1, description="The function's address.")


class Url(Platform[UrlSettings]):
    """A function that runs wherever its address leads."""

    kind = "url"
    settings = UrlSettings

    def checks(self, points: Mapping[str, UrlSettings], usual: Mapping[str, object]) -> Iterator[Check]:
        for url in sorted({settings.url for settings in points.values()}):
            yield attempt(url, "answers", partial(check_reachable, url))

    def describe(self, settings: UrlSettings) -> str:
        return f"function at {settings.url}"

    def _bring_to(self, settings: UrlSettings) -> str:
        return settings.url


class NoPlatform(Platform[Settings]):
    """Nothing that the kit sends to: the plan has no url, or its users work where they are."""

    kind = "none"
    settings = Settings

    def checks(self, points: Mapping[str, Settings], usual: Mapping[str, object]) -> Iterator[Check]:
        yield from ()

    def describe(self, settings: Settings) -> str:
        return "no function"

    def _bring_to(self, settings: Settings) -> str:
        return ""


def check_reachable(url: str) -> None:
    """See that something accepts connections where a URL points; no request is made, a function may be costly.

    Raises:
        UsageError: the URL has no http(s) scheme or no host.
        FramestormError: nothing answers there.
    """
    parts = urllib.parse.urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise UsageError(f"-Jurl={url}: {error}") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"-Jurl={url}: a URL starts with http:// or https:// and a host")
    try:
        socket.create_connection((parts.hostname, port), timeout=CONNECT_WITHIN_S).close()
    except OSError as error:
        raise FramestormError(
            f"nothing answers at {parts.hostname}:{port} ({error}); does the gateway run, is the url right?"
        ) from None
