"""The target of a run: the platform of the function under test, found from the plan and the options."""

from collections.abc import Mapping
from typing import Any

from framestorm.model import facets
from framestorm.model.plan import Plan
from framestorm.platform import registry
from framestorm.platform.base import Platform, Site
from framestorm.platform.embedded import Embedded
from framestorm.platform.registry import NoPlatform, Url


def find_platform(
    plan: Plan,
    properties: Mapping[str, str],
    given_url: str | None,
    site: Site,
    *,
    prepared: Platform[Any] | None = None,
    function_url: str | None = None,
) -> Platform[Any]:
    """Find the platform of the function under test; nothing is started, and the embedded target has no url yet.

    The kit never chooses a function for a plan that calls any function.

    Args:
        plan: the plan of the run.
        properties: the plan's properties with the values that are set, and the defaults of the others.
        given_url: the address that is set for the run; None leaves it to the plan.
        site: where functions run, according to the command line.
        prepared: the platform of a study, which has the settings to measure.
        function_url: the address of the inventory's function.

    Raises:
        UsageError: an address is wrong.
    """
    if plan.url is None or not plan.url.is_needed(properties):
        return NoPlatform(Site())
    if prepared is not None and prepared.url and not isinstance(prepared, Url):
        return prepared
    has_default = facets.EMBEDDED in plan.url.facets
    url = prepared.url if prepared else given_url
    if has_default and url is None and not site.over_slaves:
        return Embedded(site)
    url = url or (function_url if has_default else properties.get(plan.url.name))
    return registry.at(url) if url else NoPlatform(Site())
