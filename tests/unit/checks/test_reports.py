import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentflow.checks.results import read_reports
from agentflow.checks.run import execute
from agentflow.core.evidence import Check, CheckName, CheckRun, TestCounts, TestOutcome
from agentflow.runners.calls import add_reports
from agentflow.runners.runner import make_results
from agentflow.runners.scripts import find_watching

PASSED, FAILED, SKIPPED, ERROR, _ = TestOutcome
RECORDED = Path(__file__).parents[1] / "runners/recorded"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="runs node")


@pytest.mark.parametrize(("name", "folder"), [("jest.json", "j"), ("vitest.json", "v")])
def test_a_report_in_the_form_of_jest_is_read(tmp_path: Path, name: str, folder: str) -> None:
    (tmp_path / "runner.json").write_bytes((RECORDED / name).read_bytes())
    told = read_reports(tmp_path, [Path("/place")])
    assert told is not None
    assert told.outcomes == {
        f"{folder}/calc.test.js::adds": FAILED,
        f"{folder}/calc.test.js::skipped": SKIPPED,
        f"{folder}/calc.test.js::later": SKIPPED,
        f"{folder}/calc.test.js::suite > inner": PASSED,
        f"{folder}/broken.test.js": ERROR,
    }


def test_no_report_is_not_a_report_of_no_test(tmp_path: Path) -> None:
    assert read_reports(tmp_path, [tmp_path]) is None
    (tmp_path / "node-1-2.jsonl").write_text('{"file":"","names":[],"outcome":"begun"}\n')
    assert read_reports(tmp_path, [tmp_path]) == make_results({})


@pytest.mark.parametrize("text", ["{", "[1]", '{"testResults": [1, {"assertionResults": 3}]}', "null"])
def test_a_damaged_report_tells_of_no_test(tmp_path: Path, text: str) -> None:
    (tmp_path / "runner.json").write_text(text)
    assert read_reports(tmp_path, [tmp_path]) == make_results({})


ADDED = {
    ("npm test", "jest"): "npm test -- --json --outputFile=/s/runner.json",
    ("npm test", "NODE_ENV=test jest --coverage"): "npm test -- --json --outputFile=/s/runner.json",
    ("yarn test", "jest"): "yarn test --json --outputFile=/s/runner.json",
    ("npm test", "vitest run"): (
        "npm test -- --reporter=default --reporter=json --outputFile.json=/s/runner.json"
    ),
    ("npx vitest run", "true"): (
        "npx vitest run --reporter=default --reporter=json --outputFile.json=/s/runner.json"
    ),
    ("pnpm vitest run", ""): (
        "pnpm vitest run --reporter=default --reporter=json --outputFile.json=/s/runner.json"
    ),
    ("npm test", "jest && eslint ."): (
        'export PATH="$PWD/node_modules/.bin:$PATH" && jest --json --outputFile=/s/runner.json && eslint .'
    ),
    ("npm test", "eslint . && jest"): "npm test -- --json --outputFile=/s/runner.json",
    ("npm test", "npm run unit"): "npm test -- -- --json --outputFile=/s/runner.json",
    ("pnpm test", "pnpm unit"): "pnpm test -- --json --outputFile=/s/runner.json",
    ("npm test", "tape 'test/*.js' | tap-spec"): (
        """export PATH="$PWD/node_modules/.bin:$PATH" && tape 'test/*.js'"""
    ),
    ("npm test", "mocha --reporter spec test.js"): (
        'export PATH="$PWD/node_modules/.bin:$PATH" && mocha test.js --reporter /s/mocha.cjs'
    ),
    ("npm test", "tape test.js | tee out; eslint ."): "npm test",
    ("npm test", "npm test"): "npm test",
    ("npm test", "jest --json"): "npm test",
    ("npm test", "jest --watch"): "npm test",
    ("npm test", "echo jest"): "npm test",
    ("npm test", "mocha"): "npm test -- --reporter /s/mocha.cjs",
    ("npm test", "mocha --reporter ./own.js"): "npm test",
    ("make test", "jest"): "make test",
    ("bun run test", "bun test"): "bun run test --reporter=junit --reporter-outfile=/s/runner.xml",
    ("bun test src", ""): "bun test src --reporter=junit --reporter-outfile=/s/runner.xml",
    ("deno test -A", ""): "deno test -A --junit-path=/s/runner.xml",
    ("vendor/bin/phpunit --testdox", ""): "vendor/bin/phpunit --testdox --log-junit /s/runner.xml",
    ("phpunit --log-junit x.xml", ""): "phpunit --log-junit x.xml",
}


@pytest.mark.parametrize(("command", "script"), ADDED)
def test_a_script_that_is_one_run_of_a_known_runner_gets_a_report(command: str, script: str) -> None:
    manifest = json.dumps({"scripts": {"test": script, "unit": "c8 jest"}})
    assert add_reports(command, {"package.json": manifest}.__getitem__, Path("/s")) == ADDED[command, script]


WATCHING = {
    ("npm test", "jest --watchAll --ci"): ("--watchAll", "jest --ci"),
    ("npm test", "node --test --watch"): ("--watch", "node --test"),
    ("cd web && bun test --watch", ""): ("--watch", "cd web && bun test"),
    ("npm test", "jest --watchAll=false"): None,
    ("npm test", "vitest --watch-delay 3"): None,
}


