"""Projects that a task adds or removes: their parts of the checks, and whether tests were there before."""

from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

from agentflow.checks.repository import PYTEST_SETTINGS
from agentflow.core.evidence import Check, Surface
from agentflow.core.finding import FileKind
from agentflow.core.languages import PYTHON
from agentflow.core.regex import compile_glob
from agentflow.redact import list_some
from agentflow.runners.fitting import fit_command, list_gone_folders
from agentflow.verdict.surface import find_kind

_HOLDING = frozenset({FileKind.TESTS, FileKind.SETTING, FileKind.NAMED})
"""The kinds of files that hold tests, or start some."""
_COLLECTED = tuple(map(compile_glob, PYTHON.tests))


def list_tests(surface: Surface, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that are tests by their name, by settings or by the command of a check."""
    return tuple(path for path in paths if find_kind(path, surface) in _HOLDING)


def may_add_project(surface: Surface, before: Collection[str], now: Iterable[str]) -> bool:
    """Return whether there are tests in a folder that held none before, not even further down."""
    known = {*before}
    new = list_tests(surface, (path for path in now if path not in known))
    return bool(new) and not _list_folders(new) <= _list_folders(list_tests(surface, before))


def _list_folders(paths: Iterable[str]) -> set[PurePosixPath]:
    return {folder for path in paths for folder in PurePosixPath(path).parents}


def fit_check(check: Check, files: Iterable[str], found: Iterable[Check], tests: Collection[str]) -> Check:
    """Return a check of before with the parts of new projects, as they are found now.

    It cannot run where the folders of all its parts are gone.
    """
    now = next((each for each in found if each.name is check.name), None)
    names = frozenset(files)
    command = fit_command(check.command, names, now.command if now else "", tests)
    if not command:
        gone = sorted(folder[:-1] for folder in list_gone_folders(check.command, names, tests))
        return check.replace(missing=f"its folder is gone: {list_some(gone)}")
    return check.replace(command=command, left_out=check.left_out or (now and now.left_out))


def find_new_projects(surface: Surface, new: Iterable[str], before: Iterable[str]) -> tuple[str, ...]:
    """Return the folders of new settings where no test was before, each with a slash at its end."""
    folders = {get_folder(path) for path in new}
    tests = list_tests(surface, before) if folders else ()
    return tuple(each for each in sorted(folders) if not any(test.startswith(each) for test in tests))


def find_added_projects(surface: Surface, before: Collection[str], now: Iterable[str]) -> tuple[str, ...]:
    """Return the folders that new settings of pytest make projects, each with a slash at its end."""
    known = {*before}
    new = (path for path in now if path not in known and path.rpartition("/")[2] in PYTEST_SETTINGS)
    return find_new_projects(surface, new, before)


def is_put_among_tests(new: str, before: Iterable[str]) -> bool:
    """Return whether a new file is settings of pytest in a folder where it collects tests already."""
    folder, is_named = get_folder(new), new.rpartition("/")[2] in PYTEST_SETTINGS
    beside = [path for path in before if path.startswith(folder)] if is_named else []
    return any(glob.fullmatch(path) for path in beside for glob in _COLLECTED)


def get_folder(path: str) -> str:
    """Return the folder of a file, with a slash at its end; empty for the root."""
    return path[: path.rfind("/") + 1]
