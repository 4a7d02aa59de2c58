"""The Python that a repository's own checks run in, which is never the one that runs us."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from agentflow.checks.repository import Repository
from agentflow.core.evidence import Command
from agentflow.core.record import Record
from agentflow.sandbox.environment import find_environment, find_program
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.scratch import scratch_folder

_PROBE_SECONDS = 20.0
_ANSWER = "importable:"
_PROBE = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; import importlib.util as u;"
    f"print('{_ANSWER}', *[m for m in sys.argv[1:] if u.find_spec(m)])"
)
"""Without the folder it starts in, so that no file of the repository is imported."""
_VERSION = f"import sys; print('{_ANSWER}', *sys.version_info[:3])"


class Interpreter(Record):
    """How to start a Python, and what to tell a person who lacks a tool in it."""

    words: tuple[str, ...]
    installer: str

    @property
    def command(self) -> str:
        return shlex.join(self.words)


class Tools(Record):
    """Where the tools of a repository are found."""

    interpreter: Interpreter
    importable: frozenset[str]
    on_path: frozenset[str]

    def start(self, tool: str) -> tuple[str, str | None]:
        """Return the command that starts a tool, and what is missing for it."""
        if tool in self.importable:
            return f"{self.interpreter.command} -m {tool}", None
        if tool in self.on_path:
            return tool, None
        return f"{self.interpreter.command} -m {tool}", f"{tool}: {self.interpreter.installer} {tool}"


def find_tools(repository: Repository, names: Sequence[str]) -> Tools:
    """Look once which of the named tools the repository's Python has, and which stand on PATH."""
    chosen = choose(repository)
    importable = _importable(repository.sandbox, chosen, names) if names else frozenset()
    others = [name for name in names if name not in importable]
    return Tools(
        interpreter=chosen,
        importable=importable,
        on_path=frozenset(name for name in others if _answers(repository.sandbox, name)),
    )


def choose(repository: Repository) -> Interpreter:
    """Return the Python of this repository: VIRTUAL_ENV, .venv, uv or poetry, PATH."""
    root = repository.root
    if (folder := find_environment(root)) is not None:
        shown = _shown(folder / "bin" / "python", root)
        return Interpreter(words=(shown,), installer=f"{shlex.quote(shown)} -m pip install")
    if repository.has("uv.lock") and find_program("uv", root):
        return Interpreter(words=("uv", "run", "--no-sync", "python"), installer="uv pip install")
    if repository.has("poetry.lock") and find_program("poetry", root):
        return Interpreter(words=("poetry", "run", "python"), installer="poetry run pip install")
    name = next((name for name in ("python3", "python") if find_program(name, root)), None)
    word = name or str(Path(sys.base_prefix, "bin", "python3"))
    return Interpreter(words=(word,), installer=f"{shlex.quote(word)} -m pip install")


def version(repository: Repository) -> tuple[int, ...] | None:
    """Return the version of this repository's Python, or None when it cannot be started."""
    said = _said(repository.sandbox, (*choose(repository).words, "-c", _VERSION)) or ""
    lines = [line for line in said.splitlines() if line.startswith(_ANSWER)]
    return tuple(int(part) for part in lines[-1].split()[1:]) if lines else None


def _shown(python: Path, root: Path) -> str:
    """Return how a person in the root would write it."""
    folder, top = python.parent.parent.resolve(), root.resolve()
    if python.is_relative_to(root):
        return str(python.relative_to(root))
    return str(folder.relative_to(top) / "bin" / "python" if folder.is_relative_to(top) else python)


def _importable(sandbox: Sandbox, chosen: Interpreter, names: Sequence[str]) -> frozenset[str]:
    said = _said(sandbox, (*chosen.words, "-c", _PROBE, *names)) or ""
    lines = [line for line in said.splitlines() if line.startswith(_ANSWER)]
    return frozenset(lines[-1].split()) & frozenset(names) if lines else frozenset()


def _answers(sandbox: Sandbox, name: str) -> bool:
    """Tell whether a program on PATH starts; a version manager's shim may stand for nothing."""
    return find_program(name, sandbox.root) is not None and _said(sandbox, (name, "--version")) is not None


def _said(sandbox: Sandbox, argv: Sequence[str]) -> str | None:
    """Return what a short program prints, or None when it fails."""
    root = sandbox.root
    command = Command(argv=tuple(argv), cwd=str(root), timeout=_PROBE_SECONDS)
    with scratch_folder() as scratch:
        try:
            finished = sandbox.of(None).run(command, scratch / "said")
        except OSError:
            return None
    return finished.tail if finished.exit_code == 0 else None
