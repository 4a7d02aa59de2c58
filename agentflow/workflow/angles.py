"""From which angles a repository is explored: six always, and more for what is large; pure."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import PurePosixPath

from agentflow.core.record import Record
from agentflow.core.run import Run
from agentflow.loop.context import prompt_text

ANGLES = ("structure", "architecture", "conventions", "anti-patterns", "build", "testing")
MOST = 16
"""Explorers at most."""
_FILES_EACH = 100
_DEEP = 4
_MANIFESTS = frozenset({"package.json", "pyproject.toml", "Cargo.toml", "go.mod", "pom.xml", "build.gradle"})
_LANGUAGES = {
    ".py": "Python", ".ts": "TypeScript", ".tsx": "TypeScript", ".js": "JavaScript", ".go": "Go",
    ".rs": "Rust", ".java": "Java", ".kt": "Kotlin", ".rb": "Ruby", ".c": "C", ".cpp": "C++", ".cs": "C#",
    ".php": "PHP", ".swift": "Swift", ".sh": "shell",
}  # fmt: skip


class Angle(Record):
    """What one role looks at, and what it is told."""

    name: str
    told: str
    earlier: Run | None = None
    """The run in whose conversation it is told."""


def angles(files: tuple[str, ...], focus: str) -> tuple[Angle, ...]:
    """Return the angles for these files; `focus` is the folder they lie in, or empty."""
    scope = f"the folder {focus} of this repository" if focus else "this repository"
    head = prompt_text("explore/head.md").format(scope=scope)
    fixed = (Angle(name=name, told=f"{head}\n\n{prompt_text(f'explore/{name}.md')}") for name in ANGLES)
    area = prompt_text("explore/area.md")
    more = (Angle(name=name, told=f"{head}\n\n{area.format(area=name)}") for name in _areas(files))
    return (*fixed, *islice(more, MOST - len(ANGLES)))


def _areas(files: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parts that deserve an explorer of their own, each once."""
    paths = [PurePosixPath(file) for file in files]
    return tuple(dict.fromkeys((*_large(paths), *_deep(paths), *_workspaces(paths), *_languages(paths))))


def _large(paths: list[PurePosixPath]) -> Iterator[str]:
    """Yield one of the largest folders for each hundred files."""
    sizes = Counter(str(PurePosixPath(*path.parts[:2][: len(path.parts) - 1])) for path in paths)
    return (name for name, _ in islice(sizes.most_common(), len(paths) // _FILES_EACH))


def _deep(paths: list[PurePosixPath]) -> Iterator[str]:
    """Yield two of the folders that lie deepest."""
    folders = {path.parent for path in paths if len(path.parts) > _DEEP}
    ordered = sorted(folders, key=lambda folder: (-len(folder.parts), str(folder)))
    return (str(folder) for folder in ordered[:2])


def _workspaces(paths: list[PurePosixPath]) -> Iterator[str]:
    return (str(path.parent) for path in paths if path.name in _MANIFESTS and len(path.parts) > 1)


def _languages(paths: list[PurePosixPath]) -> Iterator[str]:
    """Yield each language but the main one."""
    return (f"what is written in {name}" for name in languages(map(str, paths))[1:])


def languages(files: Iterable[str]) -> tuple[str, ...]:
    """Return the languages that files are written in, the main one first."""
    suffixes = (f".{path.rpartition('.')[2]}" for path in files)
    found = Counter(_LANGUAGES[suffix] for suffix in suffixes if suffix in _LANGUAGES)
    return tuple(name for name, _ in found.most_common())
