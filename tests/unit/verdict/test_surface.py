from pathlib import Path

import pytest

from agentflow.checks.repository import Repository
from agentflow.core.evidence import Check, CheckName, Surface
from agentflow.core.finding import FileKind
from agentflow.verdict.surface import find_kind, find_surface
from tests.support.boxes import unboxed

KINDS = {
    "tests/test_pager.py": FileKind.TESTS,
    "src/pkg/test_inline.py": FileKind.TESTS,
    "pkg/pager_test.go": FileKind.TESTS,
    "web/list.test.tsx": FileKind.TESTS,
    "src/test/java/ListTest.java": FileKind.TESTS,
    "tests/helpers/build.py": FileKind.TESTS,
    ".claude/hooks/tests/test_guard.py": None,
    "tests/.old/test_pager.py": None,
    ".claude/hooks/conftest.py": FileKind.START,
    ".web/tests/list.test.ts": FileKind.TESTS,
    "conftest.py": FileKind.START,
    "tests/conftest.py": FileKind.START,
    "sitecustomize.py": FileKind.START,
    "lib/extra.pth": FileKind.START,
    "pytest.py": FileKind.START,
    "_pytest/runner.py": FileKind.START,
    "src/json.py": FileKind.START,
    "types.ts": None,
    "io/reader.go": None,
    "pager/json.py": None,
    "src/pager/pytest.py": None,
    "tests/fixtures/orders.json": FileKind.FIXTURES,
    "ui/__snapshots__/list.snap": FileKind.FIXTURES,
    "pkg/testdata/in.txt": FileKind.FIXTURES,
    "pytest.ini": FileKind.RUNNER,
    ".pytest.ini": FileKind.RUNNER,
    "mypy.ini": FileKind.RUNNER,
    ".ruff.toml": FileKind.RUNNER,
    "jest.config.ts": FileKind.RUNNER,
    "tsconfig.build.json": FileKind.RUNNER,
    "Makefile": FileKind.BUILD,
    "makefile": FileKind.BUILD,
    ".github/workflows/ci.yml": FileKind.BUILD,
    "src/pager.py": None,
    "pkg/testing/fake.py": None,
    "src/latest.py": None,
    "contest.py": None,
    "src/attest/keys.go": None,
    "clip_test.c": FileKind.TESTS,
    "src/tests.cc": FileKind.TESTS,
    "src/contest.c": None,
    "src/tests.rs": FileKind.TESTS,
    "src/test.rs": None,
    "pyproject.toml": None,
    "package.json": None,
    "README.md": None,
}


@pytest.mark.parametrize(("path", "kind"), KINDS.items())
def test_a_path_belongs_to_the_checks_or_to_the_code_they_judge(path: str, kind: FileKind | None) -> None:
    assert find_kind(path, Surface()) is kind


def test_the_user_adds_and_removes_paths() -> None:
    surface = Surface(added=("qa/**",), removed=("spec/**",))

    assert find_kind("qa/rules.py", surface) is FileKind.SETTING
    assert find_kind("spec/model.py", surface) is None
    assert find_kind("tests/test_a.py", surface) is FileKind.TESTS


def repository(folder: Path, files: dict[str, str]) -> Repository:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Repository(sandbox=unboxed(folder), files=tuple(files), known=frozenset(files))


def named(folder: Path, files: dict[str, str], *commands: str) -> set[str]:
    checks = [Check(name=CheckName.TESTS, command=each, timeout=1.0, reason="") for each in commands]
    return set(find_surface(repository(folder, files), checks, (), ()).named)


def test_scripts_that_a_check_runs_belong_to_the_checks(tmp_path: Path) -> None:
    files = {
        "scripts/check.py": "",
        "run.sh": "",
        "ci/all.sh": "",
        "src/main.py": "",
        "package.json": '{"scripts": {"test": "node tools/run.js && ./run.sh"}}',
        "tools/run.js": "",
        "Makefile": "test: build\n\tbash ci/all.sh src/main.py\n",
    }

    assert named(tmp_path, files, "python scripts/check.py src/main.py", "npm test", "make test") == {
        "scripts/check.py",
        "tools/run.js",
        "run.sh",
        "ci/all.sh",
    }


MAKEFILE = "test: t/run\n\t./t/run\n\nt/run: t/run.c clip.c\n\tcc -o $@ t/run.c clip.c\n"


@pytest.mark.parametrize(
    ("makefile", "is_check"),
    [
        (MAKEFILE, True),
        (f"all: t/run\n\n{MAKEFILE}", False),
        ("t/run: t/run.c clip.c\n\tcc -o $@ t/run.c clip.c\n\ntest: t/run\n\t./t/run\n", False),
        (MAKEFILE + "\ninstall:\n\tcp ./t/run /usr/bin\n", False),
    ],
)
def test_a_program_that_is_built_for_tests_alone_is_a_check(
    tmp_path: Path, makefile: str, is_check: bool
) -> None:
    files = {"Makefile": makefile, "t/run.c": "int main(void) { return 0; }\n", "clip.c": ""}
    assert ("t/run.c" in named(tmp_path, files, "make test")) is is_check


