"""Java and Kotlin: Maven and Gradle."""

from agentflow.runners.runner import TestRunner

_SUREFIRE = r"Tests run: (?P<total>\d+), Failures: (?P<failed>\d+), Errors: (?P<errors>\d+), "
RUNNERS = (
    TestRunner(
        name="Maven",
        leaves="*/target/*-reports/TEST-*.xml",
        total=rf"(?:\[\w+\] )?{_SUREFIRE}Skipped: (?P<skipped>\d+)",
        adds_up=True,
        one={"mvn": "{} -Dtest=CLASS#METHOD"},
    ),
    TestRunner(
        name="Gradle",
        leaves="*/build/test-results/*/TEST-*.xml",
        one={"gradle": "{} --tests CLASS.METHOD"},
    ),
)
