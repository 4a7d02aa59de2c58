import time
from pathlib import Path
from typing import Any

import pytest

from agentflow.checks.detect import detect, detect_quick
from agentflow.core.evidence import CheckName
from agentflow.core.record import Record

LINT, FORMAT, TYPES, BUILD, TESTS = CheckName
PYTEST = "def test_a():\n    assert True\n"
UNITTEST = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        pass\n"
ALL_TOOLS = ("django", "pytest", "ruff", "mypy", "pyright", "flake8", "black", "isort", "tox")


class Fixture(Record):
    name: str
    files: dict[str, str]
    commands: dict[CheckName, str]
    programs: tuple[str, ...] = ()


def pyproject(text: str) -> dict[str, str]:
    return {"pyproject.toml": text}


def package(text: str, *others: str) -> dict[str, str]:
    return {"package.json": text} | dict.fromkeys(others, "")


BOTH = "r=0; { python3 -m ruff check .; } || r=1; { python3 -m black --check -q .; } || r=1; exit $r"
SUITE = {"pkg/__init__.py": "", "tests/test_a.py": PYTEST}
WORKFLOW = "steps:\n  - name: Run pytest\n  - run: pip install pytest\n  - run: {0}\n"
DJANGO = 'os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site.settings")\n'
RUFF = "python3 -m ruff"
EACH = "r=0; (cd api && {0} ./...) || r=1; (cd lib && {0} ./...) || r=1; exit $r"
PYTEST_Q = "python3 -m pytest -q"
DISCOVER = "python3 -m unittest discover -v"
CRATE = {"core/Cargo.toml": "", "core/src/lib.rs": "#[test]\n"}
RAW = [
    ("nothing at all", {}, {}, ()),
    ("python without tests", {"a.py": "x = 1\n", **pyproject("[project]\nname='a'\n")}, {}, ()),
    ("a file that only looks like tests", {"test_values.py": "X = 1\n"}, {}, ()),
    ("plain pytest functions", {"tests/test_a.py": PYTEST}, {TESTS: "python3 -m pytest -q"}, ()),
    ("suffix naming", {"a_test.py": PYTEST}, {TESTS: "python3 -m pytest -q"}, ()),
    (
        "pytest configured, no test yet",
        pyproject("[tool.pytest.ini_options]\n"),
        {TESTS: "python3 -m pytest -q"},
        (),
    ),
    ("pytest in setup.cfg", {"setup.cfg": "[tool:pytest]\n"}, {TESTS: "python3 -m pytest -q"}, ()),
    ("pytest in tox.ini", {"tox.ini": "[pytest]\n"}, {TESTS: "python3 -m pytest -q"}, ()),
    ("conftest alone", {"conftest.py": ""}, {}, ()),
    ("tests in a dot folder", {".claude/hooks/tests/test_a.py": PYTEST, "a.py": ""}, {}, ()),
    (
        "tests in a dot folder beside others",
        {".claude/hooks/test_a.py": PYTEST, ".claude/conftest.py": "", "tests/test_b.py": UNITTEST},
        {TESTS: f"{DISCOVER} -s tests"},
        (),
    ),
    (
        "a dot folder that the settings name",
        {".ci/tests/test_a.py": UNITTEST, "pytest.ini": "[pytest]\ntestpaths =\n    tests\n    .ci/tests\n"},
        {TESTS: PYTEST_Q},
        (),
    ),
    (
        "a dot folder in a folder of tests",
        {"tests/.old/test_a.py": PYTEST, "tests/test_b.py": UNITTEST},
        {TESTS: f"{DISCOVER} -s tests"},
        (),
    ),
    ("conftest", {"conftest.py": "", "test_a.py": UNITTEST}, {TESTS: "python3 -m pytest -q"}, ()),
    (
        "pytest classes without import",
        {"test_a.py": "class TestA:\n    def test_a(self):\n        pass\n"},
        {TESTS: "python3 -m pytest -q"},
        (),
    ),
    (
        "requirements name pytest",
        {"requirements-dev.txt": "rich\npytest>=8\n", "test_a.py": UNITTEST},
        {TESTS: "python3 -m pytest -q"},
        (),
    ),
    (
        "dependencies name pytest",
        {"test_a.py": UNITTEST, **pyproject('[dependency-groups]\ndev = ["pytest>=8"]\n')},
        {TESTS: "python3 -m pytest -q"},
        (),
    ),
    ("unittest at the root", {"test_a.py": UNITTEST}, {TESTS: DISCOVER}, ()),
    (
        "unittest in one file",
        {"test.py": UNITTEST, "dev.requirements.txt": "pytest\n"},
        {TESTS: DISCOVER},
        (),
    ),
    ("a command of that name", {"shop/test.py": UNITTEST}, {}, ()),
    ("unittest in a folder", {"tests/test_a.py": UNITTEST}, {TESTS: f"{DISCOVER} -s tests"}, ()),
    (
        "unittest in a package",
        {
            "tests/__init__.py": "",
            "tests/deep/__init__.py": "",
            "tests/test_a.py": UNITTEST,
            "tests/deep/test_b.py": UNITTEST,
        },
        {TESTS: f"{DISCOVER} -s tests -t ."},
        (),
    ),
    (
        "unittest in folders that are no packages",
        {"tests/test_a.py": UNITTEST, "tests/deep/test_b.py": UNITTEST},
        {TESTS: f"r=0; {{ {DISCOVER} -s tests/deep; }} || r=1; {{ {DISCOVER} -s tests; }} || r=1; exit $r"},
        (),
    ),
    (
        "unittest with suffix naming",
        {"t/a_test.py": UNITTEST},
        {TESTS: f"{DISCOVER} -s t -p '*_test.py'"},
        (),
    ),
    (
        "src layout, unittest",
        {"src/p/__init__.py": "", "tests/test_a.py": UNITTEST},
        {TESTS: f"PYTHONPATH=src {DISCOVER} -s tests"},
        (),
    ),
    (
        "src layout, pytest",
        {"src/p/__init__.py": "", "tests/test_a.py": PYTEST},
        {TESTS: "PYTHONPATH=src python3 -m pytest -q"},
        (),
    ),
    (
        "compiled sources are not imported from src",
        {"src/p/__init__.py": "", "src/p/x.c": "", "tests/test_a.py": PYTEST},
        {TESTS: "python3 -m pytest -q"},
        (),
    ),
    (
        "python, everything configured",
        {
            "test_a.py": PYTEST,
            **pyproject("[tool.ruff]\n[tool.mypy]\nstrict=true\n[build-system]\nrequires=[]\n"),
        },
        {LINT: "python3 -m ruff check .", TYPES: "python3 -m mypy .", TESTS: "python3 -m pytest -q"},
        (),
    ),
    ("mypy knows its files", {"mypy.ini": "[mypy]\nfiles = a.py\n"}, {TYPES: "python3 -m mypy"}, ()),
    ("mypy on src", {"src/a.py": "", "setup.cfg": "[mypy]\n"}, {TYPES: "python3 -m mypy src"}, ()),
    (
        "two type checkers",
        pyproject("[tool.mypy]\n[tool.pyright]\n"),
        {TYPES: "r=0; { python3 -m mypy .; } || r=1; { python3 -m pyright; } || r=1; exit $r"},
        (),
    ),
    ("pyright", {"pyrightconfig.json": "{}"}, {TYPES: "python3 -m pyright"}, ()),
    ("ruff.toml", {"ruff.toml": ""}, {LINT: "python3 -m ruff check ."}, ()),
    ("flake8", {".flake8": ""}, {LINT: "python3 -m flake8 --extend-exclude=.venv"}, ()),
    ("black", pyproject("[tool.black]\n"), {LINT: "python3 -m black --check -q ."}, ()),
    (
        "ruff that formats",
        pyproject("[tool.ruff.format]\n"),
        {LINT: f"r=0; {{ {RUFF} check .; }} || r=1; {{ {RUFF} format --check .; }} || r=1; exit $r"},
        (),
    ),
    ("tox", {"tox.ini": "[testenv]\ncommands = python check.py\n"}, {TESTS: "python3 -m tox -q"}, ()),
    ("pytest rather than tox", {"tox.ini": "[testenv]\n", "test_a.py": PYTEST}, {TESTS: PYTEST_Q}, ()),
    (
        "unittest rather than tox",
        {"tox.ini": "[testenv]\n", "test_a.py": UNITTEST},
        {TESTS: f"{DISCOVER}"},
        (),
    ),
    ("isort", {".isort.cfg": ""}, {LINT: "python3 -m isort --check-only -q ."}, ()),
    (
        "a linter and a formatter",
        pyproject("[tool.ruff]\n[tool.black]\n"),
        {LINT: BOTH},
        (),
    ),
    ("ruff rather than flake8", {".flake8": "", ".ruff.toml": ""}, {LINT: "python3 -m ruff check ."}, ()),
    (
        "a damaged pyproject",
        {"test_a.py": PYTEST, **pyproject("[tool.ruff")},
        {TESTS: "python3 -m pytest -q"},
        (),
    ),
    ("npm", package('{"scripts": {"test": "node --test"}}'), {TESTS: "npm test"}, ("npm",)),
    (
        "npm's default is no test",
        package('{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'),
        {},
        (),
    ),
    ("a damaged package.json", package('{"scripts": '), {}, ()),
    (
        "pnpm with everything",
        package(
            '{"scripts": {"test": "vitest run", "lint": "eslint .", "build": "vite build"},'
            ' "devDependencies": {"typescript": "5"}}',
            "tsconfig.json",
            "pnpm-lock.yaml",
        ),
        {
            LINT: "pnpm run lint",
            TYPES: "pnpm exec tsc --noEmit",
            BUILD: "pnpm run build",
            TESTS: "pnpm test",
        },
        ("pnpm",),
    ),
    ("yarn", package('{"scripts": {"test": "jest"}}', "yarn.lock"), {TESTS: "yarn test"}, ("yarn",)),
    (
        "bun's newer lock",
        package('{"scripts": {"test": "x"}}', "bun.lock"),
        {TESTS: "bun run test"},
        ("bun",),
    ),
    (
        "the package manager that is named",
        package('{"packageManager": "yarn@4.1.0", "scripts": {"test": "x"}}', "package-lock.json"),
        {TESTS: "yarn test"},
        ("yarn",),
    ),
    (
        "a script that checks the format",
        package('{"scripts": {"test": "x", "format:check": "prettier --check ."}}'),
        {LINT: "npm run format:check", TESTS: "npm test"},
        ("npm",),
    ),
    ("bun", package('{"scripts": {"test": "jest"}}', "bun.lockb"), {TESTS: "bun run test"}, ("bun",)),
    ("go", {"go.mod": "", "a_test.go": ""}, {LINT: "go vet ./...", TESTS: "go test ./..."}, ("go",)),
    (
        "go modules without a root",
        {"api/go.mod": "", "api/a_test.go": "", "lib/go.mod": "", "lib/a_test.go": ""},
        {LINT: EACH.format("go vet"), TESTS: EACH.format("go test")},
        ("go",),
    ),
    (
        "a go workspace that leaves a module out",
        {
            "go.work": "go 1.19\n\nuse (\n\t./api // the server\n)\nuse ./lib\n",
            "api/go.mod": "",
            "api/a.go": "",
            "lib/go.mod": "",
            "tools/go.mod": "",
            "tools/a_test.go": "",
        },
        {
            LINT: f"{EACH[:-7].format('go vet')}(cd tools && GOWORK=off go vet ./...) || r=1; exit $r",
            TESTS: "cd tools && GOWORK=off go test ./...",
        },
        ("go",),
    ),
    (
        "a go module inside another",
        {
            "go.mod": "",
            "a.go": "",
            "e2e/go.mod": "",
            "e2e/a_test.go": "",
            "tools/go.mod": "",
            "tools/a.go": "",
        },
        {
            LINT: "r=0; { go vet ./...; } || r=1; (cd e2e && go vet ./...) || r=1; exit $r",
            TESTS: "cd e2e && go test ./...",
        },
        ("go",),
    ),
    (
        "go modules that are data",
        {
            "go.mod": "",
            "a_test.go": "",
            "testdata/go.mod": "",
            "testdata/a_test.go": "",
            "vendor/x/go.mod": "",
        },
        {LINT: "go vet ./...", TESTS: "go test ./..."},
        ("go",),
    ),
    (
        "a cargo workspace",
        {
            "Cargo.toml": "[workspace]\n[package]\nname = 'top'\n",
            "a/src/lib.rs": "#[test]\n",
        },
        {TYPES: "cargo check --workspace --all-targets", TESTS: "cargo test --workspace"},
        ("cargo",),
    ),
    (
        "crates without a root",
        {
            "a/Cargo.toml": "[workspace]\n",
            "a/in/Cargo.toml": "",
            "a/in/src/lib.rs": "#[test]\n",
            "b/Cargo.toml": "",
            "b/tests/b.rs": "#[test]\n",
            "c/Cargo.toml": "",
        },
        {
            TYPES: "r=0; (cd a && cargo check --workspace --all-targets) || r=1; "
            "(cd b && cargo check --all-targets) || r=1; exit $r",
            TESTS: "r=0; (cd a && cargo test --workspace) || r=1; (cd b && cargo test) || r=1; exit $r",
        },
        ("cargo",),
    ),
    (
        "a crate beside what make tests",
        {"Makefile": "test:\n\ttrue\n", **CRATE},
        {TESTS: "make test"},
        ("make",),
    ),
    ("a crate beside another manifest", {"pyproject.toml": "", **CRATE}, {}, ()),
    (
        "packages of a pnpm workspace",
        {
            "package.json": '{"packageManager": "pnpm@9.0.0"}',
            "pnpm-workspace.yaml": "packages:\n  - 'libs/*'\n  - \"app\"\n  - '!libs/old'\n",
            **{
                f"{name}/package.json": '{"scripts": {"test": "node --test"}}'
                for name in ("app", "libs/a", "c")
            },
        },
        {TESTS: "r=0; (cd app && pnpm test) || r=1; (cd libs/a && pnpm test) || r=1; exit $r"},
        ("pnpm",),
    ),
    (
        "packages of a yarn workspace",
        {
            "package.json": '{"workspaces": ["libs/*"]}',
            "yarn.lock": "",
            "libs/a/package.json": '{"scripts": {"test": "node --test"}}',
            "libs/b/package.json": "{}",
        },
        {TESTS: "cd libs/a && yarn test"},
        ("yarn",),
    ),
    ("go without tests", {"go.mod": "", "a.go": ""}, {LINT: "go vet ./..."}, ("go",)),
    (
        "rust",
        {"Cargo.toml": "[package]\n", "src/lib.rs": "#[cfg(test)]\nmod t {\n  #[test]\n  fn a() {}\n}\n"},
        {TYPES: "cargo check --all-targets", TESTS: "cargo test"},
        ("cargo",),
    ),
    (
        "rust without tests",
        {"Cargo.toml": "", "src/lib.rs": ""},
        {TYPES: "cargo check --all-targets"},
        ("cargo",),
    ),
    (
        "clippy where it is configured",
        {"Cargo.toml": "[lints.clippy]\nall = 'deny'\n"},
        {LINT: "cargo clippy --all-targets -- -D warnings", TYPES: "cargo check --all-targets"},
        ("cargo", "cargo-clippy"),
    ),
    ("make", {"Makefile": "all:\n\ntest: all\n\t./t\n"}, {TESTS: "make test"}, ("make",)),
    ("a variable is no target", {"Makefile": "test := 1\n"}, {}, ("make",)),
    (
        "make adds nothing to known tests",
        {"Makefile": "test:\n\tx\n", "test_a.py": PYTEST},
        {TESTS: "python3 -m pytest -q"},
        ("make",),
    ),
    ("maven", {"pom.xml": "", "src/test/java/ATest.java": ""}, {TESTS: "mvn -B test"}, ("mvn",)),
    (
        "gradle's wrapper",
        {"build.gradle": "", "gradlew": "", "m/src/test/A.kt": ""},
        {TESTS: "./gradlew --no-daemon test"},
        ("java",),
    ),
    ("maven without tests", {"pom.xml": "", "src/main/java/A.java": ""}, {}, ("mvn",)),
    (
        "Django's tests without pytest",
        {"manage.py": DJANGO, "shop/tests.py": UNITTEST, "shop/a_test.py": UNITTEST},
        {TESTS: "python3 manage.py test -v 2"},
        (),
    ),
    (
        "Django in a folder, beside tests of its own",
        {"site/manage.py": DJANGO, "site/shop/tests.py": UNITTEST, "test_a.py": PYTEST},
        {TESTS: f"r=0; {{ {PYTEST_Q}; }} || r=1; (cd site && python3 manage.py test -v 2) || r=1; exit $r"},
        (),
    ),
    (
        "Django with pytest's settings",
        {"manage.py": DJANGO, "shop/test_a.py": UNITTEST, "pytest.ini": "[pytest]\n"},
        {TESTS: PYTEST_Q},
        (),
    ),
    ("Django without tests", {"manage.py": DJANGO, "shop/models.py": ""}, {}, ()),
    (
        "minitest and RSpec by bundler",
        {"Gemfile": "", "Gemfile.lock": "", "spec/a_spec.rb": "", ".rspec": ""},
        {TESTS: "bundle exec rspec"},
        ("bundle", "ruby"),
    ),
    (
        "Rails",
        {"Gemfile": "", "Gemfile.lock": "", "Rakefile": "", "bin/rails": "", "test/models/a_test.rb": ""},
        {TESTS: "./bin/rails test"},
        ("bundle", "ruby"),
    ),
    (
        "a Rakefile that only builds",
        {"Rakefile": "task :build\n", "test/a_test.rb": ""},
        {},
        ("rake", "ruby"),
    ),
    (
        "CMake beside a Makefile",
        {"CMakeLists.txt": "enable_testing()\n", "Makefile": "test:\n\tctest\n"},
        {TESTS: "make test"},
        ("cmake", "make"),
    ),
    (
        "CMake beside a Makefile, where CI runs ctest",
        {
            "CMakeLists.txt": "enable_testing()\n",
            "Makefile": "test:\n\t./demo\n",
            ".github/workflows/ci.yml": "jobs:\n  a:\n    steps:\n      - run: ctest --test-dir build\n",
        },
        {TESTS: "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure"},
        ("cmake", "make"),
    ),
    (
        "Meson, with the tests below",
        {"meson.build": "if is_whole\n  subdir('tests')\nendif\n"},
        {TESTS: "meson setup build && meson test -C build"},
        ("meson",),
    ),
    ("Meson without tests", {"meson.build": "subdir('src')\n"}, {}, ("meson",)),
    ("CMake without tests", {"CMakeLists.txt": "project(a)\n"}, {}, ("cmake",)),
    ("a solution without tests", {"A.sln": "", "A/A.csproj": ""}, {}, ("dotnet",)),
    (
        "one .NET project",
        {"A.Tests.csproj": "", "T.cs": ""},
        {TESTS: "dotnet test"},
        ("dotnet",),
    ),
    (
        "what npm runs after the tests",
        package('{"scripts": {"test": "node --test", "pretest": "make", "posttest": "eslint ."}}'),
        {LINT: "npm run posttest", TESTS: "npm run pretest && npm test --ignore-scripts"},
        ("npm",),
    ),
    (
        "a linter that npm runs before the tests",
        package('{"scripts": {"test": "node --test", "pretest": "npm run lint", "lint": "eslint ."}}'),
        {LINT: "npm run lint", TESTS: "npm test --ignore-scripts"},
        ("npm",),
    ),
    (
        "a build that npm runs before the tests",
        package('{"scripts": {"test": "node --test", "pretest": "npm run build", "build": "tsc"}}'),
        {BUILD: "npm run build", TESTS: "npm test"},
        ("npm",),
    ),
    (
        "a deno.json beside a package with a script",
        {"deno.json": "{}", "a_test.ts": "", **package('{"scripts": {"test": "vitest run"}}')},
        {TESTS: "npm test"},
        ("npm", "deno"),
    ),
    ("bun without tests", package("{}", "bun.lock"), {}, ("bun",)),
    ("a Taskfile whose test is a variable", {"Taskfile.yml": "vars:\n  test: 1\n"}, {}, ("task",)),
    (
        "doctests that tox runs",
        SUITE | {"tox.ini": "[testenv]\ncommands =\n  pytest -ra --doctest-modules {posargs:pkg tests}\n"},
        {TESTS: f"{PYTEST_Q} --doctest-modules pkg tests"},
        (),
    ),
    (
        "what nox runs",
        SUITE | {"noxfile.py": "def tests(session):\n    session.run('pytest', '--cov', 'pkg', 'tests')\n"},
        {TESTS: f"{PYTEST_Q} tests"},
        (),
    ),
    (
        "what a workflow runs",
        SUITE | {".github/workflows/ci.yml": WORKFLOW.format("python -m pytest -m 'not slow' -n 2 tests/")},
        {TESTS: f"{PYTEST_Q} -m 'not slow' tests"},
        (),
    ),
    (
        "a workflow with a part of the tests",
        SUITE | {".github/workflows/ci.yml": WORKFLOW.format("pytest tests -k ${{ matrix.part }}")},
        {TESTS: PYTEST_Q},
        (),
    ),
    (
        "a workflow with several suites",
        SUITE | {".github/workflows/ci.yml": WORKFLOW.format("pytest tests\n  - run: pytest pkg")},
        {TESTS: PYTEST_Q},
        (),
    ),
    (
        "places that are not there",
        SUITE | {"tox.ini": "[testenv]\ncommands = pytest --pyargs pkg\n"},
        {TESTS: PYTEST_Q},
        (),
    ),
    (
        "two languages",
        {"test_a.py": PYTEST, **package('{"scripts": {"test": "jest"}}')},
        {TESTS: "r=0; { python3 -m pytest -q; } || r=1; { npm test; } || r=1; exit $r"},
        ("npm",),
    ),
]
FIXTURES = [Fixture(name=n, files=f, commands=c, programs=p) for n, f, c, p in RAW]


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_required_checks_of_a_repository(fixture: Fixture, checkout: Any) -> None:
    checkout.fake_python(checkout.programs / "python3", *ALL_TOOLS)
    for name in fixture.programs:
        checkout.program(name)
    checkout.write(fixture.files)
    found = detect(checkout.sandbox, checkout.files)
    assert {check.name: check.command for check in found} == fixture.commands
    assert [check.name for check in found] == [name for name in CheckName if name in fixture.commands]
    assert {check.missing for check in found} <= {None}
    assert all(check.reason for check in found)


