"""Import errors that no change of the code mends."""

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from agentflow.checks.repository import Repository
from agentflow.core.languages import is_test_path
from agentflow.core.regex import regex

_MODULE = regex(r"ModuleNotFoundError: No module named '(?P<name>[\w.]+)'")
_PACKAGE = regex(r".*PackageNotFoundError: No package metadata was found for (?P<name>[\w.-]+)")
_NAME = regex(r"ImportError: cannot import name '\w+' from '(?P<module>[\w.]+)' \((?P<place>.+)\)")
_FIXTURE = regex(r"fixture '(?P<name>\w+)' not found")
_NODE_PACKAGE = regex(r"Cannot find (?:module|package) '(?P<name>(?:@[\w.-]+/)?[\w-][\w.-]*)(?:/[^']*)?'")
_PLUGINS = regex(r"(?m)(?:^\s*|[\"'])(pytest_\w+)")
_PLACES = ("/site-packages/", "/dist-packages/")
_WORDS = regex(r"[A-Za-z_]\w*")
_PACKAGES = regex(r"@?\w[\w./-]*\w")
_LISTS = ("requirements-dev.txt", "requirements.txt")
_MANIFESTS = regex(
    r"(?:.*/)?(?:pyproject\.toml|package\.json|setup\.(?:py|cfg)|tox\.ini|Pipfile|[\w.-]*requirements[\w.-]*)"
)


def find_foreign_errors(errors: Iterable[str], repository: Repository, task: str) -> Mapping[str, str]:
    """Return the errors that are the environment's fault, each with the package to install, or empty.

    A module is the project's if the repository has its name, or if the task names it and no manifest does. A
    fixture is a plugin's where manifests name plugins and no file defines it.
    """
    paths = [PurePosixPath(path) for path in repository.files]
    own = {name for path in paths for name in (*path.parts, path.stem)}
    manifests = map(repository.read, filter(_MANIFESTS.fullmatch, repository.files))
    declared = "\n".join(manifests).lower().replace("-", "_")  # as Python spells names
    words = {*_WORDS.findall(task), *_PACKAGES.findall(task)}
    named = {word for word in words if word.lower().replace("-", "_") not in declared}
    ends = "package.json"
    folders = (path.removesuffix(ends) for path in repository.files if path.endswith(ends))
    own |= named | {str(repository.within(each).package.get("name")) for each in folders}
    plugins = " ".join(sorted({name.replace("_", "-") for name in _PLUGINS.findall(declared)}))
    found = {error: _find_wanted(error, own, repository) for error in errors}
    for error in found:
        fixture = _FIXTURE.fullmatch(error)
        if fixture and plugins and not (fixture["name"] in named or _defines(fixture["name"], repository)):
            found[error] = plugins
    return MappingProxyType({error: wanted for error, wanted in found.items() if wanted is not None})


def _find_wanted(error: str, own: set[str], repository: Repository) -> str | None:
    """Return what to install against an error, empty where nothing helps; None if the project may mend it."""
    if found := _NODE_PACKAGE.fullmatch(error):
        return None if found["name"] in own else found["name"]
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


def _defines(fixture: str, repository: Repository) -> bool:
    places = re.compile(rf"\bdef {fixture}\b|\bname\s*=\s*[\"']{fixture}[\"']")
    return any(places.search(repository.read(path)) for path in repository.files if path.endswith(".py"))


def _is_of_tests(module: str, repository: Repository) -> bool:
    inside = [path for path in repository.files if path.startswith(f"{module}/") and path.endswith(".py")]
    return bool(inside) and all(map(is_test_path, inside))


def describe_foreign_errors(errors: Mapping[str, str], repository: Repository) -> str:
    modules = sorted({errors[each] for each in errors if _MODULE.fullmatch(each)})
    packages = sorted({found["name"] for each in errors if (found := _PACKAGE.fullmatch(each))})
    told = [f"ModuleNotFoundError: {', '.join(modules)} is neither here nor in the repository"] * bool(
        modules
    )
    told += [f"not installed: {', '.join(packages)}"] * bool(packages)
    told += sorted(each for each in errors if _NAME.fullmatch(each))
    fixtures = sorted(found["name"] for each in errors if (found := _FIXTURE.fullmatch(each)))
    told += [f"no plugin of pytest that is installed has {', '.join(fixtures)}"] * bool(fixtures)
    absent = sorted({errors[each] for each in errors if _NODE_PACKAGE.fullmatch(each)})
    others = {wanted for wanted in errors.values() if wanted} - {"-e .", *absent}
    listed = next((f"-r {name}" for name in _LISTS if repository.has(name)), "")
    wanted = ["-e ."] * ("-e ." in errors.values()) + [listed or " ".join(sorted(others))] * bool(others)
    said = ["; ".join(told) + (f": pip install {' '.join(wanted)}" if wanted else "")] * bool(told)
    said += [f"{', '.join(absent)} is not installed: {repository.installer} install"] * bool(absent)
    return "; ".join(said)
