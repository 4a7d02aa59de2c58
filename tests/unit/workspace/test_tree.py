import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agentflow.core.errors import ConfigError
from agentflow.core.record import encode
from agentflow.workspace.changes import ChangeKind, FileChange
from agentflow.workspace.ignored_files import END, keep_out_of_git
from tests.unit.workspace.places import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "repository")


def inside(place: Place, path: str = "vendor/inner", *, commit: bool = True) -> Place:
    inner = Place(place.root / path, bare_start=not commit)
    inner.write("lib.py", "y = 1\n")
    if commit:
        inner.commit()
    return inner


def recorded(place: Place) -> Place:
    inner = inside(place)
    place.commit()
    assert "160000" in place.git("ls-files", "-s")
    return inner


def deeper(place: Place) -> Place:
    inside(place, "vendor")
    return inside(place)


def without_commit(place: Place) -> Place:
    return inside(place, commit=False)


@pytest.mark.parametrize("make", [inside, recorded, deeper, without_commit])
def test_a_file_of_a_repository_inside_counts_as_one_of_ours(
    place: Place, make: Callable[[Place], Place]
) -> None:
    inner = make(place)
    git = place.open()
    before, frozen = git.write_tree(), (place.frozen(), inner.frozen())
    inner.write("lib.py", "y = 2\n")
    inner.write("new.py", "")
    after = git.write_tree()
    assert git.list_changes(before, after) == (
        FileChange(kind=ChangeKind.MODIFIED, path="vendor/inner/lib.py"),
        FileChange(kind=ChangeKind.ADDED, path="vendor/inner/new.py"),
    )
    assert "-y = 1\n+y = 2\n" in git.make_diff(before, after)
    assert (place.frozen(), inner.frozen()) == frozen


def test_ignore_rules_hold_in_a_repository_inside(place: Place) -> None:
    inner = inside(place)
    inner.write(".gitignore", "*.log\n")
    before = place.tree()
    inner.write("a.log", "noise")
    assert place.tree() == before


def test_a_repository_inside_that_is_ignored_does_not_count(place: Place) -> None:
    place.write(".gitignore", "vendor/\n")
    before = place.tree()
    inside(place)
    assert place.tree() == before


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_flag_hides_no_recorded_repository(place: Place, flag: str) -> None:
    inner = recorded(place)
    place.git("update-index", flag, "vendor/inner")
    before = place.tree()
    inner.write("lib.py", "y = 2\n")
    assert place.tree() != before


def to_file(inner: Path) -> None:
    inner.write_text("x")


def to_link(inner: Path) -> None:
    inner.symlink_to("../src")


def to_folder(inner: Path) -> None:
    inner.mkdir()
    (inner / "README.md").write_text("x")


REPLACED: dict[Callable[[Path], None], str] = {
    to_file: "vendor/inner",
    to_link: "vendor/inner",
    to_folder: "vendor/inner/README.md",
}


@pytest.mark.parametrize("act", REPLACED)
def test_what_lies_in_the_place_of_a_recorded_repository_counts(
    place: Place, act: Callable[[Path], None]
) -> None:
    inner = recorded(place).root
    shutil.rmtree(inner)
    git = place.open()
    before = git.write_tree()
    act(inner)
    (change,) = git.list_changes(before, git.write_tree())
    assert change == FileChange(kind=ChangeKind.ADDED, path=REPLACED[act])


def test_nothing_outside_counts_through_a_link_above_a_recorded_repository(
    place: Place, tmp_path: Path
) -> None:
    recorded(place)
    (place.root / "vendor").rename(tmp_path / "outside")
    (place.root / "vendor").symlink_to(tmp_path / "outside")
    git = place.open()
    changes = git.list_changes("HEAD^{tree}", git.write_tree())
    assert changes == (
        FileChange(kind=ChangeKind.ADDED, path="vendor"),
        FileChange(kind=ChangeKind.DELETED, path="vendor/inner"),
    )


