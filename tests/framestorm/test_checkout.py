"""The commit and branch of a checkout, read from Git's files and a CI's variables."""

import subprocess
from pathlib import Path

import pytest

from framestorm.checkout import read_checkout
from framestorm.model.run import Checkout

SHA = "a" * 40


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    command = ["git", "-C", folder, *identity, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a commit on the branch team/main, which is not `main`."""
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "team/main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_the_branch_and_commit_of_a_folder_in_a_checkout(checkout: Path) -> None:
    (checkout / "plans").mkdir()
    expected = Checkout(git(checkout, "rev-parse", "HEAD"), "team/main")
    assert read_checkout(checkout / "plans", {}) == expected
    git(checkout, "pack-refs", "--all")
    assert read_checkout(checkout, {}) == expected


def test_a_second_work_tree(checkout: Path, tmp_path: Path) -> None:
    git(checkout, "worktree", "add", "-q", "-b", "next", str(tmp_path / "other"))
    assert read_checkout(tmp_path / "other", {}) == Checkout(git(checkout, "rev-parse", "HEAD"), "next")


def test_a_ci_names_the_branch_of_a_commit_without_one(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    git(checkout, "checkout", "-q", "--detach")
    assert read_checkout(checkout, {}) == Checkout(commit)
    for variables in (
        {"GITHUB_SHA": commit, "GITHUB_REF_NAME": "main"},
        {"CI_COMMIT_SHA": commit, "CI_COMMIT_BRANCH": "main"},
        {"GIT_COMMIT": commit, "GIT_BRANCH": "origin/main"},
    ):
        assert read_checkout(checkout, variables) == Checkout(commit, "main")
    # The variables are about another checkout.
    assert read_checkout(checkout, {"GITHUB_SHA": SHA, "GITHUB_REF_NAME": "main"}) == Checkout(commit)


def test_a_folder_that_is_in_no_checkout(tmp_path: Path) -> None:
    assert read_checkout(tmp_path, {}) is None
    assert read_checkout(tmp_path, {"GITHUB_SHA": SHA, "GITHUB_REF_NAME": "main"}) == Checkout(SHA, "main")


@pytest.mark.parametrize("head", ["", "ref: refs/heads/none", "nothing", "\udcff"])
def test_a_folder_that_is_not_as_git_makes_it_names_no_commit(tmp_path: Path, head: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_bytes(head.encode(errors="surrogateescape"))
    assert read_checkout(tmp_path, {}) is None
