"""Which of the tests that were red a task has to turn green, by its words and by what those speak of."""

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import partial

from agentflow.routing.targets import Targets, find_targets
from agentflow.verdict.narrow import file_of
from agentflow.workspace.git import Git

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_FILE_BYTES = 1_000_000


def aims(git: Git, before: str | None, text: str, failing: frozenset[str]) -> Targets:
    """Return the failing tests that a task has to turn green; they are read in the tree from before it."""
    return find_targets(text, failing, partial(_speaking_of, git, before, failing))


def _speaking_of(git: Git, tree: str | None, tests: frozenset[str], names: frozenset[str]) -> frozenset[str]:
    """Return the tests in whose files one of the names stands."""
    if tree is None:
        return frozenset()
    files = files_of(git.paths(tree), tests)
    paths = sorted(path for path in set(files.values()) if "\n" not in path)
    texts = git.texts([f"{tree}:{path}" for path in paths], _FILE_BYTES)
    found = {path for path, text in zip(paths, texts, strict=True) if names & set(_IDENTIFIER.findall(text))}
    return frozenset(test for test in tests if files.get(test) in found)


def files_of(paths: Iterable[str], tests: Iterable[str]) -> dict[str, str]:
    """Return the file of each test, by pytest's id of it or by unittest's, as far as it is known."""
    modules = defaultdict[str, dict[str, str]](dict)
    for path in paths:
        if path.endswith(".py"):
            module = path.removesuffix(".py").replace("/", ".")
            modules[module.rpartition(".")[2]][f".{module}"] = path
    found = ((test, _file(test, modules)) for test in tests)
    return {test: path for test, path in found if path}


def _file(test: str, modules: dict[str, dict[str, str]]) -> str | None:
    if "::" in test or test.endswith(".py"):
        return file_of(test)
    parts = test.split(".")
    for end in range(len(parts) - 1, 0, -1):
        module = f".{'.'.join(parts[:end])}"
        for known, path in modules[parts[end - 1]].items():
            if known.endswith(module):
                return path
    return None
