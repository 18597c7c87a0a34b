"""The commit and branch of the folder that a run was started in, read from Git's files: no Git is needed.

In CI the commit is often checked out without a branch; there the CI's own variables name it, and where there is no
checkout at all, the commit too.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from framestorm.model.run import Checkout

# Of GitHub Actions, GitLab and Jenkins: commit and branch. A pull request has no branch of its own here: by the name of
# its source, one from the branch `main` of a fork would be taken for `main`.
CI_VARIABLES = (
    ("GITHUB_SHA", "GITHUB_REF_NAME"),
    ("CI_COMMIT_SHA", "CI_COMMIT_BRANCH"),
    ("GIT_COMMIT", "BRANCH_NAME"),
    ("GIT_COMMIT", "GIT_BRANCH"),
)
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH = "refs/heads/"
_SYMBOLIC = "ref: "


def read_checkout(folder: Path, environment: Mapping[str, str]) -> Checkout | None:
    """Return commit and branch of the checkout that a folder is in; None if neither Git nor a CI says any."""
    try:
        own = next((each for at in (folder, *folder.parents) if (each := _of_git(at / ".git"))), None)
    except (OSError, ValueError):  # without the right to read it, or not in the form of Git
        own = None
    if own is not None and own.branch:
        return own
    for commit_name, branch_name in CI_VARIABLES:
        commit, branch = (environment.get(name, "") for name in (commit_name, branch_name))
        if _COMMIT.fullmatch(commit) and branch and (own is None or own.commit == commit):
            return Checkout(commit, branch.removeprefix("origin/"))
    return own


def _of_git(git: Path) -> Checkout | None:
    """Return what the folder .git says; in a work tree or a submodule it is a file that names the folder."""
    if git.is_file():
        git = git.parent / git.read_text(encoding="utf-8").strip().removeprefix("gitdir: ")
    if not (git / "HEAD").is_file():
        return None
    head = (git / "HEAD").read_text(encoding="utf-8").strip()
    if not head.startswith(_SYMBOLIC):
        return Checkout(head) if _COMMIT.fullmatch(head) else None
    reference = head.removeprefix(_SYMBOLIC)
    branch = reference.removeprefix(_BRANCH) if reference.startswith(_BRANCH) else None
    common = git / "commondir"
    shared = git / common.read_text(encoding="utf-8").strip() if common.is_file() else git
    commit = _commit(git, reference) or _commit(shared, reference)
    return Checkout(commit, branch) if commit else None


def _commit(git: Path, reference: str) -> str | None:
    """Return the commit that a reference names: in a file of its own, or in that of packed ones."""
    loose, packed = git / reference, git / "packed-refs"
    if loose.is_file():
        text = loose.read_text(encoding="utf-8").strip()
        return text if _COMMIT.fullmatch(text) else None
    lines = packed.read_text(encoding="utf-8").splitlines() if packed.is_file() else []
    return next((words[0] for line in lines if (words := line.split(" ")) and words[1:] == [reference]), None)
