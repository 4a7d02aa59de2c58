"""A tree that was made before is found again without writing; it is the one that git would write."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.workspace.places import Place

FILES = {"a.py": "a = 1\n", "src/b.py": "b = 1\n", "src/deep/c.py": "c = 1\n", "z.txt": "z\n"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path / "repository")
    for name, text in FILES.items():
        place.write(name, text)
    place.commit()
    return place


def written(place: Place) -> str:
    """The tree as a process that knows of none makes it."""
    return place.open().write_tree()


def linked_folder(root: Path) -> None:
    """The same file again, but behind a link."""
    shutil.move(root / "src/deep", root.parent / "deep")
    (root / "src/deep").symlink_to(root.parent / "deep")


def program(root: Path) -> None:
    (root / "a.py").chmod(0o755)


def link_for_file(root: Path) -> None:
    (root / "a.py").unlink()
    (root / "a.py").symlink_to("z.txt")


def folder_for_file(root: Path) -> None:
    (root / "a.py").unlink()
    (root / "a.py").mkdir()
    (root / "a.py/inner.py").write_text("a = 1\n")


def file_for_folder(root: Path) -> None:
    shutil.rmtree(root / "src")
    (root / "src").write_text("b = 1\n")


def gone(root: Path) -> None:
    (root / "src/b.py").unlink()


def newly_ignored(root: Path) -> None:
    (root / "new.txt").write_text("new\n")
    (root / "src/.gitignore").write_text("later.py\n")
    (root / "src/later.py").write_text("")


def ours(root: Path) -> None:
    (root / ".claude/agentflow").mkdir(parents=True)
    (root / ".claude/agentflow/task.md").write_text("")
    (root / ".claude/settings.json").write_text("{}")


def untouched(root: Path) -> None:
    os.utime(root / "a.py", (1, 1))


CHANGES = (
    *(linked_folder, program, link_for_file, folder_for_file, file_for_folder, gone, newly_ignored, ours),
    untouched,
)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_leads_to_the_tree_that_git_writes(place: Place, change: Callable[[Path], None]) -> None:
    git = place.open()
    first = git.write_tree()
    change(place.root)
    after = git.write_tree()
    assert after == git.write_tree() == written(place)
    assert git.has_tree(after)
    assert (first == after) is (change is untouched)


@pytest.mark.parametrize("change", [program, link_for_file, file_for_folder, gone])
def test_what_differs_is_what_git_says(place: Place, change: Callable[[Path], None]) -> None:
    git = place.open()
    first = git.write_tree()
    change(place.root)
    second = git.write_tree()
    assert git.find_entries(first)
    assert git.find_entries(second)
    for pair in ((first, second), (second, first)):
        assert place.open().find_entries(pair[0]) is None
        assert git.compare(*pair) == place.open().compare(*pair) != ()


def test_files_put_back_are_the_tree_from_before(place: Place) -> None:
    git = place.open()
    first = git.write_tree()
    place.write("a.py", "a = 2\n")
    second = git.write_tree()
    place.write("a.py", "a = 1\n")
    assert git.write_tree() == first != second


def test_a_file_in_another_encoding_is_never_taken_for_its_text(place: Place) -> None:
    place.write(".git/info/exclude", ".gitattributes\n")
    git = place.open()
    plain = git.write_tree()
    place.write(".gitattributes", "a.py working-tree-encoding=UTF-16LE\n")
    place.write("a.py", "a = 2\n".encode("utf-16-le"))
    wide = git.write_tree()
    assert git.read_texts([f"{wide}:a.py"], 100) == ("a = 2\n",)
    place.write("a.py", "a = 1\n")
    assert git.write_tree() != plain  # these bytes mean another text now


def test_what_is_ignored_follows_the_rules_as_they_are(place: Place) -> None:
    git = place.open()
    assert git.list_ignored() == ()
    place.write("src/.gitignore", "*.log\n")
    place.write("src/deep/x.log", "")
    assert git.list_ignored() == ("src/deep/x.log",)
    place.write("src/.gitignore", "*.txt\n")
    assert git.list_ignored() == ()
    place.write("src/.gitignore", "deep\n")
    assert git.list_ignored() == ("src/deep/x.log",)
    place.write("src/deep/y.log", "")
    assert git.list_ignored() == ("src/deep/x.log", "src/deep/y.log")


def test_texts_are_kept_within_the_limit_that_was_asked_for(place: Place) -> None:
    git = place.open()
    tree = git.write_tree()
    names = [f"{tree}:a.py", f"{tree}:none.py", "0" * 40, f"{tree}:z.txt"]
    assert git.read_texts(names, 3) == ("", "", "", "z\n")
    assert git.read_texts(names, 100) == ("a = 1\n", "", "", "z\n")
    assert git.read_texts(names[::-1], 3) == ("z\n", "", "", "")
    assert git.read_texts([*names, names[0]], 100) == ("a = 1\n", "", "", "z\n", "a = 1\n")


def test_a_link_that_is_ignored_stands_for_no_folder(place: Place) -> None:
    place.write(".git/info/exclude", "deep\n")
    git = place.open()
    first = git.write_tree()
    linked_folder(place.root)
    assert git.write_tree() == written(place) != first


def test_files_are_read_by_path_and_one_that_cannot_be_asked_for_is_left_out(place: Place) -> None:
    place.write("odd\nname.py", "b = 2\n")
    git = place.open()
    tree = git.write_tree()
    assert "odd\nname.py" in git.list_paths(tree)
    assert git.read_files(tree, git.list_paths(tree), 3)["z.txt"] == "z\n"
    assert git.read_files(tree, ["odd\nname.py", "a.py"], 100) == {"a.py": "a = 1\n"}


def test_a_tree_of_very_many_files_follows_each_change(place: Place) -> None:
    (place.root / "many").mkdir()
    for number in range(20_001):
        (place.root / f"many/{number}").touch()
    place.commit()
    repository = place.open()
    before = repository.write_tree()
    place.write("src/b.py", "b = 2\n")
    place.write("new.py", "n = 1\n")
    after = repository.write_tree()
    assert (before, after) == (place.git("rev-parse", "HEAD^{tree}").strip(), written(place))
    assert repository.write_tree() == after
    place.write("src/b.py", FILES["src/b.py"])
    (place.root / "new.py").unlink()
    assert repository.write_tree() == before
