"""The wheel carries what the program needs at run time."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import agentflow

CARRIED = ("agents", "skills", "hooks", "examples")


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """The files of a freshly built wheel, with their modes."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=root, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        return {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}


def carried_files(root: Path, kept_files: tuple[str, ...]) -> dict[str, int]:
    """The kept files of the folders that go into the wheel, with their modes."""
    return {
        name: (root / name).stat().st_mode
        for name in kept_files
        if name.startswith(tuple(f"{top}/" for top in CARRIED))
    }


def test_each_folder_of_content_is_inside(
    wheel: dict[str, int], root: Path, kept_files: tuple[str, ...]
) -> None:
    bundled = carried_files(root, kept_files)
    assert {name.partition("/")[0] for name in bundled} == set(CARRIED)
    assert (
        sorted(f"agentflow/_bundled/{name}" for name in bundled if f"agentflow/_bundled/{name}" not in wheel)
        == []
    )


def test_nothing_else_is_inside(wheel: dict[str, int], kept_files: tuple[str, ...]) -> None:
    expected = {f"agentflow/_bundled/{name}" for name in kept_files} | set(kept_files)
    assert sorted(name for name in wheel if name not in expected and ".dist-info/" not in name) == []


def test_scripts_stay_executable_and_nothing_else_becomes_it(
    wheel: dict[str, int], root: Path, kept_files: tuple[str, ...]
) -> None:
    modes = carried_files(root, kept_files)
    differing = [
        name for name, mode in modes.items() if wheel[f"agentflow/_bundled/{name}"] & 0o111 != mode & 0o111
    ]
    assert differing == []


def test_the_package_is_typed_and_has_its_prompts(wheel: dict[str, int], kept_files: tuple[str, ...]) -> None:
    assert "agentflow/py.typed" in wheel
    assert [name for name in kept_files if name.startswith("agentflow/") and name not in wheel] == []


def test_both_versions_are_one(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["version"] == agentflow.__version__
