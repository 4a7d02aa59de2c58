import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agentflow.core.errors import OutsideWorkspace
from agentflow.sandbox.throwaway import remove_scratch
from agentflow.workspace.working_copy import copy_files, find_import_paths, to_pythonpath
from tests.support.boxes import boxed
from tests.support.places import temporary_files_in


def planted(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def test_exactly_the_given_files_are_in_it_and_only_we_can_look(tmp_path: Path) -> None:
    planted(tmp_path, "a.py", "b/c.py", "b/secret.txt", ".git/config")
    (tmp_path / "run").write_text("x")
    (tmp_path / "run").chmod(0o755)
    with copy_files(tmp_path, ("a.py", "b/c.py", "run", "gone.py")) as copy:
        found = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()}
        assert found == {"a.py", "b/c.py", "run"}
        assert stat.S_IMODE(copy.stat().st_mode) == 0o700
        assert os.access(copy / "run", os.X_OK)
        (copy / "a.py").write_text("changed")
    assert (tmp_path / "a.py").read_text() == "a.py"
    assert not copy.exists()


def test_links_stay_links_and_environments_are_seen_through_one(tmp_path: Path) -> None:
    planted(tmp_path, "a.py", ".venv/bin/python", "node_modules/x/index.js")
    (tmp_path / "b.py").symlink_to("a.py")
    with copy_files(tmp_path, ("a.py", "b.py")) as copy:
        assert (copy / "b.py").readlink() == Path("a.py")
        assert (copy / ".venv/bin/python").read_text() == ".venv/bin/python"
        assert (copy / "node_modules").is_symlink()
    assert (tmp_path / ".venv/bin/python").exists()


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x"])
def test_a_path_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(OutsideWorkspace), copy_files(tmp_path, (name,)):
        (tmp_path / "reached").touch()


def test_a_copy_that_fails_halfway_leaves_nothing(tmp_path: Path) -> None:
    planted(tmp_path, "repo/a")
    (tmp_path / "temp").mkdir()
    names = ("a", "x" * 300)
    with (
        temporary_files_in(tmp_path / "temp"),
        pytest.raises(OSError, match="too long"),
        copy_files(tmp_path / "repo", names),
    ):
        (tmp_path / "temp" / "reached").touch()
    assert list((tmp_path / "temp").iterdir()) == []


def test_what_was_made_read_only_is_removed_too(tmp_path: Path) -> None:
    planted(tmp_path, "x/y/z")
    (tmp_path / "x" / "y").chmod(0o500)
    (tmp_path / "x").chmod(0o500)
    remove_scratch(tmp_path / "x")
    assert not (tmp_path / "x").exists()


def entries(root: Path, copy: Path, **env: str) -> list[str]:
    return to_pythonpath(copy, find_import_paths(boxed(root), sys.executable, env)).split(os.pathsep)


def test_every_entry_below_the_root_is_mapped_and_comes_first(tmp_path: Path) -> None:
    planted(tmp_path, "src/a.py", "lib/b.py", "vendor/c.py")
    copy = tmp_path / "copy"
    foreign = str(tmp_path.parent)
    found = entries(tmp_path, copy, PYTHONPATH=f"lib:{tmp_path}/vendor:{foreign}")
    assert found == [str(copy / "lib"), str(copy / "vendor"), str(copy / "src"), str(copy), foreign]


def test_an_environment_in_the_repository_is_not_mapped(tmp_path: Path) -> None:
    planted(tmp_path, ".venv/lib/site/x.py", ".venv/pyvenv.cfg")
    found = entries(tmp_path, tmp_path / "copy", PYTHONPATH=str(tmp_path / ".venv" / "lib" / "site"))
    assert str(tmp_path / "copy" / ".venv" / "lib" / "site") not in found


def test_a_path_file_and_a_finder_of_an_editable_install_are_followed(tmp_path: Path) -> None:
    planted(tmp_path, "code/one.py", "python/pkg/__init__.py")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (site / "editable.pth").write_text(f"{tmp_path / 'code'}\nimport finder; finder.install()\n")
    (site / "finder.py").write_text(
        f"import sys\nMAPPING = {{'pkg': {str(tmp_path / 'python' / 'pkg')!r}}}\n"
        "class Finder:\n    @classmethod\n    def find_spec(cls, *rest):\n        return None\n"
        "def install():\n    sys.meta_path.append(Finder)\n"
    )
    copy = tmp_path / "copy"
    places = find_import_paths(boxed(tmp_path), str(tmp_path / "env" / "bin" / "python"), {})
    assert places == ("code", "python", ".")
    assert to_pythonpath(copy, places) == os.pathsep.join(
        [str(copy / "code"), str(copy / "python"), str(copy / ".")]
    )


def test_an_interpreter_that_cannot_start_still_gets_the_copy(tmp_path: Path) -> None:
    assert find_import_paths(boxed(tmp_path), str(tmp_path / "none"), {}) == (".",)
