"""A repository as the detection of checks reads it: its files, the checks it names, and their limits."""

import configparser
import posixpath
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from agentflow.core.check_command import join_commands
from agentflow.core.evidence import Check, CheckName
from agentflow.core.file_text import decode_file
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.runners.scripts import parse_manifest
from agentflow.sandbox.run import Sandbox

_READ_BYTES = 1_000_000
PYTEST_SETTINGS = ("pytest.ini", ".pytest.ini", "pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml")
_FOLDERS = regex(r"(?m)^[ \t]*(testpaths|norecursedirs)[ \t]*=[ \t]*(\[[^\]]*\]|[^\n]*(?:\n[ \t]+[^\n]*)*)")
"""The settings by which pytest looks for tests, in TOML and in INI files."""


class TaskFile(Record):
    """A file that names commands, as make reads it, of which one may be `test`."""

    names: tuple[str, ...]
    """The first that is there is the one that is read."""
    test: re.Pattern[str]
    """How it defines `test`, with what that runs."""
    program: str
    hint: str


_TASKFILES = ("Taskfile", "taskfile", "Taskfile.dist", "taskfile.dist")
TASK_FILES = (
    TaskFile(
        names=("GNUmakefile", "makefile", "Makefile"),
        test=regex(r"(?m)^test[ \t]*:(?!=)[^\n]*(?:\n|\Z)(?P<recipe>(?:\t[^\n]*\n?)*)"),
        program="make",
        hint="install make",
    ),
    TaskFile(
        names=("justfile", "Justfile", ".justfile"),
        test=regex(r"(?m)^@?test(?:[ \t][^:\n]*)?:(?!=)[^\n]*(?:\n|\Z)(?P<recipe>(?:[ \t]+[^\n]*\n?)*)"),
        program="just",
        hint="cargo install just",
    ),
    TaskFile(
        names=tuple(f"{name}.y{end}ml" for name in _TASKFILES for end in ("", "a")),
        test=regex(
            r"(?ms)^tasks:.*?^(?P<indent>[ \t]+)[\"']?test[\"']?:"
            r"(?P<recipe>[^\n]*(?:\n(?:(?P=indent)[ \t]+[^\n]*)?)*)"
        ),
        program="task",
        hint="npm install -g @go-task/cli",
    ),
)
MAKEFILES = TASK_FILES[0].names
_LOCKS = (
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
)
INSTALLERS = tuple(dict.fromkeys(name for _, name in _LOCKS))
"""Those that node does not bring."""


class Repository(Record):
    """A folder and the files in it that count: those git does not ignore."""

    sandbox: Sandbox
    """The sandbox in which its programs are asked for their versions."""
    files: tuple[str, ...]
    """Relative to the folder."""
    known: frozenset[str]
    """The files once more, to look one up."""
    folder: str = ""
    """The project that it is about, with a slash at its end; empty for the whole repository."""

    @property
    def root(self) -> Path:
        return self.sandbox.root

    @property
    def place(self) -> Path:
        return self.root / self.folder

    def within(self, folder: str, others: Collection[str] = ()) -> "Repository":
        """Return one project without the others inside it, as if it were a repository of its own."""
        apart = tuple(other for other in others if len(other) > len(folder))
        mine = (name for name in self.files if name.startswith(folder) and not name.startswith(apart))
        inside = tuple(name.removeprefix(folder) for name in mine)
        return self.replace(files=inside, known=frozenset(inside), folder=folder)

    def has(self, *names: str) -> bool:
        return any(name in self.known for name in names)

    def find(self, *names: str) -> str:
        """Return the first file at the top of some, of which a name may begin with `*`; else empty."""
        ends = (name.removeprefix("*") for name in names if name.startswith("*"))
        named = (each for end in ends for each in self.files if each.endswith(end) and "/" not in each)
        return next((name for name in names if name in self.known), "") or next(named, "")

    def read(self, name: str) -> str:
        """Return the start of a file; empty when it does not count or leads out of the repository."""
        path = self.place / name
        if name not in self.known or not path.resolve().is_relative_to(self.root.resolve()):
            return ""
        try:
            with path.open("rb") as file:
                return decode_file(file.read(_READ_BYTES)).shown
        except OSError:
            return ""

    def is_collected(self, name: str) -> bool:
        """Return whether Python tests in a file are found; in a dot folder pytest's settings must say so."""
        folder = find_dot_folder(name)
        said = [each for file in PYTEST_SETTINGS if folder for each in _FOLDERS.findall(self.read(file))]
        skipped = (".*", PurePosixPath(folder).name)
        return not folder or any(
            folder in value if key == "testpaths" else not any(glob in value for glob in skipped)
            for key, value in said
        )

    @property
    def tasks(self) -> tuple[tuple[TaskFile, str, str], ...]:
        """The files of commands that would be read and have one called `test`: kind, name, what it runs."""
        read = ((each, self.find(*each.names)) for each in TASK_FILES)
        found = ((each, name, each.test.search(self.read(name))) for each, name in read if name)
        return tuple((each, name, test["recipe"]) for each, name, test in found if test)

    @property
    def package(self) -> dict[str, Any]:
        """The content of package.json; empty where there is none or it is damaged."""
        return parse_manifest(self.read("package.json"))

    @property
    def installer(self) -> str:
        """The program that installs the packages of package.json, by what that says, or by its lock file."""
        said = str(self.package.get("packageManager", "")).partition("@")[0]
        locked = (name for lock, name in _LOCKS if self.has(lock))
        return said if said in ("npm", *INSTALLERS) else next(locked, "npm")

    def read_toml(self, name: str) -> dict[str, Any]:
        """Return a TOML file; empty when there is none or it is damaged."""
        if not (text := self.read(name)):
            return {}
        import tomllib  # noqa: PLC0415  # only where there is one

        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            return {}

    def read_ini(self, name: str) -> configparser.ConfigParser:
        """Return an INI file; empty when there is none or it is damaged."""
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        try:
            parser.read_string(self.read(name))
        except configparser.Error:
            return configparser.ConfigParser()
        return parser


