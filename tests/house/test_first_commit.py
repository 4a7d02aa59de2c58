"""The repositories of tests, which are written without git, are what git would have made."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.first_commit import commit_first, make_repository

WHO = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgSign=false")


def git(root: Path, *words: str) -> str:
    done = subprocess.run(("git", *WHO, *words), cwd=root, check=True, capture_output=True, text=True)
    return done.stdout + done.stderr


def fill(root: Path) -> Path:
    """Write files of every kind, and names that git sorts in a way of its own."""
    names = ("a.txt", "a/b.txt", "a-b", "a.b/c", "deep/er/x", "sp ace", "\xe4", "x" * 90, "new\nline")
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "run.sh").write_bytes(b"\0\xff")
    (root / "run.sh").chmod(0o755)
    (root / "empty").touch()
    (root / "nothing").mkdir()
    (root / "to a folder").symlink_to("a")
    (root / "to nothing").symlink_to("absent")
    return root


def test_the_commit_is_the_one_that_git_makes(tmp_path: Path) -> None:
    ours, theirs = (fill(tmp_path / name) for name in ("ours", "theirs"))
    make_repository(ours)
    assert commit_first(ours)
    git(theirs, "init", "-q")
    git(theirs, "add", "-A")
    git(theirs, "commit", "-qm", "state")
    assert git(ours, "diff-index", "HEAD") == git(ours, "diff-files") == ""
    assert git(ours, "status", "--porcelain") == ""
    assert git(ours, "fsck", "--strict") == ""
    for shown in (("ls-files", "-s"), ("rev-parse", "HEAD^{tree}"), ("log", "--format=%an %ae %cn %ce %B")):
        assert git(ours, *shown) == git(theirs, *shown)
    assert (ours / ".git/HEAD").read_text() == (theirs / ".git/HEAD").read_text()
    assert (ours / ".git/config").read_text() == (theirs / ".git/config").read_text()


def test_a_repository_without_files_has_a_commit_too(tmp_path: Path) -> None:
    make_repository(tmp_path, "side")
    assert commit_first(tmp_path)
    assert git(tmp_path, "ls-tree", "HEAD") == git(tmp_path, "status", "--porcelain") == ""
    assert git(tmp_path, "branch", "--show-current") == "side\n"


def test_a_change_is_seen_by_git(tmp_path: Path) -> None:
    make_repository(fill(tmp_path))
    commit_first(tmp_path)
    (tmp_path / "a.txt").write_text("A.txt")
    assert git(tmp_path, "diff-files", "--name-only") == "a.txt\n"


@pytest.mark.parametrize("name", [".gitignore", "a/.gitattributes", ".gitmodules", "a/.git/HEAD", "a/pipe"])
def test_where_git_has_a_say_nothing_is_done(tmp_path: Path, name: str) -> None:
    make_repository(fill(tmp_path))
    place = tmp_path / name
    place.parent.mkdir(exist_ok=True)
    if name == "a/pipe":
        os.mkfifo(place)
    else:
        place.touch()
    assert not commit_first(tmp_path)
    assert not (tmp_path / ".git/index").exists()


def test_another_hash_is_gits(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256")
    make_repository(tmp_path)
    assert not commit_first(tmp_path)


@pytest.mark.parametrize("name", ["config", "info/exclude", "info/attributes", "hooks/pre-commit"])
def test_what_was_set_before_is_heeded_by_git(tmp_path: Path, name: str) -> None:
    make_repository(fill(tmp_path))
    with (tmp_path / ".git" / name).open("a") as file:
        file.write("# set\n")
    assert not commit_first(tmp_path)


def test_a_second_commit_is_gits(tmp_path: Path) -> None:
    make_repository(tmp_path)
    assert commit_first(tmp_path)
    assert not commit_first(tmp_path)
