import os
import stat
import subprocess
from pathlib import Path

import pytest

from agentflow.core.errors import InvalidInput, OutsideWorkspace, ToolError
from agentflow.workspace.git import open_repository
from agentflow.workspace.path_guard import MAX_READ_BYTES, PathGuard
from tests.support.first_commit import make_repository


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "repository"
    place.mkdir()
    make_repository(place)
    (place / "src").mkdir()
    (place / "src" / "a.py").write_text("a = 1\n")
    (tmp_path / "repository-evil").mkdir()
    (tmp_path / "repository-evil" / "secret").write_text("secret")
    return place


@pytest.fixture
def fence(root: Path) -> PathGuard:
    return PathGuard(root)


def test_reads_relative_and_absolute_paths_below_the_root(root: Path, fence: PathGuard) -> None:
    assert fence.root == root
    assert fence.read("src/a.py") == fence.read(str(root / "src/a.py")) == b"a = 1\n"
    assert fence.to_relative("src/../src/./a.py") == fence.to_relative(str(root / "src/a.py")) == "src/a.py"
    assert fence.to_relative(".") == "."


def test_what_is_gone_reads_as_it_was_in_a_tree(root: Path, fence: PathGuard) -> None:
    git = open_repository(root)
    guard = fence.show_deleted(git, git.write_tree())
    (root / "src/a.py").unlink()
    assert guard.read("src/a.py") == b"a = 1\n"
    for absent in ("src/b.py", "src"):
        with pytest.raises(InvalidInput, match=absent):
            guard.read(absent)
    with pytest.raises(InvalidInput):
        fence.read("src/a.py")


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../repository-evil/secret",
        "src/../../repository-evil/secret",
        "/etc/passwd",
        "",
        "src/a.py\0",
        "src/\x1b[2J",
        "src/a\n.py",
        "out/secret",
        "out-file",
        "loop",
        ".git/config",
        ".GIT/config",
        "src/../.git/config",
        "sub/.git/config",
        "link-to-git/config",
        "/proc/self/environ",
        "x" * 5000,
    ],
)
def test_no_path_leads_out_or_to_git(root: Path, fence: PathGuard, path: str) -> None:
    (root / "out").symlink_to(root.parent / "repository-evil")
    (root / "out-file").symlink_to("../repository-evil/secret")
    (root / "loop").symlink_to("loop")
    (root / "link-to-git").symlink_to(".git")
    (root / "sub/.git").mkdir(parents=True)
    (root / "sub/.git/config").write_text("")
    before = snapshot(root.parent)
    for attempt in (fence.read, fence.to_relative, fence.list_files, lambda path: fence.write(path, b"x")):
        with pytest.raises(OutsideWorkspace):
            attempt(path)
    assert snapshot(root.parent) == before


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_root_with_a_longer_name_is_another_folder(root: Path, fence: PathGuard) -> None:
    with pytest.raises(OutsideWorkspace):
        fence.read(f"{root}-evil/secret")


def test_a_link_to_inside_is_followed_and_kept(root: Path, fence: PathGuard) -> None:
    (root / "docs").symlink_to("src")
    assert fence.read("docs/a.py") == b"a = 1\n"
    assert fence.to_relative("docs/a.py") == "src/a.py"
    (root / "b.py").symlink_to("src/a.py")
    fence.write(fence.to_relative("b.py"), b"b = 2\n")
    assert (root / "b.py").is_symlink()
    assert (root / "src/a.py").read_bytes() == b"b = 2\n"


def test_a_root_below_a_protected_name_is_no_obstacle(tmp_path: Path) -> None:
    place = tmp_path / ".claude" / "worktree"
    place.mkdir(parents=True)
    fence = PathGuard(place)
    fence.write(fence.to_relative(str(place / "a.py")), b"x")
    assert fence.read("a.py") == b"x"


@pytest.mark.parametrize(
    "path",
    [
        ".claude/settings.json",
        ".claude/agentflow/t/task.md",
        ".Claude/settings.json",
        "sub/.claude/agents/x.md",
        "rules/settings.json",
        "src/../.claude/x",
        ".agents/skills/x/SKILL.md",
        ".mcp.json",
    ],
)
def test_policy_is_read_only(root: Path, fence: PathGuard, path: str) -> None:
    (root / ".claude").mkdir()
    (root / ".claude/settings.json").write_text("{}")
    (root / "rules").symlink_to(".claude")
    with pytest.raises(OutsideWorkspace, match="read-only"):
        fence.write(path, b"x")
    assert (root / ".claude/settings.json").read_text() == "{}"
    assert {entry.name for entry in root.iterdir()} == {".git", ".claude", "src", "rules"}


def test_task_folders_are_readable_and_never_listed(root: Path, fence: PathGuard) -> None:
    place = root / ".claude/agentflow/t/brief.md"
    place.parent.mkdir(parents=True)
    place.write_text("brief")
    assert fence.read(".claude/agentflow/t/brief.md") == b"brief"
    assert fence.list_files() == ("src/a.py",)


