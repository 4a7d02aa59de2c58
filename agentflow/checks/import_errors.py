"""Import errors that end tests, and which of them no change of the code mends."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from agentflow.checks.repository import Repository
from agentflow.core.languages import is_test_path
from agentflow.core.regex import regex

_KINDS = r"(?:ModuleNotFoundError|ImportError|(?:importlib\.metadata\.)?PackageNotFoundError): "
_ENDS_WITH = regex(rf"(?:E\s+)?(?P<error>{_KINDS}.+)")
_OF_PYTEST = regex(r"(?m)^E\s+.*$")
_PRINTED = regex(rf"(?m)^(?:.*\s)?(?P<error>{_KINDS}.+)$")
_MODULE = regex(r"ModuleNotFoundError: No module named '(?P<name>[\w.]+)'")
_PACKAGE = regex(r".*PackageNotFoundError: No package metadata was found for (?P<name>[\w.-]+)")
_NAME = regex(r"ImportError: cannot import name '\w+' from '(?P<module>[\w.]+)' \((?P<place>.+)\)")
_PLACES = ("/site-packages/", "/dist-packages/")
_WORDS = regex(r"[A-Za-z_]\w*")
_LISTS = ("requirements-dev.txt", "requirements.txt")
_MANIFESTS = regex(
    r"(?:.*/)?(?:pyproject\.toml|setup\.(?:py|cfg)|tox\.ini|Pipfile|[\w.-]*requirements[\w.-]*)"
)


def find_import_error(traceback: str) -> str:
    """Return the import error that a traceback ends with, as pytest or Python prints it; or empty."""
    lines = _OF_PYTEST.findall(traceback) or traceback.strip().splitlines()
    found = _ENDS_WITH.fullmatch(lines[-1].strip()) if lines else None
    return found["error"] if found else ""


def list_import_errors(output: str) -> frozenset[str]:
    """Return all import errors in the output of a run whose tests have no names."""
    return frozenset(found["error"] for found in _PRINTED.finditer(output))


def find_foreign_errors(errors: Iterable[str], repository: Repository, task: str) -> Mapping[str, str]:
    """Return the errors that are the environment's fault, each with the package to install, or empty.

    A module is the project's if the repository has its name, or if the task names it and no manifest does.
    """
    paths = [PurePosixPath(path) for path in repository.files]
    own = {name for path in paths for name in (*path.parts, path.stem)}
    declared = _read_manifests(repository)
    named = {word for word in _WORDS.findall(task) if word.lower() not in declared}
    kept = ((error, _find_wanted(error, own | named, repository)) for error in dict.fromkeys(errors))
    return MappingProxyType({error: wanted for error, wanted in kept if wanted is not None})


def _find_wanted(error: str, own: set[str], repository: Repository) -> str | None:
    """Return what to install against an error, empty where nothing helps; None if the project may mend it."""
    if found := _MODULE.fullmatch(error):
        module = found["name"].partition(".")[0]
        return None if module in own | sys.stdlib_module_names else module
    if found := _PACKAGE.fullmatch(error):
        return "-e ." if found["name"].replace("-", "_") in own else found["name"]
    if found := _NAME.fullmatch(error):
        module = found["module"].partition(".")[0]
        if module not in own and any(place in found["place"] for place in _PLACES):
            return module
        return "" if found["place"] == "unknown location" and _is_of_tests(module, repository) else None
    return None


def _is_of_tests(module: str, repository: Repository) -> bool:
    """Return whether a folder without `__init__.py` has nothing but tests."""
    inside = [path for path in repository.files if path.startswith(f"{module}/") and path.endswith(".py")]
    return bool(inside) and all(map(is_test_path, inside))


def _read_manifests(repository: Repository) -> str:
    """Return the files that say what the project needs, as one text with names as Python spells them."""
    texts = map(repository.read, filter(_MANIFESTS.fullmatch, repository.files))
    return "\n".join(texts).lower().replace("-", "_")


def describe_foreign_errors(errors: Mapping[str, str], repository: Repository) -> str:
    """Return what keeps tests from running, and the command that installs it."""
    modules = sorted({errors[each] for each in errors if _MODULE.fullmatch(each)})
    packages = sorted({found["name"] for each in errors if (found := _PACKAGE.fullmatch(each))})
    told = [f"ModuleNotFoundError: {', '.join(modules)} is neither here nor in the repository"] * bool(
        modules
    )
    told += [f"not installed: {', '.join(packages)}"] * bool(packages)
    told += sorted(each for each in errors if _NAME.fullmatch(each))
    others = {wanted for wanted in errors.values() if wanted} - {"-e ."}
    listed = next((f"-r {name}" for name in _LISTS if repository.has(name)), "")
    wanted = ["-e ."] * ("-e ." in errors.values()) + [listed or " ".join(sorted(others))] * bool(others)
    return "; ".join(told) + (f": pip install {' '.join(wanted)}" if wanted else "")
