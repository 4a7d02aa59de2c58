import json
from xml.etree import ElementTree as ET

from agentflow.checks.interchange import Ran, convert_to_sarif, to_junit_xml
from agentflow.core.evidence import Check, CheckName
from agentflow.core.record import encode
from tests.support.formats import junit_problems, sarif_problems

MISSING = Check(
    name=CheckName.TESTS, command="mvn -B test", timeout=1, reason="pom.xml", missing="mvn: install Maven"
)
NOT_RUN = Ran(check=MISSING, shown=None, holds=False, why="not run (mvn: install Maven)")


def test_a_check_that_cannot_run_is_an_error_that_says_what_to_do() -> None:
    text = to_junit_xml([NOT_RUN])
    assert junit_problems(text) == []
    (error,) = ET.fromstring(text).iter("error")
    assert error.get("message") == "not run (mvn: install Maven)"


def test_a_check_that_cannot_run_is_a_complaint() -> None:
    log = json.loads(encode(convert_to_sarif([NOT_RUN])))
    assert sarif_problems(log) == []
    (result,) = log["runs"][0]["results"]
    assert result["message"]["text"] == "mvn -B test: not run (mvn: install Maven)"
