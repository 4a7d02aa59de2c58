import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentflow.core.evidence import Command
from agentflow.process import capture
from agentflow.sandbox.confine import find_ability
from agentflow.sandbox.profile import Level
from agentflow.sandbox.run import Sandbox
from agentflow.workspace.git import Git, open_repository
from agentflow.workspace.working_copy import LowerDirectory, WorkingCopy
from tests.support.places import temporary_files_in

COMMIT = ("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm")


@pytest.fixture
def git(tmp_path: Path) -> Git:
    root = tmp_path / "repo"
    root.mkdir()
    capture(("git", "init", "-q"), cwd=root)
    return open_repository(root)


def write(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


@contextmanager
def staged(
    git: Git, tree: str | None = None, ignored: tuple[str, ...] | None = None
) -> Iterator[WorkingCopy]:
    stage = WorkingCopy(git, tree or git.write_tree(), git.list_ignored() if ignored is None else ignored)
    try:
        stage.fill()
        yield stage
    finally:
        stage.remove()


def content(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_ignored_files_are_copied_wherever_the_repository_lies(tmp_path: Path) -> None:
    root = tmp_path / ".cache/__pycache__/node_modules/repo"
    root.mkdir(parents=True)
    capture(("git", "init", "-q"), cwd=root)
    files = {".gitignore": b"local.cfg\n.cache/\n.venv/\n", "local.cfg": b"a"}
    write(root, {**files, ".cache/made": b"", ".venv/lib/a.py": b""})
    with staged(open_repository(root)) as stage:
        assert content(stage.view.folder) == files
        assert stage.view.shown == (".venv",)


def test_a_tree_is_written_out_byte_for_byte_and_gone_at_the_end(git: Git) -> None:
    files = {
        "a.txt": b"one\r\ntwo\n",
        "sub/b.bin": bytes(range(256)),
        "odd \n name": b"x",
        "run.sh": b"#!/bin/sh\n",
    }
    write(git.root, files)
    (git.root / "run.sh").chmod(0o755)
    tree = git.write_tree()
    write(git.root, {"a.txt": b"changed"})
    with staged(git, tree) as stage:
        assert content(stage.view.place) == files
        assert os.access(stage.view.place / "run.sh", os.X_OK)
        assert stage.view.place.name == "repo"
    assert not stage.view.place.exists()


@pytest.mark.parametrize("rule", ["* text=auto", "* text eol=crlf", "* text eol=lf", "* crlf", "* ident"])
def test_a_check_sees_what_is_on_disk_whatever_a_commit_makes_of_it(git: Git, rule: str) -> None:
    files = {
        "a.py": b"x = 1\r\n",
        "b.py": b"x = '$Id: mine $'\n",
        "mixed": b"one\r\ntwo\n",
        ".gitattributes": f"{rule}\n".encode(),
    }
    write(git.root, files)
    tree = git.write_tree()
    with staged(git, tree) as stage:
        assert content(stage.view.place) == files
        assert stage.list_changes() == ()
    write(git.root, {"a.py": b"x = 1\n"})
    assert [change.path for change in git.list_changes(tree, git.write_tree())] == ["a.py"]


@pytest.mark.parametrize("index", ["--no-sparse-index", "--sparse-index"])
def test_what_a_sparse_checkout_leaves_out_is_in_the_tree_and_in_no_copy(git: Git, index: str) -> None:
    write(git.root, {"a.py": b"a", "near/b.py": b"b", "far/c.py": b"c", "far/d.py": b"d"})
    for words in (
        ("add", "-A"),
        (*COMMIT, "one"),
        ("sparse-checkout", "set", "--cone", index, "near"),
    ):
        assert capture(("git", *words), cwd=git.root).returncode == 0
    write(git.root, {"far/d.py": b"made"})
    opened = open_repository(git.root)
    tree = opened.write_tree()
    assert [change.path for change in opened.list_changes(opened.head or "", tree)] == ["far/d.py"]
    assert opened.list_paths(tree) == ("a.py", "far/d.py", "near/b.py")
    with staged(opened, tree) as stage:
        assert content(stage.view.place) == {"a.py": b"a", "far/d.py": b"made", "near/b.py": b"b"}


def test_no_program_of_the_repository_is_run_for_it(git: Git, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    config = f'[filter "x"]\n\tsmudge = touch {canary}; cat\n\tclean = touch {canary}; cat\n'
    with (git.root / ".git/config").open("a") as file:
        file.write(config)
    write(git.root, {".gitattributes": b"* filter=x\n", "a.txt": b"a"})
    with staged(git) as stage:
        assert (stage.view.place / "a.txt").read_bytes() == b"a"
    assert not canary.exists()


def test_small_ignored_files_are_copied_and_large_ones_and_environments_shown(
    git: Git,
) -> None:
    write(git.root, {".gitignore": b".venv/\ndata/\n*.local\n__pycache__/\n", "a/x.py": b"x"})
    write(git.root, {".venv/bin/python": b"p", "data/big": b"d", "own.local": b"small"})
    os.truncate(git.root / "data/big", 64_000_001)  # with a hole in it
    write(git.root, {"a/__pycache__/x.pyc": b"stale"})
    with staged(git) as stage:
        assert set(stage.view.shown) == {".venv", "data"}
        assert (stage.view.place / "own.local").read_bytes() == b"small"
        assert (
            list((stage.view.place / ".venv").iterdir()) == list((stage.view.place / "data").iterdir()) == []
        )
        assert not (stage.view.place / "a/__pycache__").exists()


def test_what_is_ignored_cannot_be_laid_through_a_link_of_the_tree(git: Git, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    write(git.root, {".gitignore": b"*.local\n"})
    (git.root / "sub").symlink_to(outside)
    tree = git.write_tree()
    (git.root / "sub").unlink()
    write(git.root, {"sub/own.local": b"x"})
    with staged(git, tree):
        assert list(outside.iterdir()) == []


def test_a_check_that_works_with_git_reaches_no_index_of_ours(git: Git) -> None:
    write(git.root, {"a.txt": b"a"})
    for words in (
        ("add", "-A"),
        (*COMMIT, "one"),
    ):
        assert capture(("git", *words), cwd=git.root).returncode == 0
    before = {path: path.read_bytes() for path in (git.root / ".git").rglob("*") if path.is_file()}
    with staged(git) as stage:
        said = capture(("git", "log", "--format=%s"), cwd=stage.view.place)
        assert said.stdout == b"one\n"
        write(stage.view.place, {"new.txt": b"n"})
        for words in (
            ("add", "-A"),
            (*COMMIT, "two"),
        ):
            assert capture(("git", *words), cwd=stage.view.place).returncode == 0
    assert {path: path.read_bytes() for path in (git.root / ".git").rglob("*") if path.is_file()} == before


def test_what_a_check_leaves_is_told_and_undone_but_for_products(git: Git) -> None:
    write(
        git.root, {".gitignore": b"dist/\n*.local.py\n", "a.py": b"a", "b.py": b"b", "own.local.py": b"own"}
    )
    with staged(git) as stage:
        write(
            stage.view.place,
            {"a.py": b"other", "new.py": b"", "dist/out.js": b"built", "conftest.local.py": b""},
        )
        (stage.view.place / "b.py").unlink()
        assert set(stage.list_changes()) == {"M a.py", "D b.py", "A new.py"}

        stage.restore(lambda path: path.startswith("conftest"))

        assert stage.list_changes() == ()
        assert content(stage.view.place) == {
            ".gitignore": b"dist/\n*.local.py\n",
            "a.py": b"a",
            "b.py": b"b",
            "own.local.py": b"own",
            "dist/out.js": b"built",
        }


def test_a_repository_that_a_check_makes_inside_is_undone(git: Git) -> None:
    write(git.root, {"a.py": b"a"})
    with staged(git) as stage:
        inner = stage.view.place / "inner"
        inner.mkdir()
        assert capture(("git", "init", "-q"), cwd=inner).returncode == 0
        write(inner, {"x.py": b"x"})

        stage.restore(lambda _: False)

        assert stage.list_changes() == ()
        assert content(stage.view.place) == {"a.py": b"a"}


@pytest.fixture
def box(git: Git) -> Sandbox:
    found = find_ability()
    if found.level is not Level.FULL:
        pytest.skip("no overlay is mounted without bubblewrap")
    return Sandbox(root=git.root, ability=found)


def test_a_layer_shows_its_own_tree_and_leaves_the_files_below_alone(
    git: Git, box: Sandbox, tmp_path: Path
) -> None:
    files = {".gitignore": b"*.local\n", "a.py": b"a", "b.py": b"b", "sub/c.py": b"c", "own.local": b"own"}
    write(git.root, files)
    first = git.write_tree()
    (git.root / "b.py").unlink()
    write(git.root, {"a.py": b"changed", "new.py": b"n"})
    underlay = LowerDirectory(git)
    stage = WorkingCopy(git, git.write_tree(), git.list_ignored())
    try:
        below = content(underlay.write_below(first).view.folder)
        stage.fill(underlay)

        def told(shell: str) -> str:
            command = Command(argv=("bash", "-c", shell), cwd=str(git.root), timeout=30)
            return box.switch_to_view(stage.view).run(command, tmp_path / "output").tail

        assert told("cat a.py new.py sub/c.py own.local; ls b.py") == (
            "changedncownls: cannot access 'b.py': No such file or directory\n"
        )
        assert stage.list_changes() == ()
        told("rm -r sub; echo b > b.py; echo x >> new.py; mkdir made; touch made/x built.local")
        assert set(stage.list_changes()) == {"D sub/c.py", "A b.py", "M new.py", "A made/x"}
        stage.restore(lambda _: False)
        assert stage.list_changes() == ()
        assert told("cat a.py new.py sub/c.py; ls b.py made/x *.local").startswith("changednc")
        assert "built.local" in told("ls *.local")
        assert content(underlay.write_below(first).view.folder) == below
    finally:
        stage.remove()
        underlay.close()
    assert not stage.view.folder.exists()


def test_a_check_reads_the_history_and_cannot_change_it(git: Git, box: Sandbox, tmp_path: Path) -> None:
    write(git.root, {"a.txt": b"a"})
    for line in (("add", "-A"), (*COMMIT, "one"), ("tag", "v1.0"), ("gc", "-q")):
        assert capture(("git", *line), cwd=git.root).returncode == 0
    places = [path for path in (git.root / ".git").rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in places}
    with staged(git) as stage:
        new = f"echo b > a.txt; git {' '.join(COMMIT)} two -a; git log --format=%s; rm -rf .git/objects/*/*"
        shell = ("sh", "-c", f"git describe --tags --dirty; {new}")
        command = Command(argv=shell, cwd=str(git.root), timeout=30)
        within = box.replace(git=git.folders).switch_to_view(stage.view)
        said = within.run(command, tmp_path / "output").tail
    assert said.splitlines()[:3] == ["v1.0", "two", "one"]
    assert {path: path.read_bytes() for path in places} == before


def test_where_nothing_can_be_mounted_a_copy_is_written(git: Git, tmp_path: Path) -> None:
    odd = tmp_path / "a,b"  # a comma separates the options of a mount
    odd.mkdir()
    write(git.root, {"a.py": b"a"})
    with temporary_files_in(odd):
        underlay = LowerDirectory(git)
        stage = WorkingCopy(git, git.write_tree(), ())
        try:
            stage.fill(underlay)
            assert content(stage.view.place) == {"a.py": b"a"}
        finally:
            stage.remove()
            underlay.close()
    assert list(odd.iterdir()) == []