_PYTEST_TABLE = regex(r"(?m)^\[(?:tool[.:])?pytest(?:\.ini_options)?\]")


def find_pytest_root(read: Callable[[str], str], folder: str) -> str:
    """Return the options by which some tests of pytest run as all of them do when it starts in a folder."""
    home = PurePosixPath(folder or ".")
    places = [str(home), *map(str, home.parents)]
    for path in (posixpath.join(place, name) for place in places for name in PYTEST_SETTINGS):
        text = read(path)
        if text and (
            posixpath.basename(path).lstrip(".").startswith("pytest.") or _PYTEST_TABLE.search(text)
        ):
            return f" -c {shlex.quote(posixpath.relpath(path, home))}"
    root = next((place for place in places if read(posixpath.join(place, "setup.py"))), home)
    return f" --rootdir={shlex.quote(posixpath.relpath(root, home))}"


def find_dot_folder(name: str) -> str:
    """Return the outermost folder of a file whose name begins with a dot; empty where there is none."""
    if "/." not in f"/{name}":
        return ""
    folders = PurePosixPath(name).parent
    found = (folder for folder in (*reversed(folders.parents), folders) if folder.name.startswith("."))
    return str(next(found, ""))


LIMITS = MappingProxyType(
    {
        CheckName.TESTS: 300.0,
        CheckName.TYPES: 120.0,
        CheckName.LINT: 60.0,
        CheckName.FORMAT: 60.0,
        CheckName.BUILD: 180.0,
    }
)
"""Seconds."""
QUICK_LIMITS = MappingProxyType({CheckName.LINT: 30.0, CheckName.FORMAT: 15.0, CheckName.TESTS: 60.0})
"""Seconds, and the only checks of a quick look."""


def require(name: CheckName, command: str, reason: str, missing: str | None = None) -> Check:
    return Check(name=name, command=command, timeout=LIMITS[name], reason=reason, missing=missing)


def merge_checks(checks: Iterable[Check]) -> tuple[Check, ...]:
    found = tuple(checks)
    groups = ([check for check in found if check.name is name] for name in CheckName)
    return tuple(_one(group) for group in groups if group)


def _one(group: Sequence[Check]) -> Check:
    """Return several checks as one, of which the part runs that this machine has the programs for."""
    absent = "; ".join(check.missing for check in group if check.missing) or None
    able = [check for check in group if not check.missing]
    return Check(
        name=group[0].name,
        command=join_commands(check.command for check in able or group),
        timeout=sum(check.timeout for check in group),
        reason="; ".join(check.reason for check in group),
        missing=None if able else absent,
        left_out=absent if able else None,
    )


TEST_COMMAND = ".claude/test-command"
KNOWN_FAILURES = ".claude/known-test-failures"
SKIP_TESTS = ".claude/skip-test-verification"


class Word(Record):
    """A text with the file that says it."""

    text: str
    file: str


class WellKnown(Record):
    """The words of the trusted files."""

    commands: Mapping[CheckName, Word] = {}
    """The commands that replace those we would find."""
    known: tuple[str, ...] = ()
    """Ids of tests whose failure does not count."""
    skips: Mapping[CheckName, Word] = {}
    """The reason for each check that is not run."""
    required: frozenset[CheckName] = frozenset()
    """The checks that have to run and pass although they only look."""


def read_well_known(root: Path, trusted: Callable[[str], bool]) -> WellKnown:
    """Return what counts here; a file that is not trusted is as if it were not there."""

    def first(name: str) -> dict[CheckName, Word]:
        lines = _lines(root, name, trusted)
        return {CheckName.TESTS: Word(text=lines[0], file=name)} if lines else {}

    known = tuple(_lines(root, KNOWN_FAILURES, trusted))
    return WellKnown(commands=first(TEST_COMMAND), known=known, skips=first(SKIP_TESTS))


def apply_own_commands(checks: Iterable[Check], said: WellKnown) -> tuple[Check, ...]:
    """Return checks of which those are the repository's own commands that it names."""
    others = (check for check in checks if check.name not in said.commands)
    named = (require(name, word.text, word.file) for name, word in said.commands.items())
    found = sorted((*others, *named), key=lambda check: list(CheckName).index(check.name))
    return tuple(check.replace(required=check.name in said.required) for check in found)


def _lines(root: Path, name: str, trusted: Callable[[str], bool]) -> list[str]:
    if not trusted(name):
        return []
    rows = (row.strip() for row in decode_file((root / name).read_bytes()).shown.splitlines())
    return [row for row in rows if row and not row.startswith("#")]