@pytest.mark.parametrize(
    ("files", "name", "missing"),
    [
        (pyproject("[tool.ruff]\n"), LINT, "ruff: python3 -m pip install ruff"),
        (pyproject("[tool.mypy]\n"), TYPES, "mypy: python3 -m pip install mypy"),
        ({"test_a.py": PYTEST}, TESTS, "pytest: python3 -m pip install pytest"),
        ({"Cargo.toml": "", "a.rs": "#[test]"}, TESTS, "cargo: install the Rust toolchain"),
        ({"go.mod": "", "a_test.go": ""}, TESTS, "go: install the Go toolchain"),
        (package('{"scripts": {"test": "jest"}}'), TESTS, "npm: install Node.js"),
        ({"Makefile": "test:\n"}, TESTS, "make: install make"),
        ({"pom.xml": "", "src/test/A.java": ""}, TESTS, "mvn: install Maven"),
        ({"manage.py": DJANGO, "shop/tests.py": UNITTEST}, TESTS, "django: python3 -m pip install django"),
        (package("{}", "bun.lock", "a.test.ts"), TESTS, "bun: npm install -g bun"),
        ({"deno.json": "{}", "a_test.ts": ""}, TESTS, "deno: npm install -g deno"),
        ({"phpunit.xml": "", "tests/ATest.php": ""}, TESTS, "phpunit: composer install"),
        ({".rspec": "", "spec/a_spec.rb": ""}, TESTS, "ruby: install Ruby"),
        ({"A.Tests.csproj": ""}, TESTS, "dotnet: install the .NET SDK"),
        ({"mix.exs": "", "test/a_test.exs": ""}, TESTS, "mix: install Elixir"),
        ({"Package.swift": "", "Tests/A/A.swift": ""}, TESTS, "swift: install the Swift toolchain"),
        ({"CMakeLists.txt": "enable_testing()"}, TESTS, "cmake: python3 -m pip install cmake"),
        ({"meson.build": "test('a', b)"}, TESTS, "meson: python3 -m pip install meson ninja"),
        ({"justfile": "test:\n"}, TESTS, "just: cargo install just"),
        ({"Taskfile.yml": "tasks:\n  test: x\n"}, TESTS, "task: npm install -g @go-task/cli"),
        ({"build.gradle": "", "gradlew": "", "src/test/A.java": ""}, TESTS, "java: install a JDK"),
    ],
)
def test_absent_tool_is_named_with_a_hint(
    files: dict[str, str], name: CheckName, missing: str, checkout: Any
) -> None:
    checkout.fake_python(checkout.programs / "python3")
    checkout.write(files)
    found = {check.name: check for check in detect(checkout.sandbox, checkout.files)}
    assert found[name].missing == missing


