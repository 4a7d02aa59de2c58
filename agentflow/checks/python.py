"""The required checks of a Python repository, and the Python that they run in, never the one that runs us."""

import os
import posixpath
import shlex
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from agentflow.checks.own_suite import find_own_words
from agentflow.checks.repository import PYTEST_SETTINGS, Repository, require
from agentflow.core.check_command import CommandPart, join_commands
from agentflow.core.evidence import Check, CheckName, Command
from agentflow.core.languages import PYTHON
from agentflow.core.record import Record
from agentflow.core.regex import compile_glob, regex
from agentflow.runners.scripts import get_table
from agentflow.sandbox.environment import find_environment, find_program
from agentflow.sandbox.run import Sandbox, explain_hidden
from agentflow.sandbox.throwaway import make_scratch_folder

_COLLECTED = tuple(glob for glob in PYTHON.tests if "*" in glob or "/" in glob)
"""The names of test files that pytest collects by itself."""
_MANAGE, _DJANGO = "manage.py", "DJANGO_SETTINGS_MODULE"
_REQUIREMENTS = regex(r"(?:requirements[^/]*\.txt|requirements/[^/]+\.txt)")
_NAMES_PYTEST = regex(r"(?m)(?:^\s*|[\"'])pytest\b")
_NEEDS_PYTEST = regex(r"(?m)^\s*(?:import|from) pytest\b|^(?:async )?def test")
_HAS_TESTS = regex(r"(?m)^\s*(?:async )?def test")
_SINGLE = "test.py"
"""All tests of a small package: unittest finds it, and pytest does not."""
_UNITTEST = regex(r"(?m)^\s*(?:import|from) unittest\b(?!\.mock)|\bTestCase\b")
_LINT_ARGUMENTS = MappingProxyType(
    {
        "ruff": " check .",
        "ruff format": " format --check .",
        "flake8": " --extend-exclude=.venv",
        "black": " --check -q .",
        "isort": " --check-only -q .",
    }
)
_FORMATTERS = ("black", "isort", "ruff format")
_COMPILED = (".c", ".cpp", ".f90", ".pyx", ".rs")
_PROBE_SECONDS = 20.0
_ANSWER = "importable:"
_PROBE = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; import importlib.util as u;"
    f"print('{_ANSWER}', *[m for m in sys.argv[1:] if u.find_spec(m)])"
)
"""Without the folder it starts in, so that no file of the repository is imported."""
_VERSION = f"import sys; print('{_ANSWER}', *sys.version_info[:3])"


class _Wanted(Record):
    """A tool the repository asks for, and where it says so."""

    tool: str
    reason: str

    @property
    def program(self) -> str:
        return self.tool.split()[0]


class Interpreter(Record):
    """The words that start a Python, and the hint for a person who lacks a tool in it."""

    words: tuple[str, ...]
    installer: str
    missing: str | None = None
    """Why it cannot be started, and what to do."""

    @property
    def command(self) -> str:
        return shlex.join(self.words)


class Tools(Record):
    """The places where the tools of a repository are found."""

    interpreter: Interpreter
    importable: frozenset[str]
    on_path: frozenset[str]

    def start(self, tool: str) -> tuple[str, str | None]:
        """Return the command that starts a tool, and what is missing for it."""
        if tool in self.importable:
            return f"{self.interpreter.command} -m {tool}", None
        if tool in self.on_path and not self.interpreter.missing:
            return tool, None
        missing = self.interpreter.missing or f"{tool}: {self.interpreter.installer} {tool}"
        return f"{self.interpreter.command} -m {tool}", missing


def find_python_checks(
    repository: Repository,
    changed: Collection[str] = (),
    settled: Collection[CheckName] = (),
    added: Collection[str] = (),
) -> tuple[Check, ...]:
    """Return what must hold in the Python part of a repository; of changed files, only their own tests.

    To ask which tools there are takes a start of Python, so none is asked for a name that is settled.
    """
    tests = {} if CheckName.TESTS in settled else _read_tests(repository)
    projects = _find_projects(repository, tests, added)
    site = _find_site(repository, tests, projects)
    apart = (*projects, *([] if site is None else [site]))
    beside = {name: text for name, text in tests.items() if not name.startswith(apart)}
    own = _own(tests, changed)
    is_alone = CheckName.TESTS in settled or (site is not None and not beside)
    runner = None if is_alone else _runner(repository, beside, projects)
    runner = None if projects and own and beside.keys().isdisjoint(own) else runner
    linters = () if CheckName.LINT in settled else _linters(repository)  # formatters are required as lint
    checkers = () if CheckName.TYPES in settled else _type_checkers(repository)
    wanted = [*linters, *checkers, *([runner] if runner else [])]
    if not (wanted or projects or site is not None):
        return ()
    names = dict.fromkeys(each.program for each in wanted if each.tool != "unittest")
    tools = find_tools(repository, tuple(names))
    kinds = dict.fromkeys(_FORMATTERS, CheckName.FORMAT)
    mine = [name for name in own if name in beside]
    return (
        *(
            _with(tools, each, kinds.get(each.tool, CheckName.LINT), _LINT_ARGUMENTS[each.tool])
            for each in linters
        ),
        *(_with(tools, each, CheckName.TYPES, _arguments(repository, each.tool)) for each in checkers),
        *((_test_check(repository, tools, runner, beside, mine, projects),) if runner else ()),
        *_test_projects(repository, projects, own),
        *([] if site is None else [_test_site(repository, site, own)]),
    )


