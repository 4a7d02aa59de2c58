"""Check files, by their names, and by the settings and commands that name them."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import PurePosixPath
from types import MappingProxyType

from agentflow.checks.dependencies import find_manifest
from agentflow.checks.repository import MAKEFILES, PYTEST_SETTINGS, Repository, find_dot_folder, get_table
from agentflow.core.evidence import Check, Surface
from agentflow.core.languages import SHELL, TEST_PATHS, gather, is_source
from agentflow.core.regex import compile_glob, regex, to_expression
from agentflow.verdict.mixed_files import is_shared
from agentflow.verdict.syntax import list_module_paths


class Kind(StrEnum):
    """The reason why a file is a check file, as a report says it."""

    TESTS = "tests"
    FIXTURES = "fixtures and snapshots"
    RUNNER = "settings of a checker"
    START = "code that runs before any test"
    BUILD = "build and CI"
    NAMED = "script, plugin or helper of the checks"
    OBSERVED = "test code, because only tests use it"
    UNKNOWN = "nothing shows that it is product"
    SETTING = "the user's settings"


_GLOBS: Mapping[Kind, tuple[str, ...]] = MappingProxyType(
    {
        Kind.START: gather(lambda each: each.first),
        Kind.FIXTURES: (
            *("**/__snapshots__/**", "**/{fixtures,testdata,test_data,cassettes}/**"),
            *("*.snap", "*.ambr", "*.approved.*"),
        ),
        Kind.TESTS: TEST_PATHS,
        Kind.RUNNER: (*gather(lambda each: each.settings), ".pre-commit-config.yaml"),
        Kind.BUILD: (
            *("{GNUm,M,m}akefile", "*.mk", "{J,j}ustfile", "Taskfile.y{,a}ml"),
            *(".github/**", ".gitlab-ci.yml", ".circleci/**", ".travis.yml", "azure-pipelines.yml"),
            *gather(lambda each: each.builds),
        ),
    }
)
_DOCUMENT_NAME = regex(
    r"(?:readme|changelog|changes|history|news|contributing|contributors|authors|licen[sc]e|copying|notice"
    r"|security|code_of_conduct|governance|maintainers|roadmap)(?:\.[a-z]{2})?",
    re.IGNORECASE,
)
_DOCUMENT_FOLDERS = frozenset({"doc", "docs", "documentation"})
_DOCUMENT_ENDINGS = frozenset({".md", ".rst", ".adoc", ".markdown"})
_IMPORTING = (Kind.TESTS, Kind.START)
_STARTED = regex(r"\bpython[\d.]*(?:[ \t]+-[A-Za-z]+)*[ \t]+-m[ \t]+([A-Za-z_][\w.]*)")
_FIRST_IMPORTED = regex(r"(?:src/)?([A-Za-z_]\w*)(?:\.py|/.+)")
_RUNNERS = frozenset({"pytest", "_pytest", "pluggy", "iniconfig", "xdist", "pytest_cov", "coverage", "nose"})
_SCRIPT = regex(r"(?<![\w./-])(?:\./)?((?:[\w.-]+/)*[\w-]+\.\w+)")
_SCRIPT_FOLDERS = frozenset({"script", "scripts", "bin", "tool", "tools", "ci", "hack", "dev", "build"})
_PROGRAM = regex(r"(?<![\w./-])\./([\w./-]*\w)(?![\w.])")
"""A file that is started by its path."""
_IMPORTED = regex(r"(?m)^[ \t]*(?:from|import)[ \t]+([A-Za-z_][\w.]*)(?:[ \t]+import[ \t]+(\w+))?")
_ASSERTS = regex(
    r"(?m)^(?:import|from) (?:pytest|unittest)\b|^def (?:assert|check|expect)_\w+\(|\braise AssertionError\b"
)
_PLUGINS = regex(r"(?m)^pytest_plugins\b[^=]*=\s*(\[[^\]]*\]|\([^)]*\)|[\"'][^\"']*[\"'])")
_OPTION = regex(r"(?<![\w-])-p[\s\"',=]*([A-Za-z_][\w.]*)")
_MODULE = regex(r"[A-Za-z_][\w.]*")
_RULE = regex(r"(?m)^([^\s#:=][^\n:=]*):(?!=)([^\n]*(?:\n\t[^\n]*)*)")


def find_kind(path: str, surface: Surface) -> Kind | None:
    """Return why a path is a check file; None for any other path."""
    if surface.removed and _any(surface.removed).fullmatch(path):
        return None
    if surface.added and _any(surface.added).fullmatch(path):
        return Kind.SETTING
    if path in surface.named:
        return Kind.NAMED
    kind = _usual(path)
    if kind is Kind.TESTS and path.endswith(".py") and find_dot_folder(path) not in ("", *surface.folders):
        return None
    return Kind.OBSERVED if kind is None and path in surface.observed else kind


def find_kind_for_verdict(path: str, surface: Surface) -> Kind | None:
    """Return why a changed path counts as a check file; a path not shown to be product does."""
    kind = find_kind(path, surface)
    is_told = kind is not None or path in surface.product or not surface.is_watched
    if is_told or (surface.removed and _any(surface.removed).fullmatch(path)):
        return kind
    is_known = is_source(path) or is_document_path(path) or is_shared(path) or find_manifest(path)
    return None if is_known else Kind.UNKNOWN


def is_kept_original(surface: Surface, path: str) -> bool:
    """Return whether the original checks keep a changed path as it was before the task."""
    return find_kind_for_verdict(path, surface) is not None


def is_check_file(surface: Surface, path: str) -> bool:
    """Return whether a path is a check file."""
    return find_kind(path, surface) is not None


@lru_cache(maxsize=100_000)
def _usual(path: str) -> Kind | None:
    """Return why a path is a check file in any repository, by its name alone."""
    if _shadows(path):
        return Kind.START
    found = _pattern_of_kinds().fullmatch(path)
    return Kind[found.lastgroup] if found and found.lastgroup else None


def _shadows(path: str) -> bool:
    """Return whether Python would import a file in place of a runner's or the standard library's module."""
    found = _FIRST_IMPORTED.fullmatch(path)
    return found is not None and (found[1] in _RUNNERS or found[1] in sys.stdlib_module_names)


@cache
def _pattern_of_kinds() -> re.Pattern[str]:
    """Return an expression that matches the usual names; the name of the matching group is the kind."""
    kinds = ((kind.name, "|".join(map(to_expression, globs))) for kind, globs in _GLOBS.items())
    return re.compile("|".join(f"(?P<{name}>{paths})" for name, paths in kinds), re.DOTALL)


@cache
def _any(globs: tuple[str, ...]) -> re.Pattern[str]:
    """Return an expression that matches a path if one of the globs does."""
    return re.compile("|".join(f"(?:{compile_glob(glob).pattern})" for glob in globs), re.DOTALL)


def is_document_path(name: str) -> bool:
    """Return whether a path is that of text for people."""
    path = PurePosixPath(name)
    is_top = len(path.parts) == 1 and (path.suffix or path.name.isupper())
    is_named = _DOCUMENT_NAME.fullmatch(path.stem) and path.suffix in {*_DOCUMENT_ENDINGS, ".txt", ""}
    is_placed = path.suffix in _DOCUMENT_ENDINGS and path.parts[0] in _DOCUMENT_FOLDERS
    return bool((is_top and is_named) or is_placed)


def find_surface(
    repository: Repository, checks: Iterable[Check], added: tuple[str, ...], removed: tuple[str, ...]
) -> Surface:
    """Return the check files of a repository, as it stands before the task."""
    checks = tuple(checks)
    named = {*_scripts(repository, checks), *_plugins(repository), *_aids(repository)}
    return Surface(
        named=tuple(sorted(named & repository.known)),
        added=added,
        removed=removed,
        folders=tuple(sorted(set(_dot_folders(repository, checks)))),
    )


def _dot_folders(repository: Repository, checks: Iterable[Check]) -> Iterator[str]:
    """Yield the dot folders with Python tests that a check or the settings of pytest name."""
    commands = " ".join(text for text in (*(check.command for check in checks), *_recipes(repository)))
    hidden = (name for name in repository.files if name.endswith(".py") and find_dot_folder(name))
    yield from (
        find_dot_folder(name)
        for name in hidden
        if find_dot_folder(name) in commands or repository.is_collected(name)
    )


def _scripts(repository: Repository, checks: Iterable[Check]) -> Iterator[str]:
    """Yield the scripts that the commands of checks start."""
    commands = (check.command for check in checks)
    for text in (*commands, *_recipes(repository)):
        for name in _SCRIPT.findall(text):
            parts = PurePosixPath(name).parts
            if name.endswith(SHELL) or not _SCRIPT_FOLDERS.isdisjoint(parts[:-1]):
                yield name
        for program in _PROGRAM.findall(text):
            yield from (program, *_find_built(repository, program))
        yield from (path for module in _STARTED.findall(text) for path in _main_of(repository, module))


def _find_built(repository: Repository, program: str) -> Iterator[str]:
    """Yield the source file of a program that a Makefile builds for its test target only."""
    text = next(filter(None, map(repository.read, MAKEFILES)), "")
    rules = [(head.split(), body) for head, body in _RULE.findall(text) if not head.startswith(".")]
    users = [heads for heads, body in rules if program in body.replace("./", " ").split()]
    is_first = bool(rules) and program in rules[0][0]
    if program in repository.known or is_first or users != [["test"]]:
        return
    sources = [name for name in repository.files if is_source(name)]
    mine = [name for name in sources if name.rpartition(".")[0] == program]
    yield from mine if len(sources) > len(mine) else ()


def _main_of(repository: Repository, module: str) -> Iterator[str]:
    """Yield the file that `python -m MODULE` starts, if other code is left for it to check."""
    if "." in module:
        return
    others = (name for name in repository.files if name.endswith(".py") and not name.startswith(f"{module}/"))
    if any(find_kind(name, Surface()) is None for name in others if name != f"{module}.py"):
        yield from (f"{module}/__main__.py", f"{module}.py")


def _recipes(repository: Repository) -> tuple[str, ...]:
    """Return what the scripts of package.json and the test target of a Makefile run."""
    scripts = get_table(repository.package, "scripts")
    return (*map(str, scripts.values()), *(repository.make_test or ())[1:])


def _aids(repository: Repository) -> Iterator[str]:
    """Yield the modules that tests import and that contain assertions."""
    bare = Surface()
    tests = [
        name for name in repository.files if name.endswith(".py") and find_kind(name, bare) in _IMPORTING
    ]
    found = {match for name in tests for match in _IMPORTED.findall(repository.read(name))}
    modules = {each for module, name in found for each in (module, f"{module}.{name}")}
    for path in sorted({path for module in modules for path in list_module_paths(module)} & repository.known):
        if _ASSERTS.search(repository.read(path)):
            yield path


def _plugins(repository: Repository) -> Iterator[str]:
    """Yield the files of pytest plugins that conftest files or settings load."""
    conftests = (name for name in repository.files if name.rpartition("/")[2] == "conftest.py")
    listed = (found for name in conftests for found in _PLUGINS.findall(repository.read(name)))
    modules = [module for words in listed for module in _MODULE.findall(words)]
    modules += [found for name in PYTEST_SETTINGS for found in _OPTION.findall(repository.read(name))]
    yield from (path for module in modules for path in list_module_paths(module))
