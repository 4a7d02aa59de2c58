import json

import pytest

from agentflow.core.evidence import Check, CheckName
from agentflow.runners.calls import list_calls
from agentflow.runners.java import MAVEN
from agentflow.runners.selection import list_shorter

PATH = 'export PATH="$PWD/node_modules/.bin:$PATH" && '
SCRIPTS = {
    "prelint": "echo lint",
    "lint": "eslint . && prettier -c src",
    "posttest": "eslint .",
    "unit": "c8 mocha 'test/**/*.js'",
    "again": "npm run again",
}
STEPS = {
    ("npm test", "jest"): ["jest", "eslint ."],
    ("npm test --ignore-scripts", "jest"): ["jest"],
    ("npm test -- --ci", "jest"): ["jest --ci", "eslint ."],
    ("pnpm test", "pnpm lint && vitest run"): ["eslint .", "prettier -c src", "vitest run"],
    ("pnpm test", "npm run -s lint"): ["echo lint", "eslint .", "prettier -c src"],
    ("pnpm test", "tape 't && x.js' | tap-spec"): ["tape 't && x.js'"],
    ("pnpm test", "tape t.js > out | tap-spec"): ["tape t.js > out | tap-spec"],
    ("pnpm test", "echo 'a && b"): ["echo 'a && b"],
    ("npm test", "run-s lint unit"): [
        "echo lint",
        "eslint .",
        "prettier -c src",
        "c8 mocha 'test/**/*.js'",
        "eslint .",
    ],
    ("npm test", "npm-run-all -s 'un*'"): ["c8 mocha 'test/**/*.js'", "eslint ."],
    ("npm test", "run-s none"): ["run-s none", "eslint ."],
    ("npm test", "run-p lint unit"): ["run-p lint unit", "eslint ."],
    ("pnpm again", ""): ["npm run again"],
}


@pytest.mark.parametrize(("command", "script"), STEPS)
def test_a_command_comes_to_the_steps_of_its_scripts(command: str, script: str) -> None:
    manifest = json.dumps({"scripts": {**SCRIPTS, "test": script}})
    calls = list_calls(command, {"package.json": manifest}.__getitem__)
    assert [each.command for each in calls] == STEPS[command, script]


ANY = "-Dsurefire.failIfNoSpecifiedTests=false"
SHORTER = {
    "a script behind others": (
        "pnpm test",
        "pnpm lint && pnpm unit",
        {"test/a.js::adds > two"},
        [
            f"{PATH}mocha test/a.js -g 'adds two'",
            f"{PATH}prettier -c src && mocha test/a.js -g 'adds two'",
            f"{PATH}eslint . && prettier -c src && mocha test/a.js -g 'adds two'",
        ],
    ),
    "several tests": ("npx jest --ci", "", {"a.js::x", "b.js::y"}, ["npx jest --ci a.js b.js -t 'x|y'"]),
    "all tests": ("pnpm test", "tsc && jest", set[str](), [f"{PATH}jest", f"{PATH}tsc && jest"]),
    "a method of a class": (
        "mvn -B test",
        "",
        {"org.A::adds", "org.A::takes(int)[1]"},
        [
            f"mvn{MAVEN.bare} -B test '-Dtest=org.A#adds,org.A#takes' {ANY}",
        ],
    ),
    "tests of Gradle": ("./gradlew test", "", {"A::x", "A::y"}, ["./gradlew test --tests A.x --tests A.y"]),
    "subtests of Go": (
        "go test -race ./...",
        "",
        {"m/p::TestA/x"},
        ["go test -vet=off -race m/p -run TestA"],
    ),
    "tests of a crate": (
        "cargo test -- --test-threads=1",
        "",
        {"c::m::adds", "api::takes"},
        ["cargo test --test=api --lib --bins -- takes m::adds --test-threads=1"],
    ),
    "a runner that is not known": ("make test", "", {"a.js::x"}, []),
}


@pytest.mark.parametrize("case", SHORTER)
def test_a_check_runs_less_and_less_that_is_no_test(case: str) -> None:
    command, script, tests, shorter = SHORTER[case]
    manifest = json.dumps({"scripts": {**SCRIPTS, "test": script}})
    files = ("test/a.js", "a.js", "b.js", "tests/api.rs", "src/lib.rs")
    check = Check(name=CheckName.TESTS, command=command, timeout=1.0, reason="")
    found = list_shorter(check, tests, files, {"package.json": manifest}.__getitem__)
    assert [each.command for each in found] == shorter