def _own(tests: Iterable[str], changed: Collection[str]) -> tuple[str, ...]:
    stems = {PurePosixPath(name).stem for name in changed if name.endswith(".py")}
    named = {*stems, *(f"test_{stem}" for stem in stems), *(f"{stem}_test" for stem in stems)}
    return tuple(sorted(name for name in tests if PurePosixPath(name).stem in named))


def _with(tools: Tools, wanted: _Wanted, name: CheckName, arguments: str) -> Check:
    start, missing = tools.start(wanted.program)
    return require(name, start + arguments, wanted.reason, missing)


def _linters(repository: Repository) -> tuple[_Wanted, ...]:
    ruff = _configuration(repository, "ruff", ("ruff.toml", ".ruff.toml"), {})
    flake8 = _configuration(repository, "flake8", (".flake8",), {"setup.cfg": "flake8", "tox.ini": "flake8"})
    black = _configuration(repository, "black", (), {})
    isort = _configuration(repository, "isort", (".isort.cfg",), {"setup.cfg": "isort", "tox.ini": "isort"})
    is_formatted = "format" in get_table(repository.read_toml("pyproject.toml"), "tool", "ruff")
    place = "[tool.ruff.format] in pyproject.toml"
    format_too = (_Wanted(tool="ruff format", reason=place),) if is_formatted else ()
    return (*(ruff or flake8)[:1], *format_too, *black, *isort)


def _type_checkers(repository: Repository) -> tuple[_Wanted, ...]:
    mypy = _configuration(repository, "mypy", ("mypy.ini", ".mypy.ini"), {"setup.cfg": "mypy"})
    return mypy + _configuration(repository, "pyright", ("pyrightconfig.json",), {})


def _configuration(
    repository: Repository, tool: str, files: Sequence[str], sections: dict[str, str]
) -> tuple[_Wanted, ...]:
    folder = repository.folder
    places = [folder + name for name in files if repository.has(name)]
    places += [
        f"[{part}] in {folder}{name}"
        for name, part in sections.items()
        if repository.read_ini(name).has_section(part)
    ]
    if tool in get_table(repository.read_toml("pyproject.toml"), "tool"):
        places.append(f"[tool.{tool}] in {folder}pyproject.toml")
    return tuple(_Wanted(tool=tool, reason=place) for place in places[:1])


def _arguments(repository: Repository, tool: str) -> str:
    settings = get_table(repository.read_toml("pyproject.toml"), "tool", "mypy")
    for name in ("mypy.ini", ".mypy.ini", "setup.cfg"):
        parser = repository.read_ini(name)
        settings |= dict(parser["mypy"]) if parser.has_section("mypy") else {}
    if tool != "mypy" or settings.keys() & {"files", "packages", "modules", "package", "module"}:
        return ""
    return " src" if _src_layout(repository) else " ."


def _src_layout(repository: Repository) -> bool:
    inside = (name for name in repository.files if name.startswith("src/"))
    kinds = {PurePosixPath(name).suffix for name in inside}
    return ".py" in kinds and kinds.isdisjoint(_COMPILED)


def _read_tests(repository: Repository) -> dict[str, str]:
    has_site = any(f"/{name}".endswith(f"/{_MANAGE}") for name in repository.files)
    patterns = [compile_glob(glob) for glob in (PYTHON.tests if has_site else _COLLECTED)]
    found = (name for name in repository.files if any(each.fullmatch(name) for each in patterns))
    named = filter(repository.is_collected, found)
    texts = {name: repository.read(name) for name in named}
    return {name: text for name, text in texts.items() if _HAS_TESTS.search(text)}


def _runner(repository: Repository, tests: dict[str, str], projects: Collection[str] = ()) -> _Wanted | None:
    if configured := _pytest_settings(repository):
        return configured[0]
    if projects:
        return _Wanted(tool="pytest", reason=f"tests in {min(tests)}") if tests else None
    if not tests:
        return next(iter(_configuration(repository, "tox", (), {"tox.ini": "testenv"})), None)
    if tests.keys() != {_SINGLE} and (reason := _pytest_hint(repository, tests)):
        return _Wanted(tool="pytest", reason=reason)
    return _Wanted(tool="unittest", reason=f"unittest tests in {min(tests)}")