@pytest.mark.parametrize(("command", "script"), WATCHING)
def test_a_command_that_watches_for_changes_is_known_with_what_ends(command: str, script: str) -> None:
    manifest = json.dumps({"scripts": {"test": script}})
    found = find_watching(command, {"package.json": manifest}.__getitem__)
    assert (found and (found.option, found.instead)) == WATCHING[command, script]


@pytest.fixture
def project(checkout: Any) -> Any:
    checkout.programs.mkdir(parents=True, exist_ok=True)
    (checkout.programs / "node").symlink_to(Path(NODE or "").resolve())
    return checkout


def shown(checkout: Any, command: str) -> CheckRun:
    check = Check(name=CheckName.TESTS, command=command, timeout=60, reason="a test")
    return execute(check, checkout.sandbox, checkout.root.parent / "out")


CALC = """
const { test, describe, it } = require('node:test');
const assert = require('node:assert');
test('adds', () => assert.equal(1 - 2, 3));
test('left out', { skip: true }, () => {});
test('later', { todo: true }, () => assert(false));
describe('suite', () => { it('inner', async (t) => { await t.test('deep', () => {}); }); });
"""
TOLD = {
    "test/calc.test.js::adds": FAILED,
    "test/calc.test.js::left out": SKIPPED,
    "test/calc.test.js::later": SKIPPED,
    "test/calc.test.js::suite > inner": PASSED,
    "test/calc.test.js::suite > inner > deep": PASSED,
}


@needs_node
def test_node_tells_each_of_its_tests_and_each_file_that_does_not_load(project: Any) -> None:
    project.write({"package.json": "{}", "test/calc.test.js": CALC, "test/broken.test.js": "require('./no')"})
    found = shown(project, "node --test")
    assert found.outcomes == {**TOLD, "test/broken.test.js": FAILED}
    assert found.counts == TestCounts(passed=2, failed=2, skipped=2)
    assert "AssertionError" in Path(found.execution.output).read_text("utf-8")


@needs_node
def test_the_tests_of_node_that_a_missing_module_ended_are_told(project: Any) -> None:
    begin = "const test = require('node:test');\n"
    project.write(
        {
            "package.json": "{}",
            "test/a.test.js": f"{begin}require('left-pad');\n",
            "test/b.test.mjs": "import '@some/left-pad/sub';\n",
            "test/c.test.js": f"{begin}test('late', () => require('left-pad'));\n"
            "test('other', () => { throw new Error('x'); });\n",
            "test/d.test.js": "console.error(\"Cannot find 'x'\"); process.exit(1);\n",
        }
    )
    assert shown(project, "node --test").import_errors == {
        "test/a.test.js": "Cannot find module 'left-pad'",
        "test/b.test.mjs": "Cannot find package '@some/left-pad'",
        "test/c.test.js::late": "Cannot find module 'left-pad'",
    }


def test_a_file_that_jest_cannot_load_for_want_of_a_module_is_told(tmp_path: Path) -> None:
    lost = {"name": "/place/a.test.js", "status": "failed", "assertionResults": []}
    said = [
        {**lost, "message": "  Test suite failed to run\n\n    Cannot find module 'x' from 'a.test.js'\n"},
        {**lost, "name": "/place/b.test.js", "message": "SyntaxError: Cannot find module 'x'"},
        {**lost, "name": "/place/c.test.js", "message": "it says: Cannot find module 'x'"},
    ]
    (tmp_path / "runner.json").write_text(json.dumps({"testResults": said}))
    told = read_reports(tmp_path, [Path("/place")])
    assert told is not None
    assert told.import_errors == {
        "a.test.js": "Cannot find module 'x'",
        "b.test.js": "Cannot find module 'x'",
    }


@needs_node
def test_several_runs_of_node_in_one_command_are_all_told(project: Any) -> None:
    other = "require('node:test')('more', () => {})"
    project.write({"package.json": "{}", "test/calc.test.js": CALC, "other.js": other})
    found = shown(project, "node other.js; node --test test/")
    assert found.outcomes == {**TOLD, "other.js::more": PASSED}


@needs_node
def test_a_command_with_a_reporter_of_its_own_runs_as_it_is(project: Any) -> None:
    project.write({"package.json": "{}", "test/calc.test.js": CALC})
    found = shown(project, "node --test --test-reporter=tap")
    assert "must match" not in Path(found.execution.output).read_text("utf-8")
    assert found.outcomes["adds"] is FAILED


@needs_node
def test_node_without_a_test_runs_none(project: Any) -> None:
    project.write(
        {"package.json": "{}", "test/empty.test.js": "require('node:test').describe('x', () => {})"}
    )
    assert shown(project, "node test/empty.test.js").counts == TestCounts(is_printed=True)


@needs_node
def test_node_without_a_test_hides_no_sum_of_another_runner(project: Any) -> None:
    """A test of Vitest that groups its cases by node's `describe` begins a run of node that has no test."""
    project.write({"package.json": "{}", "a.mjs": "import { describe } from 'node:test'; describe('x');"})
    found = shown(project, "node a.mjs; echo '      Tests  22 passed (22)'")
    assert found.counts == TestCounts(passed=22, is_printed=True)


def test_a_command_that_names_no_test_is_not_counted(checkout: Any) -> None:
    assert shown(checkout, "echo 3 tests passed").counts is None
