"""An index read without git says what git says, and leaves to git what it cannot."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agentflow.workspace.private_git import IndexEntry, hash_tree, read_index, write_index
from tests.unit.workspace.places import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path / "repository")
    place.write("a-b", "1")
    place.write("a/b/c.py", "x = 1\n")
    place.write("a.b", "2")
    place.write("ü/long" + "x" * 90, "3")
    (place.root / "link").symlink_to("a.b")
    (place.root / "a.b").chmod(0o755)
    place.commit()
    return place


def entries(place: Place) -> tuple[IndexEntry, ...] | None:
    return read_index((place.root / ".git/index").read_bytes(), "sha1")


def test_an_index_is_read_and_its_tree_named_as_git_does(place: Place) -> None:
    found = entries(place)
    assert found is not None
    listed = [f"{entry.mode:o} {entry.id.hex()} 0\t{os.fsdecode(entry.path)}" for entry in found]
    assert listed == place.git("-c", "core.quotePath=false", "ls-files", "-s").splitlines()
    assert hash_tree(found, "sha1") == place.git("rev-parse", "HEAD^{tree}").strip()


@pytest.mark.parametrize("words", [(), ("update-index", "--skip-worktree", "a.b")])
def test_git_reads_what_is_written(place: Place, words: tuple[str, ...]) -> None:
    if words:
        place.git(*words)
    found = entries(place)
    assert found is not None
    assert [entry.path for entry in found if entry.is_skipped] == ([b"a.b"] if words else [])
    written = write_index(found, "sha1")
    assert read_index(written, "sha1") == found
    before = place.git("ls-files", "-s", "-v")
    (place.root / ".git/index").write_bytes(written)
    assert place.git("ls-files", "-s", "-v") == before


@pytest.mark.parametrize(
    "words", [("update-index", "--index-version", "4"), ("update-index", "--split-index")], ids=["4", "split"]
)
def test_an_index_of_another_kind_is_left_to_git(place: Place, words: tuple[str, ...]) -> None:
    place.git(*words)
    assert entries(place) is None


@pytest.mark.parametrize(
    "paths",
    [
        (b".git/config",),
        (b"a/../b",),
        (b"a//b",),
        (b"/a",),
        (b"a/.GIT/x",),
        (b"GIT~1/x",),
        (b"a", b"a/b"),
        (b"a", b"a"),
    ],
)
def test_an_index_that_git_would_not_make_is_left_to_git(paths: tuple[bytes, ...]) -> None:
    planted = tuple(IndexEntry(path, 0o100644, bytes(20)) for path in paths)
    assert read_index(write_index(planted, "sha1"), "sha1") is None


@pytest.mark.parametrize("raw", [b"", b"DIRC", b"DIRC\0\0\0\2\0\0\0\5", os.urandom(300)])
def test_a_damaged_index_is_left_to_git(raw: bytes) -> None:
    assert read_index(raw, "sha1") is None


def rewrite_unseen(place: Place) -> None:
    """Write other content of the same size at the same time, which the index claims to know."""
    path = place.root / "a-b"
    before = path.stat()
    path.write_text("9")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    place.git("-c", "core.trustctime=false", "update-index", "--assume-unchanged", "a-b")


CHANGES: tuple[Callable[[Place], object], ...] = (
    rewrite_unseen,
    lambda place: place.write("new.txt", "1"),
    lambda place: (place.root / "a-b").unlink(),
    lambda place: (place.root / "a-b").chmod(0o755),
    lambda place: place.git("update-index", "--skip-worktree", "a-b"),
    lambda place: place.git("rm", "-q", "--cached", "a-b"),
    lambda place: place.git(
        "update-index", "--add", "--cacheinfo", f"100644,{hashlib.sha1().hexdigest()},a-b"
    ),
)


@pytest.mark.parametrize("change", CHANGES)
def test_files_that_differ_are_not_taken_for_the_committed_ones(
    place: Place, change: Callable[[Place], object]
) -> None:
    assert place.open().is_committed()
    change(place)
    git = place.open()
    assert not git.is_committed() or git.write_tree() == git.head


def test_what_is_found_committed_is_the_tree(place: Place) -> None:
    git = place.open()
    assert git.is_committed()
    assert git.head is not None
    known = git.list_paths(git.head)
    assert git.write_tree() == git.head
    assert known == place.open().list_paths(git.head)


def test_an_encoding_makes_content_differ_from_what_is_committed(place: Place) -> None:
    git = place.open()
    found = entries(place)
    assert found is not None
    assert not git.trees.may_convert(git.call, found)
    place.write("a/.gitattributes", "*.py working-tree-encoding=utf-16\n")
    assert git.trees.may_convert(git.call, found)


def test_no_program_that_the_repository_names_is_run(place: Place) -> None:
    trap = place.trap()
    place.write(".gitattributes", "* filter=f diff=f\n")
    place.commit()
    for key in ("core.fsmonitor", "filter.f.clean", "filter.f.process", "diff.f.textconv", "core.sshCommand"):
        place.git("config", key, str(trap))
    place.plant(f'[submodule "s"]\n\tpath = a\n\turl = ext::{trap}')
    place.marker.unlink(missing_ok=True)
    (place.root / "a.b").touch()
    assert place.open().is_committed()
    assert not place.trapped
