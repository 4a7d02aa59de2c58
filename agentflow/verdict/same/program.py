"""Same program: whether a change leaves it so, by its texts and by all others that name them."""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath

from agentflow.core.check_command import list_part_folders
from agentflow.core.evidence import CheckName
from agentflow.core.languages import is_document_path, is_source
from agentflow.core.task import TaskState
from agentflow.verdict.same.equivalence import (
    find_dropped_names,
    find_reading_words,
    is_description,
    is_same_behaviour,
    reads_texts_of_others,
)
from agentflow.verdict.same.naming import find_moved_module, find_renaming, is_empty_package, is_renamed
from agentflow.verdict.surface import is_check_file, is_document
from agentflow.verdict.syntax import may_reach_by_name, read_python
from agentflow.workspace.git import Git
from agentflow.workspace.ignored_files import is_ignore_file
from agentflow.workspace.mixed_tree import ChangedTexts

_TEXT_BYTES = 1_000_000
_RENAMED_FILES = 5_000
"""In a larger repository a renaming is a change like any other."""
_PLAIN = frozenset({"100644", "000000"})
"""Modes of a file that is no program and no link, or is not there."""
_MOVED = 2
"""Paths that are in one tree alone where a file has another name."""


def is_same_program(git: Git, task: TaskState, changes: tuple[ChangedTexts, ...]) -> bool:
    """Return whether a change leaves the program as it was, wherever other files of the repository look."""
    base, surface = task.trees[0], task.surface
    paths = git.list_paths(base)
    own = {part.partition(".")[0] for path in paths for part in path.split("/")}
    others = tuple(each for each in changes if not is_ignore_file(each.path))
    modes = {mode for each in changes if is_ignore_file(each.path) for mode in each.modes}
    if modes and not (modes <= _PLAIN and _ignores_nothing(git, task)):
        return False
    if (others and not is_same_behaviour(others, own)) or _is_needed(git, base, others):
        return False
    if any(each.path in surface.read for each in changes):
        return False
    documents = [PurePosixPath(each.path) for each in changes if is_document(each)]
    naming = _find_readers(git, base, documents)
    if surface.is_watched:  # what a test says of a document shows as it runs
        naming = [path for path in naming if not is_check_file(surface, path)]
    return not naming and not _are_texts_read(git, base, changes)


def _are_texts_read(git: Git, tree: str, changes: Iterable[ChangedTexts]) -> bool:
    """Return whether any program may read the docstrings or annotations that differ."""
    python = [each for each in changes if each.path.endswith(".py")]
    words = frozenset[str]().union(*(find_reading_words(each.before, each.after) for each in python))
    paths = _in_code(git.find_mentions(tree, words)) if words else []
    texts = git.read_files(tree, [path for path in paths if path.endswith(".py")], _TEXT_BYTES)
    return any(path not in texts or reads_texts_of_others(texts[path], words) for path in paths)


def _find_readers(git: Git, tree: str, documents: Collection[PurePosixPath]) -> list[str]:
    """Return the programs that name one of the documents, or both its folder and its ending."""
    named = git.find_mentions(tree, [path.name for path in documents]) if documents else ()
    naming = _in_code(named)
    for folder, ending in sorted({(path.parts[0], path.suffix) for path in documents if path.parts[1:]}):
        listing = {*git.find_mentions(tree, [folder])} & {*git.find_mentions(tree, [ending])}
        naming += [each for each in _in_code(sorted(listing)) if not each.startswith(f"{folder}/")]
    return naming