def test_of_a_joined_check_the_part_runs_whose_language_is_there(checkout: Any) -> None:
    checkout.fake_python(checkout.programs / "python3", "pytest")
    checkout.write({"test_a.py": PYTEST, **package('{"scripts": {"test": "jest"}}')})
    (tests,) = detect(checkout.sandbox, checkout.files)
    assert (tests.command, tests.missing) == ("python3 -m pytest -q", None)
    assert tests.left_out == "npm: install Node.js"
    assert tests.timeout == 600


def test_unittest_needs_no_tool(checkout: Any) -> None:
    checkout.fake_python(checkout.programs / "python3")
    checkout.write({"test_a.py": UNITTEST})
    (tests,) = detect(checkout.sandbox, checkout.files)
    assert tests.missing is None


def test_tool_on_path_is_used_when_the_interpreter_has_none(checkout: Any) -> None:
    checkout.fake_python(checkout.programs / "python3")
    checkout.program("ruff")
    checkout.write({"ruff.toml": ""})
    (lint,) = detect(checkout.sandbox, checkout.files)
    assert (lint.command, lint.missing) == ("ruff check .", None)


def test_shim_that_stands_for_nothing_is_a_missing_tool(checkout: Any) -> None:
    checkout.fake_python(checkout.programs / "python3")
    checkout.program("ruff", "exit 127")
    checkout.write({"ruff.toml": ""})
    (lint,) = detect(checkout.sandbox, checkout.files)
    assert lint.missing is not None


