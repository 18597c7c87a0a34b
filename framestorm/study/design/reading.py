"""Reading a study.yml: by its schema, then by everything that can be checked without runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.study.design import checks, lines, schema
from framestorm.study.design.definition import FILE, Study, from_json
from framestorm.study.design.lines import Problems


def load(path: Path, quick: bool = False) -> Study:
    """Read and check a study.yml, or that of a folder; `quick` applies what it says of --quick.

    Both forms are checked, whichever is asked for.

    Raises:
        UsageError: something in it is wrong; a line for each, as file:line: what; allowed: ….
    """
    file = path / FILE if path.is_dir() else path
    content, problems = lines.read(file)
    if not isinstance(content, dict):
        problems.add((), f"a study is a mapping of {', '.join(schema.schema()['properties'])}")
        problems.check()
    schema.check(content, problems)
    problems.check()
    name = file.resolve().parent.name
    full = from_json(content, name)
    levels = {factor.name: list(factor.values) for factor in full.factors.values()}
    checks.check(full, levels, problems)
    studies = {False: full}
    if "quick" in content:
        merged = _quick(content, problems)
        studies[True] = from_json(merged, name)
        # Claims and charts of the whole study stand: where --quick leaves out their levels, they stay undecided.
        for factor in studies[True].factors.values():
            levels[factor.name] += [value for value in factor.values if value not in levels[factor.name]]
        if not problems:
            checks.check(studies[True], levels, problems)
    problems.check()
    if quick and not studies.get(True):
        raise UsageError(f"{file} has no part `quick`, so there is no --quick of it; run it without")
    return studies[quick]


def check_published(file: Path) -> None:
    """See that published results can be read.

    Raises:
        UsageError: there are none, or they are no UTF-8.
    """
    try:
        file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"there is no {paths.shown(file)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{paths.shown(file)} cannot be read: {error}; save it as CSV in UTF-8") from None


def _quick(content: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """The contents with those of `quick` put over them, and their lines with them."""
    quick = content["quick"]
    merged = {key: value for key, value in content.items() if key != "quick"}
    for key, value in quick.items():
        if key == "properties":
            merged[key] = {**content.get(key, {}), **value}
        elif key != "factors":
            merged[key] = value
    factors = dict(content["factors"])
    for name, kept in quick.get("factors", {}).items():
        place = ("quick", "factors", name)
        if name not in factors:
            problems.add(place, f"unknown factor {name!r} in quick.factors", factors, name)
        elif isinstance(factors[name], Mapping) and not isinstance(kept, Mapping):
            for index, level in enumerate(kept):
                if level not in factors[name]:
                    what = f"unknown level {level!r} of {name}"
                    problems.add((*place, index), *checks.unknown_level(what, level, list(factors[name])))
            factors[name] = {level: factors[name][level] for level in kept if level in factors[name]}
        else:
            factors[name] = kept
    merged["factors"] = factors
    # A block of the whole study may name levels that are left out; one of --quick's own may not.
    if "blocks" in merged and "blocks" not in quick:
        merged["blocks"] = [
            {name: [value for value in values if value in _values(factors.get(name))] for name, values in block.items()}
            for block in merged["blocks"]
        ]
    of_quick = {place[1:]: line for place, line in problems.lines.items() if place[:1] == ("quick",)}
    problems.lines |= {place: line for place, line in of_quick.items() if place}
    return merged


def _values(levels: Any) -> list[Any]:
    return list(levels or ())