def test_only_regular_files_are_read_or_replaced(root: Path, fence: PathGuard) -> None:
    os.mkfifo(root / "pipe")
    for path, problem in (("pipe", "not a regular file"), ("src", "is a folder")):
        with pytest.raises(InvalidInput, match=problem):
            fence.read(path)
        with pytest.raises(InvalidInput, match=problem):
            fence.write(path, b"x")
    with pytest.raises(InvalidInput, match="no such file"):
        fence.read("src/missing.py")
    assert stat.S_ISFIFO((root / "pipe").stat().st_mode)


def test_a_file_above_the_limit_is_not_read(root: Path, fence: PathGuard) -> None:
    with (root / "big").open("wb") as file:
        file.truncate(MAX_READ_BYTES)
    assert len(fence.read("big")) == MAX_READ_BYTES
    with (root / "big").open("wb") as file:
        file.truncate(MAX_READ_BYTES + 1)
    with pytest.raises(InvalidInput, match="10,000,001 bytes"):
        fence.read("big")


def test_a_new_file_gets_its_folders_and_the_mode_of_the_umask(root: Path, fence: PathGuard) -> None:
    fence.write("new/deep/file.txt", b"x")
    (root / "plain").write_text("x")
    assert (root / "new/deep/file.txt").read_bytes() == b"x"
    assert (root / "new/deep/file.txt").stat().st_mode == (root / "plain").stat().st_mode


def test_a_replaced_file_keeps_its_mode_and_nothing_else_is_left(root: Path, fence: PathGuard) -> None:
    script = root / "src/run.sh"
    script.write_text("old")
    script.chmod(0o751)
    fence.write("src/run.sh", b"new")
    assert script.read_text() == "new"
    assert stat.S_IMODE(script.stat().st_mode) == 0o751
    assert {entry.name for entry in (root / "src").iterdir()} == {"a.py", "run.sh"}


def test_a_file_that_cannot_be_written_is_named_and_nothing_is_left(root: Path, fence: PathGuard) -> None:
    with pytest.raises(ToolError, match=r"src/a\.py/b cannot be written"):
        fence.write("src/a.py/b", b"x")
    with pytest.raises(ToolError, match="cannot be written"):
        fence.write("n" * 300, b"x")
    assert {entry.name for entry in root.iterdir()} == {".git", "src"}


def test_lists_what_git_does_not_ignore(root: Path, fence: PathGuard) -> None:
    for name in (
        "b.py",
        "spa ce.txt",
        "ümlaut.txt",
        "-dash",
        "tracked.log",
        "gone.py",
        ".hidden",
        "ctrl\x01",
    ):
        (root / name).write_text("x")
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    (root / ".gitignore").write_text("*.log\n")
    (root / "ignored.log").write_text("x")
    (root / "untracked.py").write_text("x")
    (root / "gone.py").unlink()
    (root / "embedded").mkdir()
    subprocess.run(["git", "init", "--quiet", "embedded"], cwd=root, check=True)
    assert fence.list_files() == tuple(
        sorted(
            (
                *("b.py", "spa ce.txt", "ümlaut.txt", "-dash", "tracked.log", ".hidden", ".gitignore"),
                *("untracked.py", "src/a.py"),
            )
        )
    )
    assert fence.list_files("src") == ("src/a.py",)
    assert fence.list_files("src/a.py") == ("src/a.py",)
    assert fence.list_files("missing") == ()


def test_listing_runs_no_program_of_the_repository(root: Path, fence: PathGuard) -> None:
    script = root / "planted.sh"
    script.write_text(f"#!/bin/sh\ntouch {root}/ran\n")
    script.chmod(0o755)
    subprocess.run(["git", "config", "core.fsmonitor", str(script)], cwd=root, check=True)
    fence.list_files()
    assert not (root / "ran").exists()


def test_a_folder_name_is_no_pattern(root: Path, fence: PathGuard) -> None:
    (root / "*").mkdir()
    (root / "*" / "star.py").write_text("x")
    assert fence.list_files("*") == ("*/star.py",)


def test_outside_a_repository_the_listing_fails_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="not a git repository"):
        PathGuard(tmp_path).list_files()


def test_a_tracked_file_with_another_name_is_read_and_written_as_a_file_of_its_own(
    root: Path, fence: PathGuard
) -> None:
    outside = root.parent / "outside.py"
    os.link(root / "src/a.py", outside)
    before = outside.read_bytes()
    with pytest.raises(InvalidInput, match="hard links"):
        fence.read("src/a.py")
    with pytest.raises(InvalidInput, match="hard links"):
        fence.write("src/a.py", b"new")

    subprocess.run(("git", "add", "src/a.py"), cwd=root, check=True)
    assert fence.read("src/a.py") == before
    fence.write("src/a.py", b"new")
    assert fence.read("src/a.py") == b"new"
    assert outside.read_bytes() == before
