"""Reading a study.yml: by its format, then by everything that can be checked without runs."""

from collections.abc import Iterator
from pathlib import Path

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model.study import DEFINITION, Factor, Quick, Settings, StopRule, Study
from framestorm.platform import registry
from framestorm.study.design import references, yaml_lines
from framestorm.study.design.complaints import complaints, keys, shown_place
from framestorm.study.design.yaml_lines import Problems, YamlPath


def load(path: Path, quick: bool = False) -> Study:
    """Read and check a study.yml, or that of a folder; `quick` applies what it says of --quick.

    Both forms are checked, whichever is asked for.

    Raises:
        UsageError: something in it is wrong; a line for each problem, as file:line: what; allowed: ….
    """
    file = path / DEFINITION if path.is_dir() else path
    content, problems = yaml_lines.read(file)
    if not isinstance(content, dict):
        problems.add((), f"a study is a mapping of {', '.join(keys(Study))}")
        problems.check()
    if "name" in content:  # the study's, which is that of its folder
        problems.add(("name",), "unknown key 'name'", keys(Study))
    for problem in complaints(Study, content):
        problems.add_error(problem)
    problems.check()
    whole = Study.model_validate({**content, "name": file.resolve().parent.name})
    names = registry.setting_names()
    for place, settings in _targets(whole):
        for name in settings.keys() - set(names):
            problems.add((*place, name), f"unknown key {name!r} in {shown_place(place)}", names, name)
    problems.check()
    full = whole.model_copy(update={"quick": None})
    levels = {name: list(factor.values) for name, factor in full.factors.items()}
    references.check(full, levels, problems)
    small = None
    if whole.quick is not None:
        small = _quick(full, whole.quick, problems)
        # Claims and charts of the whole study stand: where --quick leaves out their levels, they stay undecided.
        for name, factor in small.factors.items():
            levels[name] += [value for value in factor.values if value not in levels[name]]
        if not problems:
            references.check(small, levels, problems)
    problems.check()
    if not quick:
        return full
    if small is None:
        raise UsageError(f"{file} has no part `quick`, so there is no --quick of it; run it without")
    return small


def check_published(file: Path) -> None:
    """Check that published results can be read.

    Raises:
        UsageError: the file is missing, or is not UTF-8.
    """
    try:
        file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"{paths.shown(file)} is missing") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{paths.shown(file)} cannot be read: {error}; save it as CSV in UTF-8") from None


def _targets(study: Study) -> Iterator[tuple[YamlPath, Settings]]:
    """Each mapping of settings of the target, with where it stands."""
    yield ("target",), study.target
    of_quick = study.quick.factors if study.quick else {}
    for place, factors in ((("factors",), study.factors), (("quick", "factors"), of_quick)):
        for name, factor in factors.items():
            for value in factor.values if factor.is_named else ():
                yield (*place, name, str(value), "target"), factor.level(name, value).target


def _quick(study: Study, quick: Quick, problems: Problems) -> Study:
    """The study in its small form; its places have the lines of what `quick` changes."""
    changes = {name: getattr(quick, name) for name in quick.model_fields_set}
    changes["properties"] = {**study.properties, **quick.properties}
    changes["factors"] = factors = {**study.factors, **_quick_factors(study, quick, problems)}
    if "stop" in changes:
        changes["stop"] = quick.stop if isinstance(quick.stop, StopRule) else None
    # A block of the whole study may name levels that are left out; one of --quick's own may not.
    if study.blocks and quick.blocks is None:
        kept = {name: factor.values for name, factor in factors.items()}
        changes["blocks"] = tuple(
            {name: tuple(value for value in values if value in kept.get(name, ())) for name, values in block.items()}
            for block in study.blocks
        )
    of_quick = {place[1:]: line for place, line in problems.lines.items() if place[:1] == ("quick",)}
    problems.lines |= {place: line for place, line in of_quick.items() if place}
    return study.model_copy(update=changes)


def _quick_factors(study: Study, quick: Quick, problems: Problems) -> dict[str, Factor]:
    """The factors that --quick changes: other values, or fewer of the named levels."""
    factors = {}
    for name, kept in quick.factors.items():
        place: YamlPath = ("quick", "factors", name)
        whole = study.factors.get(name)
        if whole is None:
            problems.add(place, f"unknown factor {name!r} in quick.factors", study.factors, name)
        elif whole.is_named and not kept.is_named:
            for index, level in enumerate(kept.values):
                if level not in whole.values:
                    what = f"unknown level {level!r} of {name}"
                    problems.add((*place, index), *references.unknown_level(what, level, whole.values))
            factors[name] = whole.keep(level for level in kept.values if level in whole.values)
        else:
            factors[name] = kept
    return factors
