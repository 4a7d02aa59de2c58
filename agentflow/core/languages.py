"""Programming languages, one record each, with everything that agentflow knows about each."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import PurePosixPath
from types import MappingProxyType

from agentflow.core.evidence import CheckName
from agentflow.core.record import Record
from agentflow.core.regex import regex, to_expression


class CheckRule(Record):
    """A required check of every repository with a certain manifest."""

    command: str
    manifest: tuple[str, ...]
    """One of these lies at the root; a name may begin with `*`."""
    programs: tuple[tuple[str, str], ...]
    """The programs it needs, each with an install hint; the command's own program is last."""
    name: CheckName = CheckName.TESTS
    reason: str = ""
    """Why it is required, where the name of the manifest does not say it."""
    unless: tuple[str, ...] = ()
    """None of these lies at the root."""
    settings: tuple[str, ...] = ()
    """And one of these, if there are any."""
    table: tuple[str, ...] = ()
    """Or this table of the manifest, which is TOML, in place of the settings."""
    files: str = ""
    """A glob that some file of the repository fits."""
    says: str = ""
    """An expression that some program of the language, or the manifest, has a place for."""
    wrapper: str = ""
    """The project's own starter, tracked or installed, in place of the program that begins the command."""
    launcher: tuple[str, str] = ("", "")
    """A file at the root, and the program that then starts the command."""
    runtime: tuple[str, str] = ("", "")
    """What that starter needs, and how a person gets it."""


class CompilerCache(Record):
    """Where a compiler keeps what it has compiled, each entry under a digest of what it was made from."""

    variable: str
    """Names the folder in the environment."""
    name: str
    """The folder's name among the user's caches, without that variable."""
    fill: tuple[str, ...]
    """Commands that compile everything that checks need, and run nothing of the repository."""
    needs: tuple[str, ...]
    """The files that say what is compiled beside the repository's own code."""
    part: str
    """A folder in it, which is removed where the cache is emptied."""


class Language(Record):
    """One language, or the files of one that are treated alike; several records may have one name."""

    name: str
    suffixes: tuple[str, ...]
    manifests: tuple[str, ...] = ()
    """Names of files that say what a package is, and what it needs."""
    rules: tuple[CheckRule, ...] = ()
    """Its required checks, beside the tests that a module of `runners/` finds."""
    workspace: str = ""
    """A file at the root that names modules below it; commands at the root leave these out."""
    outside: str = ""
    """What a command begins with in a module that this file does not name."""
    tests: tuple[str, ...] = ()
    """Globs of test files."""
    first: tuple[str, ...] = ()
    """Globs of files that run before any test."""
    settings: tuple[str, ...] = ()
    """Globs of the settings of its checkers."""
    builds: tuple[str, ...] = ()
    """Globs of the files that start its build."""
    packages: tuple[str, ...] = ()
    """Folders of installed packages, at the root; a copy shows them and does not copy them."""
    caches: tuple[str, ...] = ()
    """Folders that its tools fill as they run; nothing is judged by them, and no copy has them."""
    made: tuple[str, ...] = ()
    """Other folders whose content its tools make again."""
    compiler_cache: CompilerCache | None = None
    hashes: bool = False
    """A comment begins with `#`, not with `//`."""


_SCRIPTS = "{js,jsx,ts,tsx,mjs,cjs,mts,cts}"
_GO = (("go", "install the Go toolchain"),)
_CARGO = (("cargo", "install the Rust toolchain"),)