def _ignores_nothing(git: Git, task: TaskState) -> bool:
    """Return whether no tracked file is ignored now, and no code reads what is ignored."""
    known = git.call("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
    return not known and not _in_code(git.find_mentions(task.trees[0], ["gitignore"]))


def _is_needed(git: Git, tree: str, changes: tuple[ChangedTexts, ...]) -> bool:
    """Return whether other files may need a name that is gone, or a project's description."""
    if any(map(is_description, changes)) and _in_code(git.find_mentions(tree, ["metadata"])):
        return True
    for each in (each for each in changes if each.path.endswith(".py")):
        gone = find_dropped_names(each.before, each.after)
        private = [name for name in gone if name.startswith("_")]
        naming = {*git.find_mentions(tree, gone)} - {each.path} if gone else set()
        if private and not naming.isdisjoint(git.find_mentions(tree, private)):
            return True
        place = PurePosixPath(each.path)
        stem = re.escape(place.parent.name if place.stem == "__init__" else place.stem)
        words = "|".join(map(re.escape, gone))
        imported = rf"from [\w.]*\b({stem}|\.) import [^#\n]*(\b({words})\b|\*|\()"
        taken = re.compile(rf"\b{stem}\.({words})\b|{imported}")
        paths = git.list_paths(tree) if private else sorted(naming)
        texts = git.read_files(tree, [path for path in paths if path.endswith(".py")], _TEXT_BYTES)
        if any(taken.search(texts[path]) for path in naming if path in texts):
            return True
        if private and any(map(_may_look_up, texts.values())):
            return True
    return False


def _may_look_up(text: str) -> bool:
    return (code := read_python(text)) is None or may_reach_by_name(code)


def _in_code(paths: Iterable[str]) -> list[str]:
    """Return the paths of programs; a package's manifest may name its README."""
    return [path for path in paths if is_source(path) and path != "setup.py"]


def find_renamed(git: Git, task: TaskState, changes: tuple[ChangedTexts, ...]) -> Mapping[str, str]:
    """Return the names that changed, if nothing but names changed."""
    names, (base, tree) = find_renaming(changes), task.trees
    paths, now = git.list_paths(base), git.list_paths(tree)
    is_moved = not names and len(_drop_packages(git, tree, {*paths} ^ {*now})) == _MOVED
    if not (names or is_moved) or len(paths) > _RENAMED_FILES or (names and sorted(paths) != sorted(now)):
        return {}
    sides = git.read_files(base, paths, _TEXT_BYTES), git.read_files(tree, now, _TEXT_BYTES)
    project = _find_project(task, changes)
    before, after = (_take_files(task, project, texts) for texts in sides)
    if is_moved:
        moved = find_moved_module(before, after)
        return moved if moved and not (project and _is_named_outside(git, task, project, moved)) else {}
    is_left = git.find_mentions(tree, names) or git.find_mentions(base, names.values())
    return names if not is_left and is_renamed(before, after, names) else {}


def _drop_packages(git: Git, tree: str, paths: Collection[str]) -> list[str]:
    """Return the paths without those of empty files that make a folder a package."""
    texts = git.read_files(tree, [path for path in paths if path.endswith("__init__.py")], _TEXT_BYTES)
    return [path for path in paths if path not in texts or not is_empty_package(path, texts)]


def _list_projects(task: TaskState) -> tuple[str, ...]:
    """Return the folders that are tested by themselves, each with a slash at its end."""
    commands = (item.check.command for item in task.baseline if item.check.name is CheckName.TESTS)
    return tuple(folder for command in commands for folder in list_part_folders(command))


def _find_project(task: TaskState, changes: Iterable[ChangedTexts]) -> str:
    """Return the innermost project that has all changed files but documents; empty for the root."""
    paths = [each.path for each in changes if not is_document(each)]
    around = (each for each in _list_projects(task) if all(path.startswith(each) for path in paths))
    return max(around, key=len, default="")


def _take_files(task: TaskState, project: str, texts: Mapping[str, str]) -> Mapping[str, str]:
    """Return the texts of a project as its own code sees them, and those of Python in no project at all."""
    mine = {path.removeprefix(project): text for path, text in texts.items() if path.startswith(project)}
    apart = (project, *_list_projects(task))
    others = (path for path in texts if path.endswith(".py") and not path.startswith(apart))
    return mine | {f"../{path}": texts[path] for path in others}


def _is_named_outside(git: Git, task: TaskState, project: str, moved: Mapping[str, str]) -> bool:
    """Return whether a file outside a project may mean its module, by the old name or by the new one.

    Code of another project means its own modules, unless it names the project too.
    """
    base, tree = task.trees
    others = tuple(folder for folder in _list_projects(task) if not project.startswith(folder))
    said = (*git.find_mentions(base, moved), *git.find_mentions(tree, moved.values()))
    naming = {*git.find_mentions(tree, [PurePosixPath(project).name])}
    outside = (path for path in said if not (path.startswith(project) or is_document_path(path)))
    return any(path in naming or not path.startswith(others) for path in outside)
