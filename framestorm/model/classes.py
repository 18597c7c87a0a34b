"""The names of JMeter's classes in plans: several may stand for one class, and old plans have the class itself."""

import re
from functools import cache
from pathlib import Path

from framestorm import paths

# A line `name=value` or `name,name=value`, without JMeter's own settings, which begin with _, and without properties.
_LINE = re.compile(r"^(?![_#])([\w.$,]+)=([\w.$]+)\s*$", re.MULTILINE)

Tables = tuple[dict[str, str], dict[str, str], dict[str, str]]


def short_name(name: str) -> str:
    """The first of JMeter's short names for a class, given by any of them or as the class; the name itself without one.

    So HTTPSampler2 and org.apache.jmeter.protocol.http.sampler.HTTPSamplerProxy are HTTPSamplerProxy.
    """
    classes, shorts, upgrades = _tables()
    of_class = classes.get(name, name)
    return shorts.get(upgrades.get(of_class, of_class), name)


def _tables() -> Tables:
    # A plan is read before JMeter is installed, too: to know what it needs.
    return _read_tables(paths.JMETER_HOME / "bin") if (paths.JMETER_HOME / "bin").exists() else ({}, {}, {})


@cache
def _read_tables(folder: Path) -> Tables:
    """Return the class of each short name, the first short name of each class, and what old classes are called now."""
    classes: dict[str, str] = {}
    shorts: dict[str, str] = {}
    for names, of_class in _LINE.findall(_text(folder / "saveservice.properties")):
        classes |= dict.fromkeys(names.split(","), of_class)
        shorts.setdefault(of_class, names.split(",")[0])
    return classes, shorts, dict(_LINE.findall(_text(folder / "upgrade.properties")))


def _text(path: Path) -> str:
    return path.read_text(encoding="latin1")
