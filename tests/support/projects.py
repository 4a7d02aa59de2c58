"""Repositories that hold more than one project, and tasks in them."""

import sys
from typing import Any

from tests.support import play
from tests.support.repo import Done, Repo

CALC = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n"
RIGHT = CALC.replace("a - b", "a + b")
PROJECT = {
    "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["slow"]\naddopts = "--strict-markers"\n',
    "app/__init__.py": "",
    "app/calc.py": CALC,
    "sums.txt": "4\n",
    "tests/test_calc.py": (
        "from pathlib import Path\n\nimport pytest\n\nfrom app.calc import add, double\n\n\n"
        "@pytest.mark.slow\ndef test_add():\n    assert add(1, 2) == 3\n\n\n"
        "def test_double():\n    assert double(2) == int(Path('sums.txt').read_text())\n"
    ),
}
PYTHON = f'#!/bin/sh\nITS_OWN=1 PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 exec "{sys.executable}" "$@"\n'
BY_ITS_OWN = "import os\n\n\ndef test_python():\n    assert os.environ.get('ITS_OWN')\n"
SILENT = "import _pytest.python\n\n_pytest.python.Function.runtest = lambda self: None\n\n\n"
"""Code that makes every test of pytest pass."""


def lay_project(folder: str, **other: str) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in {**PROJECT, **other}.items()}


def lay_several() -> dict[str, str]:
    right = {"app/calc.py": RIGHT}
    beside = {"tests/test_root.py": "def test_root():\n    assert True\n"}
    return {**lay_project("one", **right), **lay_project("two", **right), **beside}


def write_calc(repo: Repo, folder: str, text: str) -> Done:
    """Let a task write the code of one project."""
    path = f"{folder}/app/calc.py"
    turns = (
        play.turn(play.call("Read", file_path=path)),
        play.turn(play.call("Write", file_path=path, content=text)),
    )
    implementer: Any = play.role("implementer", *turns, play.submit(path))
    script = [play.findings(path), play.plan(path), implementer, play.verified("ev-0002")]
    return repo.task(play.TEXT, "--json", "--max-iterations", "1", script=script)


def own_python(repo: Repo, folder: str) -> None:
    """Give a project a Python of its own."""
    place = repo.root / folder / ".venv/bin/python"
    place.parent.mkdir(parents=True)
    place.write_text(PYTHON)
    place.chmod(0o755)


def run_turns(repo: Repo, task: str, *turns: Any, evidence: str = "ev-0002") -> Done:
    """Let a task do what some turns of its implementer do, with a crew that has no objection."""
    path = repo.git("ls-files").split()[-1]
    approving: Any = play.turn(play.call("SubmitReview", verdict="APPROVED", issues=[]))
    script = [
        play.findings(path),
        play.plan(path),
        play.role("implementer", *turns, play.submit(path)),
        play.role("reviewer", approving),
        play.verified(evidence),
    ]
    return repo.task(task, "--json", "--max-iterations", "1", script=script)


def run_command(repo: Repo, command: str, task: str) -> Done:
    """Let a task run one command."""
    return run_turns(repo, task, play.turn(play.call("Bash", command=command)), evidence="ev-0003")


def add_files(repo: Repo, files: dict[str, str], evidence: str = "ev-0002") -> Done:
    """Let a task write files that are new."""
    calls = (play.call("Write", file_path=path, content=text) for path, text in files.items())
    return run_turns(
        repo, "add the project two, which adds and doubles", play.turn(*calls), evidence=evidence
    )


def lay_second(**other: str) -> dict[str, str]:
    """Return a project that a task adds, with all of its code tested."""
    return lay_project("two", **{"app/calc.py": RIGHT, **other})


ROOTS = {
    "beside": {**lay_project("one", **{"app/calc.py": RIGHT})},
    "below": {
        "calc.py": RIGHT,
        "tests/test_root.py": "from calc import add\n\n\ndef test_root():\n    assert add(1, 1) == 2\n",
    },
    "below unittest": play.GREEN,
}
WRONG = {
    "a failing test": ({"app/calc.py": CALC}, 3),
    "silenced": ({"app/calc.py": SILENT + CALC}, 3),
    "a silencing conftest": ({"app/calc.py": CALC, "conftest.py": SILENT}, 3),
}


def lay_module(folder: str, name: str, code: str = "return a + b") -> dict[str, str]:
    """Return the files of a Go package that adds, with its test."""
    test = "func TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fail()\n\t}\n}\n"
    test = f'package {name}\n\nimport "testing"\n\n{test}'
    text = f"package {name}\n\nfunc Add(a, b int) int {{\n\t{code}\n}}\n"
    return {f"{folder}add.go": text, f"{folder}add_test.go": test}


TOP = {"go.mod": "module top\n\ngo 1.19\n", **lay_module("", "top"), **lay_module("sub/", "sub")}
RENAMED = "mv two/app/calc.py two/app/sums.py && sed -i 's/app.calc/app.sums/' two/tests/*.py"


def lay_package(name: str, code: str = "a + b") -> dict[str, str]:
    """Return the files of a package of npm that adds, with its test."""
    test = (
        "const test = require('node:test'), assert = require('node:assert');\n"
        "const { add } = require('../index.js');\n\n"
        "test('adds', () => assert.equal(add(1, 2), 3));\n"
    )
    return {
        f"packages/{name}/package.json": f'{{"name": "{name}", "scripts": {{"test": "node --test"}}}}\n',
        f"packages/{name}/index.js": f"exports.add = (a, b) => {code};\n",
        f"packages/{name}/test/{name}.test.js": test,
    }


SCRIPTS = {"said": ', "scripts": {"test": "npm test --workspaces"}', "unsaid": ""}
