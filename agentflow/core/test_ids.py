"""Ids of tests, as pytest and unittest give them: the file, the module and the function that each names."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from agentflow.core.evidence import CheckRun, TestOutcome
from agentflow.core.languages import PYTHON, SCRIPTS, is_source

_UNLOADED = "unittest.loader._FailedTest."
_FIXTURES = frozenset({"setUpClass", "tearDownClass", "setUpModule", "tearDownModule"})
_WHOLE_FILES = frozenset({*PYTHON.suffixes, *SCRIPTS})
"""Endings of files that stand for all of their tests where they cannot be loaded."""
_MARKS = (".", "::", "$")
"""What stands behind the name of a module or class in the id of a test."""


def get_test_file(test: str) -> str:
    return test.partition("::")[0]


def is_file_named(test: str) -> bool:
    """Return whether the id of a test names its file; Go, unittest and others name a package or a module."""
    return is_source(get_test_file(test))


def get_test_place(test: str) -> str:
    """Return the file of a test by pytest's id of it, or the module by unittest's."""
    path, _, inside = test.partition("::")
    return path if inside else path.rsplit(".", 2)[0]


def get_test_function(test: str) -> str:
    return re.split(r"::|\.", test.partition("[")[0])[-1]


def keep_case_ids(
    run: CheckRun, before: Mapping[str, TestOutcome], changed: Collection[str] = ()
) -> CheckRun:
    """Return the run with the ids from before where a case is called by the time or a chance."""
    found = match_cases(run.outcomes, before, changed)
    if not found:
        return run
    functions = sorted({test.partition("[")[0] for test in found.values()})
    return run.replace(
        outcomes={found.get(test, test): outcome for test, outcome in run.outcomes.items()},
        import_errors={found.get(test, test): error for test, error in run.import_errors.items()},
        ran=run.execution.replace(matched=tuple(functions)),
    )


def match_cases(
    now: Mapping[str, str], before: Mapping[str, str], changed: Collection[str]
) -> dict[str, str]:
    """Return the id from before of each case whose name holds the time or a chance; values are outcomes.

    The cases of one function are matched if there are as many as before and its file is unchanged, those with
    the same outcome first.
    """
    groups, older = _group_cases(now), _group_cases(before)
    found: dict[str, str] = {}
    for function, cases in groups.items():
        old = older.get(function, set())
        if cases == old or len(cases) != len(old) or get_test_file(function) in changed:
            continue
        new, gone = sorted(cases - old), sorted(old - cases)
        for test in new:
            found[test] = next((each for each in gone if before[each] == now[test]), "")
            gone = [each for each in gone if each != found[test]]
        found |= zip((test for test in new if not found[test]), gone, strict=True)
    return found


def _group_cases(tests: Iterable[str]) -> dict[str, set[str]]:
    found = defaultdict[str, set[str]](set)
    for test in tests:
        function, bracket, _ = test.partition("[")
        if bracket:
            found[function].add(test)
    return found


def find_id_prefix(test: str) -> str | None:
    """Return the prefix of the tests that one failure to load or set up stands for, or None."""
    if _UNLOADED in test:
        return test.partition(_UNLOADED)[2] + "."
    owner, _, last = test.rpartition(".")
    if last in _FIXTURES:
        return f"{owner}."
    if test.endswith("::*"):
        return test.removesuffix("*")
    return f"{test}::" if f".{last}" in _WHOLE_FILES and "::" not in test else None


def find_beside(tests: Collection[str], known: Collection[str]) -> frozenset[str]:
    """Return the known tests in the classes, modules or groups of some; none where these are most of all."""
    groups = set(map(_cut_name, tests))
    found = frozenset(test for test in known if _cut_name(test) in groups)
    return found if len(tests) < len(found) <= len(known) / 2 else frozenset()


def _cut_name(test: str) -> str:
    mark = next((each for each in (" > ", "::") if each in test), ".")
    return test.partition("[")[0].rpartition(mark)[0]


def list_module_names(path: str) -> list[str]:
    parts = posixpath.splitext(path)[0].split("/")
    return [".".join(parts[place:]) for place in range(len(parts))]


def is_test_in(test: str, paths: Iterable[str]) -> bool:
    return any(
        get_test_file(test) == path
        or test.startswith(tuple(f"{module}{mark}" for module in list_module_names(path) for mark in _MARKS))
        for path in paths
    )


def may_be_test_in(test: str, paths: Collection[str]) -> bool:
    """Return whether one of these files may have a test, as far as its id tells."""
    is_told = is_file_named(test) or all(path.endswith(".py") for path in paths)
    return is_test_in(test, paths) or not is_told


def find_test_files(paths: Iterable[str], tests: Iterable[str]) -> dict[str, str]:
    modules = defaultdict[str, dict[str, str]](dict)
    for path in paths:
        if path.endswith(".py"):
            module = path.removesuffix(".py").replace("/", ".")
            modules[module.rpartition(".")[2]][f".{module}"] = path
    found = ((test, _file_in(test, modules)) for test in tests)
    return {test: path for test, path in found if path}


def _file_in(test: str, modules: dict[str, dict[str, str]]) -> str | None:
    if "::" in test or test.endswith(".py"):
        return get_test_file(test)
    parts = test.split(".")
    for end in range(len(parts) - 1, 0, -1):
        module = f".{'.'.join(parts[:end])}"
        for known, path in modules[parts[end - 1]].items():
            if known.endswith(module):
                return path
    return None