PYTHON = Language(
    name="Python",
    suffixes=(".py",),
    manifests=("pyproject.toml",),
    tests=("test_*.py", "*_test.py", "tests.py", "/test.py"),
    first=(
        *("conftest.py", "sitecustomize.py", "usercustomize.py", "*.pth"),
        *("**/{tests,test}/__init__.py", "**/{tests,test}/**/__init__.py"),
        "**/*.{dist,egg}-info/**",  # its entry points are plugins to pytest wherever a path leads to it
    ),
    settings=(
        *("{,.}pytest.{ini,toml}", "tox.ini", "noxfile.py", ".coveragerc", "{,.}mypy.ini"),
        *("{,.}ruff.toml", ".flake8", ".pylintrc", "pyrightconfig.json", ".isort.cfg"),
    ),
    packages=(".venv", "venv", "env"),
    caches=("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"),
    made=(".tox", ".nox", "htmlcov"),
)
LANGUAGES: tuple[Language, ...] = (
    PYTHON,
    Language(name="Python", suffixes=(".pyi", ".pyx")),
    Language(
        name="JavaScript",
        suffixes=(".js", ".mjs", ".cjs"),
        manifests=("package.json",),
        tests=(f"*.{{test,spec}}.{_SCRIPTS}", f"{{test,tests}}.{_SCRIPTS}"),
        settings=(
            *("{jest,vitest,playwright,cypress,karma,ava,mocha}.{config,conf}.*", ".mocharc*"),
            *("tsconfig*.json", ".eslintrc*", "eslint.config.*", ".nycrc*", ".babelrc*"),
        ),
        packages=("node_modules",),
        caches=(".vite", ".vitest"),
        made=(".next",),
    ),
    Language(name="TypeScript", suffixes=(".ts", ".mts", ".cts")),
    Language(name="JavaScript", suffixes=(".jsx",)),
    Language(name="TypeScript", suffixes=(".tsx",)),
    Language(name="Vue", suffixes=(".vue",)),
    Language(name="Svelte", suffixes=(".svelte",)),
    Language(
        name="Go",
        suffixes=(".go",),
        manifests=("go.mod",),
        workspace="go.work",
        outside="GOWORK=off ",
        rules=(
            CheckRule(name=CheckName.LINT, command="go vet ./...", manifest=("go.mod",), programs=_GO),
            CheckRule(
                name=CheckName.LINT,
                command="golangci-lint run",
                manifest=("go.mod",),
                settings=(".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"),
                programs=(("golangci-lint", "install golangci-lint"),),
            ),
        ),
        tests=("*_test.go",),
        settings=(".golangci.*",),
        compiler_cache=CompilerCache(
            variable="GOCACHE",
            name="go-build",
            fill=("go vet ./...", "go test -exec=true ./...", "go test -exec=true -cover ./..."),
            needs=("go.mod", "go.sum", "go.work"),
            part="00",
        ),
    ),
    Language(
        name="Rust",
        suffixes=(".rs",),
        manifests=("Cargo.toml",),
        rules=(
            CheckRule(
                name=CheckName.TYPES,
                command="cargo check --all-targets",
                manifest=("Cargo.toml",),
                programs=_CARGO,
            ),
            CheckRule(
                name=CheckName.LINT,
                command="cargo clippy --all-targets -- -D warnings",
                manifest=("Cargo.toml",),
                settings=("clippy.toml", ".clippy.toml"),
                table=("lints", "clippy"),
                programs=(*_CARGO, ("cargo-clippy", "rustup component add clippy")),
                reason="clippy settings",
            ),
        ),
        tests=("{tests,*_test,*_tests}.rs",),
        settings=("{,.}clippy.toml", ".config/nextest.toml"),
        made=("target",),
    ),
    Language(
        name="Java",
        suffixes=(".java",),
        manifests=("pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
        tests=("*{Test,Tests,IT}.{java,kt}",),
        builds=("mvnw", "gradlew", ".mvn/**", "gradle/wrapper/**"),
        made=(".gradle", "target"),
    ),
    Language(name="Kotlin", suffixes=(".kt",)),
    Language(
        name="C#",
        suffixes=(".cs",),
        manifests=("*.sln", "*.slnx", "*.csproj", "*.fsproj", "*.vbproj"),
        tests=("*{Test,Tests}.cs",),
        settings=("*.runsettings",),
        made=("obj",),
    ),
    Language(name="Scala", suffixes=(".scala",)),
    Language(
        name="shell",
        suffixes=(".sh", ".bash"),
        hashes=True,
    ),
    Language(
        name="PHP",
        suffixes=(".php",),
        manifests=("composer.json", "phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"),
        tests=("*Test.php",),
        settings=("phpunit*.xml{,.dist}", "phpunit.dist.xml", "phpstan.neon*"),
        caches=(".phpunit.cache", ".phpunit.result.cache"),
    ),
    Language(name="C", suffixes=(".c", ".h"), tests=("{test,tests,test_*,*_test,*_tests}.{c,h}",)),
    Language(
        name="C++",
        suffixes=(".cc", ".cpp", ".hpp"),
        manifests=("CMakeLists.txt", "meson.build"),
        tests=("{test,tests,test_*,*_test,*_tests,*_unittest}.{cc,cpp,hpp}",),
        settings=("CTestConfig.cmake", "CTestCustom.cmake"),
    ),
    Language(
        name="Ruby",
        suffixes=(".rb",),
        manifests=("Gemfile", "Rakefile", ".rspec"),
        tests=("*_spec.rb", "*_test.rb"),
        settings=(".rspec", "Rakefile", ".simplecov"),
        hashes=True,
    ),
    Language(name="Perl", suffixes=(".pl",), hashes=True),
    Language(name="Lua", suffixes=(".lua",)),
    Language(
        name="Swift",
        suffixes=(".swift",),
        manifests=("Package.swift",),
        tests=("*Tests.swift",),
        made=(".build",),
    ),
    Language(
        name="Elixir",
        suffixes=(".ex",),
        manifests=("mix.exs",),
        tests=("*_test.exs",),
        made=("_build",),
    ),
    Language(name="Elixir", suffixes=(".exs",)),
    Language(name="Haskell", suffixes=(".hs",)),
    Language(name="OCaml", suffixes=(".ml",)),
    Language(name="Erlang", suffixes=(".erl",)),
    Language(name="Clojure", suffixes=(".clj",)),
    Language(name="Objective-C", suffixes=(".m",)),
    Language(name="Zig", suffixes=(".zig",)),
    Language(name="Dart", suffixes=(".dart",)),
)
_BY_SUFFIX: Mapping[str, Language] = MappingProxyType(
    {suffix: language for language in LANGUAGES for suffix in language.suffixes}
)
SOURCES = frozenset(_BY_SUFFIX)
"""Endings of programs."""


def find_language(path: str) -> Language | None:
    return _BY_SUFFIX.get(_get_suffix(path))


def _get_suffix(path: str) -> str:
    """Return what `PurePosixPath.suffix` does, without an object for each of many files."""
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    return name[dot:] if 0 < dot < len(name) - 1 else ""


def gather(values: Callable[[Language], Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for language in LANGUAGES for value in values(language)))


def _list_suffixes(*names: str) -> tuple[str, ...]:
    return gather(lambda each: each.suffixes if each.name in names else ())


C_FAMILY = _list_suffixes("C", "C++")
GO = _list_suffixes("Go")
RUST = _list_suffixes("Rust")
SHELL = _list_suffixes("shell")
TYPESCRIPT = _list_suffixes("TypeScript")
SCRIPTS = (*_list_suffixes("JavaScript"), *TYPESCRIPT)
COMPONENTS = _list_suffixes("Vue", "Svelte")
"""Endings of markup that holds scripts."""


def may_be_shell(path: str) -> bool:
    """Return whether a file may be a script of a shell: its ending says so, or it has none."""
    return _get_suffix(path) in ("", *SHELL)


TEST_PATHS = ("**/{tests,test,__tests__,spec,specs,e2e}/**", *gather(lambda each: each.tests))
"""Globs of the usual places of tests, in all languages."""


@cache
def _test_pattern() -> re.Pattern[str]:
    return re.compile("|".join(map(to_expression, TEST_PATHS)), re.DOTALL)


def is_test_path(path: str) -> bool:
    return _test_pattern().fullmatch(path) is not None


_DOCUMENT_NAME = regex(
    r"(?:readme|changelog|changes|history|news|contributing|contributors|authors|licen[sc]e|copying|notice"
    r"|security|code_of_conduct|governance|maintainers|roadmap)(?:\.[a-z]{2})?",
    re.IGNORECASE,
)
_DOCUMENT_FOLDERS = frozenset({"doc", "docs", "documentation"})
_DOCUMENT_ENDINGS = frozenset({".md", ".rst", ".adoc", ".markdown"})
_CHANGE_KIND = r"\.(?:feature|bugfix|doc|removal|misc|breaking|deprecation)(?:\.\d+)?"
_CHANGE_NOTE = regex(
    rf"(?:.*/)?(?:(?:releasenotes/notes|newsfragments|changelog\.d|\.changeset)/[^/]+(?:\.(?:md|rst|txt|ya?ml)|{_CHANGE_KIND})"
    rf"|(?:changes|news)/[^/]+{_CHANGE_KIND}(?:\.(?:md|rst|txt))?)"
)
"""One file for each change, as reno, towncrier, scriv and changesets keep them."""


def is_document_path(name: str) -> bool:
    path = PurePosixPath(name)
    is_top = len(path.parts) == 1 and (path.suffix or path.name.isupper())
    is_named = _DOCUMENT_NAME.fullmatch(path.stem) and path.suffix in {*_DOCUMENT_ENDINGS, ".txt", ""}
    is_placed = path.suffix in _DOCUMENT_ENDINGS and path.parts[0] in _DOCUMENT_FOLDERS
    return bool((is_top and is_named) or is_placed or _CHANGE_NOTE.fullmatch(name))


def is_source(path: str) -> bool:
    return _get_suffix(path) in SOURCES
