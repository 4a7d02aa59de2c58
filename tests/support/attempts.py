"""A task whose implementer leaves files as a case wants them, run by the installed command."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import play
from tests.support.repo import Done, Repo

PYTHON = f'#!/bin/sh\nPYTEST_DISABLE_PLUGIN_AUTOLOAD=1 exec "{sys.executable}" "$@"\n'
"""Ours, without the plugins of our own tests, which take as long to load as pytest itself."""


class Attempt:
    """A repository with tests of its own Python, and a task in it."""

    def __init__(self, folder: Path, base: Mapping[str, str | None], runs: int | None = None) -> None:
        """Take where it lies, its files, and how many checks are required if not one where tests lie."""
        self.repo = Repo(folder / "pager", folder / "home")
        python = self.repo.root / ".venv/bin/python"
        python.parent.mkdir(parents=True)
        python.write_text(PYTHON)
        python.chmod(0o755)
        self.repo.write({name: text for name, text in base.items() if text is not None}).commit()
        self._runs = any("test" in name for name in base) if runs is None else runs

    def script(self, files: Mapping[str, str | None], command: str = "") -> list[dict[str, Any]]:
        """Return what a crew does that leaves these files; None is a deleted one."""
        turns = [step for name, text in files.items() for step in self.steps(name, text)]
        turns += [play.turn(play.call("Bash", command=command))] if command else []
        ran = sum(made["name"] == "Bash" for step in turns for made in step["tools"])
        return [
            play.findings("pager/core.py", 5),
            play.plan(*files),
            play.role("implementer", *turns, play.submit(*files)),
            play.role("reviewer", play.turn(play.call("SubmitReview", verdict="APPROVED", issues=[]))),
            play.verified(f"ev-{1 + self._runs + ran:04}"),  # behind the base run and the commands
        ]

    def steps(self, name: str, text: str | None) -> list[dict[str, Any]]:
        if text is None:
            return [play.turn(play.call("Bash", command=f"rm '{name}'"))]
        seen = [play.turn(play.call("Read", file_path=name))] if (self.repo.root / name).exists() else []
        return [*seen, play.turn(play.call("Write", file_path=name, content=text))]

    def run(self, task: str, files: Mapping[str, str | None], *words: str, command: str = "") -> Done:
        return self.repo.task(task, *words, script=self.script(files, command))

    @property
    def report(self) -> str:
        return self.repo.folder.joinpath("report.md").read_text("utf-8")

    @property
    def waiting(self) -> list[dict[str, Any]]:
        """What waits for a person."""
        return list(self.repo.run("status", "--json").json["pending"])

    def settle(self, word: str, *options: str) -> Done:
        """Approve or deny what waits, and go on."""
        (waiting,) = self.waiting
        decided = self.repo.run(word, waiting["id"], *options)
        assert decided.code == 0, decided.err
        return self.repo.run("resume")


def files_of(root: Path) -> dict[str, bytes]:
    """Return all that a person has in a repository: files, the index, and what git ignores, but no task."""
    found = (path for path in root.rglob("*") if path.is_file() and ".claude" not in path.parts)
    kept = (path for path in found if ".git" not in path.parts or path.name in ("index", "HEAD"))
    return {str(path.relative_to(root)): path.read_bytes() for path in kept}
