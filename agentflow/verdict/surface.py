"""Check files, by their names, and by the settings and commands that name them."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from types import MappingProxyType

from agentflow.checks.dependencies import find_manifest
from agentflow.checks.repository import MAKEFILES, PYTEST_SETTINGS, Repository, find_dot_folder
from agentflow.core.evidence import Check, Surface
from agentflow.core.finding import FileKind
from agentflow.core.languages import (
    GO,
    PYTHON,
    SCRIPTS,
    SHELL,
    TEST_PATHS,
    gather,
    is_document_path,
    is_source,
)
from agentflow.core.regex import compile_glob, regex, to_expression
from agentflow.runners.scripts import get_table
from agentflow.verdict.mixed_files import is_shared
from agentflow.verdict.reach import find_declared, find_leads
from agentflow.verdict.syntax import list_module_paths
from agentflow.workspace.mixed_tree import ChangedTexts

_GLOBS: Mapping[FileKind, tuple[str, ...]] = MappingProxyType(
    {
        FileKind.START: gather(lambda each: each.first),
        FileKind.FIXTURES: (
            *("**/__snapshots__/**", "**/{fixtures,testdata,test_data,cassettes}/**"),
            *("*.snap", "*.ambr", "*.approved.*"),
        ),
        FileKind.TESTS: TEST_PATHS,
        FileKind.RUNNER: (*gather(lambda each: each.settings), ".pre-commit-config.yaml"),
        FileKind.BUILD: (
            *("{GNUm,M,m}akefile", "*.mk", "{J,j}ustfile", "Taskfile.y{,a}ml"),
            *(".github/**", ".gitlab-ci.yml", ".circleci/**", ".travis.yml", "azure-pipelines.yml"),
            *gather(lambda each: each.builds),
        ),
    }
)
_FIRST_IMPORTED = regex(r"(?:src/)?([A-Za-z_]\w*)(?:/.+)?(?:\.[\w-]+)*\.(?:pyc?|pyd|so)")
_SHELL_SCRIPT = regex(
    rf"(?<![\w./-])(?:\./)?((?:[\w.-]+/)*[\w-]+(?:{'|'.join(map(re.escape, SHELL))}))(?![\w.])"
)
_PROGRAM = regex(r"(?<![\w./-])\./([\w./-]*\w)(?![\w.])")
"""A file that is started by its path."""
_PLUGINS = regex(r"(?m)^pytest_plugins\b[^=]*=\s*(\[[^\]]*\]|\([^)]*\)|[\"'][^\"']*[\"'])")
_OPTION = regex(r"(?<![\w-])-p[\s\"',=]*([A-Za-z_][\w.]*)")
_BETWEEN = regex(r"&&|\|\||[;|\n]")
_NAME = regex(r"(?<![^\s\"'])(?!-)[\w./:-]+")
_RUNS_TESTS = regex(r"(?:^|[\s/-])(?:\w*test|mocha|ava|tap|jest|rspec|busted|prove)(?=\s|$)")
_INTERPRETER = regex(
    r"(?:^|[\s@/])(?:python[\d.]*|node|deno|bun|ruby|perl|php|lua|tsx|ts-node|go|uv|ba?sh|\$[({]\w+[)}])(?=\s)"
)
_AS_MODULE = regex(r"(?<!\S)-m[ \t]+([\w.]+)")
_RUNNABLE = (*PYTHON.suffixes, *SCRIPTS, *SHELL, *GO, ".rb", ".pl", ".php", ".lua")
"""Endings of sources that an interpreter is given; a compiler's are often the product."""
_TAKEN = frozenset(
    (
        *("pytest", "_pytest", "pluggy", "iniconfig", "xdist", "pytest_cov", "coverage", "nose"),
        *sys.stdlib_module_names,
    )
)
"""Modules in whose place Python would import those of a repository."""
_MODULE = regex(r"[A-Za-z_][\w.]*")
_RULE = regex(r"(?m)^([^\s#:=][^\n:=]*):(?!=)([^\n]*(?:\n\t[^\n]*)*)")


def find_kind(path: str, surface: Surface) -> FileKind | None:
    """Return why a path is a check file; None for any other path."""
    if surface.removed and _any(surface.removed).fullmatch(path):
        return None
    if surface.added and _any(surface.added).fullmatch(path):
        return FileKind.SETTING
    if path in surface.named:
        return FileKind.NAMED
    kind = _usual(path)
    if kind is None and (name := find_import_name(path)) in _TAKEN and name not in surface.own:
        return FileKind.START
    if (
        kind is FileKind.TESTS
        and path.endswith(".py")
        and find_dot_folder(path) not in ("", *surface.folders)
    ):
        return None
    return FileKind.OBSERVED if kind is None and path in surface.observed else kind


def find_kind_for_verdict(path: str, surface: Surface) -> FileKind | None:
    """Return why a changed path counts as a check file; a path not shown to be product does."""
    kind = find_kind(path, surface)
    is_told = kind is not None or path in surface.product or not surface.is_watched
    if is_told or (surface.removed and _any(surface.removed).fullmatch(path)):
        return kind
    is_known = is_source(path) or is_document_path(path) or is_shared(path) or find_manifest(path)
    return None if is_known else FileKind.UNKNOWN


