"""A layer above the files of another tree shows what a copy of its own would."""

import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentflow.process import capture
from agentflow.sandbox.confine import build_mount_words, find_ability
from agentflow.sandbox.profile import Level
from agentflow.workspace.git import Git, open_repository
from agentflow.workspace.working_copy import LowerDirectory, WorkingCopy

Tree = Mapping[str, str]
"""By path what a file holds; `->` leads to where a link leads, `+x ` stands before what is executable."""
IGNORE = {".gitignore": "*.local\n"}
NAMES = ("a", "b", "A", "-rf", "c d", "n\nl", "é", "\udcff\udcfe", "*", "x", ".wh.a", "a.py")
CONTENTS = ("", "one\n", "two\n", "+x one\n", "->a", "->..", "->/nowhere")
LOOK = r"""find . -path ./.git -prune -o -printf '%y%m %p -> %l: ' \
  \( -type f -exec cat {} \; -o -true \) -printf '\0'"""


@pytest.fixture
def git(tmp_path: Path) -> Git:
    if find_ability().level is not Level.FULL:
        pytest.skip("no overlay is mounted without bubblewrap")
    (tmp_path / "repo").mkdir()
    capture(("git", "init", "-q"), cwd=tmp_path / "repo")
    return open_repository(tmp_path / "repo")


def tree_of(git: Git, files: Tree, folder: Path) -> str:
    """Return the id of a tree without laying it out."""
    env = {"GIT_INDEX_FILE": str(folder / "index")}
    lines = []
    for path, text in files.items():
        mode = "120000" if text.startswith("->") else "100755" if text.startswith("+x ") else "100644"
        content = text.removeprefix("->").removeprefix("+x ").encode()
        blob = git.call("hash-object", "-w", "--stdin", stdin=content).decode().strip()
        lines.append(f"{mode} {blob}\t{path}\0")
    (folder / "index").unlink(missing_ok=True)
    git.call("update-index", "-z", "--index-info", env=env, stdin=os.fsencode("".join(lines)))
    return git.call("write-tree", env=env).decode().strip()


@contextmanager
def filled(git: Git, below: str, stage: WorkingCopy, *, as_copy: bool = False) -> Iterator[WorkingCopy]:
    underlay = LowerDirectory(git)
    try:
        underlay.write_below(below)
        stage.fill(None if as_copy else underlay)
        yield stage
    finally:
        stage.remove()
        underlay.close()


def shell(stage: WorkingCopy, script: str) -> list[bytes]:
    """Return what a script says that runs where a check would find the files."""
    words = build_mount_words(*stage.view.overlay) if stage.view.overlay else ()
    there = ("sh", "-c", 'cd "$1" && eval "$2"', "sh", str(stage.view.place), script)
    done = capture((*words, *there), cwd=stage.view.folder)
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.split(b"\0"))


def placed(tree: Tree, path: str, text: str) -> Tree:
    """Return a tree with a file, and without what cannot be there beside it."""
    others = {
        p: t for p, t in tree.items() if not (f"{p}/".startswith(f"{path}/") or path.startswith(f"{p}/"))
    }
    return {**others, path: text}


def grown(tree: Tree, dice: random.Random, times: int) -> Tree:
    for _ in range(times):
        path = "/".join(dice.choices(NAMES, k=dice.choice((1, 1, 2, 3))))
        tree = placed(tree, path, dice.choice(CONTENTS))
    return tree


