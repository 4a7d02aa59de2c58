"""`verify --mutants`: which changed lines of a person's own diff no test would notice."""

import json
import shutil

import pytest

from tests.support.formats import sarif_problems
from tests.support.repo import NewRepo

_RATES = "def rate(total, member=False):\n    return total\n"
_CHANGED = """def rate(total, member=False):
    if member and total >= 100:
        total = total - 10
    return total
"""
_TEST = """import unittest

from rates import rate


class Rates(unittest.TestCase):
    def test_rate(self):
        self.assertEqual(rate(10), 10)
"""
_MEMBER = """
    def test_member(self):
        self.assertEqual(rate(200, member=True), 190)
"""
_OTHERS = """
    def test_others(self):
        self.assertEqual(rate(100, member=True), 90)
        self.assertEqual(rate(99, member=True), 99)
        self.assertEqual(rate(200), 200)
"""


def test_survivors_are_named_until_a_test_notices_each(new_repo: NewRepo) -> None:
    repo = new_repo({"rates.py": _RATES, "test_rates.py": _TEST})
    repo.write({"rates.py": _CHANGED, "test_rates.py": _TEST + _MEMBER})
    done = repo.run("verify", "--mutants")
    assert done.code == 4, done.err
    assert "! rates.py:2  member and total >= 100 → member: no test notices" in done.out
    assert "mutants survive. Add a test that fails on each" in done.out
    assert repo.root.joinpath("rates.py").read_text() == _CHANGED
    repo.write({"test_rates.py": _TEST + _MEMBER + _OTHERS})
    done = repo.run("verify", "--mutants", "--json")
    assert done.code == 0, done.out
    assert done.json["killed"] == done.json["tried"] > 5
    assert [each["grade"] for each in done.json["survived"]] == []


