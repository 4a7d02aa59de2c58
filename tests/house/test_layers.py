"""Imports point one way; the contracts stand in pyproject.toml."""

import shutil
import subprocess
import sys
from pathlib import Path

LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False
    )


def copy_of(root: Path, folder: Path) -> Path:
    shutil.copytree(root / "agentflow", folder / "agentflow", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "pyproject.toml", folder)
    return folder


def test_the_contracts_hold(root: Path) -> None:
    linted = lint_imports(root)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_an_import_of_a_higher_layer_is_found(root: Path, tmp_path: Path) -> None:
    copy = copy_of(root, tmp_path)
    with (copy / "agentflow/core/errors.py").open("a") as file:
        file.write("\nfrom agentflow import workflow\n")
    linted = lint_imports(copy)
    assert linted.returncode == 1
    assert "agentflow.core.errors -> agentflow.workflow" in linted.stdout


def test_a_module_in_no_layer_is_found(root: Path, tmp_path: Path) -> None:
    copy = copy_of(root, tmp_path)
    (copy / "agentflow/elsewhere.py").touch()
    linted = lint_imports(copy)
    assert linted.returncode == 1
    assert "elsewhere" in linted.stdout
