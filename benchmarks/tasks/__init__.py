"""Small tasks in small repositories, read from the tables beside this file."""

import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from agentflow.core.record import Record
from agentflow.parse import parse

PYTHON = f'#!/bin/sh\nPYTEST_DISABLE_PLUGIN_AUTOLOAD=1 exec {shlex.quote(sys.executable)} "$@"\n'


class Edit(Record):
    """A text that is replaced, or a new file."""

    file: str
    old: str = ""
    new: str = ""
    all: bool = False
    content: str = ""

    def apply(self, files: Mapping[str, str]) -> dict[str, str]:
        """Return the files with this edit. Raises ValueError where the text does not stand there once."""
        if self.content:
            return {**files, self.file: self.content}
        text = files[self.file]
        if self.old not in text or (text.count(self.old) > 1 and not self.all):
            raise ValueError(f"{self.file}: {self.old!r} does not stand there once")
        return {**files, self.file: text.replace(self.old, self.new)}


class Task(Record):
    """What a person asks for, and what somebody does who does it well."""

    id: str
    kind: str
    size: str
    text: str
    look: str
    """What is searched for to find the place."""
    read: tuple[str, ...]
    """What has to be read to do it."""
    change: tuple[Edit, ...]
    narrow: str
    """The command that shows the effect."""
    edge: str
    """A command that tries what the tests leave out."""
    before: tuple[Edit, ...] = ()
    mistake: tuple[Edit, ...] = ()
    """A change that looks right, passes its own tests, and is wrong."""
    answer: str = ""
    check: str = ""
    """The command of all tests, as its table says."""
    files: dict[str, str] = {}
    """Of the repository as the task begins."""

    @property
    def changed(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(edit.file for edit in self.change))

    @property
    def mistaken(self) -> "Task":
        """The task as somebody does it who gets it wrong."""
        return self.replace(change=self.mistake)

    def lay(self, root: Path) -> None:
        """Write the repository; a Python one gets an environment that has the test runner."""
        for name, text in self.files.items():
            place = root / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
        if "pyproject.toml" in self.files:
            python = root / ".venv/bin/python"
            python.parent.mkdir(parents=True)
            python.write_text(PYTHON, "utf-8")
            python.chmod(0o755)


def tasks() -> tuple[Task, ...]:
    """Return the tasks of all tables."""
    return tuple(task for path in sorted(Path(__file__).parent.glob("*.yaml")) for task in _tasks(path))


def _tasks(path: Path) -> Iterator[Task]:
    table: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    for told in table["tasks"]:
        task = parse(Task, {**told, "check": table["check"], "files": table["files"]}, path.name)
        files: Mapping[str, str] = task.files
        for edit in task.before:
            files = edit.apply(files)
        yield task.replace(files=dict(files))
