"""`verify --junit --sarif`: what ran, as other programs read it."""

import json
from xml.etree import ElementTree as ET

import pytest

from tests.support import play
from tests.support.formats import junit_problems, sarif_problems
from tests.support.repo import NewRepo

LINTER = 'printf "src/a.js:7:3: unused \\033[31mname\\n"; exit 1\n'
FILES = {**play.CALC, "package.json": json.dumps({"scripts": {"lint": "sh lint.sh"}}), "lint.sh": LINTER}


def test_the_tests_are_written_as_junit(new_repo: NewRepo) -> None:
    repo = new_repo(FILES)
    assert repo.run("verify", "--junit", "out.xml").code == 1
    top = ET.fromstring(repo.read("out.xml"))
    assert top.tag == "testsuites"
    suites = {suite.get("name"): suite for suite in top.findall("testsuite")}
    tests = suites["tests"]
    counted = [tests.get(key) for key in ("tests", "failures", "errors", "skipped")]
    assert counted == ["3", "1", "0", "0"]
    assert float(tests.get("time", "")) > 0
    cases = {case.get("name"): case for case in tests.findall("testcase")}
    assert set(cases) == {"test_add", "test_add_zero", "test_double"}
    assert cases["test_add"].get("classname") == "test_calc.CalcTest"
    assert [name for name, case in cases.items() if case.find("failure") is not None] == ["test_add"]
    assert suites["lint"].get("failures") == "1"
    assert (top.get("tests"), top.get("failures"), top.get("errors")) == ("4", "2", "0")
    assert "AssertionError: -1 != 3" in (tests.findtext("system-out") or "")


def test_every_complaint_of_a_long_output_is_written(new_repo: NewRepo) -> None:
    linter = 'for n in $(seq 1 300); do echo "src/a b.js:$n:1: unused name$n"; done; exit 1\n'
    repo = new_repo({**FILES, "lint.sh": linter})
    repo.run("verify", "--sarif", "out.sarif")
    (run,) = json.loads(repo.read("out.sarif"))["runs"]
    found = [result["locations"][0]["physicalLocation"] for result in run["results"] if "locations" in result]
    assert [each["region"]["startLine"] for each in found] == list(range(1, 301))
    assert {each["artifactLocation"]["uri"] for each in found} == {"src/a%20b.js"}


def test_complaints_are_written_as_sarif(new_repo: NewRepo) -> None:
    repo = new_repo(FILES)
    assert repo.run("verify", "--sarif", "out.sarif", "--json").code == 1
    written = json.loads(repo.read("out.sarif"))
    assert written["version"] == "2.1.0"
    assert written["$schema"].endswith("sarif-2.1.0.json")
    (run,) = written["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    lint = next(result for result in run["results"] if result["ruleId"] == "lint")
    assert {result["ruleId"] for result in run["results"]} == {"lint", "tests"} <= rules
    assert lint["level"] == "error"
    assert lint["message"]["text"].startswith("unused ")
    assert "\x1b" not in lint["message"]["text"]
    (place,) = lint["locations"]
    physical = place["physicalLocation"]
    assert physical == {"artifactLocation": {"uri": "src/a.js"}, "region": {"startLine": 7}}
    assert lint["partialFingerprints"]


def test_a_file_that_cannot_be_written_is_one_message(new_repo: NewRepo) -> None:
    done = new_repo(FILES).run("verify", "--junit", "no/such/folder.xml")
    assert done.code == 2
    assert "cannot write no/such/folder.xml" in done.err
    assert done.out == ""  # it is said before a check runs


def test_quick_limits_are_the_users(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    assert "at most 60 s" in repo.run("verify", "--quick", "--dry-run").out
    config = repo.home / ".config/agentflow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("quick: {tests: 7}\ntimeouts: {tests: 8}\n")
    assert "at most 7 s" in repo.run("verify", "--quick", "--dry-run").out
    assert "at most 8 s" in repo.run("verify", "--dry-run").out


ODD_TEST = """\
import unittest
class Odd(unittest.TestCase):
    def test_prints(self):
        print("\\ufffe\\uffff\\x00\\x1b]0;x\\x07 <&> ]]>")
        self.assertTrue(self.id() == "")
    def test_raises(self):
        raise ValueError("<\\uffff>")
    @unittest.skip("not <now>")
    def test_skipped(self): pass
"""
ODD_LINTER = (
    'printf "/abs/a b.js:1:1: x\\na#b%%zz.js:2:1: y\\nw:x.js:3:1: z\\n'
    'src/\\303\\244?.js:0:0: \\357\\277\\277\\n"; exit 1\n'
)
ODD = {
    "green": play.CALC | {"calc.py": "def add(a, b):\n    return a + b\n"},
    "red": FILES,
    "odd": {**FILES, "lint.sh": ODD_LINTER, "test_odd.py": ODD_TEST},
    "nothing to check": {"a.txt": "a"},
}


@pytest.mark.parametrize(
    ("name", "words"), [*((name, ()) for name in ODD), ("red", ("--dry-run",)), ("red", ("--quick",))]
)
def test_what_is_written_is_what_the_published_schemas_allow(
    new_repo: NewRepo, name: str, words: tuple[str, ...]
) -> None:
    repo = new_repo(ODD[name])
    repo.run("verify", *words, "--junit", "out.xml", "--sarif", "out.sarif")
    assert junit_problems(repo.read("out.xml")) == []
    assert sarif_problems(json.loads(repo.read("out.sarif"))) == []


def test_a_check_that_a_person_skips_is_written_as_skipped(new_repo: NewRepo) -> None:
    repo = new_repo({**play.CALC, ".claude/skip-test-verification": "too slow today"})
    repo.run("trust", "--yes")
    assert repo.run("verify", "--junit", "out.xml").code == 4
    (suite,) = ET.fromstring(repo.read("out.xml"))
    assert [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["1", "0", "0", "1"]
    said = suite.find("testcase/skipped")
    assert said is not None
    assert "too slow today" in (said.get("message") or "")


def test_the_schema_checks_find_what_is_wrong() -> None:
    suite = '<testsuite name="t" tests="x" failures="0" errors="0" time="1"><system-out/>{}</testsuite>'
    case = '<testcase name="a" classname="b" time="0"><failure/></testcase>'
    assert sorted(junit_problems(f'<testsuites skipped="0">{suite.format(case)}</testsuites>')) == [
        "failure lacks type",
        "testsuite: not in order",
        "testsuite: tests is no number",
        "testsuites has skipped",
    ]
    place = {"physicalLocation": {"artifactLocation": {"uri": "a b.js"}, "region": {"startLine": 0}}}
    result = {"level": "bad", "locations": [place], "line": 1}
    log = {"version": "2.1", "runs": [{"tool": {"driver": {}}, "results": [result]}]}
    assert sorted(problem.removeprefix("log.runs[0].") for problem in sarif_problems(log)) == [
        "log.version: 2.1 is not allowed",
        "results[0] has line",
        "results[0] lacks message",
        "results[0].level: bad is not allowed",
        "results[0].locations[0].physicalLocation.artifactLocation.uri: no URI: a b.js",
        "results[0].locations[0].physicalLocation.region.startLine: 0 is not allowed",
        "tool.driver lacks name",
    ]
