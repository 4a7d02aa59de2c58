"""What a command changed in its view is known."""

import os
import subprocess
from pathlib import Path

import pytest

from agentflow.sandbox import throwaway
from agentflow.sandbox.profile import CHECKS
from agentflow.sandbox.throwaway import make_scratch_folder, take_abandoned
from tests.support.places import temporary_files_in
from tests.support.repo import Repo, eventually
from tests.unit.sandbox.conftest import Inside

CHANGES = {
    "nothing": ("true", ()),
    "touched only": ("touch a.txt src/b.txt; echo a > a.txt", ()),
    "modified": ("echo x >> a.txt", ("M a.txt",)),
    "made executable": ("chmod +x a.txt", ("M a.txt",)),
    "made": ("mkdir -p n/m; touch n/m/x n/y", ("A n/m/x", "A n/y")),
    "deleted": ("rm a.txt", ("D a.txt",)),
    "a folder deleted": ("rm -r src", ("D src/b.txt",)),
    "a folder replaced": ("rm -r src; mkdir src; touch src/c.txt", ("A src/c.txt", "D src/b.txt")),
    "moved": ("mv src other", ("A other/b.txt", "D src/b.txt")),
    "a link in its place": ("rm a.txt; ln -s src/b.txt a.txt", ("M a.txt",)),
    "written back": ("cp -p a.txt k; echo x > a.txt; cp -p k a.txt; rm k", ()),
    "hidden by its time": ("touch -r a.txt /tmp/t; echo b > a.txt; touch -r /tmp/t a.txt", ("M a.txt",)),
}


@pytest.mark.parametrize(("shell", "changed"), CHANGES.values(), ids=CHANGES)
def test_changes_in_a_view_are_named(inside: Inside, shell: str, changed: tuple[str, ...]) -> None:
    assert inside(CHECKS, shell.replace("/tmp/", "$TMPDIR/")).changed == changed


def test_a_copy_knows_its_changes_and_leaves_environments_out(repo: Repo, tmp_path: Path) -> None:
    copied = throwaway.copy_repository(repo.root, tmp_path / "copy")
    assert not (copied / ".venv/ignored.txt").exists()
    assert list(throwaway.find_copy_changes(repo.root, copied)) == []
    (copied / "a.txt").unlink()
    assert list(throwaway.find_copy_changes(repo.root, copied)) == ["D a.txt"]


def test_a_scratch_folder_is_private_and_gone_at_the_end() -> None:
    with make_scratch_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "x").mkdir(mode=0o500)
        assert folder not in list(take_abandoned())
    assert not folder.exists()


def test_the_folder_of_a_killed_process_is_cleared_away(tmp_path: Path) -> None:
    left = tmp_path / "agentflow-scratch-left"
    left.mkdir()
    with temporary_files_in(tmp_path), make_scratch_folder() as folder:
        assert list(take_abandoned()) == [left]
        eventually(lambda: list(tmp_path.iterdir()) == [folder])


def test_what_was_being_made_goes_with_the_process_that_made_it(tmp_path: Path) -> None:
    ended = subprocess.Popen(("true",))
    ended.wait()
    left, begun = (tmp_path / f"agentflow-new-{pid}-x" for pid in (ended.pid, os.getpid()))
    left.mkdir()
    begun.mkdir()
    with temporary_files_in(tmp_path):
        assert list(take_abandoned()) == [left]
    eventually(lambda: list(tmp_path.iterdir()) == [begun])


def test_nobody_waits_until_a_large_folder_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "agentflow-scratch-left"
    for number in range(20):
        (left / f"d{number}").mkdir(parents=True)
    (left / "d0").chmod(0)
    with temporary_files_in(tmp_path):
        assert list(take_abandoned()) == [left]
        assert not left.exists()
        eventually(lambda: not list(tmp_path.iterdir()))


def test_a_removal_that_was_cut_short_is_taken_up_again(tmp_path: Path) -> None:
    (tmp_path / "agentflow-gone-agentflow-scratch-left/x").mkdir(parents=True)
    with temporary_files_in(tmp_path):
        assert list(take_abandoned()) == []
        eventually(lambda: not list(tmp_path.iterdir()))
