import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentflow.sandbox.run import Sandbox
from tests.support.boxes import boxed


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


class Checkout:
    """A repository in a temporary folder, and the programs its checks may find."""

    def __init__(self, root: Path, programs: Path, sandbox: Sandbox) -> None:
        self.root = root
        self.sandbox = sandbox
        self.programs = programs

    @property
    def files(self) -> tuple[str, ...]:
        found = (path.relative_to(self.root) for path in self.root.rglob("*") if path.is_file())
        return tuple(sorted(str(path) for path in found if path.parts[0] not in {".venv", "node_modules"}))

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def own_python(self, place: str = ".venv") -> Path:
        """Give the repository a Python that has what the running one has."""
        return script(self.root / place / "bin" / "python", f'exec "{sys.executable}" "$@"')

    def fake_python(self, path: Path, *tools: str) -> Path:
        """Make a Python that only claims to have these tools."""
        return script(path, f"echo importable: {' '.join(tools)}")

    def program(self, name: str, text: str = "exit 0") -> Path:
        return script(self.programs / name, text)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    root, programs = tmp_path / "repository", tmp_path / "programs"
    root.mkdir()
    programs.mkdir()
    for name in ("bash", "sh", "sleep", "cat", "printf", "env"):
        (programs / name).symlink_to(shutil.which(name) or name)
    sandbox = boxed(root)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    return Checkout(root, programs, sandbox)