def is_kept_original(surface: Surface, path: str) -> bool:
    """Return whether the original checks keep a changed path as it was before the task."""
    return find_kind_for_verdict(path, surface) is not None


def is_check_file(surface: Surface, path: str) -> bool:
    return find_kind(path, surface) is not None


@lru_cache(maxsize=100_000)
def _usual(path: str) -> FileKind | None:
    found = _pattern_of_kinds().fullmatch(path)
    return FileKind[found.lastgroup] if found and found.lastgroup else None


def find_import_name(path: str) -> str:
    """Return the name under which Python would import a file at its top level; empty where it would not."""
    found = _FIRST_IMPORTED.fullmatch(path)
    return found[1] if found else ""


@cache
def _pattern_of_kinds() -> re.Pattern[str]:
    """Return an expression that matches the usual names; the name of the matching group is the kind."""
    kinds = ((kind.name, "|".join(map(to_expression, globs))) for kind, globs in _GLOBS.items())
    return re.compile("|".join(f"(?P<{name}>{paths})" for name, paths in kinds), re.DOTALL)


@cache
def _any(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{compile_glob(glob).pattern})" for glob in globs), re.DOTALL)


def is_document(change: ChangedTexts) -> bool:
    """Return whether a file is text for people by its name and place, and a plain file on both sides."""
    return is_document_path(change.path) and set(change.modes) <= {"100644", "000000"}


def find_surface(
    repository: Repository, checks: Iterable[Check], added: tuple[str, ...], removed: tuple[str, ...]
) -> Surface:
    """Return the check files of a repository, as it stands before the task."""
    lines = tuple(
        (part.folder, line)
        for check in checks
        for part in check.parts
        for line in _expand(repository, part.command)
    )
    named = {*_list_programs(repository, lines), *_find_started(repository, lines), *_plugins(repository)}
    return Surface(
        named=tuple(sorted(named & repository.known)),
        added=added,
        removed=removed,
        folders=tuple(sorted(set(_dot_folders(repository, " ".join(line for _, line in lines))))),
        own=tuple(sorted(_TAKEN & set(map(find_import_name, repository.files)))),
    )


def _dot_folders(repository: Repository, commands: str) -> Iterator[str]:
    hidden = (name for name in repository.files if name.endswith(".py") and find_dot_folder(name))
    yield from (
        find_dot_folder(name)
        for name in hidden
        if find_dot_folder(name) in commands or repository.is_collected(name)
    )


def _list_programs(repository: Repository, lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    for folder, line in lines:
        yield from (folder + name for name in _SHELL_SCRIPT.findall(line))
        for program in _PROGRAM.findall(line):
            yield from (folder + program, *_find_built(repository, program))


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


def _find_started(repository: Repository, lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the sources that the commands of checks run, if other code is left and does not use them."""
    started = {path for folder, line in lines for path in _list_started(repository, folder, line)}
    own = {name for name in repository.files if is_source(name) and find_kind(name, Surface()) is None}
    if started and own - started:
        texts = {name: repository.read(name) for name in {*own, *PYTEST_SETTINGS, "package.json"}}
        leads = find_leads(texts)
        yield from started - find_declared(texts, own).union(*(leads[name] for name in own - started))


def _expand(repository: Repository, command: str) -> Iterator[str]:
    """Yield the lines of a command, and of the scripts of package.json and the recipes that it starts."""
    scripts, known, todo = get_table(repository.package, "scripts"), set[str](), [command]
    recipes = {each.program: recipe for each, _, recipe in repository.tasks}
    while todo:
        yield from (lines := _BETWEEN.split(todo.pop()))
        new = {*scripts, *recipes} & {*_NAME.findall(" ".join(lines))} - known
        todo += [str(each[name]) for name in sorted(new) for each in (scripts, recipes) if name in each]
        known |= new


def _list_started(repository: Repository, folder: str, line: str) -> list[str]:
    """Return the source that a line of a command runs; all that it names if it runs tests."""
    is_test, start = _RUNS_TESTS.search(line), _INTERPRETER.search(line)
    if "doctest" in line or not (is_test or start):
        return []
    words = _NAME.findall(line[0 if is_test or not start else start.end() :])
    modules = words if "unittest" in words else _AS_MODULE.findall(line)
    found = list[str]()
    for word in words:
        shorter = [".".join(word.split(".")[:end]) for end in range(word.count(".") + 1, 0, -1)]
        names = [each for module in shorter if word in modules for each in list_module_paths(module, ("",))]
        mains = [f"{word.replace('.', '/')}/__main__.py"] if word in modules else []
        places = (folder + each for each in (word.removeprefix("./").partition("::")[0], *mains, *names))
        found += [place for place in places if place in repository.known and place.endswith(_RUNNABLE)][:1]
    return found if is_test else found[:1]


def _plugins(repository: Repository) -> Iterator[str]:
    conftests = (name for name in repository.files if name.rpartition("/")[2] == "conftest.py")
    listed = (found for name in conftests for found in _PLUGINS.findall(repository.read(name)))
    modules = [module for words in listed for module in _MODULE.findall(words)]
    modules += [found for name in PYTEST_SETTINGS for found in _OPTION.findall(repository.read(name))]
    yield from (path for module in modules for path in list_module_paths(module))