def test_a_folder_in_the_place_of_a_file_and_back(place: Place) -> None:
    git = place.open()
    before = git.write_tree()
    (place.root / "README.md").unlink()
    place.write("README.md/a", "x")
    between = git.write_tree()
    assert [change.path for change in git.list_changes(before, between)] == ["README.md", "README.md/a"]
    shutil.rmtree(place.root / "README.md")
    place.write("README.md", "# r\n")
    assert git.write_tree() == before


def test_a_file_in_the_place_of_a_folder_that_was_left_out_counts(place: Place) -> None:
    place.git("update-index", "--skip-worktree", "src/a.py")
    shutil.rmtree(place.root / "src")
    place.write("src", "x")
    git = place.open()
    assert git.list_changes("HEAD^{tree}", git.write_tree()) == (
        FileChange(kind=ChangeKind.ADDED, path="src"),
        FileChange(kind=ChangeKind.DELETED, path="src/a.py"),
    )


def test_line_ends_that_a_commit_would_refuse_do_not_stop_us(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = place.root.parent / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[core]\n safecrlf = true\n")
    monkeypatch.setenv("HOME", str(home))
    place.write(".gitattributes", "* text\n")
    place.write("a.txt", "x\r\n")
    assert place.tree()


def case(place: Place) -> None:
    place.git("config", "core.ignoreCase", "true")
    place.write("readme.MD", "x")


def file_for_link(place: Place) -> None:
    place.git("config", "core.symlinks", "false")
    (place.root / "link").unlink()
    place.write("link", "nowhere")


def skipped_link(place: Place) -> None:
    place.git("update-index", "--skip-worktree", "link")
    (place.root / "link").unlink()
    (place.root / "link").symlink_to("nobody")


def split_index(place: Place) -> None:
    place.git("update-index", "--split-index")
    place.write("src/a.py", "x = 2\n")


def sparse_index(place: Place) -> None:
    place.git("sparse-checkout", "set", "--cone", "--sparse-index", "other")
    assert not (place.root / "src").exists()
    assert place.tree() == place.git("rev-parse", "HEAD^{tree}").strip()
    place.write("src/a.py", "x = 2\n")


@pytest.mark.parametrize("act", [case, file_for_link, skipped_link, split_index, sparse_index])
def test_no_setting_of_the_index_hides_a_change(place: Place, act: Callable[[Place], None]) -> None:
    (place.root / "link").symlink_to("nowhere")
    place.commit()
    git = place.open()
    before = git.write_tree()
    act(place)
    assert git.write_tree() != before


def test_a_split_index_has_the_same_tree(place: Place) -> None:
    before = place.tree()
    place.git("update-index", "--split-index")
    assert list((place.root / ".git").glob("sharedindex.*"))
    frozen = place.frozen()
    assert place.tree() == before
    assert place.frozen() == frozen


def test_another_hash_makes_another_kind_of_id(tmp_path: Path) -> None:
    place = Place(tmp_path / "repository")
    shutil.rmtree(place.root / ".git")
    place.git("init", "-q", "-b", "main", "--object-format=sha256")
    place.commit()
    assert place.tree() == place.git("rev-parse", "HEAD^{tree}").strip()
    assert len(place.tree()) == 64


@pytest.mark.parametrize("name", [".gitattributes", ".git/info/attributes", "src/.gitattributes"])
@pytest.mark.parametrize("attributes", ["* filter=x\n", "[attr]y filter=x\n* y\n", "a.py filter=x"])
def test_no_filter_of_the_user_is_run(
    place: Place, monkeypatch: pytest.MonkeyPatch, name: str, attributes: str
) -> None:
    home = place.root.parent / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f'[filter "x"]\n clean = {place.trap()}\n required = true\n')
    monkeypatch.setenv("HOME", str(home))
    place.write(name, attributes)
    place.write("src/a.py", "x = 2\n")
    git = place.open()
    git.make_diff(git.head or "", git.write_tree())
    assert not place.trapped


