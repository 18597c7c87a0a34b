"""All platforms, by kind; a new one needs one line here. Also the two smallest: any address, and no platform."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny

from framestorm.endpoint import check_reachable, host_and_port
from framestorm.errors import FramestormError, UsageError
from framestorm.model.study import Text
from framestorm.platform.base import Check, Platform, SettingError, Site, TargetSettings, attempt
from framestorm.platform.embedded import Embedded
from framestorm.platform.kubernetes.knative import Knative
from framestorm.platform.kubernetes.kserve import KServe
from framestorm.platform.kubernetes.plain import Plain
from framestorm.platform.openfaas.platform import OpenFaas
from framestorm.platform.swarm.platform import Swarm


class UrlSettings(TargetSettings):
    """Settings of a function of which only the address is known."""

    kind: Literal["url"] = "url"
    url: Text = Field(description="The function's address.")


class Url(Platform[UrlSettings]):
    """A function at any address, run by somebody else."""

    kind = "url"
    settings = UrlSettings
    takes_context = True
    is_address_only = True

    def checks(self, points: Mapping[str, UrlSettings], usual: Mapping[str, object]) -> Iterator[Check]:
        for url in sorted({settings.url for settings in points.values()}):
            yield attempt(url, "answers", partial(check_reachable, url))

    def _bring_to(self, settings: UrlSettings) -> str:
        return settings.url


class NoPlatform(Platform[TargetSettings]):
    """No function under test: the plan has no url, or its users do the work themselves."""

    kind = "none"
    settings = TargetSettings

    def checks(self, points: Mapping[str, TargetSettings], usual: Mapping[str, object]) -> Iterator[Check]:
        yield from ()

    def _bring_to(self, settings: TargetSettings) -> str:
        return ""


PLATFORMS: dict[str, type[Platform[Any]]] = {
    each.kind: each for each in (OpenFaas, Embedded, KServe, Knative, Plain, Swarm, Url)
}
# The kind of a study's target if it names none.
DEFAULT_KIND = OpenFaas.kind


def settings_of(values: Mapping[str, object]) -> type[TargetSettings]:
    """Return the settings class for the `kind` in the values of a target; one with an address needs none."""
    kind = values.get("kind", Url.kind if "url" in values else DEFAULT_KIND)
    if not isinstance(kind, str) or kind not in PLATFORMS:
        raise SettingError("kind", f"target.kind cannot be {kind!r}", tuple(PLATFORMS), str(kind))
    return PLATFORMS[kind].settings


def read(values: Mapping[str, object]) -> TargetSettings:
    """Return the checked settings of a target from a point's values, for the platform of their `kind`.

    Raises:
        SettingError: there is no such platform, or a setting is wrong.
    """
    return settings_of(values).read(values)


def typed(values: object) -> TargetSettings:
    """Return settings read from a file, without `TargetSettings.check`, which may have become stricter since."""
    if isinstance(values, TargetSettings):
        return values
    if not isinstance(values, Mapping):
        raise ValueError("a target is a mapping")
    return settings_of(values).model_validate(values)


# A field of this type stores the settings of any platform in a file and reads them back.
AnySettings = Annotated[SerializeAsAny[TargetSettings], BeforeValidator(typed)]


def at(url: str, site: Site, host: str = "") -> Platform[Any]:
    """Return the platform that `url` leads to, on this machine or the site's cluster, or else the one for any address.

    host: the name in the requests' own Host header; empty for the URL's.

    Raises:
        UsageError: the URL is wrong, or the cluster that the command line names has no function there.
        FramestormError: the function cannot be used, or the cluster does not answer.
    """
    host_and_port(url)
    platforms = (each.at(url, site, host) for each in PLATFORMS.values())
    if (platform := next(filter(None, platforms), None)) is not None:
        return platform
    if site.context is not None and not site.by_pods:
        raise UsageError(
            f"--context {site.context}: no function of this cluster has the address {host or url}, as far as "
            "this user may see; see kubectl get services,ingresses --all-namespaces and kubectl get ksvc "
            "--all-namespaces, or leave --context out"
        )
    elsewhere = Url(Site())
    elsewhere.prepare(UrlSettings(url=url))
    return elsewhere


class Platforms:
    """The platforms of a study's points: each is opened at its first use, and all are restored at the end."""

    def __init__(self, site: Site, folder: Path | None = None) -> None:
        self._site = site
        self._folder = folder
        self._open: dict[str, Platform[Any]] = {}

    def of(self, kind: str) -> Platform[Any]:
        """Return the platform of a kind."""
        if kind not in self._open:
            self._open[kind] = PLATFORMS[kind](self._site, self._folder)
        return self._open[kind]

    def prepare(self, target: TargetSettings) -> Platform[Any]:
        """Return the platform of a target, after applying the target's settings; the others have left."""
        platform = self.of(target.kind)
        for other in self._open.values():
            if other is not platform:
                other.leave()
        platform.prepare(target)
        return platform

    def close(self) -> list[str]:
        """Close all platforms; returns messages on what continues to run or could not be ended."""
        words = []
        for platform in self._open.values():
            try:
                words.append(platform.close())
            except FramestormError as error:
                words.append(str(error))
        return [each for each in words if each]
