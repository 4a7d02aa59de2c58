from typing import Any

import pytest

from agentflow.checks.dependencies import find_blockage
from agentflow.checks.repository import Repository
from agentflow.core.evidence import CheckRun, TestOutcome
from tests.unit.verdict.cases import LINT, TESTS, before

UNABLE = {
    "a shell": (127, "sh: 1: eslint: not found\n", "eslint is not found"),
    "bash": (127, "bash: line 1: ruff: command not found\n", "ruff is not found"),
    "a package manager": (127, "sh: 1: pnpm: not found\n", "pnpm is not found: npm install -g pnpm"),
    "make": (2, "make: jest: No such file or directory\nmake: *** [Makefile:2: test] Error 127\n", "jest"),
    "an old linter": (
        2,
        "Required version `>=9.0` does not match the running version `0.4.1`\n",
        "Required version `>=9.0`",
    ),
    "an option of a plugin": (
        4,
        "python -m pytest: error: unrecognized arguments: --cov=parse --cov-branch\n  inifile: pytest.ini\n",
        "a plugin of pytest is not installed: the one that knows --cov=parse --cov-branch",
    ),
    "a plugin by its name": (
        4,
        "ERROR: Missing required plugins: pytest-cov>=4\n",
        "a plugin of pytest is not installed: pytest-cov>=4",
    ),
    "no network": (101, "warning: spurious network error: Could not resolve host: index\n", "--network"),
}


def repository(checkout: Any) -> Repository:
    return Repository(sandbox=checkout.sandbox, files=(), known=frozenset())


@pytest.mark.parametrize(("code", "output", "said"), UNABLE.values(), ids=UNABLE)
def test_a_check_that_could_not_begin_is_the_machines_fault(
    checkout: Any, code: int, output: str, said: str
) -> None:
    run = before(LINT, exit_code=code)
    assert said in find_blockage(run, output, repository(checkout), None, "")


_UNKNOWN = "importlib.metadata.PackageNotFoundError: No package metadata was found for pager"
_FOREIGN = "ModuleNotFoundError: No module named 'frozen.parts'"
_LOST = "ModuleNotFoundError: No module named 'pager.lost'"
_OLDER = "ImportError: cannot import name 'Cold' from 'frozen' (/venv/lib/site-packages/frozen.py)"
_NO_PACKAGE = "ImportError: cannot import name 'unittest' from 'tests' (unknown location)"
_NO_PART = "ImportError: cannot import name 'unittest' from 'pager' (unknown location)"
_NEITHER = "ModuleNotFoundError: frozen is neither here nor in the repository"
_LACKING = "Cannot find module 'left-pad/sub'"
_OF_SCOPE = "Cannot find package '@frozen/parts'"
_FIXTURE = "fixture 'mocker' not found"
_NO_PLUGIN = "no plugin of pytest that is installed has mocker"
FILES = ("src/pager/core.py", "tests/test_a.py", "tests/test_b.py")