@pytest.mark.parametrize("seed", range(5))
def test_a_layer_shows_what_a_copy_shows_and_is_restored(git: Git, seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    before = grown({}, dice, 10)
    kept = {path: text for path, text in before.items() if dice.random() < 0.7}
    first, tree = (tree_of(git, files, tmp_path) for files in (before, grown(kept, dice, 6)))
    with filled(git, first, WorkingCopy(git, tree, ()), as_copy=True) as stage:
        expected = shell(stage, LOOK)
    with filled(git, first, WorkingCopy(git, tree, ())) as stage:
        assert stage.view.layer
        assert shell(stage, LOOK) == expected
        assert stage.list_changes() == ()
        assert shell(stage, "rm -rf -- * && echo new > added") == [b""]
        assert "A added" in stage.list_changes()
        stage.restore(lambda _: True)
        assert stage.list_changes() == ()
        assert shell(stage, LOOK) == expected


@pytest.mark.parametrize("seed", range(5))
def test_a_layer_from_which_nothing_is_gone_shows_what_a_copy_shows(
    git: Git, seed: int, tmp_path: Path
) -> None:
    dice = random.Random(seed)
    rule = "*.py text working-tree-encoding=latin-1\n"
    fixed = {**IGNORE, ".gitattributes": rule, "s/w.py": "one\n", "link": "->a", "run": "a"}
    before = grown(fixed, dice, 10)
    files = [path for path in before if path not in fixed and not before[path].startswith("->")]
    changed = {path: dice.choice(("three\n", "+x one\n")) for path in files if dice.random() < 0.5}
    added = {"s/w.py": "zw\u00f6\n", "link": "->b", "run": "+x a", "s/new.py": "new\n", "new/deep/x": ""}
    first, tree = (tree_of(git, files, tmp_path) for files in (before, {**before, **changed, **added}))
    with filled(git, first, WorkingCopy(git, tree, ()), as_copy=True) as stage:
        expected = shell(stage, LOOK)
    assert b"f644 ./s/w.py -> : zw\xf6\n" in expected
    with filled(git, first, WorkingCopy(git, tree, ())) as stage:
        assert stage.view.layer
        assert shell(stage, LOOK) == expected
        shell(stage, "touch unrelated.local")
        assert stage.list_changes() == ()
        shell(stage, "echo more >> s/w.py && rm run && echo new > s/added")
        assert set(stage.list_changes()) == {"M s/w.py", "D run", "A s/added"}
        stage.restore(lambda _: True)
        assert stage.list_changes() == ()
        assert shell(stage, LOOK) == expected


BESIDE = {
    "in a folder that is gone": ({**IGNORE, "x/a": "a"}, IGNORE),
    "in a folder where a file was": ({**IGNORE, "x": "a"}, IGNORE),
    "in a folder where a link was": ({**IGNORE, "t/a": "a", "x": "->t"}, {**IGNORE, "x/b": "b"}),
    "where a file was": ({**IGNORE, "x/own.local": "a"}, IGNORE),
    "where a folder was": ({**IGNORE, "x/own.local/a": "a"}, IGNORE),
}


@pytest.mark.parametrize(("before", "now"), BESIDE.values(), ids=BESIDE)
def test_what_lies_beside_a_tree_is_found(git: Git, before: Tree, now: Tree, tmp_path: Path) -> None:
    (git.root / "x").mkdir()
    (git.root / "x/own.local").write_text("own")
    seen = ("x/own.local",)
    first, tree = (tree_of(git, files, tmp_path) for files in (before, now))
    with filled(git, first, WorkingCopy(git, tree, seen), as_copy=True) as stage:
        expected = shell(stage, LOOK)
    with filled(git, first, WorkingCopy(git, tree, seen)) as stage:
        assert b"f644 ./x/own.local -> : own" in shell(stage, LOOK)
        assert shell(stage, LOOK) == expected


@pytest.mark.parametrize("as_copy", [True, False])
def test_nothing_is_laid_where_the_tree_has_a_file_on_the_way(
    git: Git, as_copy: bool, tmp_path: Path
) -> None:
    (git.root / "x").mkdir()
    (git.root / "x/own.local").write_text("own")
    tree = tree_of(git, {**IGNORE, "x": "a"}, tmp_path)
    with filled(git, tree, WorkingCopy(git, tree, ("x/own.local",)), as_copy=as_copy) as stage:
        assert b"f644 ./x -> : a" in shell(stage, LOOK)


def test_files_are_written_in_the_encoding_of_their_own_tree(git: Git, tmp_path: Path) -> None:
    before = {"a": "gr\u00f6\u00dfe"}
    first = tree_of(git, before, tmp_path)
    rule = "a text working-tree-encoding=latin-1\n"
    tree = tree_of(git, {**before, ".gitattributes": rule}, tmp_path)
    with filled(git, first, WorkingCopy(git, tree, ())) as stage:
        assert b"f644 ./a -> : gr\xf6\xdfe" in shell(stage, LOOK)


def test_a_new_file_is_told_although_its_name_begins_like_that_of_an_ignored_one(
    git: Git, tmp_path: Path
) -> None:
    (git.root / "conf").write_text("own")
    tree = tree_of(git, {".gitignore": "conf\n"}, tmp_path)
    with filled(git, tree, WorkingCopy(git, tree, ("conf",))) as stage:
        shell(stage, "touch conftest.py")
        assert stage.list_changes() == ("A conftest.py",)
        stage.restore(lambda _: True)
        assert b"f644 ./conftest.py -> : " not in shell(stage, LOOK)
        assert b"f644 ./conf -> : own" in shell(stage, LOOK)


def test_what_a_check_did_is_told_beside_folders_too_deep_to_be_named(git: Git, tmp_path: Path) -> None:
    tree = tree_of(git, {"a": "one\n"}, tmp_path)
    nest = "import os; name = 'd' * 200; [(os.mkdir(name), os.chdir(name)) for _ in range(25)]"
    with filled(git, tree, WorkingCopy(git, tree, ())) as stage:
        shell(stage, f'echo two > a; python3 -c "{nest}"')
        assert stage.list_changes() == ("M a",)
        stage.restore(lambda _: True)
        assert stage.list_changes() == ()
