import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentflow.core.errors import ToolError
from agentflow.workspace.path_guard import Opener, PathGuard, find_opener, open_by_parts, open_folder
from tests.unit.open_files import open_files
from tests.unit.workspace.swaps import attacked

OPENINGS = list(dict.fromkeys((find_opener(), open_by_parts)))


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    place = tmp_path / "root"
    (place / "a/b").mkdir(parents=True)
    (place / "a/b/f").write_text("here")
    (place / "a/link").symlink_to("b/f")
    (place / "folder").symlink_to("a")
    (place / "out").symlink_to(tmp_path)
    (place / "dangling").symlink_to("nowhere")
    (tmp_path / "outside").write_text("outside")
    descriptor = os.open(place, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("open_at", OPENINGS)
def test_a_plain_name_is_opened(root: int, open_at: Opener) -> None:
    for name in ("a/b/f", "a"):
        os.close(open_at(root, name, os.O_RDONLY, 0))
    with os.fdopen(open_at(root, "a/b/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write("x")
    assert Path(f"/proc/self/fd/{root}/a/b/new").read_text() == "x"


@pytest.mark.parametrize("open_at", OPENINGS)
@pytest.mark.parametrize(
    "name",
    [
        *("a/link", "folder/b/f", "out/outside", "dangling", "out", "folder"),
        *("..", "../outside", "a/../../outside", "a/..", "a/./b/f", "/etc/passwd", "a//b/f", "", "a/"),
        *("a/b/f/x", "missing", "missing/x", "n" * 300),
    ],
)
def test_no_link_no_step_up_and_nothing_that_is_not_there_is_opened(
    root: int, tmp_path: Path, open_at: Opener, name: str
) -> None:
    before = open_files(tmp_path)
    with pytest.raises(OSError, match=r"\[Errno"):
        open_at(root, name, os.O_RDONLY, 0)
    with pytest.raises(OSError, match=r"\[Errno"):
        open_at(root, f"{name}/new", os.O_WRONLY | os.O_CREAT, 0o600)
    assert open_files(tmp_path) == before


@pytest.mark.parametrize("open_at", OPENINGS)
def test_folders_are_made_beneath_and_never_behind_a_link(root: int, open_at: Opener) -> None:
    os.close(open_folder(open_at, root, "x/y/z"))
    os.close(open_folder(open_at, root, "x/y/z"))
    with pytest.raises(OSError, match=r"\[Errno"):
        open_folder(open_at, root, "out/made")


def test_this_system_is_asked_what_it_can() -> None:
    assert len(OPENINGS) in {1, 2}


def test_swaps_lead_nowhere(tmp_path: Path) -> None:
    assert attacked(tmp_path, 300) > 0


def test_a_second_name_of_an_outside_file_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    (tmp_path / "root").mkdir()
    os.link(tmp_path / "outside", tmp_path / "root/f")
    fence = PathGuard(tmp_path / "root")
    for act in (lambda: fence.read("f"), lambda: fence.write("f", b"x")):
        with pytest.raises(ToolError, match="2 names"):
            act()
    assert fence.peek("f") is None
    assert (tmp_path / "outside").read_text() == "secret"


def test_a_git_folder_of_another_name_is_gits_too(tmp_path: Path) -> None:
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta/config").write_text("")
    (tmp_path / ".git").write_text("gitdir: ./meta\n")
    fence = PathGuard(tmp_path)
    for path in ("meta/config", "x/../meta/config", "meta/hooks/pre-commit"):
        with pytest.raises(ToolError, match="belongs to git"):
            fence.read(path)


def test_what_policy_is_a_link_to_is_policy(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / ".claude").symlink_to("conf")
    with pytest.raises(ToolError, match="read-only"):
        PathGuard(tmp_path).write("conf/settings.json", b"{}")