def test_file_that_git_ignores_or_that_leads_out_configures_nothing(checkout: Any, tmp_path: Path) -> None:
    checkout.write({"ruff.toml": ""})
    (tmp_path / "outside.toml").write_text("[tool.mypy]\n")
    (checkout.root / "pyproject.toml").symlink_to(tmp_path / "outside.toml")
    assert detect(checkout.sandbox, ("pyproject.toml",)) == ()


def test_of_settled_checks_no_tool_is_asked_for_and_a_new_one_is_found(checkout: Any) -> None:
    checkout.program("python3", "sleep 60")
    checkout.write({"test_a.py": PYTEST, **pyproject("[tool.ruff]\n[tool.ruff.format]\n")})
    begin = time.monotonic()
    assert detect(checkout.sandbox, checkout.files, {LINT, TESTS}) == ()
    assert time.monotonic() - begin < 30
    checkout.fake_python(checkout.programs / "python3", *ALL_TOOLS)
    checkout.write(pyproject("[tool.ruff]\n[tool.mypy]\n"))
    (types,) = detect(checkout.sandbox, checkout.files, {LINT, TESTS})
    assert (types.name, types.command) == (TYPES, "python3 -m mypy .")
    assert types in detect(checkout.sandbox, checkout.files)


def test_limits(checkout: Any) -> None:
    checkout.fake_python(checkout.programs / "python3", *ALL_TOOLS)
    checkout.program("npm")
    scripts = '{"scripts": {"build": "tsc"}}'
    checkout.write({"test_a.py": PYTEST, **pyproject("[tool.ruff]\n[tool.mypy]\n"), **package(scripts)})
    found = detect(checkout.sandbox, checkout.files)
    assert {check.name: check.timeout for check in found} == {LINT: 60, TYPES: 120, BUILD: 180, TESTS: 300}
    in_haste = detect_quick(checkout.sandbox, checkout.files, ())
    assert {check.name: check.timeout for check in in_haste} == {LINT: 30, TESTS: 60}


