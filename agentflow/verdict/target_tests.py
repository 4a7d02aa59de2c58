"""Target tests: which failing tests a task must make pass."""

from functools import partial

from agentflow.core.regex import regex
from agentflow.core.test_ids import find_test_files
from agentflow.routing.clauses import Targets, find_targets
from agentflow.workspace.git import Git

_IDENTIFIER = regex(r"[A-Za-z_]\w*")
_FILE_BYTES = 1_000_000


def find_target_tests(git: Git, before: str | None, text: str, failing: frozenset[str]) -> Targets:
    """Return the failing tests that a task must make pass."""
    return find_targets(text, failing, partial(_find_by_names, git, before, failing))


def _find_by_names(
    git: Git, tree: str | None, tests: frozenset[str], names: frozenset[str]
) -> frozenset[str]:
    if tree is None:
        return frozenset()
    files = find_test_files(git.list_paths(tree), tests)
    texts = git.read_files(tree, sorted({*files.values()}), _FILE_BYTES)
    found = {path for path, text in texts.items() if names & set(_IDENTIFIER.findall(text))}
    return frozenset(test for test in tests if files.get(test) in found)