def test_plugins_that_pytest_is_told_to_load_belong_to_the_checks(tmp_path: Path) -> None:
    files = {
        "conftest.py": 'pytest_plugins = [\n    "pkg.probes",\n    "other.place"]\n',
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-q -p pkg.watch"\n',
        "src/pkg/probes.py": "",
        "pkg/watch.py": "",
        "other/place/__init__.py": "",
        "pkg/core.py": "",
    }

    assert named(tmp_path, files) == {"src/pkg/probes.py", "pkg/watch.py", "other/place/__init__.py"}


CALC = {"calc.py": "", "more.py": ""}
NAMED_BY_COMMANDS = {
    "a script": ({"check.py": "import calc\n"}, "python3 -u check.py", {"check.py"}),
    "in a recipe": (
        {"check.py": "", "Makefile": "test:\n\t$(PYTHON) check.py calc.py\n"}, "make test", {"check.py"}
    ),
    "by unittest": ({"check.py": ""}, "python3 -m unittest check.CartTest -v", {"check.py"}),
    "by node": ({"check.js": "", "cart.js": ""}, "node --test check.js", {"check.js"}),
    "by scripts of npm": (
        {"check.js": "", "package.json": '{"scripts": {"test": "npm run all", "all": "node check.js"}}'},
        "npm test",
        {"check.js"},
    ),
    "in a folder": ({"a/check.py": "", "a/b.py": ""}, "cd a && python3 check.py", {"a/check.py"}),
    "a server is started otherwise": (
        {"bin/app.js": "", "package.json": '{"scripts": {"test": "tap", "start": "node bin/app.js"}}'},
        "npm test",
        set(),
    ),
    "the product's own entry": (
        {"app.js": "", "a.js": "", "package.json": '{"main": "app.js", "scripts": {"test": "node app.js"}}'},
        "npm test",
        set(),
    ),
    "what other code uses": ({"main.py": "import calc\n"}, "python3 calc.py", set()),
    "what a linter looks at": ({}, "ruff check calc.py && pytest -q --cov calc", set()),
    "examples": ({}, "python3 -m doctest calc.py", set()),
}  # fmt: skip


@pytest.mark.parametrize(("files", "command", "wanted"), NAMED_BY_COMMANDS.values(), ids=NAMED_BY_COMMANDS)
def test_what_the_command_of_the_tests_runs_is_a_check(
    files: dict[str, str], command: str, wanted: set[str], tmp_path: Path
) -> None:
    assert named(tmp_path, {**CALC, **files}, command) == wanted


def test_a_module_of_the_product_may_be_named_like_one_of_the_standard_library(tmp_path: Path) -> None:
    here = repository(tmp_path, {"queue.py": "", "types/index.ts": "", "src/json/__init__.py": ""})
    surface = find_surface(here, (), (), ())

    paths = ("queue.py", "types/more.ts", "src/json/more.py", "ast.py", "pytest.py")
    assert [find_kind(path, surface) for path in paths] == [None, None, None, FileKind.START, FileKind.START]


def test_a_damaged_package_file_names_nothing(tmp_path: Path) -> None:
    assert named(tmp_path, {"package.json": '{"scripts": ', "run.sh": ""}) == set()


HIDDEN = ".ci/tests/test_a.py"
SAYS_SO = [
    ({"pytest.ini": "[pytest]\ntestpaths = .ci\n"}, "pytest -q"),
    ({"pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = ['tests',\n '.ci/tests']\n"}, "pytest -q"),
    ({"setup.cfg": "[tool:pytest]\nnorecursedirs = build\n"}, "pytest -q"),
    ({"Makefile": "test:\n\tpython -m unittest discover -s .ci/tests\n"}, "make test"),
    ({}, "python3 -m pytest .ci/tests"),
]
SAYS_NOTHING = [
    ({}, "pytest -q"),
    ({"pytest.ini": "[pytest]\ntestpaths = tests\nnorecursedirs = .* build\n"}, "pytest -q"),
    ({"pyproject.toml": "[tool.ruff]\nexclude = ['.ci']\n"}, "pytest -q"),
]


@pytest.mark.parametrize(
    ("files", "command", "kind"),
    [*((*one, FileKind.TESTS) for one in SAYS_SO), *((*one, None) for one in SAYS_NOTHING)],
)
def test_tests_in_a_dot_folder_belong_to_the_checks_where_a_check_runs_them(
    files: dict[str, str], command: str, kind: FileKind | None, tmp_path: Path
) -> None:
    here = repository(tmp_path, {HIDDEN: "def test_a(): pass\n", **files})
    check = Check(name=CheckName.TESTS, command=command, reason="", timeout=1)
    assert find_kind(HIDDEN, find_surface(here, (check,), (), ())) is kind