def _pytest_settings(repository: Repository) -> tuple[_Wanted, ...]:
    sections = {"tox.ini": "pytest", "setup.cfg": "tool:pytest"}
    return _configuration(repository, "pytest", ("pytest.ini", ".pytest.ini", "pytest.toml"), sections)


def _find_site(repository: Repository, tests: Iterable[str], projects: Collection[str]) -> str | None:
    """Return the outermost folder of a Django project with tests that pytest is not set up for, or None."""
    found = (name.removesuffix(_MANAGE) for name in repository.files if f"/{name}".endswith(f"/{_MANAGE}"))
    sites = [each for each in found if _DJANGO in repository.read(each + _MANAGE)]
    site = min(sites, key=len, default=None)
    if site is None or site in projects or _pytest_settings(repository):
        return None
    return site if any(name.startswith(site) for name in tests) else None


def _test_site(repository: Repository, site: str, own: Iterable[str]) -> Check:
    tools = find_tools(repository, ("django",), site)
    paths = [name.removeprefix(site).removesuffix(".py") for name in own if name.startswith(site)]
    words = _quote(path.replace("/", ".") for path in paths)
    command = f"{tools.interpreter.command} {_MANAGE} test -v 2{words}"
    missing = None if "django" in tools.importable else tools.start("django")[1]
    text = CommandPart(command=command, folder=site).text
    return require(CheckName.TESTS, text, f"{site}{_MANAGE}", missing)


def _find_projects(repository: Repository, tests: Collection[str], added: Collection[str]) -> dict[str, str]:
    """Return the outermost folders of tests with settings of pytest, and these.

    Where the root has some, they are the added folders. Each ends with a slash.
    """
    above = {f"{folder}/" for name in tests for folder in PurePosixPath(name).parents[:-1]}
    ends = tuple(f"/{name}" for name in PYTEST_SETTINGS)
    above &= {f"{posixpath.dirname(name)}/" for name in repository.files if name.endswith(ends)}
    if _pytest_settings(repository):
        above &= {*added}
    found: dict[str, str] = {}
    for folder in sorted(above):
        settings = () if folder.startswith(tuple(found)) else _pytest_settings(repository.within(folder))
        found.update((folder, each.reason) for each in settings)
    return found


def _pytest_hint(repository: Repository, tests: dict[str, str]) -> str:
    for name, text in tests.items():
        if _NEEDS_PYTEST.search(text) or not _UNITTEST.search(text):
            return f"pytest tests in {name}"
    for name in repository.files:
        if name.rpartition("/")[2] == "conftest.py" and repository.is_collected(name):
            return name
        declares = name in {"pyproject.toml", "setup.cfg", "setup.py"} or _REQUIREMENTS.fullmatch(name)
        if declares and _NAMES_PYTEST.search(repository.read(name)):
            return f"{name} names pytest"
    return ""


def _test_check(
    repository: Repository,
    tools: Tools,
    runner: _Wanted,
    tests: Iterable[str],
    own: Sequence[str],
    projects: Iterable[str] = (),
) -> Check:
    if runner.tool != "unittest":
        start, missing = tools.start(runner.program)
        words = own or [f"--ignore={folder[:-1]}" for folder in projects]
        suite = find_own_words(repository) if runner.tool == "pytest" and not words else ()
        command = " ".join((f"{_import_path(repository)}{start} -q{_quote(words)}", *suite))
        return require(CheckName.TESTS, command, runner.reason, missing)
    start = f"{_import_path(repository)}{tools.interpreter.command} -m unittest discover -v"
    groups = [[path] for path in map(PurePosixPath, own)] or _group_discovered(repository, tests)
    command = join_commands(start + _discover(repository, each, is_alone=bool(own)) for each in groups)
    return require(CheckName.TESTS, command, runner.reason, tools.interpreter.missing)


def _test_projects(
    repository: Repository, projects: Mapping[str, str], own: Sequence[str]
) -> Iterator[Check]:
    for folder, reason in projects.items():
        words = [name.removeprefix(folder) for name in own if name.startswith(folder)]
        if words or not own:
            start, missing = find_tools(repository, ("pytest",), folder).start("pytest")
            command = f"{_import_path(repository.within(folder))}{start} -q{_quote(words)}"
            text = CommandPart(command=command, folder=folder).text
            yield require(CheckName.TESTS, text, reason, missing and f"{missing} (in {folder[:-1]})")


def _import_path(repository: Repository) -> str:
    return "PYTHONPATH=src " if _src_layout(repository) else ""


def _quote(words: Iterable[str]) -> str:
    return "".join(f" {shlex.quote(word)}" for word in words)