def test_the_ignore_file_of_the_user_holds(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    home = place.root.parent / "home"
    home.mkdir()
    (home / "ignored").write_text("*.log\n")
    (home / ".gitconfig").write_text(f"[core]\n excludesFile = {home}/ignored\n")
    monkeypatch.setenv("HOME", str(home))
    before = place.tree()
    place.write("a.log", "noise")
    assert place.tree() == before


def test_what_is_told_of_names_and_bytes_that_are_no_text_can_be_written_down(place: Place) -> None:
    git = place.open()
    before = git.write_tree()
    (place.root / os.fsdecode(b"\xff.txt")).write_bytes(b"caf\xe9\n")
    after = git.write_tree()
    (change,) = git.list_changes(before, after)
    assert change.path == "\\xff.txt"
    assert encode(change)
    diff = git.make_diff(before, after)
    assert "+++ b/\\xff.txt\n" in diff
    assert "+caf\\xe9\n" in diff
    assert encode(diff)


def test_a_work_tree_set_above_the_repository_is_refused(place: Place) -> None:
    place.plant("[core]\n worktree = ../..")
    with pytest.raises(ConfigError, match="git keeps the files of"):
        place.open()


def test_a_line_break_in_the_name_of_the_repository_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path / "two\nlines")
    with pytest.raises(ConfigError, match="line break"):
        place.open()


def test_a_work_tree_set_later_leads_nowhere(place: Place, tmp_path: Path) -> None:
    git = place.open()
    before = git.write_tree()
    (tmp_path / "elsewhere").mkdir()
    place.plant(f"[core]\n worktree = {tmp_path / 'elsewhere'}")
    assert git.write_tree() == before


def test_a_submodule_is_a_repository_of_its_own(place: Place, tmp_path: Path) -> None:
    whole = Place(tmp_path / "whole")
    words = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(place.root), "part")
    whole.git(*words)
    part = whole.root / "part"
    assert (part / ".git").is_file()
    place.root = part
    assert place.open().root == part.resolve()
    before, above = place.tree(), whole.tree()
    place.write("src/a.py", "x = 2\n")
    assert place.tree() != before
    assert whole.tree() != above


WEAKENED = FileChange(kind=ChangeKind.MODIFIED, path="src/a.py")


def say_in_index(place: Place, *, true: str, false: str) -> None:
    index = place.root / ".git/index"
    body = index.read_bytes()[:-20]
    assert bytes.fromhex(true) in body
    body = body.replace(bytes.fromhex(true), bytes.fromhex(false))
    index.write_bytes(body + hashlib.sha1(body, usedforsecurity=False).digest())


def stage_old_looking(place: Place) -> None:
    """Git looks again at files as young as its index; none of these is."""
    place.write("src/a.py", "x = 2\n")
    for name in ("src/a.py", "README.md"):
        os.utime(place.root / name, (1, 1))
    place.git("add", "-A")


def weaken_with_old_content(place: Place) -> None:
    old = place.git("rev-parse", "HEAD:src/a.py").strip()
    stage_old_looking(place)
    say_in_index(place, true=place.git("rev-parse", ":src/a.py").strip(), false=old)
    assert not place.git("diff", "HEAD")


def weaken_with_old_folder(place: Place) -> None:
    old = place.git("rev-parse", "HEAD^{tree}").strip()
    stage_old_looking(place)
    say_in_index(place, true=place.git("write-tree").strip(), false=old)
    assert place.git("write-tree").strip() == old


FORGED = (weaken_with_old_content, weaken_with_old_folder)


@pytest.mark.parametrize("act", FORGED)
def test_a_forged_index_hides_no_change_between_two_trees(place: Place, act: Callable[[Place], None]) -> None:
    git = place.open()
    before = git.write_tree()
    act(place)
    frozen = place.frozen()
    assert git.list_changes(before, git.write_tree()) == (WEAKENED,)
    assert place.frozen() == frozen


