"""How the target of a run was set up, as far as anybody noted it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framestorm.errors import UsageError
from framestorm.study.design.folder import FILE, StudyFolder


def target_of_run(folder: Path, record: Mapping[str, Any]) -> dict[str, Any] | None:
    """The target's settings; None where no more than its URL is known.

    A function is set up outside of the run, whose run.json has only the URL: what it was set to, its study knows.
    """
    own = dict(record.get("target") or {})
    if own.get("kind") == "embedded":
        return own
    where = folder.parent.parent
    if folder.parent.name != "runs" or not (where / FILE).is_file():
        return None
    try:
        study = StudyFolder(where)
    except UsageError:
        return None
    # A gateway elsewhere is asked for its functions as they are there.
    if study.settings.get("gateway") is not None:
        return None
    run = f"runs/{folder.name}"
    ids = {line.point for line in study.lines().values() if line.run == run}
    targets = [point.target for point in study.points if point.id in ids and point.target.get("kind") != "url"]
    return dict(targets[0]) if targets else None
