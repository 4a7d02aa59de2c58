"""`verify --junit --sarif`: what ran, as other programs read it."""

import json
from collections.abc import Callable
from xml.etree import ElementTree as ET

from tests.support.repo import CALC, Repo

NewRepo = Callable[[dict[str, str]], Repo]
LINTER = 'printf "src/a.js:7:3: unused \\033[31mname\\n"; exit 1\n'
FILES = {**CALC, "package.json": json.dumps({"scripts": {"lint": "sh lint.sh"}}), "lint.sh": LINTER}


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


def test_quick_limits_are_the_users(new_repo: NewRepo) -> None:
    repo = new_repo(CALC)
    assert "at most 60 s" in repo.run("verify", "--quick", "--dry-run").out
    config = repo.home / ".config/agentflow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("quick: {tests: 7}\ntimeouts: {tests: 8}\n")
    assert "at most 7 s" in repo.run("verify", "--quick", "--dry-run").out
    assert "at most 8 s" in repo.run("verify", "--dry-run").out
