"""The classes of JMeter that the kit patches, and what a run lacks without them (jmx/patches.json)."""

import json
import zipfile

from framestorm import paths, probe


def missing() -> tuple[str, ...]:
    """What a run on one machine lacks without the patched classes, a clause for each class that it would miss."""
    reasons = json.loads((paths.JMX / "patches.json").read_text(encoding="utf-8"))
    with zipfile.ZipFile(paths.JMETER_HOME / probe.PATCHES) as jar:
        patched = {name.removesuffix(".class").replace("/", ".") for name in jar.namelist()}
    return tuple(reason["without"] for name, reason in reasons.items() if name in patched and reason["without"])