def test_survivors_are_written_as_sarif_at_their_lines(new_repo: NewRepo) -> None:
    repo = new_repo({"rates.py": _RATES, "test_rates.py": _TEST})
    repo.write({"rates.py": _CHANGED, "test_rates.py": _TEST + _MEMBER})
    done = repo.run("verify", "--mutants", "--sarif", "found.sarif", "--json")
    assert done.code == 4, done.err
    written = json.loads(repo.read("found.sarif"))
    assert sarif_problems(written) == []
    (run,) = written["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {each["ruleId"] for each in run["results"]} == {"mutant_survived"} <= rules
    (told,) = (each for each in run["results"] if "total >= 100 → member:" in each["message"]["text"])
    assert told["level"] == "warning"
    assert told["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "rates.py"},
        "region": {"startLine": 2},
    }


def test_a_range_is_tried_as_it_was_committed(new_repo: NewRepo) -> None:
    repo = new_repo({"rates.py": _RATES, "test_rates.py": _TEST})
    repo.write({"rates.py": _CHANGED})
    repo.git("commit", "-qam", "members pay less")
    repo.write({"rates.py": _RATES})
    done = repo.run("verify", "--mutants", "HEAD~1..HEAD", "--json")
    assert done.code == 4, done.err
    assert {each["line"] for each in done.json["survived"]} >= {2, 3}
    assert repo.run("verify", "--mutants", "HEAD").code == 0  # only a line went


@pytest.mark.parametrize(
    ("files", "words", "said"),
    [
        ({}, ("nowhere",), "no such revision: nowhere"),
        ({"test_rates.py": _TEST.replace("10), 10", "10), 11")}, (), "no test passes here"),
    ],
)
def test_what_cannot_be_tried_is_one_sentence(
    new_repo: NewRepo, files: dict[str, str], words: tuple[str, ...], said: str
) -> None:
    repo = new_repo({"rates.py": _RATES, "test_rates.py": _TEST})
    repo.write({"rates.py": _CHANGED, **files})
    done = repo.run("verify", "--mutants", *words)
    assert done.code == 2
    assert said in done.err


def test_code_that_cannot_be_read_is_named(new_repo: NewRepo) -> None:
    repo = new_repo({"rates.py": _RATES, "test_rates.py": _TEST})
    done = repo.write({"rates.py": "def rate(:\n"}).run("verify", "--mutants")
    assert (done.code, "not tried: rates.py:1 cannot be read" in done.out) == (4, True)


def test_code_in_another_language_is_tried_the_same_way(new_repo: NewRepo) -> None:
    if not shutil.which("node"):
        pytest.skip("runs node")
    test = "const test = require('node:test');\nconst assert = require('node:assert');\n"
    test += "const { rate } = require('./rates');\n"
    test += "test('plain', () => assert.strictEqual(rate(10), 10));\n"
    start = "exports.rate = (total) => total;\n"
    repo = new_repo(
        {"package.json": '{"scripts": {"test": "node --test"}}', "rates.js": start, "rates.test.js": test}
    )
    repo.write({"rates.js": "exports.rate = (total) => (total > 100 ? total - 10 : total);\n"})
    done = repo.run("verify", "--mutants", "--json")
    assert done.code == 4, done.err
    found = {(each["before"], each["after"]) for each in done.json["survived"]}
    assert ("total > 100", "false") in found
    assert ("total > 100", "true") not in found


_LINT_FIRST = {
    "before the script": {"pretest": "node lint.js", "test": "node --test"},
    "in the script": {"test": "node lint.js && node --test | cat"},
    "in scripts that it calls": {"test": "npm run lint && npm run unit", "unit": "node --test"},
    "and a build that the tests need": {"test": "npm run lint && npm run build && node --test"},
}


@pytest.mark.parametrize("scripts", _LINT_FIRST.values(), ids=_LINT_FIRST)
def test_a_linter_before_the_tests_hides_no_mutant(new_repo: NewRepo, scripts: dict[str, str]) -> None:
    if not shutil.which("npm"):
        pytest.skip("runs npm")
    lint = "process.exit(require('fs').readFileSync('rates.js', 'utf8').includes('total * 2') ? 0 : 1)\n"
    test = "const test = require('node:test');\nconst assert = require('node:assert');\n"
    place = "built" if "build" in scripts["test"] else "rates"
    test += f"test('rate', () => assert.strictEqual(require('./{place}.js')(2), 4));\n"
    scripts = {**scripts, "lint": "node lint.js", "build": "cp rates.js built.js"}
    start = "module.exports = (total) => {\n  return total * 2;\n};\n"
    files = {"package.json": json.dumps({"scripts": scripts}), "lint.js": lint, "rates.test.js": test}
    repo = new_repo({**files, "rates.js": start, ".gitignore": "built.js\n"})
    repo.write({"built.js": start})
    repo.write({"rates.js": start.replace("  return", "  if (total < 0) return 0;\n  return")})
    done = repo.run("verify", "--mutants", "--json")
    assert done.code == 4, done.err
    assert {each["after"] for each in done.json["survived"]} >= {"false"}
    repo.write({"rates.js": start.replace("total * 2", "total * 2 * 1")})
    done = repo.run("verify", "--mutants", "--json")
    assert done.json["killed"] >= 3  # each makes the linter fail before a test runs


def test_forks_say_the_same_as_a_run_each(new_repo: NewRepo) -> None:
    """A plugin of pytest that loads the code leaves no time to change it, so it has a run each."""
    test = "from rates import rate\n\n\ndef test_rate():\n    assert rate(10) == 10\n"
    found = []
    for options in ("", "addopts = -p early\n"):
        settings = {"pytest.ini": f"[pytest]\n{options}", "early.py": "import rates\n"}
        repo = new_repo({"rates.py": _RATES, "test_rates.py": test, **settings})
        repo.write({"rates.py": _CHANGED})
        done = repo.run("verify", "--mutants", "--json")
        assert done.code == 4, done.err
        found.append(done.json)
    assert found[0] == found[1]
    assert found[0]["tried"] > 5


def test_what_make_builds_is_built_anew_for_each_mutant(new_repo: NewRepo) -> None:
    """Once the first was built, all others were "killed" by its failures."""
    if not shutil.which("make"):
        pytest.skip("runs make")
    make = "test: built.sh\n\tsh t.sh\n\nbuilt.sh: rate.sh\n\tcp rate.sh $@\n\n.PHONY: test\n"
    test = '. ./built.sh\n[ "$(rate 200)" = 190 ] && echo "ok 1 - much" || echo "not ok 1 - much"\n'
    test += '[ "$(rate 10)" = 10 ] && echo "ok 2 - plain" || echo "not ok 2 - plain"\necho 1..2\n'
    start = "rate() {\n    echo $(($1 - 10 * ($1 > 100)))\n}\n"
    repo = new_repo({"Makefile": make, "t.sh": test, "rate.sh": start, ".gitignore": "built.sh\n"})
    repo.write({"rate.sh": "rate() {\n    if [ $1 -gt 100 ]; then echo $(($1 - 10)); else echo $1; fi\n}\n"})
    done = repo.run("verify", "--mutants", "--json")
    assert {"-gt", "100"} == {each["before"] for each in done.json["survived"]}, done.out
