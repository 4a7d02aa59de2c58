import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentflow.sandbox.throwaway import remove_scratch, walk


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    here = Path.cwd()
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)


def deepen(folder: Path, name: str, levels: int) -> Path:
    """Make folders in folders, more than one path can name."""
    with inside(folder):
        for _ in range(levels):
            Path(name).mkdir()
            Path("file").touch()
            Path("link").symlink_to("..")
            os.chdir(name)
        Path("last").mkdir(0)
    return folder


@pytest.mark.parametrize(("name", "levels"), [("d", 1_200), ("d", 3_000), ("d" * 200, 60)])
def test_folders_of_any_depth_are_removed(name: str, levels: int, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("mine")
    remove_scratch(deepen(tmp_path / "deep", name, levels))
    assert list(tmp_path.iterdir()) == [kept]


def test_a_walk_goes_as_deep_as_paths_can_be(tmp_path: Path) -> None:
    folder = deepen(tmp_path / "deep", "d", 1_200)
    assert len(list(walk(folder))) == 1_202
    remove_scratch(folder)


def test_a_walk_is_the_usual_one(tmp_path: Path) -> None:
    for name in ("a/b/c", "a/x", "d", "e/f"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").touch()
    (tmp_path / "link").symlink_to("a")
    assert list(walk(tmp_path)) == list(os.walk(tmp_path))