def _group_discovered(repository: Repository, tests: Iterable[str]) -> list[list[PurePosixPath]]:
    """Return the test files by the discovery that finds them.

    Discovery descends into packages only, so folders that are none need one each.
    """
    groups: dict[PurePosixPath, list[PurePosixPath]] = {}
    for path in map(PurePosixPath, sorted(tests)):
        groups.setdefault(_top_level(repository, path.parent), []).append(path)
    return [*groups.values()]


def _top_level(repository: Repository, folder: PurePosixPath) -> PurePosixPath:
    while folder != folder.parent and repository.has(str(folder / "__init__.py")):
        folder = folder.parent
    return folder


def _discover(repository: Repository, paths: Sequence[PurePosixPath], *, is_alone: bool) -> str:
    top = _top_level(repository, paths[0].parent)
    start = PurePosixPath(posixpath.commonpath([path.parent for path in paths]) or ".")
    words = [] if start == PurePosixPath() else ["-s", str(start)]
    words += [] if start == top else ["-t", str(top)]
    prefixed = [path.name.startswith("test") for path in paths]
    pattern = paths[0].name if is_alone else "*test*.py" if any(prefixed) else "*_test.py"
    return _quote(words if all(prefixed) and not is_alone else [*words, "-p", pattern])


def find_tools(repository: Repository, names: Sequence[str], folder: str = "") -> Tools:
    chosen = choose_interpreter(repository, folder)
    ask = partial(_ask_python, repository.sandbox, chosen, folder)
    importable = frozenset(ask(_PROBE, *names) if names else ())
    others = [name for name in names if name not in importable]
    return Tools(
        interpreter=chosen,
        importable=importable & {*names},
        on_path=frozenset(name for name in others if _answers(repository.sandbox, name)),
    )


def choose_interpreter(repository: Repository, folder: str = "") -> Interpreter:
    """Return the Python of a repository: VIRTUAL_ENV, .venv, uv or poetry, PATH; a project's own comes first.

    It is spelled as in the project's folder, which ends with a slash.
    """
    root, place = repository.root, repository.root / folder
    if (found := find_environment(root, *([place] if folder else []))) is not None:
        shown = _spell_path(found / "bin" / "python", root, place)
        hidden = explain_hidden(repository.sandbox, found.resolve())
        missing = f"{shown}: {hidden}" if hidden else None
        return Interpreter(words=(shown,), installer=f"{shlex.quote(shown)} -m pip install", missing=missing)
    if repository.has("uv.lock", f"{folder}uv.lock") and find_program("uv", root):
        return Interpreter(words=("uv", "run", "--no-sync", "python"), installer="uv pip install")
    if repository.has("poetry.lock", f"{folder}poetry.lock") and find_program("poetry", root):
        return Interpreter(words=("poetry", "run", "python"), installer="poetry run pip install")
    name = next((name for name in ("python3", "python") if find_program(name, root)), None)
    word = name or str(Path(sys.base_prefix, "bin", "python3"))
    program = find_program(word, root) or word
    typed = word if shutil.which(word) == program else program  # ours may be the first that the user has
    return Interpreter(words=(word,), installer=f"{shlex.quote(typed)} -m pip install")


def read_python_version(repository: Repository) -> tuple[int, ...] | None:
    return (
        tuple(map(int, _ask_python(repository.sandbox, choose_interpreter(repository), "", _VERSION))) or None
    )


def _spell_path(python: Path, root: Path, place: Path) -> str:
    folder, top = python.parent.parent.resolve(), root.resolve()
    if python.is_relative_to(root):
        return os.path.relpath(python, place)
    is_inside = folder.is_relative_to(top)
    return os.path.relpath(folder / "bin" / "python", place.resolve()) if is_inside else str(python)


def _ask_python(sandbox: Sandbox, chosen: Interpreter, folder: str, script: str, *names: str) -> list[str]:
    said = _ask(sandbox, (*chosen.words, "-c", script, *names), folder) or ""
    lines = [line for line in said.splitlines() if line.startswith(_ANSWER)]
    return lines[-1].split()[1:] if lines else []


def _answers(sandbox: Sandbox, name: str) -> bool:
    """Return whether a program on PATH starts; a version manager's shim may stand for nothing."""
    return find_program(name, sandbox.root) is not None and _ask(sandbox, (name, "--version")) is not None


def _ask(sandbox: Sandbox, argv: Sequence[str], folder: str = "") -> str | None:
    command = Command(argv=tuple(argv), cwd=str(sandbox.root / folder), timeout=_PROBE_SECONDS)
    with make_scratch_folder() as scratch:
        try:
            finished = sandbox.of(None).run(command, scratch / "said")
        except OSError:
            return None
    return finished.tail if finished.exit_code == 0 else None
