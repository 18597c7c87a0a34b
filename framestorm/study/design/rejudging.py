"""What may be asked otherwise of runs that are there: how they are judged and shown, not how they were made."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.study.design import reading, selection
from framestorm.study.design.definition import FILE
from framestorm.study.design.folder import StudyFolder, file_sha256

ASKED = (
    "title", "question", "metrics", "derived", "hypotheses", "charts", "published", "published_from",
)  # fmt: skip


def settings_now(folder: StudyFolder) -> dict[str, Any]:
    """The settings of a study, judged as the study.yml in its folder says by now; `rejudged` names what has changed.

    Raises:
        UsageError: that file is wrong, or says otherwise how runs are made; or published results cannot be read.
    """
    settings = _settings_now(folder)
    name = settings["definition"].get("published")
    if name and ((folder.path / name).exists() or "published" in settings.get("rejudged", ())):
        reading.check_published(folder.path / name)
    return settings


def _settings_now(folder: StudyFolder) -> dict[str, Any]:
    settings, file = folder.settings, folder.path / FILE
    if not file.exists() or file_sha256(file) == settings.get("file_sha256"):
        return settings
    then, now = settings["definition"], definition_by(file, settings)
    changed = differing(then, now)
    if made := [key for key in changed if key not in ASKED]:
        raise UsageError(
            f"{paths.shown(file)}: the runs that are there were made with another {', '.join(made)}. Put that back "
            f"({paths.shown(folder.path)}/study.json has it); {', '.join(ASKED)} may be changed"
        )
    if not changed:
        return settings
    return {**settings, "definition": {**then, **{key: now.get(key) for key in changed}}, "rejudged": changed}


def definition_by(file: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The definition that a study.yml gives with what the command line once changed of it.

    Raises:
        UsageError: the file is wrong.
    """
    overrides = settings.get("overrides") or {}
    loaded = reading.load(file, settings["quick"])
    study = selection.override(loaded, overrides.get("properties") or {}, overrides.get("repetitions"))
    definition: dict[str, Any] = json.loads(json.dumps(study.as_json()))
    return definition


def differing(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The keys of two definitions that differ."""
    return sorted(key for key in {*then, *now} if then.get(key) != now.get(key))