@pytest.mark.parametrize(
    ("errors", "task", "said"),
    [
        ((_FOREIGN, _FOREIGN), "", f"{_NEITHER}: pip install frozen"),
        ((_FOREIGN,), "the total is wrong", f"{_NEITHER}: pip install frozen"),
        ((_FOREIGN, _LOST), "", f"{_NEITHER}: pip install frozen"),
        ((_FOREIGN, _LOST), "add a module frozen", ""),
        ((_UNKNOWN, _FOREIGN), "", f"{_NEITHER}; not installed: pager: pip install -e . frozen"),
        ((_UNKNOWN.replace("pager", "a-b"),), "", "not installed: a-b: pip install a-b"),
        ((_OLDER,), "", f"{_OLDER}: pip install frozen"),
        ((_NO_PACKAGE,), "", _NO_PACKAGE),
        ((_NO_PART,), "", ""),
        ((_LACKING, _OF_SCOPE), "", "@frozen/parts, left-pad is not installed: npm install"),
        ((_LACKING, _FOREIGN), "", f"{_NEITHER}: pip install frozen; left-pad is not installed: npm install"),
        ((_LACKING,), "use left-pad", ""),
        (("Cannot find module './left-pad'", "Cannot find module '@/core'"), "", ""),
        (("Cannot find module 'pager/core'",), "", ""),
        ((_FIXTURE,), "", ""),
        ((_LOST, "ModuleNotFoundError: No module named 'os.lost'"), "", ""),
    ],
)
def test_tests_that_need_what_is_not_installed_cannot_run(
    checkout: Any, errors: tuple[str, ...], task: str, said: str
) -> None:
    tests = dict(zip(FILES[1:], errors, strict=False))
    run = before(TESTS, dict.fromkeys(FILES[1:], TestOutcome.ERROR), import_errors=tests)
    known = repository(checkout).replace(files=FILES)
    assert find_blockage(run, "", known, None, task) == said


_DEFINED = "import pytest\n\n\n@pytest.fixture(name='mocker')\ndef make():\n    pass\n"


@pytest.mark.parametrize(
    ("needs", "conftest", "task", "said"),
    [
        ("pytest>=8\npytest-mock>=3\npytest-cov\n", "", "", f"{_NO_PLUGIN}: pip install -r requirements.txt"),
        ("pytest>=8\n", "", "", ""),
        ("pytest-mock\n", _DEFINED, "", ""),
        ("pytest-mock\n", "", "write the fixture mocker", ""),
    ],
)
def test_a_fixture_is_a_plugins_where_the_project_names_plugins_and_does_not_define_it(
    checkout: Any, needs: str, conftest: str, task: str, said: str
) -> None:
    files = {"requirements.txt": needs, "tests/conftest.py": conftest, "tests/test_a.py": ""}
    checkout.write(files)
    known = repository(checkout).replace(files=tuple(files), known=frozenset(files))
    run = before(TESTS, {"t": TestOutcome.ERROR}, import_errors={"t": _FIXTURE})
    assert find_blockage(run, "", known, None, task) == said


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (_FOREIGN, f"{_NEITHER}: pip install frozen"),
        (f"{_FOREIGN}\n{_LOST}", ""),
        (f"Error: {_LACKING}\nRequire stack", "left-pad is not installed: npm install"),
    ],
)
def test_where_tests_have_no_names_what_is_printed_tells(checkout: Any, output: str, said: str) -> None:
    known = repository(checkout).replace(files=FILES)
    assert find_blockage(before(TESTS, exit_code=1), output, known, None, "") == said


def test_packages_of_which_none_loads_for_want_of_a_download_could_not_begin(checkout: Any) -> None:
    output = "a_test.go:8:2: mkdir /go/pkg/mod/cache/download/host/a: read-only file system\n"
    run = before(TESTS, {"shop::*": TestOutcome.ERROR})
    assert "--network" in find_blockage(run, output, repository(checkout), None, "")


ABLE: dict[str, tuple[CheckRun, str]] = {
    "it found something": (before(LINT, exit_code=127, findings={"a.py: x": 1}), "sh: 1: x: not found\n"),
    "a test failed": (before(TESTS, {"t1": TestOutcome.FAILED}), "Could not resolve host: example\n"),
    "it is green": (before(LINT), "sh: 1: x: not found\n"),
    "a word that no plugin would know": (
        before(LINT, exit_code=4),
        "python -m pytest: error: unrecognized arguments: folder\n",
    ),
    "another exit code": (before(LINT, exit_code=1), "sh: 1: x: not found\n"),
}


@pytest.mark.parametrize(("run", "output"), ABLE.values(), ids=ABLE)
def test_a_check_that_told_something_could_run(checkout: Any, run: CheckRun, output: str) -> None:
    assert find_blockage(run, output, repository(checkout), None, "") == ""
