from pathlib import Path

from agentflow.process import capture
from agentflow.workspace.git import Git, open_repository
from agentflow.workspace.mixed_tree import TreeSplit, mix_trees, read_changed_texts

SPLIT = TreeSplit(
    belongs=lambda path: path.startswith("tests/"),
    is_shared=lambda path: path == "shared.txt",
    mix=lambda _, second, first: f"{first}|{second}",
)


def tree_of(git: Git, files: dict[str, bytes | None]) -> str:
    for name, content in files.items():
        place = git.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            place.unlink()
        else:
            place.write_bytes(content)
    return git.write_tree()


def content(git: Git, tree: str) -> dict[str, bytes]:
    return {path: git.call("cat-file", "blob", f"{tree}:{path}") for path in git.list_paths(tree)}


def repository(folder: Path) -> Git:
    folder.mkdir()
    capture(("git", "init", "-q"), cwd=folder)
    return open_repository(folder)


def test_two_trees_become_one(tmp_path: Path) -> None:
    git = repository(tmp_path / "repo")
    base = tree_of(
        git, {"src.py": b"old", "tests/a.py": b"base", "tests/gone.py": b"base", "shared.txt": b"B"}
    )
    final = tree_of(
        git,
        {
            "src.py": b"new",
            "more.py": b"new",
            "tests/a.py": b"weak",
            "tests/gone.py": None,
            "tests/new.py": b"new",
            "shared.txt": b"F",
        },
    )

    held = mix_trees(git, final, base, SPLIT)

    assert content(git, held) == {
        "src.py": b"new",
        "more.py": b"new",
        "tests/a.py": b"base",
        "tests/gone.py": b"base",
        "shared.txt": b"F|B",
    }
    assert content(git, mix_trees(git, base, final, SPLIT)) == {
        "src.py": b"old",
        "tests/a.py": b"weak",
        "tests/new.py": b"new",
        "shared.txt": b"B|F",
    }


def test_trees_with_the_same_checks_are_one(tmp_path: Path) -> None:
    git = repository(tmp_path / "repo")
    base = tree_of(git, {"src.py": b"old", "tests/a.py": b"a"})
    final = tree_of(git, {"src.py": b"new"})

    assert mix_trees(git, final, base, SPLIT) == final


def test_a_folder_in_place_of_a_file_gives_way(tmp_path: Path) -> None:
    git = repository(tmp_path / "repo")
    base = tree_of(git, {"tests/a": b"file"})
    final = tree_of(git, {"tests/a": None, "tests/a.d": b""})
    (git.root / "tests/a").mkdir()
    final = tree_of(git, {"tests/a/b.py": b"inner"})

    assert content(git, mix_trees(git, final, base, SPLIT)) == {"tests/a": b"file"}


def test_the_users_index_and_files_stay(tmp_path: Path) -> None:
    git = repository(tmp_path / "repo")
    base = tree_of(git, {"src.py": b"old", "tests/a.py": b"a"})
    git.call("add", "src.py")
    index = (git.root / ".git/index").read_bytes()
    final = tree_of(git, {"src.py": b"new", "tests/a.py": b"b"})

    mix_trees(git, final, base, SPLIT)

    assert (git.root / ".git/index").read_bytes() == index
    assert (git.root / "src.py").read_bytes() == b"new"


def test_what_differs_is_told_as_text_up_to_a_limit(tmp_path: Path) -> None:
    git = repository(tmp_path / "repo")
    base = tree_of(git, {"a.py": b"one\n", "gone.py": b"x", "large.txt": b"x" * 50, "same.py": b"same"})
    final = tree_of(git, {"a.py": b"two\n", "gone.py": None, "large.txt": b"y" * 50, "odd\xff": b"\xff"})

    assert [(each.path, each.before, each.after) for each in read_changed_texts(git, base, final, 20)] == [
        ("a.py", "one\n", "two\n"),
        ("gone.py", "x", ""),
        ("large.txt", "", ""),
        ("odd\xff", "", "\\xff"),
    ]