@pytest.mark.parametrize("act", FORGED)
def test_a_forged_index_hides_no_change_from_the_first_tree(
    place: Place, act: Callable[[Place], None]
) -> None:
    act(place)
    git = place.open()
    assert git.list_changes("HEAD^{tree}", git.write_tree()) == (WEAKENED,)


def exclude(place: Place) -> None:
    place.write(".git/info/exclude", "conftest.py\n")


def exclude_at_home(place: Place) -> None:
    (place.root.parent / ".config/git").mkdir(parents=True)
    (place.root.parent / ".config/git/ignore").write_text("conftest.py\n")


def exclude_by_setting(place: Place) -> None:
    (place.root.parent / "ignored").write_text("conftest.py\n")
    (place.root.parent / ".gitconfig").write_text("[core]\n excludesFile = ~/ignored\n")


def attributes(place: Place) -> None:
    place.write(".git/info/attributes", "*.py working-tree-encoding=UTF-7\n")


def attributes_at_home(place: Place) -> None:
    (place.root.parent / ".config/git").mkdir(parents=True)
    (place.root.parent / ".config/git/attributes").write_text("*.py working-tree-encoding=UTF-7\n")


HIDING = (exclude, exclude_at_home, exclude_by_setting)
HIDDEN = (
    *((act, ("conftest.py", "x")) for act in HIDING),
    *((act, ("src/a.py", "x +AD0- 1\n")) for act in (attributes, attributes_at_home)),
)


@pytest.mark.parametrize(("act", "change"), HIDDEN)
@pytest.mark.parametrize("first", ["rules", "tree"])
def test_only_the_ignore_rules_and_attributes_of_the_first_tree_count(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Place], None],
    change: tuple[str, str],
    first: str,
) -> None:
    monkeypatch.setenv("HOME", str(place.root.parent))
    place.write("src/a.py", "x = 1\n")
    git = place.open()
    if first == "rules":
        act(place)
    before = git.write_tree()
    if first == "tree":
        act(place)
    place.write(*change)
    assert (git.write_tree() == before) is (first == "rules")


def test_rules_beside_our_block_that_are_older_than_the_first_tree_hold(place: Place) -> None:
    place.write(".git/info/exclude", "*.log\n")
    git = place.open()
    keep_out_of_git(git)
    before = git.write_tree()
    assert END in (place.root / ".git/info/exclude").read_text()
    place.write(".git/info/exclude", "")
    place.write("a.log", "noise")
    assert git.write_tree() == before


def test_an_ignore_file_that_hides_a_file_is_seen_itself(place: Place) -> None:
    git = place.open()
    before = git.write_tree()
    place.write("src/.gitignore", "conftest.py\n")
    place.write("src/conftest.py", "x")
    (change,) = git.list_changes(before, git.write_tree())
    assert change.path == "src/.gitignore"


def test_an_index_that_is_gone_or_damaged_later_does_not_matter(place: Place) -> None:
    git = place.open()
    before = git.write_tree()
    place.write(".git/index", "damaged")
    assert git.write_tree() == before
    (place.root / ".git/index").unlink()
    assert git.write_tree() == before


def test_a_file_flagged_as_left_out_later_cannot_go_unseen(place: Place) -> None:
    git = place.open()
    before = git.write_tree()
    place.git("update-index", "--skip-worktree", "src/a.py")
    (place.root / "src/a.py").unlink()
    (change,) = git.list_changes(before, git.write_tree())
    assert change == FileChange(kind=ChangeKind.DELETED, path="src/a.py")


def test_no_object_shown_in_the_place_of_another_hides_a_change(place: Place) -> None:
    git = place.open()
    before = git.write_tree()
    place.write("src/a.py", "x = 2\n")
    after = git.write_tree()
    place.git("replace", after, before)
    assert git.list_changes(before, after) == (WEAKENED,)
    assert "+x = 2\n" in git.make_diff(before, after)
