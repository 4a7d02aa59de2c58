import os
import shutil
from pathlib import Path

import pytest

from agentflow.core.finding import FindingKind
from agentflow.process import capture
from agentflow.sandbox.throwaway import remove_scratch
from agentflow.wording import describe_all
from agentflow.workspace.git import Git, open_repository
from agentflow.workspace.ignored_files import list_program_changes, list_unchanged, mark_ignored

ENTRIES = (".venv/", "node_modules/")
SITE = ".venv/lib/python3.11/site-packages"


@pytest.fixture
def git(tmp_path: Path) -> Git:
    capture(("git", "init", "-q"), cwd=tmp_path)
    return open_repository(tmp_path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (
        f"{SITE}/pytest/main.py",
        f"{SITE}/attr/core.py",
        ".venv/bin/pytest",
        "node_modules/jest/cli.js",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    return tmp_path


def changed(root: Path, git: Git, name: str, text: str = "x = 2\n") -> tuple[str, ...]:
    before = mark_ignored(git, ENTRIES)
    place = root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    times = (place.stat().st_atime_ns, place.stat().st_mtime_ns) if place.exists() else None
    place.write_text(text)
    if times:
        os.utime(place, ns=times)
    return describe_all(list_program_changes(before, mark_ignored(git, ENTRIES)))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (f"{SITE}/pytest/main.py", f"{SITE}/pytest changed"),
        (f"{SITE}/sneak.pth", f"{SITE}/sneak.pth is new"),
        (f"{SITE}/sitecustomize.py", f"{SITE}/sitecustomize.py is new"),
        (".venv/bin/pytest", ".venv/bin/pytest changed"),
        ("node_modules/jest/cli.js", "node_modules/jest changed"),
        ("node_modules/@types/node/index.d.ts", "node_modules/@types/node is new"),
    ],
)
def test_a_change_is_named_though_its_size_and_time_are_set_back(
    root: Path, git: Git, name: str, said: str
) -> None:
    assert changed(root, git, name) == (f"{said}: checks may run it",)


def test_what_is_removed_is_named(root: Path, git: Git) -> None:
    before = mark_ignored(git, ENTRIES)
    (root / ".venv/bin/pytest").unlink()

    (gone,) = list_program_changes(before, mark_ignored(git, ENTRIES))
    assert (gone.kind, gone.path) == (FindingKind.PROGRAM_GONE, ".venv/bin/pytest")


def test_another_install_of_the_same_package_is_no_change(root: Path, git: Git, tmp_path: Path) -> None:
    before = mark_ignored(git, ENTRIES)
    place = root / f"{SITE}/pytest/main.py"
    os.link(place, tmp_path / "elsewhere.py")
    assert mark_ignored(git, ENTRIES) == before
    (tmp_path / "elsewhere.py").unlink()
    assert mark_ignored(git, ENTRIES) == before

    shutil.copy2(place, tmp_path / "again.py")
    (tmp_path / "again.py").replace(place)
    assert mark_ignored(git, ENTRIES) == before

    assert changed(root, git, f"{SITE}/pytest/main.py") == (f"{SITE}/pytest changed: checks may run it",)
    assert list_program_changes(before, mark_ignored(git, ENTRIES)) != ()


def test_compiled_code_is_no_change(root: Path, git: Git) -> None:
    assert changed(root, git, f"{SITE}/pytest/__pycache__/main.cpython-311.pyc") == ()


def test_a_repository_that_ignores_nothing_has_no_mark(git: Git) -> None:
    assert mark_ignored(git, ()) == {}


def test_ignored_files_count_as_long_as_they_are_what_they_were(tmp_path: Path, git: Git) -> None:
    for name in ("local.ini", "generated/a.py", "kept/a.py", ".venv/x.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    entries = ("local.ini", "generated/", "kept/", ".venv/")
    before = mark_ignored(git, entries)
    (tmp_path / "local.ini").write_text("x = 2\n")
    (tmp_path / "generated/b.py").write_text("")
    (tmp_path / "new.ini").write_text("")
    (tmp_path / ".venv/y.py").write_text("")
    now = (*entries, "new.ini")

    assert list_unchanged(now, before, mark_ignored(git, now)) == ("kept/", ".venv/")


def test_a_change_in_folders_that_are_very_deep_is_marked(tmp_path: Path, git: Git) -> None:
    place = tmp_path / "d"
    for _ in range(1_200):
        place.mkdir()
        place = place / "d"
    place.touch()
    before = mark_ignored(git, ("d/",))
    place.write_text("x")
    assert before != mark_ignored(git, ("d/",))
    remove_scratch(tmp_path / "d")