def test_a_quick_look_takes_the_format_by_itself(checkout: Any) -> None:
    checkout.fake_python(checkout.programs / "python3", *ALL_TOOLS)
    checkout.write({"test_a.py": PYTEST, **pyproject("[tool.ruff.format]\n[tool.black]\n[tool.mypy]\n")})
    found = {each.name: each for each in detect_quick(checkout.sandbox, checkout.files, ())}
    assert {name: each.timeout for name, each in found.items()} == {LINT: 30, FORMAT: 15, TESTS: 60}
    assert found[LINT].command == "python3 -m ruff check ."
    assert "ruff format --check ." in found[FORMAT].command
    assert "black --check" in found[FORMAT].command


SOME = {"pkg/core.py": "", "tests/test_core.py": PYTEST, "tests/test_other.py": PYTEST}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ((), ""),
        (("README.md",), ""),
        (("tests/test_other.py",), " tests/test_other.py"),
        (("pkg/core.py",), " tests/test_core.py"),
        (("pkg/core.py", "tests/test_other.py"), " tests/test_core.py tests/test_other.py"),
        (("pkg/unknown.py",), ""),
    ],
)
def test_a_quick_look_runs_the_tests_of_what_changed(
    changed: tuple[str, ...], words: str, checkout: Any
) -> None:
    checkout.fake_python(checkout.programs / "python3", *ALL_TOOLS)
    checkout.write(SOME)
    (tests,) = detect_quick(checkout.sandbox, checkout.files, changed)
    assert tests.command == f"python3 -m pytest -q{words}"


def test_a_quick_look_at_unittest_takes_the_files_one_by_one(checkout: Any) -> None:
    checkout.fake_python(checkout.programs / "python3")
    checkout.write({"tests/test_a.py": UNITTEST, "tests/test_b.py": UNITTEST, "b.py": ""})
    (tests,) = detect_quick(checkout.sandbox, checkout.files, ("b.py",))
    assert tests.command == f"{DISCOVER} -s tests -p test_b.py"
